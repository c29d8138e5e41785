# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstVector, Ints

cdef void argsort_into(ConstVector values, Ints order, Ints scratch) noexcept nogil
