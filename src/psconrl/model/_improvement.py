"""Compiled steps of the search on dense transitions: plain arrays in, plain arrays out."""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints


@njit(cache=True)
def weighted_bias(weights: Floats, biases: Floats) -> Floats:
    """The bias (S,) of the weighted cost, from those of every cost (q, S)."""
    q, S = biases.shape
    h = np.zeros(S)
    for i in range(q):
        if weights[i] != 0.0:
            for s in range(S):
                h[s] += weights[i] * biases[i, s]
    return h


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def improve(
    P: Floats, costs: Floats, weights: Floats, available: Bools, policy: Ints, biases: Floats, tol: float
) -> tuple[float, int, Ints]:
    r"""Switch every state to its best action for the weighted cost, given the biases of the current policy.

    The sum :math:`\sum_{s'} P(s'|s,a)\,(h(s') - h(s))` is taken over differences: where h is huge on a part of the
    chain that is hard to leave, they are small exactly where the probabilities are not.

    Returns the lower bound :math:`\min_{s,a} [c_w + P h - h(s)]` on the gain of any policy, the number of states
    that switched, and the new policy. A state switches if it gains more than rounding can account for there:
    ``tol`` times its own bias, which is zero at a busy state. The span of h would not do: a corner that is left once
    in 1e100 steps must not keep the rest from improving.
    """
    S, A = available.shape
    q = weights.size
    h = weighted_bias(weights, biases)
    difference = np.empty(S)
    new = policy.copy()
    bound = np.inf
    switched = 0
    for s in range(S):
        hs = h[s]
        for j in range(S):
            difference[j] = h[j] - hs
        best = np.inf
        best_action = -1
        current = np.inf
        for a in range(A):
            if not available[s, a]:
                continue
            pair = s * A + a
            row = P[pair]
            value = 0.0
            for j in range(S):
                value += row[j] * difference[j]
            for i in range(q):
                value += weights[i] * costs[i, pair]
            if value < best:
                best = value
                best_action = a
            if a == policy[s]:
                current = value
        bound = min(bound, best)
        if current - best > tol * max(1.0, abs(hs)):
            new[s] = best_action
            switched += 1
    return bound, switched, new


@njit(cache=True)
def rounding_of_bound(P: Floats, weights: Floats, biases: Floats) -> float:
    r"""By how much rounding may falsify the bound of ``improve``: :math:`S\,u \max_{s,a} \sum P |h(s') - h(s)|`."""
    S = P.shape[1]
    A = P.shape[0] // S
    h = weighted_bias(weights, biases)
    largest = 0.0
    for s in range(S):
        for a in range(A):
            row = P[s * A + a]
            moved = 0.0
            for j in range(S):
                moved += row[j] * abs(h[j] - h[s])
            largest = max(largest, moved)
    return float(S * 1.2e-16 * largest)


@njit(cache=True)
def cheapest_for_one_step(costs: Floats, available: Bools) -> Ints:
    """The action (S,) in every state with the least sum of all costs (q, S*A); of equal ones the first."""
    S, A = available.shape
    policy = np.zeros(S, np.int64)
    for s in range(S):
        least = np.inf
        for a in range(A):
            total = 0.0
            for i in range(costs.shape[0]):
                total += costs[i, s * A + a]
            if available[s, a] and total < least:
                least = total
                policy[s] = a
    return policy


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def look_ahead(
    indptr: Ints, indices: Ints, data: Floats, state: int, chance: float, cost: Floats, available: Bools, policy: Ints,
    h: Floats, gain: float, sweeps: int, tol: float,
) -> Ints:  # fmt: skip
    r"""The policy that some sweeps of value iteration lead to, from the bias h (S,) of a policy and its gain.

    :math:`h(s) \leftarrow \min_a [c(s,a) - g + \sum P(s'|s,a) h(s')]` for one state after the other, with what the
    sweep has found already (Gauss and Seidel), until no action changes. Sparse transitions, with a chance to restart in
    a state; ``cost`` (S*A,).
    """
    S, A = available.shape
    h, new = h.copy(), policy.copy()
    for _ in range(sweeps):
        switched = 0
        for s in range(S):
            best, kept, action = np.inf, np.inf, -1
            for a in range(A):
                if not available[s, a]:
                    continue
                pair = s * A + a
                value = 0.0
                for e in range(indptr[pair], indptr[pair + 1]):
                    value += data[e] * h[indices[e]]
                value = cost[pair] - gain + (1.0 - chance) * value + chance * h[state]
                if value < best:
                    best, action = value, a
                if a == new[s]:
                    kept = value
            if kept - best > tol * max(1.0, abs(h[s])):
                new[s] = action
                switched += 1
            h[s] = best
        if not switched:
            break
    return new
