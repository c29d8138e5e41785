"""Compiled: all small closed classes of a sparse chain at once, where one after the other would take too long."""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._elimination import unichain

SMALL = 100  # states of a class that is solved as a dense one


@njit(cache=True)
def solve_small_classes(
    indptr: Ints, indices: Ints, data: Floats, costs: Floats, start: Ints, members: Ints, gains: Floats,
    biases: Floats, law: Floats,
) -> Bools:  # fmt: skip
    """Fill in gains (q, K), biases (q, S) of mean zero and the law (S,) within each class; returns which are done.

    ``members[start[k] : start[k + 1]]`` are the states of class k; costs are (q, S).
    """
    q, S = costs.shape
    K = start.size - 1
    done = np.zeros(K, np.bool_)
    place = np.empty(S, np.int64)
    for k in range(K):
        n = start[k + 1] - start[k]
        if n > SMALL:
            continue
        states = members[start[k] : start[k + 1]]
        for i in range(n):
            place[states[i]] = i
        W, C = np.zeros((n, n)), np.empty((q, n))
        for i in range(n):
            s = states[i]
            for e in range(indptr[s], indptr[s + 1]):
                if data[e] > 0.0:
                    W[i, place[indices[e]]] += data[e]
            for c in range(q):
                C[c, i] = costs[c, s]
        reference, g, h, mu, _ = unichain(W, C, k - k)
        if reference < 0:
            continue
        done[k] = True
        for c in range(q):
            gains[c, k] = g[c]
            mean = 0.0
            for i in range(n):
                mean += mu[i] * h[c, i]
            for i in range(n):
                biases[c, states[i]] = h[c, i] - mean
        for i in range(n):
            law[states[i]] = mu[i]
    return done
