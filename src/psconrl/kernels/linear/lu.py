"""Small linear systems by Gaussian elimination with partial pivoting, without calling LAPACK.

For the three rows of two constraints a LAPACK call takes ten times as long as the arithmetic.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstMatrix, Ints, Matrix, Vector


def factorise(matrix, order):
    """Overwrite a matrix (k, k) by its factors, and ``order`` (k,) by the row order; return False if singular."""
    k = matrix.shape[0]
    for i in range(k):
        order[i] = i
    for c in range(k):
        pivot: cython.Py_ssize_t = c
        for i in range(c + 1, k):
            if abs(matrix[i, c]) > abs(matrix[pivot, c]):
                pivot = i
        if not abs(matrix[pivot, c]) > 0.0:
            return False
        if pivot != c:
            order[c], order[pivot] = order[pivot], order[c]
            for j in range(k):
                matrix[c, j], matrix[pivot, j] = matrix[pivot, j], matrix[c, j]
        for i in range(c + 1, k):
            factor: cython.double = matrix[i, c] / matrix[c, c]
            matrix[i, c] = factor
            for j in range(c + 1, k):
                matrix[i, j] -= factor * matrix[c, j]
    return True


def solve(factors, order, right, x):
    """Solve A x = right into x, given the factors of A."""
    k = factors.shape[0]
    total: cython.double
    for i in range(k):
        total = right[order[i]]
        for j in range(i):
            total -= factors[i, j] * x[j]
        x[i] = total
    for i in range(k - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, k):
            total -= factors[i, j] * x[j]
        x[i] = total / factors[i, i]


def solve_transposed(factors, order, right, x, room):
    """Solve x A = right into x, given the factors of A; ``room`` (k,) is overwritten."""
    k = factors.shape[0]
    total: cython.double
    for i in range(k):
        total = right[i]
        for j in range(i):
            total -= factors[j, i] * room[j]
        room[i] = total / factors[i, i]
    for i in range(k - 1, -1, -1):
        total = room[i]
        for j in range(i + 1, k):
            total -= factors[j, i] * room[j]
        room[i] = total
    for i in range(k):
        x[order[i]] = room[i]


def solved(matrix: ConstMatrix, right: ConstMatrix, transposed: cython.bint = False):
    """Return X (k, n) with A X = B, or A^T X = B, for a matrix A (k, k) and B (k, n); None if A is singular."""
    k, n = matrix.shape[0], right.shape[1]
    if matrix.shape[1] != k or right.shape[0] != k:
        raise ValueError("a matrix (k, k) and right-hand sides (k, n) are needed")
    result = np.empty((n, k))
    factors: Matrix = np.array(matrix)
    order: Ints = np.empty(k, np.int64)
    columns: Matrix = np.ascontiguousarray(np.asarray(right).T)
    X: Matrix = result
    room: Vector = np.empty(k)
    if not factorise(factors, order):
        return None
    for i in range(n):
        if transposed:
            solve_transposed(factors, order, columns[i], X[i], room)
        else:
            solve(factors, order, columns[i], X[i])
    return np.ascontiguousarray(result.T)
