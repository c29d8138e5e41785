# Declarations that other kernels cimport.

cpdef double exp(double x) noexcept nogil
cpdef double expm1(double x) noexcept nogil
cpdef double log(double x) noexcept nogil
cpdef double log1p(double x) noexcept nogil
cpdef double lgamma(double x) noexcept nogil
cpdef double cbrt(double x) noexcept nogil
cdef void exp_all(const double[::1] x, double[::1] out) noexcept nogil
cdef void log_all(const double[::1] x, double[::1] out) noexcept nogil
cdef void softmax(double[:, ::1] logs, double floor) noexcept nogil
