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
