# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstMatrix, ConstVector, Ints, Matrix, Vector

cdef class BestRows:
    cdef ConstMatrix low, high
    cdef Py_ssize_t S, A
    cdef Vector left
    cdef Matrix rows
    cdef Ints poured, order

    cdef void _pour(self, Py_ssize_t pair, ConstInts order) noexcept nogil
    cdef void follow(self, ConstInts order) noexcept nogil
    cdef (double, Py_ssize_t) hope_for(self, Py_ssize_t state, ConstVector x, ConstVector cost) noexcept nogil
