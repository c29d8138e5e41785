# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, Ints, Matrix, Vector

cdef class Elimination:
    """Workspace, allocated once by ``Elimination(order, q)``, for chains with the pattern of an ``Order``."""
    cdef ConstInts position, state, lower, upper
    cdef const unsigned int[::1] before, after, runs, first, begins
    cdef Ints alike
    cdef Vector F, U, outs, w, left, more
    cdef Matrix C, h
