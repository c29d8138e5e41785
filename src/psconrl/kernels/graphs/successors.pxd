# Declarations that other kernels cimport.

ctypedef int index  # of row starts and columns of sparse matrices: fewer than 2^31 entries

# Each raises a ValueError unless its arguments are consistent. Called once, before unchecked loops. Linear time.
cdef object check_rows(const index[::1] indptr, Py_ssize_t entries)
cdef object check_some_rows(
    const index[::1] indptr, const index[::1] indices, Py_ssize_t entries, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t n_columns
)
cdef object check_matrix(
    const index[::1] indptr, const index[::1] indices, Py_ssize_t entries, Py_ssize_t n_columns
)
cdef object check_graph(
    const index[::1] indptr, const index[::1] indices, Py_ssize_t entries, Py_ssize_t n_states
)
cdef object check_numbers(const Py_ssize_t[::1] numbers, Py_ssize_t bound, str otherwise)
cdef object check_starts(const Py_ssize_t[::1] start, Py_ssize_t entries)
cdef object check_lists(const Py_ssize_t[::1] start, const Py_ssize_t[::1] members, Py_ssize_t bound)
cdef object check_closed(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, const unsigned char[::1] keep,
    const Py_ssize_t[::1] start, const Py_ssize_t[::1] members, Py_ssize_t n_states
)

cdef Py_ssize_t count_above(const double[::1] values, Py_ssize_t n, double least) noexcept nogil
cdef void keep_above(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, double least, index[::1] starts,
    index[::1] successors
) noexcept nogil

# The members (at most S) of each of K groups, in order, and their starts (K + 2, of which the last is room), from the
# number of the group of every state (S,), or -1.
cdef void group(
    const Py_ssize_t[::1] label, Py_ssize_t[::1] start, Py_ssize_t[::1] members
) noexcept nogil
