"""Compiled: leading everything into a set of states, along sparse transitions. See ``structure.approach``."""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._columns import by_columns


@njit(cache=True, nogil=True)
def approach_by_layers(
    indptr: Ints, indices: Ints, data: Floats, available: Bools, reached: Bools, policy: Ints, least: float
) -> Ints:  # fmt: skip
    """The policy (S,) changed outside the set so that everything moves into it; every entry is looked at once.

    A layer holds the states with a chance above ``least`` to step into the set and the layers before.
    """
    S, A = available.shape
    first, pairs, entries = by_columns(indptr, indices, data, S)
    policy, reached = policy.copy(), reached.copy()
    chance, waiting = np.zeros(S * A), np.zeros(S, np.bool_)
    layer, n = np.empty(S, np.int64), 0
    for s in range(S):
        if reached[s]:
            layer[n] = s
            n += 1
    begin = 0
    while begin < n:
        end, new = n, n
        for i in range(begin, end):
            t = layer[i]
            for e in range(first[t], first[t + 1]):
                p = pairs[e]
                s = p // A
                if reached[s] or not available[s, p % A]:
                    continue
                chance[p] += entries[e]
                if chance[p] > least and not waiting[s]:
                    waiting[s] = True
                    layer[new] = s
                    new += 1
        for i in range(end, new):
            s = layer[i]
            reached[s] = True
            if not chance[s * A + policy[s]] > least:
                policy[s] = np.argmax(chance[s * A : (s + 1) * A])
        begin, n = end, new
    return policy
