r"""Compiled: the master of any number of limits, by the simplex method, from the last basis as columns arrive.

Phase one mixes the columns for the least excess :math:`\varepsilon` over all limits,

.. math:: \sum_j w_j b_j + s - \varepsilon = \tau, \quad \sum_j w_j = 1, \qquad w, s, \varepsilon \ge 0,

phase two for the least cost without one. The dual prices of either are the weights of the next question.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.planning.mixture._lu import factorise, solve
from psconrl.planning.mixture._simplex import place, simplex
from psconrl.planning.tolerances import NO_EXCESS


class Tableau(NamedTuple):
    """The program. Column 0 is the excess, then comes what is left of each of the m limits, then the policies."""

    columns: Floats  # (m + 1 + capacity, m + 1)
    costs: Floats  # (m + 1 + capacity,)
    right: Floats  # (m + 1,)
    basis: Ints  # (m + 1,); of -1 before the first solve


class Mixed(NamedTuple):
    """Where the master stands; the weights, columns and shares are written in place."""

    ended: bool  # if not, rounding has spoiled the basis
    feasible: bool
    value: float  # weighted cost of the mixture minus that of the limits


@njit(cache=True)
def new_tableau(thresholds: Floats, capacity: int) -> Tableau:
    """A tableau without policies."""
    m = thresholds.size
    columns = np.zeros((m + 1 + capacity, m + 1))
    right = np.ones(m + 1)
    for i in range(m):
        columns[0, i] = -1.0
        columns[i + 1, i] = 1.0
        right[i] = thresholds[i]
    return Tableau(columns, np.zeros(m + 1 + capacity), right, np.full(m + 1, -1))


@njit(cache=True)
def add_column(table: Tableau, j: int, averages: Floats) -> None:
    """The averages (m+1,) of policy j."""
    m = table.right.size - 1
    for i in range(m):
        table.columns[m + 1 + j, i] = averages[i + 1]
    table.columns[m + 1 + j, m] = 1.0
    table.costs[m + 1 + j] = averages[0]


@njit(cache=True)
def relax(table: Tableau, excess: float) -> None:
    """Raise the limits by an excess that is rounding; what follows is phase two."""
    for i in range(table.right.size - 1):
        table.right[i] += excess


@njit(cache=True)
def _first_basis(columns: Floats, right: Floats, basis: Ints) -> None:
    """The first policy alone, with what it leaves of every limit, or with its largest excess."""
    m = right.size - 1
    largest, over = 0.0, -1
    for i in range(m):
        basis[i] = i + 1
        excess = columns[m + 1, i] - right[i]
        if excess > largest:
            largest, over = excess, i
    basis[m] = m + 1
    if over >= 0:
        basis[over] = 0


@njit(cache=True)
def _without_excess(columns: Floats, basis: Ints, at: int) -> bool:
    """Replace the excess, which is zero, in the basis by the column with the largest entry there. False if singular."""
    k = basis.size
    B, order, unit, row = np.empty((k, k)), np.empty(k, np.int64), np.zeros(k), np.empty(k)
    for i in range(k):
        for j in range(k):
            B[i, j] = columns[basis[i], j]
    if not factorise(B, order):
        return False
    unit[at] = 1.0
    solve(B, order, unit, row)
    largest = 0.0
    for j in range(1, len(columns)):  # those that are basic have no entry there but rounding
        entry = 0.0
        for i in range(k):
            entry += row[i] * columns[j, i]
        if abs(entry) > largest:
            largest, basis[at] = abs(entry), j
    return True


@njit(cache=True)
def mix_in_tableau(table: Tableau, n: int, feasible: bool, weights: Floats, mixed: Ints, shares: Floats) -> Mixed:
    """Mix the first n policies, from the last basis; ``feasible``: is this phase two already?

    Weights, the columns that are mixed and their shares, all (m+1,), are written in place.
    """
    right, basis = table.right, table.basis
    k = basis.size
    columns = table.columns[: k + n]
    if basis[0] < 0:
        _first_basis(columns, right, basis)
    while True:  # once, and once more if phase two begins here
        at = place(basis, 0)
        if feasible and at >= 0 and not _without_excess(columns, basis, at):
            return Mixed(False, feasible, 0.0)
        costs = table.costs
        if not feasible:
            costs = np.zeros(k + n)
            costs[0] = 1.0
        ended, x, y = simplex(columns, costs, right, basis, 1 if feasible else 0)
        at = place(basis, 0)
        if not ended or feasible or (at >= 0 and x[at] > NO_EXCESS):
            break
        feasible = True
    value, total = 0.0, 0.0
    weights[0] = size = 1.0 if feasible else 0.0
    for i in range(k):
        j = basis[i]
        value += x[i] * costs[j]
        mixed[i] = max(j - k, 0)
        shares[i] = x[i] if j >= k else 0.0
        total += shares[i]
        if i < k - 1:
            weights[i + 1] = max(-y[i], 0.0) + 0.0  # not -0.0
            size += weights[i + 1]
    if not (ended and total > 0.0 and 0.0 < size < np.inf):
        return Mixed(False, feasible, 0.0)
    for i in range(k):
        shares[i] /= total
        weights[i] /= size
    return Mixed(True, feasible, value / size)
