# Declarations that other kernels cimport.

cdef void gather_rows(
    const double[:, ::1] P, const Py_ssize_t[::1] rows, const double[:, ::1] costs, double[:, ::1] chain,
    double[:, ::1] cost
) noexcept nogil
cdef void mix_rows(
    const double[:, ::1] P, const double[:, ::1] policy, double[:, ::1] chain
) noexcept nogil
cdef void mix_costs(
    const double[:, :, ::1] costs, const double[:, ::1] policy, double[:, ::1] mixed, double[::1] base
) noexcept nogil
