# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstPlaces, ConstVector, Vector

cdef void product(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, bint transposed, ConstVector x, Vector out
) noexcept nogil
cdef void invert_diagonal(ConstPlaces indptr, ConstPlaces indices, ConstVector data, Vector inverse) noexcept nogil
cdef void relax(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstVector scale, ConstVector right, Vector x,
    Py_ssize_t sweeps
) noexcept nogil
