"""Matrices in CSR form: row selections, columns, sums along rows."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstVector,
    Ints,
    Places,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.successors import (
    check_graph,
    check_matrix,
    check_numbers,
    check_rows,
)

_MOST_ENTRIES = cython.declare(cython.Py_ssize_t, 2**31 - 1)


def gather_rows(indptr, indices, data, rows, state, probability, starts, columns, values):
    """Compute ``gathered`` in given arrays; return the number of entries. See ``csr.pxd``."""
    k: cython.Py_ssize_t = 0
    starts[0] = 0
    for i in range(rows.shape[0]):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            columns[k] = indices[e]
            values[k] = (1.0 - probability) * data[e]
            k += 1
        if probability > 0.0:
            columns[k] = state
            values[k] = probability
            k += 1
        starts[i + 1] = k
    return k


def gathered(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    rows: ConstInts,
    state: cython.Py_ssize_t,
    probability: cython.double,
):
    """Return some rows of a matrix in CSR form, each of which leads to a state instead with a probability."""
    n = rows.shape[0]
    check_rows(indptr, min(indices.shape[0], data.shape[0]))
    check_numbers(rows, indptr.shape[0] - 1, "there is no such row")
    if not 0 <= state < _MOST_ENTRIES:
        raise ValueError("there is no such state")
    entries: cython.Py_ssize_t = n if probability > 0.0 else 0
    for i in range(n):
        entries += cython.cast(cython.Py_ssize_t, indptr[rows[i] + 1] - indptr[rows[i]])
    if entries > _MOST_ENTRIES:
        raise ValueError("rows of fewer than 2**31 entries together are needed")
    starts, columns, values = np.empty(n + 1, np.intc), np.empty(entries, np.intc), np.empty(entries)
    to_starts: Places = starts
    to_columns: Places = columns
    to_values: Vector = values
    with cython.nogil:
        gather_rows(indptr, indices, data, rows, state, probability, to_starts, to_columns, to_values)
    return starts, columns, values


def mixed(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, weights: ConstMatrix):
    """Return weighted sums of n rows each of a matrix (k * n, k) in CSR form, by weights (k, n), as rows in CSR form.

    Entries are added in the order of the rows, and stored in the order in which they first occur.
    """
    k, n = weights.shape[0], weights.shape[1]
    if indptr.shape[0] != k * n + 1:
        raise ValueError("every row needs a weight")
    check_graph(indptr, indices, data.shape[0], k)
    most: cython.Py_ssize_t = 0
    for s in range(k):
        for a in range(n):
            if weights[s, a] != 0.0:
                most += indptr[s * n + a + 1] - indptr[s * n + a]
    starts, columns, values = np.zeros(k + 1, np.intc), np.empty(most, np.intc), np.empty(most)
    start: Places = starts
    to: Places = columns
    total: Vector = values
    at: Ints = np.full(k, -1, np.int64)  # position of a column in the current row
    entries: cython.Py_ssize_t = 0
    with cython.nogil:
        for s in range(k):
            for a in range(n):
                if weights[s, a] != 0.0:
                    for e in range(indptr[s * n + a], indptr[s * n + a + 1]):
                        j = indices[e]
                        if at[j] < start[s]:
                            at[j] = entries
                            to[entries], total[entries] = j, 0.0
                            entries += 1
                        total[at[j]] += weights[s, a] * data[e]
            start[s + 1] = entries
    return starts, columns[:entries].copy(), values[:entries].copy()


def sort_by_columns(indptr, indices, data, first, rows, entries):
    """Compute ``by_columns`` in given arrays; ``first`` has one entry more than there."""
    n_columns = first.shape[0] - 2
    for t in range(n_columns + 2):
        first[t] = 0
    # Counted two positions ahead, summed up one ahead, so that each column ends where the next one begins.
    for e in range(indptr[indptr.shape[0] - 1]):
        first[indices[e] + 2] += 1
    for t in range(1, n_columns):
        first[t + 1] += first[t]
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            k = first[indices[e] + 1]
            rows[k] = row
            entries[k] = data[e]
            first[indices[e] + 1] = k + 1


def by_columns(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, n_columns: cython.Py_ssize_t):
    """Return the column starts, the rows of the entries, and the entries, by columns."""
    check_matrix(indptr, indices, data.shape[0], n_columns)
    entries: cython.Py_ssize_t = indptr[indptr.shape[0] - 1]
    first, rows, values = np.empty(n_columns + 2, np.intc), np.empty(entries, np.intc), np.empty(entries)
    to_first: Places = first
    to_rows: Places = rows
    to_values: Vector = values
    with cython.nogil:
        sort_by_columns(indptr, indices, data, to_first, to_rows, to_values)
    return first[: n_columns + 1], rows, values


def row_cdf(indptr: ConstPlaces, probabilities: ConstVector):
    """Return cumulative sums within the rows of a CSR matrix."""
    n = indptr.shape[0] - 1
    check_rows(indptr, probabilities.shape[0])
    cdf = np.empty(probabilities.shape[0])
    sums: Vector = cdf
    with cython.nogil:
        for row in range(n):
            total: cython.double = 0.0
            for k in range(indptr[row], indptr[row + 1]):
                total += probabilities[k]
                sums[k] = total
    return cdf


def entries_of_dense(matrix: ConstMatrix, first: cython.Py_ssize_t):
    """Return the positions of the nonzero entries of a matrix, row by row, counted from ``first``, and the entries."""
    count: cython.Py_ssize_t = 0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            count += matrix[i, j] != 0.0
    positions, values = np.empty(count, np.int64), np.empty(count)
    place: Ints = positions
    value: Vector = values
    k: cython.Py_ssize_t = 0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            if matrix[i, j] != 0.0:
                place[k], value[k] = first + i * matrix.shape[1] + j, matrix[i, j]
                k += 1
    return positions, values
