# Declarations that other kernels cimport.

from psconrl.kernels._types cimport (
    ConstIntMatrix, ConstInts, ConstMatrix, ConstPlaces, ConstVector, Ints, Vector, index
)

cdef class Sets:
    cdef Py_ssize_t n_states, n_pairs
    cdef void prepare(self, ConstVector h) noexcept nogil
    cdef double mean(self, Py_ssize_t pair, ConstVector h) noexcept nogil

cdef class RowSets(Sets):
    cdef ConstPlaces indptr, successors
    cdef ConstVector low, high, unseen
    cdef Vector negative
    cdef Ints order, scratch, place
    cdef double _of_stored(self, Py_ssize_t pair, ConstVector h) noexcept nogil
    cdef void prepare(self, ConstVector h) noexcept nogil
    cdef double mean(self, Py_ssize_t pair, ConstVector h) noexcept nogil

cdef class NoiseSets(Sets):
    cdef const index[:, ::1] successors
    cdef ConstMatrix paid
    cdef ConstInts contexts, sizes, classes
    cdef ConstMatrix low, high, least, most
    cdef ConstIntMatrix blocks
    cdef Vector values, negative, shares
    cdef Ints order, scratch, worst
    cdef void distribution(self, Py_ssize_t pair, ConstVector h, Vector out) noexcept nogil
    cdef double _of_noise(self, Py_ssize_t context, Py_ssize_t first, Py_ssize_t size, Py_ssize_t begin) noexcept nogil
    cdef double _of_two(self, Py_ssize_t context, Py_ssize_t first, Py_ssize_t begin) noexcept nogil
    cdef double _of_blocks(self, Py_ssize_t pair, Py_ssize_t kind, ConstVector h) noexcept nogil
    cdef void _sort(self, Py_ssize_t n) noexcept nogil
    cdef void _sort_many(self, Py_ssize_t n) noexcept nogil
    cdef void _insert(self, Py_ssize_t n, Py_ssize_t at) noexcept nogil
    cdef double mean(self, Py_ssize_t pair, ConstVector h) noexcept nogil
