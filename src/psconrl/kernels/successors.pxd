# What other kernels call without going through Python. Row starts and successors have 32 or 64 bits, both the same.

ctypedef fused index:
    int
    Py_ssize_t

cdef object check_graph(
    Py_ssize_t pairs, Py_ssize_t first, Py_ssize_t last, Py_ssize_t entries, Py_ssize_t n_states
)
cdef Py_ssize_t count_above(const double[::1] values, Py_ssize_t n, double least) noexcept nogil
cdef void keep_above(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, double least, index[::1] starts,
    index[::1] successors
) noexcept nogil
