# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstPlaces, ConstVector, Ints, Matrix, Vector

cdef class Room:
    cdef Ints place  # position of a state in its group; negative outside
    cdef Matrix W, right  # of a small group,
    cdef Vector leave  # the probabilities of leaving it
    cdef Vector one, two, three  # a number for every member of a group

    cdef void enter(self, ConstInts group) noexcept nogil
    cdef void leave_again(self, ConstInts group) noexcept nogil

cdef double longest_time(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstInts group, Room room
) noexcept nogil
