# Declarations that other kernels cimport.

cdef void policy_into(
    const double[:, ::1] occupancy, const double[:, ::1] otherwise, double least, double[:, ::1] policy
) noexcept nogil
