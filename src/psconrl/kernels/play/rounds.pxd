# Interface that the play loop calls after every round.

cdef class RoundLearner:
    cdef void learn_round(
        self, Py_ssize_t state, Py_ssize_t action, Py_ssize_t successor, const double[::1] costs
    ) noexcept nogil
    cdef bint fits(self, Py_ssize_t n_states, Py_ssize_t n_actions, Py_ssize_t n_costs) noexcept nogil


cdef class LastRound(RoundLearner):
    cdef Py_ssize_t state, action, successor
    cdef double[::1] costs


cdef class Recorder(RoundLearner):
    cdef Py_ssize_t[::1] pairs
    cdef Py_ssize_t[::1] successors
    cdef double[:, ::1] costs
    cdef Py_ssize_t[::1] length
    cdef Py_ssize_t n_states, n_actions


cdef class TripleQA(RoundLearner):
    cdef double[:, :, ::1] estimates
    cdef double[:, :, ::1] hats
    cdef double[:, ::1] values
    cdef Py_ssize_t[:, ::1] visits
    cdef double[::1] totals
    cdef const double[::1] queues
    cdef double[:, ::1] policy
    cdef const double[::1] highest
    cdef const double[::1] units
    cdef double gamma, chi, iota, kappa, eta
    cdef bint together
