# Declarations that other kernels cimport.

# The bias (S,) of the weighted cost, from those of every cost (q, S), is written to h.
cdef void weigh_biases(const double[::1] weights, const double[:, ::1] biases, double[::1] h) noexcept nogil

# One step of policy iteration with the weighted bias h, from ``policy`` to ``new``; ``difference`` (S,) is overwritten.
# Returns the lower bound on the gain of any policy, without an allowance for rounding, and how many states switched.
cdef (double, Py_ssize_t) improve_dense(
    const double[:, ::1] P, const double[:, ::1] costs, const double[::1] weights, const unsigned char[:, ::1] available,
    const Py_ssize_t[::1] policy, const double[::1] h, double tol, double[::1] difference, Py_ssize_t[::1] new
) noexcept nogil

# The rounding error of the bound.
cdef double dense_rounding(const double[:, ::1] P, const double[::1] h, double[::1] difference) noexcept nogil
