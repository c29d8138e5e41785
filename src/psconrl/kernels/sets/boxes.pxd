# Declarations that other kernels cimport.

cdef void pour_into(
    const double[:, ::1] low, const double[:, ::1] high, Py_ssize_t pair, double left, const Py_ssize_t[::1] order,
    double[:, ::1] out, Py_ssize_t row
) noexcept nogil
cdef void leave_over(const double[:, ::1] low, double[::1] left) noexcept nogil
cdef void weigh_costs(const double[:, ::1] costs, const double[::1] weights, double[::1] cost) noexcept nogil
