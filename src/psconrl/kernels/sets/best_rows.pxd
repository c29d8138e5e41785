# Declarations that other kernels cimport.

cdef class BestRows:
    cdef const double[:, ::1] low, high
    cdef Py_ssize_t S, A
    cdef double[::1] left
    cdef double[:, ::1] rows
    cdef Py_ssize_t[::1] poured, order

    cdef void _pour(self, Py_ssize_t pair, const Py_ssize_t[::1] order) noexcept nogil
    cdef void follow(self, const Py_ssize_t[::1] order) noexcept nogil
    cdef double _mean(self, const double[::1] x, Py_ssize_t pair) noexcept nogil
    cdef (double, Py_ssize_t) hope_for(self, Py_ssize_t state, const double[::1] x, const double[::1] cost) noexcept nogil
