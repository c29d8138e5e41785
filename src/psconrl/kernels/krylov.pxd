# What other kernels call without going through Python.

from psconrl.kernels.successors cimport index


cdef class Workspace:
    """Made once by ``Workspace(n, entries)`` for chains of n states with at most so many entries."""
    cdef index[::1] indptr, indices
    cdef double[::1] data, scale, residual, correction, kept, shadow, p, v, t, y


# The chain may stand in arrays that are longer than it is: what counts is right.shape[1] and indptr[n].
cdef double solve_into(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, bint transposed,
    const double[:, ::1] right, double[:, ::1] x, double tolerance, double most, Py_ssize_t products, Workspace work
) noexcept nogil
