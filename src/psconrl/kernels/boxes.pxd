# Declarations that other kernels cimport.

cdef (double, Py_ssize_t, Py_ssize_t) hope_for(
    const double[:, ::1] low, const double[:, ::1] high, const double[::1] left, Py_ssize_t state,
    const Py_ssize_t[::1] order, const double[::1] x, const double[::1] cost, double[:, ::1] tried
) noexcept nogil
cdef void pour_into(
    const double[:, ::1] low, const double[:, ::1] high, Py_ssize_t pair, double left, const Py_ssize_t[::1] order,
    double[:, ::1] out, Py_ssize_t row
) noexcept nogil
cdef void leave_over(const double[:, ::1] low, double[::1] left) noexcept nogil
cdef void weigh_costs(const double[:, ::1] costs, const double[::1] weights, double[::1] cost) noexcept nogil
cdef Py_ssize_t count_actions(
    const double[:, ::1] low, const double[:, ::1] high, const double[:, ::1] costs, const double[::1] weights
) except -1
