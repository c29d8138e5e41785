# Declarations that other kernels cimport.

cdef double row_sum(const double[:, ::1] W, Py_ssize_t i, Py_ssize_t n) noexcept nogil
cdef double row_dot(
    const double[:, ::1] W, Py_ssize_t i, const double[:, ::1] x, Py_ssize_t k, Py_ssize_t n
) noexcept nogil
cdef (Py_ssize_t, double) eliminate(double[:, ::1] W, double[:, ::1] C) noexcept nogil
cdef Py_ssize_t stationary_distribution(const double[:, ::1] W, double[::1] stationary) noexcept nogil
cdef (Py_ssize_t, double) solve_unichain(
    const double[:, ::1] chain, const double[:, ::1] costs, Py_ssize_t reference, double[:, ::1] W, double[:, ::1] C,
    double[::1] gains, double[:, ::1] biases, double[::1] stationary
) noexcept nogil
