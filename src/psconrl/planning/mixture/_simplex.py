r"""The simplex method on a handful of rows, compiled: what a master problem needs, and nothing else.

.. math:: \min_x c \cdot x \quad\text{s.t.}\quad \sum_j x_j A_j = b,\ x \ge 0

from a feasible basis, with many columns :math:`A_j` and few rows (Dantzig 1963). Every step solves with the basis anew,
so that no errors build up; while steps have length zero, Bland's rule (1977) keeps it from going round in circles.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.planning.mixture._lu import factorise, solve, solve_transposed

_PIVOT_TOL = 1e-11
_PRICE_TOL = 1e-13
_MAX_STEPS = 10_000


@njit(cache=True)
def place(basis: Ints, j: int) -> int:
    """Where a column stands in the basis; -1 if it is not basic."""
    for i in range(basis.size):
        if basis[i] == j:
            return i
    return -1


@njit(cache=True)
def simplex(columns: Floats, costs: Floats, right: Floats, basis: Ints, first: int) -> tuple[bool, Floats, Floats]:
    """Improve a feasible basis, in place, to an optimal one over the columns (n, k) from ``first`` on.

    Returns whether it ended, the weights (k,) of the basic columns, and the dual prices (k,) of the rows.
    """
    n, k = columns.shape
    x, y, d, room = np.zeros(k), np.zeros(k), np.zeros(k), np.empty(k)
    B, order = np.empty((k, k)), np.empty(k, np.int64)
    idle = 0
    for _ in range(_MAX_STEPS):
        for i in range(k):
            room[i] = costs[basis[i]]
            for j in range(k):
                B[i, j] = columns[basis[i], j]  # a column of the program a row
        if not factorise(B, order):
            return False, x, y
        solve(B, order, room, y)
        solve_transposed(B, order, right, x, room)
        for i in range(k):
            x[i] = max(x[i], 0.0)
        entering, lowest = -1, 0.0
        for j in range(first, n):
            reduced, size = costs[j], 1.0 + abs(costs[j])
            for i in range(k):
                reduced -= columns[j, i] * y[i]
                size += abs(columns[j, i] * y[i])
            if reduced < -_PRICE_TOL * size and (reduced < lowest or entering < 0) and place(basis, j) < 0:
                entering, lowest = j, reduced
                if idle > 2 * k:
                    break  # Bland: the first that will do
        if entering < 0:
            return True, x, y
        solve_transposed(B, order, columns[entering], d, room)
        leaving, step = -1, np.inf
        for i in range(k):
            if d[i] > _PIVOT_TOL:
                ratio = x[i] / d[i]
                nearer = ratio < step
                if ratio == step:
                    nearer = basis[i] < basis[leaving] if idle > 2 * k else d[i] > d[leaving]
                if nearer:
                    leaving, step = i, ratio
        if leaving < 0:
            return False, x, y  # unbounded: not a master problem
        idle = idle + 1 if step == 0.0 else 0
        basis[leaving] = entering
    return False, x, y
