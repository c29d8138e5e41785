# Interface that the play loop calls after every round.

from psconrl.kernels._types cimport ConstVector, Ints, Matrix, Vector

cdef class RoundLearner:
    cdef void learn_round(
        self, Py_ssize_t state, Py_ssize_t action, Py_ssize_t successor, ConstVector costs
    ) noexcept nogil
    cdef bint fits(self, Py_ssize_t n_states, Py_ssize_t n_actions, Py_ssize_t n_costs) noexcept nogil

cdef class LastRound(RoundLearner):
    cdef Py_ssize_t state, action, successor
    cdef Vector costs
    cdef void learn_round(
        self, Py_ssize_t state, Py_ssize_t action, Py_ssize_t successor, ConstVector costs
    ) noexcept nogil
    cdef bint fits(self, Py_ssize_t n_states, Py_ssize_t n_actions, Py_ssize_t n_costs) noexcept nogil

cdef class Recorder(RoundLearner):
    cdef Ints pairs
    cdef Ints successors
    cdef Matrix costs
    cdef Ints length
    cdef Py_ssize_t n_states, n_actions
    cdef void learn_round(
        self, Py_ssize_t state, Py_ssize_t action, Py_ssize_t successor, ConstVector costs
    ) noexcept nogil
    cdef bint fits(self, Py_ssize_t n_states, Py_ssize_t n_actions, Py_ssize_t n_costs) noexcept nogil
