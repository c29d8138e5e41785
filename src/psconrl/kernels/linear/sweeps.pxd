# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index

cdef void product(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, bint transposed, const double[::1] x,
    double[::1] out
) noexcept nogil
cdef void invert_diagonal(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, double[::1] inverse
) noexcept nogil
cdef void relax(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, const double[::1] scale,
    const double[::1] right, double[::1] x, Py_ssize_t sweeps
) noexcept nogil
