# State of Triple-QA, whose round the play loop calls.

from psconrl.kernels._types cimport ConstVector, IntMatrix, Matrix, Tables, Vector
from psconrl.kernels.play.rounds cimport RoundLearner

cdef class TripleQA(RoundLearner):
    cdef Tables estimates
    cdef Tables hats
    cdef Matrix values
    cdef IntMatrix visits
    cdef Vector totals
    cdef ConstVector queues
    cdef Matrix policy
    cdef ConstVector highest
    cdef ConstVector units
    cdef double gamma, chi, iota, kappa, eta
    cdef bint together
    cdef void learn_round(
        self, Py_ssize_t state, Py_ssize_t action, Py_ssize_t successor, ConstVector costs
    ) noexcept nogil
    cdef bint fits(self, Py_ssize_t n_states, Py_ssize_t n_actions, Py_ssize_t n_costs) noexcept nogil
