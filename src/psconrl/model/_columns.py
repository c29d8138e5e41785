"""Compiled: a CSR matrix by its columns."""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints, Places


@njit(cache=True, nogil=True)
def by_columns(indptr: Ints, indices: Places, data: Floats, n_columns: int) -> tuple[Ints, Places, Floats]:
    """Where every column begins, the rows of its entries, and the entries."""
    count = np.zeros(n_columns + 1, np.int64)
    for e in range(indices.size):
        count[indices[e] + 1] += 1
    first = np.cumsum(count)
    at = first[:-1].copy()
    rows, entries = np.empty(indices.size, np.int32), np.empty(indices.size)
    for row in range(indptr.size - 1):
        for e in range(indptr[row], indptr[row + 1]):
            t = indices[e]
            rows[at[t]], entries[at[t]] = row, data[e]
            at[t] += 1
    return first, rows, entries
