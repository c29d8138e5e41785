# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index

cdef Py_ssize_t begin_of_step(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t n_states) noexcept nogil
cdef Py_ssize_t states_of_block(const unsigned short[::1] actions, Py_ssize_t H, Py_ssize_t reach) except -1
cdef int check_moves(
    Py_ssize_t S, Py_ssize_t pairs, Py_ssize_t reach, const index[::1] indptr, const index[::1] successors,
    const double[::1] probabilities, const Py_ssize_t[::1] increments
) except -1
