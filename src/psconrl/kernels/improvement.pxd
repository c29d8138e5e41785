# What other kernels call without going through Python.

from psconrl.kernels.successors cimport index

# The bias (S,) of the weighted cost, from those of every cost (q, S), is written to h.
cdef void weigh_biases(const double[::1] weights, const double[:, ::1] biases, double[::1] h) noexcept nogil

# One step of policy iteration with the weighted bias h, from ``policy`` to ``new``; ``difference`` (S,) is overwritten.
# Returns the lower bound on the gain of any policy, without room for rounding, and how many states switched.
cdef (double, Py_ssize_t) improve_dense(
    const double[:, ::1] P, const double[:, ::1] costs, const double[::1] weights, const unsigned char[:, ::1] available,
    const Py_ssize_t[::1] policy, const double[::1] h, double tol, double[::1] difference, Py_ssize_t[::1] new
) noexcept nogil
cdef (double, Py_ssize_t) improve_sparse(
    const int[::1] indptr, const int[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] cost, const unsigned char[:, ::1] available, const Py_ssize_t[::1] policy, const double[::1] h,
    double tol, Py_ssize_t[::1] new
) noexcept nogil

# By how much rounding may falsify the bound.
cdef double dense_rounding(const double[:, ::1] P, const double[::1] h, double[::1] difference) noexcept nogil
cdef double sparse_rounding(
    const int[::1] indptr, const int[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] h
) noexcept nogil

# Sweeps of value iteration from the bias h of a policy: both are overwritten.
cdef void sweep_ahead(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, Py_ssize_t state, double restart,
    const double[::1] cost, const unsigned char[:, ::1] available, double[::1] h, double gain, Py_ssize_t sweeps,
    double tol, Py_ssize_t[::1] policy
) noexcept nogil
