# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstPlaces, ConstVector

cdef Py_ssize_t begin_of_step(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t n_states) noexcept nogil
cdef Py_ssize_t states_of_block(const unsigned short[::1] actions, Py_ssize_t H, Py_ssize_t reach) except -1
cdef int check_moves(
    Py_ssize_t S, Py_ssize_t pairs, Py_ssize_t reach, ConstPlaces indptr, ConstPlaces successors,
    ConstVector probabilities, ConstInts increments
) except -1
