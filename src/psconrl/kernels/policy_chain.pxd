# Declarations that other kernels cimport.

cdef void gather_rows(
    const double[:, ::1] P, const Py_ssize_t[::1] rows, const double[:, ::1] costs, double[:, ::1] chain,
    double[:, ::1] cost
) noexcept nogil
