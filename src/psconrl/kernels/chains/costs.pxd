# Declarations that other kernels cimport.

cdef int check_table(
    const double[:, :, ::1] costs, const double[::1] thresholds, const unsigned char[:, ::1] available
) except -1
cdef (double, double, double) extent_of(
    const double[:, ::1] costs, const unsigned char[:, ::1] available
) noexcept nogil
