# Declarations that other kernels cimport.

from psconrl.kernels._types cimport ConstInts, ConstPlaces, ConstVector, Places, Vector

# Copies some rows of a CSR matrix, each of which leads to `state` instead with a probability, into `starts` (rows + 1
# or more), `columns` and `values` (long enough: one more entry in each row if the probability is positive). Returns the
# number of entries.
cdef Py_ssize_t gather_rows(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, ConstInts rows, Py_ssize_t state, double probability,
    Places starts, Places columns, Vector values
) noexcept nogil

# The entries of a matrix by columns: `first` (columns + 2), `rows` and `entries` (all entries).
cdef void sort_by_columns(
    ConstPlaces indptr, ConstPlaces indices, ConstVector data, Places first, Places rows, Vector entries
) noexcept nogil
