# Declarations that other kernels cimport.

cdef void argsort_into(const double[::1] values, Py_ssize_t[::1] order, Py_ssize_t[::1] scratch) noexcept nogil
