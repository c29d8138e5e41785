# Declarations that other kernels cimport.

cdef double total(const double[::1] x) noexcept nogil
cdef double dot(const double[::1] x, const double[::1] z) noexcept nogil
cdef double weighted_dot(
    const double[::1] weights, const double[::1] x, const double[::1] y, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil
