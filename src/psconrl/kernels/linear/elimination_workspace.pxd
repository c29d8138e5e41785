# Declarations that other kernels cimport.

cdef class Elimination:
    """Workspace, allocated once by ``Elimination(order, q)``, for chains with the pattern of an ``Order``."""
    cdef const Py_ssize_t[::1] position, state, lower, upper
    cdef const unsigned int[::1] before, after, runs, first, begins
    cdef Py_ssize_t[::1] alike
    cdef double[::1] F, U, outs, w, left, more
    cdef double[:, ::1] C, h
