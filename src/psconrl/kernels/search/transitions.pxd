# Declarations that other kernels cimport.

from psconrl.kernels.linear.krylov cimport Workspace
from psconrl.kernels.search.drive_to_best cimport DriveToBest
from psconrl.kernels.linear.elimination_workspace cimport Elimination


cdef class Transitions:
    cdef readonly Py_ssize_t S, A, q
    cdef const double[:, ::1] costs
    cdef const unsigned char[:, ::1] available
    cdef Py_ssize_t[::1] policy, rows
    cdef double[::1] gains, stationary, h
    cdef double[:, ::1] biases
    cdef double off

    cdef Py_ssize_t evaluate(
        self, const double[::1] weights, Py_ssize_t reference, const double[:, ::1] guess, double nearly_closed,
        double same
    ) noexcept nogil
    cdef (double, Py_ssize_t) improve(
        self, const double[::1] weights, const Py_ssize_t[::1] policy, const double[:, ::1] biases, double tolerance,
        double gain, bint ahead
    ) noexcept nogil
    cdef double rounding(self, const double[::1] weights, const double[:, ::1] biases) noexcept nogil
    cdef void complete(
        self, const Py_ssize_t[::1] policy, const double[::1] gains, double[::1] stationary
    ) noexcept nogil
    cdef void _choose_rows(self, const Py_ssize_t[::1] policy) noexcept nogil


cdef class Dense(Transitions):
    cdef const double[:, ::1] P
    cdef double[:, ::1] chain, cost, W, C
    cdef double[::1] difference
    cdef DriveToBest drive

    cdef void take(
        self, const double[:, ::1] P, const double[:, ::1] costs, const unsigned char[:, ::1] available
    ) noexcept
    cdef void release(self) noexcept
    cdef (Py_ssize_t, double) _solve(self, Py_ssize_t reference) noexcept nogil


cdef class Sparse(Transitions):
    cdef const int[::1] indptr, indices
    cdef const double[::1] data
    cdef Py_ssize_t state, products
    cdef double restart, wrong
    cdef Elimination elimination
    cdef Workspace work
    cdef int[::1] starts, columns
    cdef double[::1] values, cost
    cdef double[:, ::1] right, one

    cdef Py_ssize_t _eliminate(self, Py_ssize_t reference) noexcept nogil
    cdef Py_ssize_t _iterate(self, Py_ssize_t reference, const double[:, ::1] guess) noexcept nogil
