r"""Compiled: gains, biases and stationary law of a sparse chain by elimination in a fixed order, never subtracting.

What ``_elimination`` does for dense chains, on the entries of an ``Order``: the states are censored one after the
other, the pivot :math:`1 - P_{kk}` of each being the sum of the ways out that are left (Grassmann, Taksar and Heyman
1985). Row by row: each takes in the rows that come before it. The reference is censored last, whatever its place in the
order, and what leads to it is kept aside, so that a chain may restart there from everywhere without filling in.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.model.ordering import Order

_FAST = {"reassoc", "contract", "nsz"}
_LONG = 1e3  # steps: biases counted from a state that is visited more rarely are refined


@njit(cache=True, fastmath=_FAST)
def unichain(
    indptr: Ints, indices: Ints, data: Floats, rows: Ints, costs: Floats, reference: int, chance: float, order: Order
) -> tuple[int, Floats, Floats, Floats]:
    """Gains (q,), biases (q, S) and law (S,) of the chain made of some rows, every step of which leads to the reference
    with a chance, and else where the row says. First comes -1, or a state of a closed class without the reference.
    """
    S, q = rows.size, costs.shape[0]
    lower, before, upper, after = order.lower, order.before, order.upper, order.after
    runs, first, begins = order.runs, order.first, order.begins
    F, U = np.empty(before.size), np.empty(after.size)
    C = np.zeros((S, q + 1))
    exits, outs = np.empty(S), np.ones(S)
    w = np.zeros(S)
    gains, biases, law = np.zeros(q), np.zeros((q, S)), np.zeros(S)
    last = order.position[reference]
    for i in range(S):
        if i == last:
            F[lower[i] : lower[i + 1]] = 0.0
            U[upper[i] : upper[i + 1]] = 0.0
            exits[i] = 0.0
            continue
        row = rows[order.state[i]]
        leave = chance
        for e in range(indptr[row], indptr[row + 1]):
            j = order.position[indices[e]]
            if j == last:
                leave += (1.0 - chance) * data[e]
            else:
                w[j] += (1.0 - chance) * data[e]
        for c in range(q):
            C[i, c] = costs[c, row]
        C[i, q] = 1.0
        for e in range(lower[i], lower[i + 1]):
            k = before[e]
            f = w[k]
            w[k] = 0.0
            if f > 0.0:
                f /= outs[k]
                for r in range(runs[k], runs[k + 1]):  # subsequent entries are added several at a time
                    to, begin = np.uint64(first[r]), np.uint64(begins[r])
                    for x in range(np.uint64(begins[r + 1]) - begin):
                        w[to + x] += f * U[begin + x]
                leave += f * exits[k]
                for c in range(q + 1):
                    C[i, c] += f * C[k, c]
            F[e] = f
        w[i] = 0.0
        out = leave
        for t in range(upper[i], upper[i + 1]):
            U[t] = w[after[t]]
            w[after[t]] = 0.0
            out += U[t]
        if not out > 0.0:
            return order.state[i], gains, biases, law
        exits[i], outs[i] = leave, out
    # The cycle from the reference back to it.
    row = rows[reference]
    for e in range(indptr[row], indptr[row + 1]):
        j = order.position[indices[e]]
        if j != last:
            w[j] += (1.0 - chance) * data[e]
    cycle = np.zeros(q + 1)
    for c in range(q):
        cycle[c] = costs[c, row]
    cycle[q] = 1.0
    for k in range(S):
        f = w[k]
        if f > 0.0:
            f /= outs[k]
            w[k] = f
            for t in range(upper[k], upper[k + 1]):
                w[after[t]] += f * U[t]
            for c in range(q + 1):
                cycle[c] += f * C[k, c]
    for c in range(q):
        gains[c] = cycle[c] / cycle[q]
    # Biases from the last to the first, and the law alike.
    h = np.zeros((q, S))
    for k in range(S - 1, -1, -1):
        if k == last:
            continue
        for c in range(q):
            total = C[k, c] - gains[c] * C[k, q]
            for t in range(upper[k], upper[k + 1]):
                total += U[t] * h[c, after[t]]
            h[c, k] = total / outs[k]
    if cycle[q] > _LONG:
        _refine(indptr, indices, data, rows, costs, chance, order, last, F, U, outs, C, w, cycle, gains, h)
    w[last], mass = 1.0, 0.0
    for i in range(S - 1, -1, -1):
        if i != last:
            for e in range(lower[i], lower[i + 1]):
                w[before[e]] += w[i] * F[e]
        mass += w[i]
    for i in range(S):
        s = order.state[i]
        law[s] = w[i] / mass
        for c in range(q):
            biases[c, s] = h[c, i]
    return -1, gains, biases, law


@njit(cache=True)
def _refine(
    indptr: Ints, indices: Ints, data: Floats, rows: Ints, costs: Floats, chance: float, order: Order, last: int,
    F: Floats, U: Floats, outs: Floats, C: Floats, visits: Floats, cycle: Floats, gains: Floats, h: Floats,
) -> None:  # fmt: skip
    """Once more for what is left of the equation, in place, by position.

    Biases are differences of what is collected in a cycle, which is long if the reference is hardly ever visited: they
    have lost as many digits as the length of the cycle has. ``visits``: what a cycle begins with, by position.
    """
    lower, before, upper, after = order.lower, order.before, order.upper, order.after
    S, q = rows.size, gains.size
    left, more = np.empty(S), np.empty(S)
    for c in range(q):
        for i in range(S):
            row, moved = rows[order.state[i]], 0.0
            for e in range(indptr[row], indptr[row + 1]):
                moved += data[e] * (h[c, order.position[indices[e]]] - h[c, i])
            left[i] = costs[c, row] - gains[c] + (1.0 - chance) * moved + chance * (h[c, last] - h[c, i])
        gain = left[last]
        for i in range(S):
            if i != last:
                for e in range(lower[i], lower[i + 1]):
                    left[i] += F[e] * left[before[e]]
                gain += visits[i] * left[i]
        gain /= cycle[q]
        gains[c] += gain
        more[last] = 0.0
        for k in range(S - 1, -1, -1):
            if k != last:
                total = left[k] - gain * C[k, q]
                for t in range(upper[k], upper[k + 1]):
                    total += U[t] * more[after[t]]
                more[k] = total / outs[k]
        for k in range(S):
            h[c, k] += more[k]
