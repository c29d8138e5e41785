# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstFlags, ConstInts, ConstPlaces, ConstVector, Ints, Places, index

# Each raises a ValueError unless its arguments are consistent. Called once, before unchecked loops. Linear time.
cdef object check_rows(ConstPlaces indptr, Py_ssize_t entries)
cdef object check_some_rows(
    ConstPlaces indptr, ConstPlaces indices, Py_ssize_t entries, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n_columns
)
cdef object check_matrix(ConstPlaces indptr, ConstPlaces indices, Py_ssize_t entries, Py_ssize_t n_columns)
cdef object check_graph(ConstPlaces indptr, ConstPlaces indices, Py_ssize_t entries, Py_ssize_t n_states)
cdef object check_numbers(ConstInts numbers, Py_ssize_t bound, str otherwise)
cdef object check_starts(ConstInts start, Py_ssize_t entries)
cdef object check_lists(ConstInts start, ConstInts members, Py_ssize_t bound)
cdef object check_closed(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstFlags keep, ConstInts start, ConstInts members,
    Py_ssize_t n_states
)

cdef Py_ssize_t count_above(ConstVector values, Py_ssize_t n, double least) noexcept nogil
cdef void keep_above(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, double least, Places starts, Places successors
) noexcept nogil

# The members (at most S) of each of K groups, in order, and their starts (K + 2, of which the last is room), from the
# number of the group of every state (S,), or -1.
cdef void group(ConstInts label, Ints start, Ints members) noexcept nogil
