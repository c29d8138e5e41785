"""Compiled: the master of at most one limit, which is the edge of a convex hull."""

from typing import NamedTuple

from numba import njit

from psconrl.arrays import Floats, Ints


class Edge(NamedTuple):
    """Where the lower hull of the columns crosses the limit."""

    below: int  # the column at or below the limit; -1 if there is none
    above: int  # the one above it; -1 if one suffices
    share: float  # of the latter
    price: float  # of the limit: minus the slope


@njit(cache=True)
def _edge(gains: Floats, n: int, tau: float) -> Edge:
    """The two columns that make up the lower hull at tau."""
    safe = -1
    for i in range(n):
        if gains[i, 1] <= tau and (safe < 0 or gains[i, 0] < gains[safe, 0]):
            safe = i
    if safe < 0:
        return Edge(-1, -1, 0.0, 0.0)
    below, above, best, price, share = safe, -1, gains[safe, 0], 0.0, 0.0
    for i in range(n):
        if gains[i, 1] > tau:
            continue
        for j in range(n):
            if gains[j, 1] <= tau or gains[j, 0] >= gains[safe, 0]:
                continue
            width = gains[j, 1] - gains[i, 1]
            theta = (tau - gains[i, 1]) / width
            value = gains[i, 0] + theta * (gains[j, 0] - gains[i, 0])
            slope = (gains[i, 0] - gains[j, 0]) / width
            if value < best or (value == best and slope > price):
                below, above, best, price, share = i, j, value, slope, theta
    return Edge(below, above, share, price)


@njit(cache=True)
def mix_on_line(
    gains: Floats, n: int, tau: float, limit: float, weights: Floats, columns: Ints, shares: Floats
) -> tuple[bool, float]:
    """Mix the first n points (cost, limited cost) at the limit: is that feasible, and the weighted cost of the mixture.

    If it is not, the column of least excess over tau, and the excess. ``limit`` is tau, or what it was relaxed to.
    Weights (q,), columns (2,) and shares (2,) are written in place.
    """
    below, above, share, price = _edge(gains, n, limit)
    feasible = below >= 0
    if feasible:
        weights[0] = 1.0 / (1.0 + price)
        if weights.size > 1:
            weights[1] = price / (1.0 + price)
        value = gains[below, 0] * weights[0]
        if above >= 0:
            value += share * (gains[above, 0] - gains[below, 0]) * weights[0]
    else:
        below = 0
        for i in range(1, n):
            if gains[i, 1] < gains[below, 1]:
                below = i
        weights[0], weights[1] = 0.0, 1.0
        value = gains[below, 1] - tau
    columns[0], shares[0] = below, 1.0 - share
    columns[1], shares[1] = max(above, 0), share
    return feasible, value
