r"""Compiled sums in twice the working precision, for potentials that one double a state cannot hold.

Where a part of a model is left once in 1e12 steps, the potential h is of that size there, and a double keeps it to 1e-4
only: too coarse for what happens inside. So h is kept as an unevaluated sum of two doubles, ``high + low``, and
:math:`\sum_{s'} P(s'|s,a)\,(h(s') - h(s))` is summed with its rounding errors (Dekker 1971; Ogita, Rump and Oishi 2005,
algorithm Dot2). No fast-math here: re-associated sums would lose exactly what this is about.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.model._elimination import gathered, unichain

_SPLITTER = 134217729.0  # 2^27 + 1: cuts a double into two halves of 26 bits


@njit(cache=True)
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum, and what was rounded away (Knuth 1969)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True)
def two_product(a: float, b: float) -> tuple[float, float]:
    """The rounded product, and what was rounded away (Dekker 1971)."""
    p = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True)
def _add_move(total: float, rest: float, p: float, high: Floats, low: Floats, j: int, s: int) -> tuple[float, float]:
    """Add p (h(j) - h(s)) to a sum and its rounding errors."""
    difference, lost = two_sum(high[j], -high[s])
    lost += low[j] - low[s]
    product, more = two_product(p, difference)
    total, error = two_sum(total, product)
    return total, rest + (error + (more + p * lost))


@njit(cache=True, nogil=True)
def drift_dense(P: Floats, high: Floats, low: Floats) -> Floats:
    """The expected change of h in every pair, (S, A), for dense P (S*A, S)."""
    S = high.size
    A = P.shape[0] // S
    result = np.empty((S, A))
    for s in range(S):
        for a in range(A):
            row = P[s * A + a]
            total, rest = 0.0, 0.0
            for j in range(S):
                if row[j] != 0.0 and j != s:
                    total, rest = _add_move(total, rest, row[j], high, low, j, s)
            result[s, a] = total + rest
    return result


@njit(cache=True, nogil=True)
def drift_of_states(
    indptr: Ints, indices: Ints, data: Floats, high: Floats, low: Floats, begin: int, end: int, result: Floats
) -> None:  # fmt: skip
    """The same for a CSR matrix and some states, written to their rows of the result (S, A)."""
    A = result.shape[1]
    for pair in range(begin * A, end * A):
        s = pair // A
        total, rest = 0.0, 0.0
        for k in range(indptr[pair], indptr[pair + 1]):
            if indices[k] != s:
                total, rest = _add_move(total, rest, data[k], high, low, indices[k], s)
        result[s, pair - s * A] = total + rest


@njit(cache=True, nogil=True)
def drift_sparse(indptr: Ints, indices: Ints, data: Floats, high: Floats, low: Floats) -> Floats:
    """The same for all states."""
    S = high.size
    result = np.empty((S, (indptr.size - 1) // S))
    drift_of_states(indptr, indices, data, high, low, 0, S, result)
    return result


class RefinedChain(NamedTuple):
    """A chain with one closed class; see ``unichain`` for the reference and the slowest exit."""

    reference: int  # -1 if there are two closed classes
    gains: Floats  # (q,)
    high: Floats  # (q, S) biases,
    low: Floats  # (q, S) to be added to them
    stationary: Floats  # (S,)
    slowest: float


@njit(cache=True, nogil=True)
def refined_unichain(P: Floats, rows: Ints, costs: Floats, reference: int, rounds: int) -> RefinedChain:
    r"""``unichain`` with biases in two parts.

    Iterative refinement: what a solution leaves over, :math:`r = c - g + P h - h`, summed in twice double precision, is
    taken as the cost of the same chain, whose gain and bias correct g and h.
    """
    S, q = rows.size, costs.shape[0]
    chain, cost = gathered(P, rows, costs)
    reference, gains, high, stationary, slowest = unichain(chain, cost, reference)
    low = np.zeros((q, S))
    if reference < 0:
        return RefinedChain(reference, gains, high, low, stationary, slowest)
    gains_low = np.zeros(q)
    left = np.empty((q, S))
    for _ in range(rounds):
        for i in range(q):
            for s in range(S):
                total, rest = two_sum(cost[i, s], -gains[i])
                rest -= gains_low[i]
                for j in range(S):
                    if chain[s, j] != 0.0 and j != s:
                        total, rest = _add_move(total, rest, chain[s, j], high[i], low[i], j, s)
                left[i, s] = total + rest
        other, more, correction, _, _ = unichain(chain, left, reference)
        if other < 0:
            break
        for i in range(q):
            gains[i], rest = two_sum(gains[i], more[i])
            gains_low[i] += rest
            base = correction[i, reference]
            for s in range(S):
                high[i, s], rest = two_sum(high[i, s], correction[i, s] - base)
                high[i, s], low[i, s] = two_sum(high[i, s], low[i, s] + rest)
    return RefinedChain(reference, gains, high, low, stationary, slowest)


@njit(cache=True)
def combine(weights: Floats, high: Floats, low: Floats) -> tuple[Floats, Floats]:
    """The weighted sum of layers (q, S), again as a high and a low part (S,)."""
    q, S = high.shape
    total, rest = np.zeros(S), np.zeros(S)
    for i in range(q):
        w = weights[i]
        if w == 0.0:
            continue
        for s in range(S):
            product, lost = two_product(w, high[i, s])
            total[s], error = two_sum(total[s], product)
            rest[s] += error + (lost + w * low[i, s])
    for s in range(S):
        total[s], rest[s] = two_sum(total[s], rest[s])
    return total, rest
