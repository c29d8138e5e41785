# Declarations that other kernels cimport.

from psconrl.kernels.graphs.attractor cimport DenseAttractor


cdef class DriveToBest:
    """Workspace, allocated once by ``DriveToBest(S)``, for chains of up to S states."""
    cdef double[:, ::1] part, W, C, cost, biases
    cdef double[::1] gains, stationary
    cdef Py_ssize_t[::1] label, states
    cdef Py_ssize_t[:, ::1] room
    cdef int[::1] edges
    cdef unsigned char[::1] left
    cdef DenseAttractor way

    # ``chain`` (S, S) and ``costs`` (q, S) are those of the policy (S,), which is changed in place; returns if it was.
    cdef bint lead(
        self, const double[:, ::1] P, const double[:, ::1] chain, const double[:, ::1] costs, const double[::1] weights,
        const unsigned char[:, ::1] available, Py_ssize_t[::1] policy, Py_ssize_t favoured, double least, double same
    ) noexcept nogil
    cdef double _class_cost(
        self, const double[:, ::1] chain, const double[:, ::1] costs, const double[::1] weights, Py_ssize_t k
    ) noexcept nogil
    cdef bint _send(
        self, const double[:, ::1] P, const unsigned char[:, ::1] available, Py_ssize_t[::1] policy, Py_ssize_t best,
        double least
    ) noexcept nogil
