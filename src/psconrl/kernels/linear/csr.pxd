# Declarations that other kernels cimport.

from psconrl.kernels.graphs.successors cimport index

# Copies some rows of a CSR matrix, each of which leads to `state` instead with a probability, into `starts` (rows + 1
# or more), `columns` and `values` (long enough: one more entry in each row if the probability is positive). Returns the
# number of entries.
cdef Py_ssize_t gather_rows(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, const Py_ssize_t[::1] rows,
    Py_ssize_t state, double probability, index[::1] starts, index[::1] columns, double[::1] values
) noexcept nogil

# The entries of a matrix by columns: `first` (columns + 2), `rows` and `entries` (all entries).
cdef void sort_by_columns(
    const index[::1] indptr, const index[::1] indices, const double[::1] data, index[::1] first, index[::1] rows,
    double[::1] entries
) noexcept nogil
