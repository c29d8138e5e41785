"""Compiled: leading a policy whose chain nearly falls apart into the best of its parts.

Posterior samples of small priors have probabilities down to 1e-100. A policy then has sets of states that it hardly
ever leaves, its biases are as large as those times, and rounding hides all that could be improved inside. But where
some action leads quickly from one part to another, nobody needs to wait: everything is sent to the cheapest part.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._elimination import gathered, unichain
from psconrl.model._graph import closed_classes_of_dense
from psconrl.planning.tolerances import SAME_CLASS_COST


@njit(cache=True)
def _class_cost(chain: Floats, costs: Floats, weights: Floats, label: Ints, k: int) -> float:
    """The weighted average cost of one class by itself."""
    states = np.empty(label.size, np.int64)
    n = 0
    for s in range(label.size):
        if label[s] == k:
            states[n] = s
            n += 1
    part = np.empty((n, n))
    cost = np.zeros((1, n))
    for i in range(n):
        for j in range(n):
            part[i, j] = chain[states[i], states[j]]
        for c in range(weights.size):
            cost[0, i] += weights[c] * costs[c, states[i]]
    first = min(k, 0)  # 0; written as a constant, Numba would compile the elimination once more for it
    reference, gains, _, _, _ = unichain(part, cost, first)
    return np.inf if reference < 0 else gains[0]


@njit(cache=True)
def led_into_best(
    P: Floats, costs: Floats, weights: Floats, available: Bools, policy: Ints, favoured: int, least: float
) -> Ints:
    """The policy, changed so that all that can do so moves into the cheapest of its nearly closed classes.

    Of equally cheap ones it is that of the favoured state. What a state plays is kept where it comes closer by it.
    """
    S, A = available.shape
    rows = np.empty(S, np.int64)
    for s in range(S):
        rows[s] = s * A + policy[s]
    chain, cost_of = gathered(P, rows, costs)
    count, label = closed_classes_of_dense(chain, least)
    if count < 2:
        return policy
    best, lowest = -1, np.inf
    for k in range(count):
        cost = _class_cost(chain, cost_of, weights, label, k)
        if cost < lowest - SAME_CLASS_COST or (k == label[favoured] and cost <= lowest + SAME_CLASS_COST):
            best, lowest = k, cost
    if best < 0:
        return policy
    new, reached, grown = np.empty(S, np.int64), np.empty(S, np.bool_), np.empty(S, np.bool_)
    for s in range(S):
        new[s], grown[s] = policy[s], label[s] == best
    more = True
    while more:
        more = False
        for s in range(S):
            reached[s] = grown[s]
        for s in range(S):
            if reached[s]:
                continue
            kept = 0.0
            for j in range(S):
                if reached[j]:
                    kept += P[s * A + new[s], j]
            if kept > least:
                grown[s] = more = True
                continue
            top = least
            for a in range(A):
                if not available[s, a]:
                    continue
                chance = 0.0
                for j in range(S):
                    if reached[j]:
                        chance += P[s * A + a, j]
                if chance > top:
                    top = chance
                    new[s] = a
                    grown[s] = more = True
    return new
