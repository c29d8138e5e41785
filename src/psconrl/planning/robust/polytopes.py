r"""Vertices of the action probabilities that satisfy a few inequalities in a state.

The probabilities p of the columns of a state with :math:`\sum_j p_j = 1, p \ge 0` and :math:`\sum_j v_{ij} p_j \le 0`
for a few constraints i are a polytope. A vertex mixes k columns, and k - 1 inequalities are equations. Their solutions
are in proportion to the generalised cross product :math:`p_j \propto (-1)^j \det(v \text{ without column } j)`: for
two columns :math:`(v_{i2}, -v_{i1})`, for three :math:`v_1 \times v_2`.
"""

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.planning.tolerances import VERTEX_ROUNDING

MOST_CONSTRAINTS = 3  # for which vertices are computed


class Vertices(NamedTuple):
    """Vertices in all states that mix k columns each."""

    columns: Ints  # (V, k)
    shares: Floats  # (V, S, k)
    allowed: Bools  # (V, S) which of them satisfy the inequalities


@cache
def _choices(m: int, columns: int, k: int) -> tuple[Ints, Ints]:
    """Return every choice of k columns (V, k) with every choice of k - 1 constraints (V, k - 1)."""
    found = [(chosen, tight) for chosen in combinations(range(columns), k) for tight in combinations(range(m), k - 1)]
    return (
        np.array([chosen for chosen, _ in found], dtype=np.int64).reshape(len(found), k),
        np.array([tight for _, tight in found], dtype=np.int64).reshape(len(found), k - 1),
    )


def number_of_vertices(m: int, S: int, columns: int) -> int:
    """Return how many numbers describe all candidates for vertices of all states."""
    return S * sum(_choices(m, columns, k)[0].size for k in range(1, m + 2))


def vertices_of(over: Floats) -> list[Vertices]:
    """Return the vertices by numbers of columns; ``over`` (m, S, n): the v of every constraint, state and column.

    >>> vertices_of(np.array([[[-1.0, 3.0]]]))[1].shares  # a quarter of the second column is allowed
    array([[[0.75, 0.25]]])
    """
    m, _, n = over.shape
    rounding, found = VERTEX_ROUNDING * np.abs(over).max(axis=(1, 2), initial=0.0)[:, None, None], []
    for k in range(1, m + 2):
        columns, tight = _choices(m, n, k)
        equations = over[tight[:, :, None], :, columns[:, None, :]]  # (V, k - 1, k, S)
        shares = np.stack([(-1) ** j * _determinant(np.delete(equations, j, axis=2)) for j in range(k)], axis=1)
        total = shares.sum(axis=1, keepdims=True)
        shares = np.moveaxis(shares / np.where(total == 0.0, 1.0, total), 1, 2)
        allowed = (total[:, 0] != 0.0) & (shares >= 0.0).all(axis=2)
        reached = (np.moveaxis(over[:, :, columns], 2, 1) * shares).sum(axis=3)  # (m, V, S)
        allowed &= (reached <= rounding).all(axis=0)
        kept = np.flatnonzero(allowed.any(axis=1))
        found.append(Vertices(columns[kept], shares[kept], allowed[kept]))
    return found


def _determinant(matrices: Floats) -> Floats:
    """Return the determinants (V, S) of matrices (V, k, k, S), by expansion along the first row; 1 for k = 0."""
    V, k, _, S = matrices.shape
    if k <= 1:
        return matrices[:, 0, 0] if k else np.ones((V, S))
    parts = [(-1) ** j * matrices[:, 0, j] * _determinant(np.delete(matrices[:, 1:], j, axis=2)) for j in range(k)]
    return np.asarray(sum(parts))
