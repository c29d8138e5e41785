"""Products of vectors and matrices with the same bits on every CPU; BLAS chooses its summation order by CPU."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import dot as _dot
from cython.cimports.psconrl.kernels._types import ConstMatrix, ConstPlaces, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix


def dot(x: ConstVector, z: ConstVector) -> float:
    """Return the product of two vectors."""
    if x.shape[0] != z.shape[0]:
        raise ValueError("vectors of different lengths")
    return _dot(x, z)


def combine(weights: ConstVector, rows: ConstMatrix):
    """Return the weighted sum of the rows of a matrix, added from the first to the last."""
    if weights.shape[0] != rows.shape[0]:
        raise ValueError("a weight for every row is needed")
    total = np.zeros(rows.shape[1])
    out: Vector = total
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for i in range(rows.shape[0]):
            if weights[i] != 0.0:
                for j in range(rows.shape[1]):
                    out[j] += weights[i] * rows[i, j]
    return total


def times(matrix: ConstMatrix, x: ConstVector):
    """Return a matrix times a vector."""
    if matrix.shape[1] != x.shape[0]:
        raise ValueError("a matrix and a vector of different sizes")
    product = np.empty(matrix.shape[0])
    out: Vector = product
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(matrix.shape[0]):
            out[i] = _dot(matrix[i], x)
    return product


def multiply(left: ConstMatrix, right: ConstMatrix):
    """Return a matrix times one of few columns: rows of the second, weighted by the first and added in order."""
    if left.shape[1] != right.shape[0]:
        raise ValueError("two matrices of different sizes")
    product = np.zeros((left.shape[0], right.shape[1]))
    out: Matrix = product
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for i in range(left.shape[0]):
            for k in range(left.shape[1]):
                weight: cython.double = left[i, k]
                if weight != 0.0:
                    for j in range(right.shape[1]):
                        out[i, j] += weight * right[k, j]
    return product


def sparse_times(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, x: ConstVector):
    """Return a matrix in CSR form times a vector."""
    n: cython.Py_ssize_t = indptr.shape[0] - 1
    check_matrix(indptr, indices, data.shape[0], x.shape[0])
    product = np.empty(n)
    out: Vector = product
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            total: cython.double = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * x[indices[e]]
            out[i] = total
    return product


def times_sparse(
    x: ConstVector, indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, n_columns: cython.Py_ssize_t
):
    """Return a vector times a matrix in CSR form."""
    if x.shape[0] != indptr.shape[0] - 1:
        raise ValueError("a vector and a matrix of different sizes")
    check_matrix(indptr, indices, data.shape[0], n_columns)
    product = np.zeros(n_columns)
    out: Vector = product
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    with cython.nogil:
        for i in range(x.shape[0]):
            if x[i] != 0.0:
                for e in range(indptr[i], indptr[i + 1]):
                    out[indices[e]] += x[i] * data[e]
    return product
