# Declarations that other kernels cimport.

from psconrl.kernels._types cimport (
    ConstFlagMatrix, ConstMatrix, ConstVector, Flags, IntMatrix, Ints, Matrix, Places, Vector
)
from psconrl.kernels.graphs.attractor cimport DenseAttractor

cdef class DriveToBest:
    """Workspace, allocated once by ``DriveToBest(S)``, for chains of up to S states."""
    cdef Matrix part, W, C, cost, biases
    cdef Vector gains, stationary
    cdef Ints label, states
    cdef IntMatrix room
    cdef Places edges
    cdef Flags left
    cdef DenseAttractor way

    # ``chain`` (S, S) and ``costs`` (q, S) are those of the policy (S,), which is changed in place; returns if it was.
    cdef bint lead(
        self, ConstMatrix P, ConstMatrix chain, ConstMatrix costs, ConstVector weights, ConstFlagMatrix available,
        Ints policy, Py_ssize_t favoured, double least, double same
    ) noexcept nogil
    cdef double _class_cost(
        self, ConstMatrix chain, ConstMatrix costs, ConstVector weights, Py_ssize_t k
    ) noexcept nogil
    cdef bint _send(
        self, ConstMatrix P, ConstFlagMatrix available, Ints policy, Py_ssize_t best, double least
    ) noexcept nogil
