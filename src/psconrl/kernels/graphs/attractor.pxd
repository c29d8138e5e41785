# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstFlagMatrix, ConstInts, ConstMatrix, ConstPlaces, ConstVector, Flags, Ints

cdef class Attractor:
    """A set of states that grows, allocated for up to S states by ``Attractor(S)``; ``reached`` is the set."""
    cdef Flags reached
    cdef Ints waiting

    # The policy (S,) is changed in place; returns in how many states.
    cdef Py_ssize_t lead(self, ConstFlagMatrix available, Ints policy, double least, bint keeps) noexcept nogil
    cdef Py_ssize_t _candidates(self, Py_ssize_t S) noexcept nogil
    cdef double _own(self, Py_ssize_t s, Py_ssize_t pair) noexcept nogil
    cdef double _into(self, Py_ssize_t pair) noexcept nogil
    cdef void _take(self, Py_ssize_t s) noexcept nogil
    cdef void _join(self, Py_ssize_t n) noexcept nogil

cdef class DenseAttractor(Attractor):
    cdef ConstMatrix P
    cdef double _into(self, Py_ssize_t pair) noexcept nogil

cdef class SparseAttractor(Attractor):
    cdef ConstPlaces indptr, indices
    cdef ConstVector data
    cdef ConstInts before, sources
    cdef Ints layer
    cdef Flags listed
    cdef Py_ssize_t size, n_actions
    cdef Py_ssize_t _candidates(self, Py_ssize_t S) noexcept nogil
    cdef double _into(self, Py_ssize_t pair) noexcept nogil
    cdef void _join(self, Py_ssize_t n) noexcept nogil
