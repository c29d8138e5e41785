# Declarations that other kernels cimport; see improvement.pxd.

from psconrl.kernels._types cimport ConstFlagMatrix, ConstInts, ConstPlaces, ConstVector, Ints, Vector

cdef (double, Py_ssize_t) improve_sparse(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, Py_ssize_t state, double restart, ConstVector cost,
    ConstFlagMatrix available, ConstInts policy, ConstVector h, double tol, Ints new
) noexcept nogil
cdef double sparse_rounding(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, Py_ssize_t state, double restart, ConstVector h
) noexcept nogil

# Sweeps of value iteration from the bias h of a policy: both are overwritten.
cdef void sweep_ahead(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, Py_ssize_t state, double restart, ConstVector cost,
    ConstFlagMatrix available, Vector h, double gain, Py_ssize_t sweeps, double tol, Ints policy
) noexcept nogil
