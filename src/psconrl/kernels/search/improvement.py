r"""One step of policy iteration: every state takes the action that is best for a weighted cost, given the biases.

The sum :math:`\sum_{s'} P(s'|s,a)\,(h(s') - h(s))` is taken over differences: where h is huge on a part of the chain
that is hard to leave, they are small exactly where the probabilities are not.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import row_times
from cython.cimports.psconrl.kernels._types import ConstFlagMatrix, ConstInts, ConstMatrix, ConstVector, Ints, Vector

_INFINITE = cython.declare(cython.double, float("inf"))
_ROUNDING = cython.declare(cython.double, 1.2e-16)  # unit roundoff of a double


def weigh_biases(weights, biases, h):
    """Write the bias (S,) of the weighted cost to h."""
    for s in range(h.shape[0]):
        h[s] = 0.0
    for i in range(biases.shape[0]):
        if weights[i] != 0.0:
            for s in range(h.shape[0]):
                h[s] += weights[i] * biases[i, s]


def improve_dense(P, costs, weights, available, policy, h, tol, difference, new):
    """Compute ``improve`` with the weighted bias h in given arrays (S,); the new policy is written to ``new``."""
    S, A, q = available.shape[0], available.shape[1], costs.shape[0]
    bound: cython.double = _INFINITE
    switched: cython.Py_ssize_t = 0
    for s in range(S):
        hs: cython.double = h[s]
        for j in range(S):
            difference[j] = h[j] - hs
        best: cython.double = _INFINITE
        current: cython.double = _INFINITE
        best_action: cython.Py_ssize_t = -1
        for a in range(A):
            if not available[s, a]:
                continue
            pair = s * A + a
            value: cython.double = row_times(P, pair, difference, S)
            for i in range(q):
                value += weights[i] * costs[i, pair]
            if value < best:
                best = value
                best_action = a
            if a == policy[s]:
                current = value
        if best < bound:
            bound = best
        new[s] = policy[s]
        if current - best > tol * max(1.0, abs(hs)):
            new[s] = best_action
            switched += 1
    return bound, switched


def dense_rounding(P, h, difference):
    """Compute ``rounding_of_bound`` with the weighted bias h; ``difference`` (S,) is overwritten."""
    S = P.shape[1]
    A = P.shape[0] // S
    largest: cython.double = 0.0
    for s in range(S):
        for j in range(S):
            difference[j] = abs(h[j] - h[s])
        for a in range(A):
            largest = max(largest, row_times(P, s * A + a, difference, S))
    return S * _ROUNDING * largest


def weighted_bias(weights: ConstVector, biases: ConstMatrix):
    """Return the bias (S,) of the weighted cost, from those of every cost (q, S)."""
    if weights.shape[0] != biases.shape[0]:
        raise ValueError("a weight for each of the biases is needed")
    result = np.empty(biases.shape[1])
    h: Vector = result
    weigh_biases(weights, biases, h)
    return result


def improve(
    P: ConstMatrix,
    costs: ConstMatrix,
    weights: ConstVector,
    available: ConstFlagMatrix,
    policy: ConstInts,
    biases: ConstMatrix,
    tol: cython.double,
):
    r"""Switch every state to its best action for the weighted cost, given the biases of the current policy.

    Returns the lower bound :math:`\min_{s,a} [c_w + P h - h(s)]` on the gain of any policy, the number of states that
    switched, and the new policy. A state switches if it gains more than rounding error can account for: ``tol`` times
    its own bias, which is zero at a frequently visited state. The span of h would not do: a corner that is left once in
    1e100 steps must not keep the rest from improving.
    """
    S, A, q = available.shape[0], available.shape[1], weights.shape[0]
    if P.shape[0] != S * A or P.shape[1] != S or costs.shape[1] != S * A or costs.shape[0] != q:
        raise ValueError("transitions (S*A, S) and costs (q, S*A) with q weights are needed")
    if policy.shape[0] != S or biases.shape[0] != q or biases.shape[1] != S:
        raise ValueError("a policy (S,) and biases (q, S) are needed")
    h, difference, new = np.empty(S), np.empty(S), np.empty(S, np.int64)
    h_view: Vector = h
    room: Vector = difference
    new_view: Ints = new
    with cython.nogil:
        weigh_biases(weights, biases, h_view)
        bound, switched = improve_dense(P, costs, weights, available, policy, h_view, tol, room, new_view)
    return bound, switched, new


def rounding_of_bound(P: ConstMatrix, weights: ConstVector, biases: ConstMatrix):
    r"""Return the rounding error of the bound of ``improve``: :math:`S\,u \max_{s,a} \sum P |h(s') - h(s)|`."""
    S = P.shape[1]
    if S == 0 or P.shape[0] % S or biases.shape[1] != S or biases.shape[0] != weights.shape[0]:
        raise ValueError("transitions (S*A, S) and biases (q, S) with q weights are needed")
    h, difference = np.empty(S), np.empty(S)
    h_view: Vector = h
    room: Vector = difference
    with cython.nogil:
        weigh_biases(weights, biases, h_view)
        found = dense_rounding(P, h_view, room)
    return found


def cheapest_for_one_step(costs: ConstMatrix, available: ConstFlagMatrix):
    """Return the action (S,) in every state with the least sum of all costs (q, S*A); the first among ties."""
    S, A, q = available.shape[0], available.shape[1], costs.shape[0]
    if costs.shape[1] != S * A:
        raise ValueError("costs (q, S*A) are needed")
    result = np.zeros(S, np.int64)
    policy: Ints = result
    with cython.nogil:
        for s in range(S):
            least: cython.double = _INFINITE
            for a in range(A):
                total: cython.double = 0.0
                for i in range(q):
                    total += costs[i, s * A + a]
                if available[s, a] and total < least:
                    least = total
                    policy[s] = a
    return result
