# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstVector, Matrix, Vector

cpdef double exp(double x) noexcept nogil
cpdef double expm1(double x) noexcept nogil
cpdef double log(double x) noexcept nogil
cpdef double log1p(double x) noexcept nogil
cpdef double lgamma(double x) noexcept nogil
cpdef double cbrt(double x) noexcept nogil
cdef void exp_all(ConstVector x, Vector out) noexcept nogil
cdef void log_all(ConstVector x, Vector out) noexcept nogil
cdef void softmax(Matrix logs, double floor) noexcept nogil
