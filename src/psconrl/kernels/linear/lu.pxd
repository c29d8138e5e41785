# Declarations that other kernels cimport; arrays of k rows each.

cdef bint factorise(double[:, ::1] matrix, Py_ssize_t[::1] order) noexcept nogil
cdef void solve(
    const double[:, ::1] factors, const Py_ssize_t[::1] order, const double[::1] right, double[::1] x
) noexcept nogil
cdef void solve_transposed(
    const double[:, ::1] factors, const Py_ssize_t[::1] order, const double[::1] right, double[::1] x, double[::1] room
) noexcept nogil
