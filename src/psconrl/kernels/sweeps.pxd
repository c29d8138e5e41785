# What other kernels call without going through Python. Row starts and columns of a chain have 32 or 64 bits each.

ctypedef fused start:
    int
    Py_ssize_t

ctypedef fused column:
    int
    Py_ssize_t

cdef object check_chain(
    const start[::1] indptr, const column[::1] indices, const double[::1] data, Py_ssize_t n
)
cdef void product(
    const start[::1] indptr, const column[::1] indices, const double[::1] data, bint transposed, const double[::1] x,
    double[::1] out
) noexcept nogil
cdef void invert_diagonal(
    const start[::1] indptr, const column[::1] indices, const double[::1] data, double[::1] inverse
) noexcept nogil
cdef void relax(
    const start[::1] indptr, const column[::1] indices, const double[::1] data, const double[::1] scale,
    const double[::1] right, double[::1] x, Py_ssize_t sweeps
) noexcept nogil
