r"""What is collected on the way through states that are surely left.

.. math:: x = C + W x

for moves W among n such states, in CSR form. States that lead back to each other are solved together, and such groups
one after the other, each after all that it leads to. Where nothing leads back, that is one pass. A small group is
eliminated without subtractions (``_elimination``); a large one is swept until nothing changes if it is left quickly,
and else factorised.
"""

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _graph
from psconrl.model._elimination import transient
from psconrl.model.direct import collect_sparse
from psconrl.model.unichain import FALLS_APART

TOGETHER = 64  # states that lead back to each other and are solved as a dense system
SWEEPS = 200  # of a larger group, before it is factorised
QUICKLY = 100.0  # steps: sweeps then lose no more than two digits, and do not take longer than a factorisation
ROUNDING = 4.5e-16  # of the largest value: what sweeps cannot get below


def collect_onward(W: csr_array, C: Floats, exits: Floats) -> Floats:
    """The solution (n, q) of x = C + W x; ``exits`` (n,) is the chance that each state leads out of all of them."""
    count, label = _graph.strong_components(W.indptr, W.indices, W.shape[0], np.ones(W.shape[0], dtype=bool))
    start, members = _graph.grouped(label, count)
    x = np.zeros(C.shape)
    done = 0
    while True:
        try:
            done = _collect(W.indptr, W.indices, W.data, np.ascontiguousarray(C), exits, start, members, done, x)
        except ZeroDivisionError:
            raise SolverError(FALLS_APART) from None
        if done == count:
            return x
        group = members[start[done] : start[done + 1]]
        rows = csr_array(W[group])
        inside = csr_array(rows[:, group])
        away = rows @ (label != done).astype(float)
        # x is still zero in the group: the product sees what is outside of it.
        x[group] = collect_sparse(inside, C[group] + rows @ x, exits[group] + away)
        done += 1


@njit(cache=True)
def _collect(
    indptr: Ints, indices: Ints, data: Floats, C: Floats, exits: Floats, start: Ints, members: Ints, done: int,
    x: Floats,
) -> int:  # fmt: skip
    """Solve one group after the other, from number ``done`` on; returns the first that cannot be, or how many."""
    n, q = C.shape
    place = np.full(n, -1)
    for k in range(done, start.size - 1):
        size = start[k + 1] - start[k]
        if size > TOGETHER:
            if not _swept(indptr, indices, data, C, members[start[k] : start[k + 1]], place, x):
                return k
            continue
        if size == 1:
            s = members[start[k]]
            out = exits[s]
            for c in range(q):
                x[s, c] = C[s, c]
            for e in range(indptr[s], indptr[s + 1]):
                t = indices[e]
                if t != s:
                    out += data[e]
                    for c in range(q):
                        x[s, c] += data[e] * x[t, c]
            if not out > 0.0:
                raise ZeroDivisionError
            for c in range(q):
                x[s, c] /= out
            continue
        for i in range(size):
            place[members[start[k] + i]] = i
        W, right, leave = np.zeros((size, size)), np.empty((size, q)), np.empty(size)
        for i in range(size):
            s = members[start[k] + i]
            leave[i] = exits[s]
            for c in range(q):
                right[i, c] = C[s, c]
            for e in range(indptr[s], indptr[s + 1]):
                t = indices[e]
                if place[t] >= 0:
                    W[i, place[t]] += data[e]
                else:
                    leave[i] += data[e]
                    for c in range(q):
                        right[i, c] += data[e] * x[t, c]
        solved = transient(W, right, leave)
        for i in range(size):
            s = members[start[k] + i]
            place[s] = -1
            for c in range(q):
                x[s, c] = solved[i, c]
    return start.size - 1


@njit(cache=True)
def longest_time(indptr: Ints, indices: Ints, data: Floats, group: Ints, place: Ints) -> float:
    r"""An upper bound on the expected time in a group, from each of its states; inf if some sweeps do not show one.

    Where :math:`t - W t \ge 1/2`, the time is at most 2 t. ``place`` is the position of every state of the group, else
    negative.
    """
    t = np.zeros(group.size)
    longest = 0.0
    for _ in range(SWEEPS):
        least = np.inf
        for i in range(group.size):
            after = 1.0
            for e in range(indptr[group[i]], indptr[group[i] + 1]):
                j = place[indices[e]]
                if j >= 0:
                    after += data[e] * t[j]
            least = min(least, 1.0 - (after - t[i]))
            t[i] = after
            longest = max(longest, after)
        if least >= 0.75 or longest > QUICKLY:
            break
    for i in range(group.size):
        after = 0.0
        for e in range(indptr[group[i]], indptr[group[i] + 1]):
            j = place[indices[e]]
            if j >= 0:
                after += data[e] * t[j]
        if not t[i] - after >= 0.5:
            return np.inf
    return 2.0 * longest


@njit(cache=True)
def _swept(indptr: Ints, indices: Ints, data: Floats, C: Floats, group: Ints, place: Ints, x: Floats) -> bool:
    """Solve for a large group by sweeps (Gauss and Seidel), if it is left quickly; was it?"""
    q = C.shape[1]
    for i in range(group.size):
        place[group[i]] = i
    longest = longest_time(indptr, indices, data, group, place)
    done = False
    if longest <= QUICKLY:
        for _ in range(SWEEPS):
            change, size = 0.0, 0.0
            for s in group:
                for c in range(q):
                    after = C[s, c]
                    for e in range(indptr[s], indptr[s + 1]):
                        after += data[e] * x[indices[e], c]
                    change = max(change, abs(after - x[s, c]))
                    size = max(size, abs(after))
                    x[s, c] = after
            # What is left of the equation is no more than the last change, and x is wrong by that times the time.
            if change <= ROUNDING * size:
                done = True
                break
    for s in group:
        place[s] = -1
        if not done:
            for c in range(q):
                x[s, c] = 0.0
    return done
