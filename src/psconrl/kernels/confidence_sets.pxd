# Declarations that other kernels cimport.

from psconrl.kernels.successors cimport index


cdef class Sets:
    cdef void prepare(self, const double[::1] h) noexcept nogil
    cdef double mean(self, Py_ssize_t pair, const double[::1] h) noexcept nogil


cdef class RowSets(Sets):
    cdef const index[::1] indptr, successors
    cdef const double[::1] low, high, unseen
    cdef double[::1] negative
    cdef Py_ssize_t[::1] order, scratch, place
    cdef double _of_stored(self, Py_ssize_t pair, const double[::1] h) noexcept nogil


cdef class NoiseSets(Sets):
    cdef const index[:, ::1] successors
    cdef const double[:, ::1] paid
    cdef const Py_ssize_t[::1] contexts, sizes, classes
    cdef const double[:, ::1] low, high, least, most
    cdef const Py_ssize_t[:, ::1] blocks
    cdef double[::1] values, negative, shares
    cdef Py_ssize_t[::1] order, scratch, worst
    cdef void distribution(self, Py_ssize_t pair, const double[::1] h, double[::1] out) noexcept nogil
    cdef double _of_noise(self, Py_ssize_t context, Py_ssize_t first, Py_ssize_t size, Py_ssize_t begin) noexcept nogil
    cdef double _of_two(self, Py_ssize_t context, Py_ssize_t first, Py_ssize_t begin) noexcept nogil
    cdef double _of_blocks(self, Py_ssize_t pair, Py_ssize_t kind, const double[::1] h) noexcept nogil
    cdef void _sort(self, Py_ssize_t n) noexcept nogil
    cdef void _sort_many(self, Py_ssize_t n) noexcept nogil
    cdef void _insert(self, Py_ssize_t n, Py_ssize_t at) noexcept nogil
