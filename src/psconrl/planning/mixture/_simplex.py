r"""The simplex method on a handful of rows, compiled: what a master problem needs, and nothing else.

.. math:: \min_x c \cdot x \quad\text{s.t.}\quad \sum_j x_j A_j = b,\ x \ge 0

from a feasible basis, with many columns :math:`A_j` and few rows (Dantzig 1963). Every step solves with the basis anew,
so that no errors build up; while steps have length zero, Bland's rule (1977) keeps it from going round in circles.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints

_PIVOT_TOL = 1e-11
_PRICE_TOL = 1e-13
_MAX_STEPS = 10_000


@njit(cache=True)
def simplex(columns: Floats, costs: Floats, right: Floats, basis: Ints, allowed: Bools) -> tuple[bool, Floats, Floats]:
    """Improve a feasible basis, in place, to an optimal one over the allowed columns (n, k).

    Returns whether it ended, the weights (k,) of the basic columns, and the dual prices (k,) of the rows.
    """
    n, k = columns.shape
    x, y = np.zeros(k), np.zeros(k)
    idle = 0
    for _ in range(_MAX_STEPS):
        B = columns[basis]  # (k, k), a column of the program a row
        x[:] = np.maximum(np.linalg.solve(B.T, right), 0.0)
        y[:] = np.linalg.solve(B, costs[basis])
        entering, lowest = -1, 0.0
        for j in range(n):
            if not allowed[j]:
                continue
            reduced, size = costs[j], 1.0 + abs(costs[j])
            for i in range(k):
                reduced -= columns[j, i] * y[i]
                size += abs(columns[j, i] * y[i])
            if reduced < -_PRICE_TOL * size and (reduced < lowest or entering < 0):
                entering, lowest = j, reduced
                if idle > 2 * k:
                    break  # Bland: the first that will do
        if entering < 0:
            return True, x, y
        d = np.linalg.solve(B.T, columns[entering])
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
