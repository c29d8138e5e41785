# What other kernels call without going through Python; arrays of k rows each. The tests call them from Python.

cpdef bint factorise(double[:, ::1] matrix, Py_ssize_t[::1] order) noexcept nogil
cpdef void solve(
    const double[:, ::1] factors, const Py_ssize_t[::1] order, const double[::1] right, double[::1] x
) noexcept nogil
cpdef void solve_transposed(
    const double[:, ::1] factors, const Py_ssize_t[::1] order, const double[::1] right, double[::1] x, double[::1] room
) noexcept nogil
