# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstVector, IntMatrix, Matrix, Vector
from psconrl.kernels.search.master cimport Tableau
from psconrl.kernels.search.transitions cimport Transitions

cdef class Columns:
    """Columns of a search, allocated by ``Columns(transitions, rows)`` for at most ``rows`` of them."""
    cdef Transitions transitions
    cdef Tableau table  # the master of several constraints
    cdef Matrix gains, biases, stationary
    cdef IntMatrix policies
    cdef Py_ssize_t n, base, idle
    cdef ConstVector thresholds
    cdef Vector weights
    cdef Vector prices  # of the constraints, in the guess
    cdef double caution, lowest
    cdef double same  # averages that differ by no more are equal
    # The best bound, with its weights and the column that proves it.
    cdef double best_bound
    cdef Vector best_weights
    cdef Py_ssize_t proof

    cdef void empty(self) noexcept nogil
    cdef Matrix biases_of(self, Py_ssize_t j) noexcept nogil
    cdef void keep(self, Transitions found, bint searching) noexcept nogil
    cdef void bounded(self, double bound) noexcept nogil
    cdef void choose_base(self) noexcept nogil
