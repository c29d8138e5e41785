"""Compiled pessimism: the worst law within bounds, and value iteration for one policy against it."""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints

STEP = 0.9  # of every sweep towards its result, since a periodic chain would go round in circles


@njit(cache=True)
def worst_mean(
    pair: int, indptr: Ints, successors: Ints, low: Floats, high: Floats, unseen: Floats, h: Floats, order: Ints,
    place: Ints,
) -> float:  # fmt: skip
    """The largest p.h of a pair: the lowest probabilities, and what is left where h is largest, up to the highest.

    ``order``: the states by falling h. ``place`` (S,) must be -1 everywhere, and is so again.
    """
    left, value = 1.0, 0.0
    for entry in range(indptr[pair], indptr[pair + 1]):
        place[successors[entry]] = entry
        left -= low[entry]
        value += low[entry] * h[successors[entry]]
    for k in range(order.size):
        if left <= 0.0:
            break
        j = order[k]
        entry = place[j]
        room = high[entry] - low[entry] if entry >= 0 else unseen[pair]
        step = min(room, left)
        value += step * h[j]
        left -= step
    for entry in range(indptr[pair], indptr[pair + 1]):
        place[successors[entry]] = -1
    return float(value + max(left, 0.0) * h[order[0]])


@njit(cache=True, nogil=True)
def worst_means(
    indptr: Ints, successors: Ints, low: Floats, high: Floats, unseen: Floats, h: Floats, out: Floats
) -> None:
    """The largest p.h of every pair."""
    order = np.argsort(-h, kind="mergesort")
    place = np.full(h.size, -1)
    for pair in range(out.size):
        out[pair] = worst_mean(pair, indptr, successors, low, high, unseen, h, order, place)


@njit(cache=True, nogil=True)
def worst_case(
    policy: Floats, costs: Floats, indptr: Ints, successors: Ints, low: Floats, high: Floats, unseen: Floats,
    relying: Bools, recovery: float, limit: float, sweeps: int, settled: float, h: Floats,
) -> float:  # fmt: skip
    """Value iteration from h, in place: the least bound that was met, and the h that has it.

    Stops once the bound is within the limit, or surely beyond it, or settled.
    """
    S, A = policy.shape
    place = np.full(S, -1)
    residual, best = np.zeros(S), h.copy()
    bound = np.inf
    for _ in range(sweeps):
        top = -np.inf
        for s in range(S):
            if not relying[s]:
                top = max(top, h[s])
        if top == -np.inf:  # all rely on the baseline
            return -np.inf
        for s in range(S):
            if relying[s]:
                h[s] = top + recovery
        order = np.argsort(-h, kind="mergesort")
        worst, least = -np.inf, np.inf
        for s in range(S):
            if relying[s]:
                continue
            value = -h[s]
            for a in range(A):
                chance = policy[s, a]
                if chance > 0.0:
                    pair = s * A + a
                    mean = worst_mean(pair, indptr, successors, low, high, unseen, h, order, place)
                    value += chance * (costs[pair] + mean)
            residual[s] = value
            worst, least = max(worst, value), min(least, value)
        if worst < bound:
            bound = worst
            for s in range(S):
                best[s] = h[s]
        if bound <= limit or least > limit > -np.inf or worst - least <= settled:
            break
        for s in range(S):
            h[s] += STEP * (residual[s] - worst)
    for s in range(S):
        h[s] = best[s]
    return bound
