# Declarations that other kernels cimport.

cdef bint censor_transient(
    double[:, ::1] W, double[:, ::1] C, double[::1] exits, Py_ssize_t n, Py_ssize_t q
) noexcept nogil
cdef bint solve_transient(double[:, ::1] W, double[:, ::1] C, double[::1] exits, Py_ssize_t n) noexcept nogil
cdef bint solve_visits(double[:, ::1] W, double[::1] y, double[::1] exits, Py_ssize_t n) noexcept nogil
