# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index


cdef class Workspace:
    """Workspace, allocated once, for chains of n states with at most ``entries`` entries."""
    cdef index[::1] indptr, indices
    cdef double[::1] data, scale, residual, correction, kept, shadow, p, v, t, y


# The arrays of the chain may be longer than needed: only right.shape[1] and indptr[n] count.
cdef double solve_into(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, bint transposed,
    const double[:, ::1] right, double[:, ::1] x, double tolerance, double most, Py_ssize_t products, Workspace work
) noexcept nogil

cdef void distribution_into(
    const int[::1] indptr, const int[::1] indices, const double[::1] data, const double[:, ::1] uniform,
    double[:, ::1] x, double tolerance, Py_ssize_t products, Workspace work, double[::1] stationary
) noexcept nogil
