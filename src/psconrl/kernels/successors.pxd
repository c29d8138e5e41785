# What other kernels call without going through Python.

ctypedef int index  # of row starts and columns of sparse matrices: fewer than 2^31 entries

cdef object check_graph(
    const index[::1] indptr, const index[::1] indices, Py_ssize_t entries, Py_ssize_t n_states
)
cdef Py_ssize_t count_above(const double[::1] values, Py_ssize_t n, double least) noexcept nogil
cdef void keep_above(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, double least, index[::1] starts,
    index[::1] successors
) noexcept nogil
