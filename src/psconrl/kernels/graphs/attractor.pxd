# Declarations that other kernels cimport.

cdef class Attractor:
    """A set of states that grows, allocated for up to S states by ``Attractor(S)``; ``reached`` is the set."""
    cdef unsigned char[::1] reached
    cdef Py_ssize_t[::1] waiting

    # The policy (S,) is changed in place; returns in how many states.
    cdef Py_ssize_t lead(
        self, const unsigned char[:, ::1] available, Py_ssize_t[::1] policy, double least, bint keeps
    ) noexcept nogil
    cdef Py_ssize_t _candidates(self, Py_ssize_t S) noexcept nogil
    cdef double _own(self, Py_ssize_t s, Py_ssize_t pair) noexcept nogil
    cdef double _into(self, Py_ssize_t pair) noexcept nogil
    cdef void _take(self, Py_ssize_t s) noexcept nogil
    cdef void _join(self, Py_ssize_t n) noexcept nogil


cdef class DenseAttractor(Attractor):
    cdef const double[:, ::1] P


cdef class SparseAttractor(Attractor):
    cdef const int[::1] indptr, indices
    cdef const double[::1] data
    cdef const Py_ssize_t[::1] before, sources
    cdef Py_ssize_t[::1] layer
    cdef unsigned char[::1] listed
    cdef Py_ssize_t size, n_actions
