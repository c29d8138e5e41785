"""Rows of a sparse matrix, as a sparse matrix: what makes a chain of transitions and a policy."""

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints


def chosen_rows(matrix: csr_array, rows: Ints) -> csr_array:
    """The rows of a matrix with the given numbers; SciPy's own way takes ten times as long for a small one."""
    indptr, indices, data = gathered(matrix.indptr, matrix.indices, matrix.data, rows, 0, 0.0)
    return csr_array((data, indices, indptr), shape=(rows.size, matrix.shape[1]))


def restarting(matrix: csr_array, state: int, chance: float) -> csr_array:
    """A matrix each of whose rows leads to one state with a chance, and else where it did."""
    rows = np.arange(matrix.shape[0])
    indptr, indices, data = gathered(matrix.indptr, matrix.indices, matrix.data, rows, state, chance)
    return csr_array((data, indices, indptr), shape=matrix.shape)


@njit(cache=True, nogil=True)
def gathered(
    indptr: Ints, indices: Ints, data: Floats, rows: Ints, state: int, chance: float
) -> tuple[Ints, Ints, Floats]:
    """Some rows of a matrix in CSR form, each with a chance to lead to a state instead."""
    n = rows.size
    more = 1 if chance > 0.0 else 0
    starts = np.zeros(n + 1, indptr.dtype)
    for i in range(n):
        starts[i + 1] = starts[i] + indptr[rows[i] + 1] - indptr[rows[i]] + more
    columns, values = np.empty(starts[n], indices.dtype), np.empty(starts[n])
    for i in range(n):
        k = starts[i]
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            columns[k], values[k] = indices[e], (1.0 - chance) * data[e]
            k += 1
        if more:
            columns[k], values[k] = state, chance
    return starts, columns, values
