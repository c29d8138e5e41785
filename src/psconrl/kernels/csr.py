"""Matrices in CSR form: some of their rows, their columns, sums along their rows."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.successors import index

if not cython.compiled:
    start = cython.fused_type(cython.int, cython.Py_ssize_t)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gather_rows(
    indptr: cython.const[index][::1],
    indices: cython.const[index][::1],
    data: cython.const[cython.double][::1],
    rows: cython.const[cython.Py_ssize_t][::1],
    state: cython.Py_ssize_t,
    probability: cython.double,
    starts: index[::1],
    columns: index[::1],
    values: cython.double[::1],
) -> cython.Py_ssize_t:
    """``gathered`` in arrays that are handed in; returns the number of entries. See ``csr.pxd``."""
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
    indptr: cython.const[index][::1],
    indices: cython.const[index][::1],
    data: cython.const[cython.double][::1],
    rows: cython.const[cython.Py_ssize_t][::1],
    state: cython.Py_ssize_t,
    probability: cython.double,
):
    """Some rows of a matrix in CSR form, each of which leads to a state instead with a probability."""
    n = rows.shape[0]
    entries: cython.Py_ssize_t = n if probability > 0.0 else 0
    for i in range(n):
        if not 0 <= rows[i] < indptr.shape[0] - 1:
            raise ValueError("there is no such row")
        entries += indptr[rows[i] + 1] - indptr[rows[i]]
    kind = f"i{indices.itemsize}"
    starts, columns, values = np.empty(n + 1, kind), np.empty(entries, kind), np.empty(entries)
    to_starts: index[::1] = starts
    to_columns: index[::1] = columns
    to_values: cython.double[::1] = values
    with cython.nogil:
        gather_rows(indptr, indices, data, rows, state, probability, to_starts, to_columns, to_values)
    return starts, columns, values


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sort_by_columns(
    indptr: cython.const[start][::1],
    indices: cython.const[index][::1],
    data: cython.const[cython.double][::1],
    first: cython.Py_ssize_t[::1],
    rows: cython.int[::1],
    entries: cython.double[::1],
) -> cython.void:
    """``by_columns`` in arrays that are handed in; ``first`` has one entry more than there."""
    n_columns = first.shape[0] - 2
    for t in range(n_columns + 2):
        first[t] = 0
    # Counted two places ahead, summed up one place ahead, so that each column ends where the next one begins.
    for e in range(indptr[indptr.shape[0] - 1]):
        first[indices[e] + 2] += 1
    for t in range(1, n_columns):
        first[t + 1] += first[t]
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            k: cython.Py_ssize_t = first[indices[e] + 1]
            rows[k] = row
            entries[k] = data[e]
            first[indices[e] + 1] = k + 1


def by_columns(
    indptr: cython.const[start][::1],
    indices: cython.const[index][::1],
    data: cython.const[cython.double][::1],
    n_columns: cython.Py_ssize_t,
):
    """Where every column begins, the rows of its entries, and the entries."""
    entries = indices.shape[0]
    if indptr[indptr.shape[0] - 1] != entries or data.shape[0] != entries:
        raise ValueError("a matrix in CSR form needs as many columns as entries")
    first, rows, values = np.empty(n_columns + 2, np.int64), np.empty(entries, np.intc), np.empty(entries)
    to_first: cython.Py_ssize_t[::1] = first
    to_rows: cython.int[::1] = rows
    to_values: cython.double[::1] = values
    with cython.nogil:
        sort_by_columns(indptr, indices, data, to_first, to_rows, to_values)
    return first[: n_columns + 1], rows, values


def row_cdf(indptr: cython.const[cython.Py_ssize_t][::1], probabilities: cython.const[cython.double][::1]):
    """Cumulative sums within the rows of a CSR matrix."""
    n = indptr.shape[0] - 1
    if indptr[0] < 0 or indptr[n] > probabilities.shape[0]:
        raise ValueError("the row starts of a matrix lead out of its entries")
    cdf = np.empty(probabilities.shape[0])
    sums: cython.double[::1] = cdf
    with cython.nogil:
        for row in range(n):
            total: cython.double = 0.0
            for k in range(indptr[row], indptr[row + 1]):
                total += probabilities[k]
                sums[k] = total
    return cdf
