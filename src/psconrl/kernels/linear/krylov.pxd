# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstMatrix, ConstPlaces, ConstVector, Matrix, Places, Vector

cdef class Workspace:
    """Workspace, allocated once, for chains of n states with at most ``entries`` entries."""
    cdef Places indptr, indices
    cdef Vector data, scale, residual, correction, kept, shadow, p, v, t, y

# The arrays of the chain may be longer than needed: only right.shape[1] and indptr[n] count.
cdef double solve_into(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, bint transposed, ConstMatrix right, Matrix x,
    double tolerance, double most, Py_ssize_t products, Workspace work
) noexcept nogil

cdef void distribution_into(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstMatrix uniform, Matrix x, double tolerance,
    Py_ssize_t products, Workspace work, Vector stationary
) noexcept nogil
