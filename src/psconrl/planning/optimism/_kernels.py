r"""Compiled optimism: the best transition law in a box, and the two recursions that use it.

For a pair with bounds :math:`lo \le p \le hi,\ \sum p = 1`, the law that minimises :math:`p \cdot h` starts at lo and
pours the remaining mass in increasing order of h, up to hi: sort once, then O(S) a pair. Of equal states the first
comes first (mergesort is stable, and the only stable one that Numba knows): else the sort would choose the law.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._improvement import weighted_bias


@njit(cache=True)
def pour(low: Floats, high: Floats, order: Ints, out: Floats) -> None:
    """The law in the box with as much mass as possible on the first states of an order, into ``out``."""
    left = 1.0
    for j in range(low.size):
        out[j] = low[j]
        left -= low[j]
    for k in range(order.size):
        if left <= 0.0:
            break
        j = order[k]
        room = high[j] - low[j]
        if room > 0.0:
            step = min(room, left)
            out[j] += step
            left -= step


@njit(cache=True, nogil=True)
def improve_optimistic(
    low: Floats,
    high: Floats,
    costs: Floats,
    weights: Floats,
    policy: Ints,
    kernel: Floats,
    biases: Floats,
    tol: float,
) -> tuple[float, int, Ints, Floats]:
    """Howard's step over pairs (action, law in its box): bound, states that switched, new actions and laws (S, S)."""
    S = kernel.shape[0]
    A = low.shape[0] // S
    h = weighted_bias(weights, biases)
    order = np.argsort(h, kind="mergesort")
    new_policy, new_kernel = policy.copy(), kernel.copy()
    law, best_law = np.empty(S), np.empty(S)
    bound = np.inf
    switched = 0
    for s in range(S):
        best, best_action = np.inf, -1
        for a in range(A):
            pair = s * A + a
            pour(low[pair], high[pair], order, law)
            value = 0.0
            for j in range(S):
                value += law[j] * (h[j] - h[s])
            for i in range(weights.size):
                value += weights[i] * costs[i, pair]
            if value < best:
                best, best_action = value, a
                best_law[:] = law
        current = 0.0
        for j in range(S):
            current += kernel[s, j] * (h[j] - h[s])
        for i in range(weights.size):
            current += weights[i] * costs[i, s * A + policy[s]]
        bound = min(bound, best)
        if current - best > tol * max(1.0, abs(h[s])):
            new_policy[s] = best_action
            new_kernel[s] = best_law
            switched += 1
    return bound, switched, new_policy, new_kernel


@njit(cache=True)
def lead_into(low: Floats, high: Floats, inside: Bools, policy: Ints, kernel: Floats) -> bool:
    """Change actions and laws outside a set, in place, so that all states surely move into it; False if some cannot.

    What a state plays already is kept where it has a chance to come closer.
    """
    S = kernel.shape[0]
    A = low.shape[0] // S
    reached = inside.copy()
    law = np.empty(S)
    while True:
        order = np.argsort(-reached.astype(np.float64), kind="mergesort")
        grown = reached.copy()
        for s in range(S):
            if reached[s]:
                continue
            top = 0.0
            for j in range(S):
                if reached[j]:
                    top += kernel[s, j]
            if top > 0.0:
                grown[s] = True
                continue
            for a in range(A):
                pour(low[s * A + a], high[s * A + a], order, law)
                chance = 0.0
                for j in range(S):
                    if reached[j]:
                        chance += law[j]
                if chance > top:
                    top = chance
                    policy[s] = a
                    kernel[s] = law
            grown[s] = top > 0.0
        if grown.all():
            return True
        if (grown == reached).all():
            return False
        reached = grown


@njit(cache=True, nogil=True)
def optimistic_horizon(
    low: Floats, high: Floats, costs: Floats, weights: Floats, horizon: int, start: int
) -> tuple[float, Floats, Ints, Floats]:
    r"""Backward recursion :math:`Q_h = c_w + \min_{p} p \cdot V_{h+1}`, then forward along what it chose.

    Returns the optimal weighted cost from the start (a total), the total of every cost (q,), the actions (H, S) and
    the visits (H, S) of the optimistic path.
    """
    S = low.shape[1]
    A = low.shape[0] // S
    q = weights.size
    V = np.zeros(S)
    following = np.zeros(S)
    actions = np.empty((horizon, S), np.int64)
    laws = np.empty((horizon, S, S))
    law = np.empty(S)
    cost = np.zeros(S * A)
    for i in range(q):
        for pair in range(S * A):
            cost[pair] += weights[i] * costs[i, pair]
    for t in range(horizon - 1, -1, -1):
        order = np.argsort(following, kind="mergesort")
        for s in range(S):
            best = np.inf
            for a in range(A):
                pair = s * A + a
                pour(low[pair], high[pair], order, law)
                value = cost[pair]
                for j in range(S):
                    value += law[j] * following[j]
                if value < best:
                    best = value
                    actions[t, s] = a
                    laws[t, s] = law
            V[s] = best
        following[:] = V
    visits = np.zeros((horizon, S))
    visits[0, start] = 1.0
    totals = np.zeros(q)
    for t in range(horizon):
        for s in range(S):
            mass = visits[t, s]
            if mass > 0.0:
                pair = s * A + actions[t, s]
                for i in range(q):
                    totals[i] += mass * costs[i, pair]
                if t + 1 < horizon:
                    for j in range(S):
                        visits[t + 1, j] += mass * laws[t, s, j]
    return following[start], totals, actions, visits
