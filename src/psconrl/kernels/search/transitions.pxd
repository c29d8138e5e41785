# Declarations that other kernels cimport.

from psconrl.kernels._types cimport (
    ConstFlagMatrix, ConstInts, ConstMatrix, ConstPlaces, ConstVector, Ints, Matrix, Places, Vector
)
from psconrl.kernels.linear.krylov cimport Workspace
from psconrl.kernels.search.drive_to_best cimport DriveToBest
from psconrl.kernels.linear.elimination_workspace cimport Elimination

cdef class Transitions:
    cdef readonly Py_ssize_t S, A, q
    cdef ConstMatrix costs
    cdef ConstFlagMatrix available
    cdef Ints policy, rows
    cdef Vector gains, stationary, h
    cdef Matrix biases
    cdef double off

    cdef Py_ssize_t evaluate(
        self, ConstVector weights, Py_ssize_t reference, ConstMatrix guess, double nearly_closed, double same
    ) noexcept nogil
    cdef (double, Py_ssize_t) improve(
        self, ConstVector weights, ConstInts policy, ConstMatrix biases, double tolerance, double gain, bint ahead
    ) noexcept nogil
    cdef double rounding(self, ConstVector weights, ConstMatrix biases) noexcept nogil
    cdef void complete(self, ConstInts policy, ConstVector gains, Vector stationary) noexcept nogil
    cdef void _choose_rows(self, ConstInts policy) noexcept nogil

cdef class Dense(Transitions):
    cdef ConstMatrix P
    cdef Matrix chain, cost, W, C
    cdef Vector difference
    cdef DriveToBest drive

    cdef void take(self, ConstMatrix P, ConstMatrix costs, ConstFlagMatrix available) noexcept
    cdef void release(self) noexcept
    cdef (Py_ssize_t, double) _solve(self, Py_ssize_t reference) noexcept nogil
    cdef Py_ssize_t evaluate(
        self, ConstVector weights, Py_ssize_t reference, ConstMatrix guess, double nearly_closed, double same
    ) noexcept nogil
    cdef (double, Py_ssize_t) improve(
        self, ConstVector weights, ConstInts policy, ConstMatrix biases, double tolerance, double gain, bint ahead
    ) noexcept nogil
    cdef double rounding(self, ConstVector weights, ConstMatrix biases) noexcept nogil

cdef class Sparse(Transitions):
    cdef ConstPlaces indptr, indices
    cdef ConstVector data
    cdef Py_ssize_t state, products
    cdef double restart, wrong
    cdef Elimination elimination
    cdef Workspace work
    cdef Places starts, columns
    cdef Vector values, cost
    cdef Matrix right, one

    cdef Py_ssize_t _eliminate(self, Py_ssize_t reference) noexcept nogil
    cdef Py_ssize_t _iterate(self, Py_ssize_t reference, ConstMatrix guess) noexcept nogil
    cdef Py_ssize_t evaluate(
        self, ConstVector weights, Py_ssize_t reference, ConstMatrix guess, double nearly_closed, double same
    ) noexcept nogil
    cdef (double, Py_ssize_t) improve(
        self, ConstVector weights, ConstInts policy, ConstMatrix biases, double tolerance, double gain, bint ahead
    ) noexcept nogil
    cdef double rounding(self, ConstVector weights, ConstMatrix biases) noexcept nogil
    cdef void complete(self, ConstInts policy, ConstVector gains, Vector stationary) noexcept nogil
