"""Compiled: small systems of equations by Gaussian elimination with partial pivoting, without the way to LAPACK.

On the three rows of two limits a call of LAPACK takes ten times as long as the arithmetic.
"""

from numba import njit

from psconrl.arrays import Floats, Ints


@njit(cache=True)
def factorise(matrix: Floats, order: Ints) -> bool:
    """Overwrite a matrix (k, k) by its factors, and ``order`` (k,) by that of its rows. False if it is singular."""
    k = len(matrix)
    for i in range(k):
        order[i] = i
    for c in range(k):
        pivot = c
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
            factor = matrix[i, c] / matrix[c, c]
            matrix[i, c] = factor
            for j in range(c + 1, k):
                matrix[i, j] -= factor * matrix[c, j]
    return True


@njit(cache=True)
def solve(factors: Floats, order: Ints, right: Floats, x: Floats) -> None:
    """Solve A x = right into x, given the factors of A."""
    k = len(factors)
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


@njit(cache=True)
def solve_transposed(factors: Floats, order: Ints, right: Floats, x: Floats, room: Floats) -> None:
    """Solve x A = right into x, given the factors of A; ``room`` (k,) is overwritten."""
    k = len(factors)
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
