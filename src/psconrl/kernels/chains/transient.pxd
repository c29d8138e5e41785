# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index


cdef class Room:
    cdef Py_ssize_t[::1] place  # position of a state in its group; negative outside
    cdef double[:, ::1] W, right  # of a small group,
    cdef double[::1] leave  # the probabilities of leaving it
    cdef double[::1] one, two, three  # a number for every member of a group

    cdef void enter(self, const Py_ssize_t[::1] group) noexcept nogil
    cdef void leave_again(self, const Py_ssize_t[::1] group) noexcept nogil


cdef double longest_time(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, const Py_ssize_t[::1] group, Room room
) noexcept nogil
