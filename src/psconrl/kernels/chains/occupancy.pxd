# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstMatrix, Matrix

cdef void policy_into(ConstMatrix occupancy, ConstMatrix otherwise, double least, Matrix policy) noexcept nogil
