"""Compiled: where a policy ends from one state, and what it costs there.

Only what is met from that state is looked at. The rows of the model are in CSR form, as in ``_graph``; nothing is
subtracted, as in ``_elimination``.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._elimination import _eliminate, _stationary_law
from psconrl.model._graph import strong_components


@njit(cache=True)
def long_run(
    policy: Floats, never: float, indptr: Ints, successors: Ints, probabilities: Floats, costs: Floats, state: int,
    most: int, gains: Floats,
) -> tuple[Floats, Bools, Ints]:  # fmt: skip
    """Fill in the gains (q, S) of a policy from one state, and from all others that it meets from there.

    Actions that are no likelier than ``never`` do not count. Returns the policy without them, the states that it meets
    and those of the closed class that it ends in. Gains are left alone if that has more than ``most`` states, or if
    there are several: then no states are returned.
    """
    played = np.empty_like(policy)
    for s in range(policy.shape[0]):
        total = 0.0
        for a in range(policy.shape[1]):
            played[s, a] = policy[s, a] if policy[s, a] > never else 0.0
            total += played[s, a]
        for a in range(policy.shape[1]):
            played[s, a] /= total
    met, states = ending(played, indptr, successors, probabilities, state)
    if 0 < states.size <= most:
        found = class_gains(played, indptr, successors, probabilities, costs, states)
        for s in range(met.size):
            if met[s]:
                for i in range(found.size):
                    gains[i, s] = found[i]
    return played, met, states


@njit(cache=True)
def ending(policy: Floats, indptr: Ints, successors: Ints, probabilities: Floats, state: int) -> tuple[Bools, Ints]:
    """The states (S,) that a policy (S, A) meets from one state, and those of the closed class it ends in.

    No states if there are several such classes.
    """
    S, A = policy.shape
    keep = policy.ravel() > 0.0
    _, label = strong_components(indptr, successors, S, keep)
    met, stack = np.zeros(S, np.bool_), np.empty(S, np.int64)
    left = np.zeros(S, np.bool_)  # components that can be left
    met[state], stack[0], size = True, state, 1
    while size > 0:
        size -= 1
        s = stack[size]
        for pair in range(s * A, (s + 1) * A):
            if keep[pair]:
                for e in range(indptr[pair], indptr[pair + 1]):
                    t = successors[e]
                    if probabilities[e] > 0.0:
                        left[label[s]] |= label[t] != label[s]
                        if not met[t]:
                            met[t], stack[size] = True, t
                            size += 1
    last, several = -1, False
    for s in range(S):
        if met[s] and not left[label[s]]:
            several |= last >= 0 and last != label[s]
            last = label[s]
    return met, np.flatnonzero((label == last) & (not several))


@njit(cache=True)
def class_gains(
    policy: Floats, indptr: Ints, successors: Ints, probabilities: Floats, costs: Floats, states: Ints
) -> Floats:
    """The averages (q,) of costs (q, S, A) under a policy in one of its closed classes; no numbers if it falls apart.

    Dense: O(n^3) for n states.
    """
    n, A, q = states.size, policy.shape[1], costs.shape[0]
    place = np.empty(policy.shape[0], np.int64)
    for k in range(n):
        place[states[k]] = k
    W, law = np.zeros((n, n)), np.empty(n)
    for k in range(n):
        s = states[k]
        for a in range(A):
            if policy[s, a] > 0.0:
                for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                    if probabilities[e] > 0.0:
                        W[k, place[successors[e]]] += policy[s, a] * probabilities[e]
    gains = np.full(q, np.nan)
    if _eliminate(W, np.empty((n, 0)))[0] > 0:
        return gains
    _stationary_law(W, law)
    for i in range(q):
        base = _cost(policy, costs, i, states[0])  # an offset of the costs must not drown their differences
        total = 0.0
        for k in range(1, n):
            total += law[k] * (_cost(policy, costs, i, states[k]) - base)
        gains[i] = base + total
    return gains


@njit(cache=True)
def _cost(policy: Floats, costs: Floats, i: int, s: int) -> float:
    total = 0.0
    for a in range(policy.shape[1]):
        total += policy[s, a] * costs[i, s, a]
    return total
