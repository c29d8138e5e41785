r"""How often each state is visited on the way through states that are surely left.

.. math:: y = b + y W

for moves W among n such states, in CSR form: as in ``passage``, but each group after all those that lead to it.
"""

import numpy as np
from numba import njit
from scipy.sparse import csr_array, hstack, vstack

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _graph
from psconrl.model._elimination import transient
from psconrl.model.passage import QUICKLY, ROUNDING, SWEEPS, TOGETHER, longest_time
from psconrl.model.sparse_solver import solve_sparse
from psconrl.model.unichain import FALLS_APART


def visit_onward(W: csr_array, begin: Floats, exits: Floats) -> Floats:
    """The expected visits (n,) of each state, from an expected number of beginnings (n,) in each."""
    n = W.shape[0]
    count, label = _graph.strong_components(W.indptr, W.indices, n, np.ones(n, dtype=bool))
    start, members = _graph.grouped(label, count)
    y = np.array(begin, dtype=float)
    done = count
    while True:
        try:
            done = _visit(W.indptr, W.indices, W.data, exits, start, members, done, y)
        except ZeroDivisionError:
            raise SolverError(FALLS_APART) from None
        if done == 0:
            return y
        group = members[start[done - 1] : start[done]]
        rows = csr_array(W[group])
        inside = csr_array(rows[:, group])
        away = rows @ (label != done - 1).astype(float)
        y[group] = _visits_by_law(inside, y[group], exits[group] + away)
        gained = y[group] @ rows
        gained[group] = 0.0
        y += gained
        done -= 1


def _visits_by_law(W: csr_array, begin: Floats, exits: Floats) -> Floats:
    """The visits of a large group: in proportion to the law of the chain that begins anew whenever it is left."""
    n, total = W.shape[0], float(begin.sum())
    if total <= 0.0:
        return np.zeros(n)
    # One more state: where every path begins, and where it goes when it leaves.
    top = csr_array(np.append(begin / total, 0.0)[None, :])
    chain = csr_array(vstack([hstack([W, csr_array(exits[:, None])]), top]))
    solved = solve_sparse(chain, np.zeros((1, n + 1)))
    if solved is None:
        raise SolverError(FALLS_APART)
    law = solved.stationary
    return np.asarray(total * law[:n] / law[n])


@njit(cache=True)
def _flown(indptr: Ints, indices: Ints, data: Floats, group: Ints, place: Ints, y: Floats) -> bool:
    """Turn arrivals in a large group into visits, and pass on what leaves it, if it is left quickly; was it?"""
    n = group.size
    for i in range(n):
        place[group[i]] = i
    longest = longest_time(indptr, indices, data, group, place)
    done = False
    flying, visits = np.empty(n), np.zeros(n)
    for i in range(n):
        flying[i] = y[group[i]]
    if longest <= QUICKLY:
        for _ in range(10 * SWEEPS):
            arriving, left, total = np.zeros(n), 0.0, 0.0
            for i in range(n):
                visits[i] += flying[i]
                total += visits[i]
                if flying[i] > 0.0:
                    for e in range(indptr[group[i]], indptr[group[i] + 1]):
                        j = place[indices[e]]
                        if j >= 0:
                            arriving[j] += data[e] * flying[i]
                            left += data[e] * flying[i]
            for i in range(n):
                flying[i] = arriving[i]
            if left * longest <= ROUNDING * total:
                done = True
                break
    for i in range(n):
        if done:
            y[group[i]] = visits[i]
            for e in range(indptr[group[i]], indptr[group[i] + 1]):
                if place[indices[e]] < 0:
                    y[indices[e]] += data[e] * visits[i]
    for s in group:
        place[s] = -1
    return done


@njit(cache=True)
def _visit(
    indptr: Ints, indices: Ints, data: Floats, exits: Floats, start: Ints, members: Ints, done: int, y: Floats
) -> int:  # fmt: skip
    """Solve one group after the other, from the last down; returns the first that cannot be, or 0.

    In y are the arrivals from outside, which become visits.
    """
    place = np.full(y.size, -1)
    for k in range(done - 1, -1, -1):
        size = start[k + 1] - start[k]
        if size > TOGETHER:
            if not _flown(indptr, indices, data, members[start[k] : start[k + 1]], place, y):
                return k + 1
            continue
        if size == 1:
            s = members[start[k]]
            if y[s] > 0.0:
                out = exits[s]
                for e in range(indptr[s], indptr[s + 1]):
                    if indices[e] != s:
                        out += data[e]
                if not out > 0.0:
                    raise ZeroDivisionError
                y[s] /= out
                for e in range(indptr[s], indptr[s + 1]):
                    if indices[e] != s:
                        y[indices[e]] += y[s] * data[e]
            continue
        for i in range(size):
            place[members[start[k] + i]] = i
        W, leave, arrivals = np.zeros((size, size)), np.empty(size), np.empty(size)
        some = 0.0
        for i in range(size):
            s = members[start[k] + i]
            leave[i], arrivals[i] = exits[s], y[s]
            some += y[s]
            for e in range(indptr[s], indptr[s + 1]):
                if place[indices[e]] >= 0:
                    W[i, place[indices[e]]] += data[e]
                else:
                    leave[i] += data[e]
        if some > 0.0:
            ones = np.zeros((size, size))
            for i in range(size):
                ones[i, i] = 1.0
            N = transient(W, ones, leave)
            for i in range(size):
                y[members[start[k] + i]] = 0.0
            for j in range(size):
                for i in range(size):
                    y[members[start[k] + i]] += arrivals[j] * N[j, i]
            for i in range(size):
                s = members[start[k] + i]
                for e in range(indptr[s], indptr[s + 1]):
                    if place[indices[e]] < 0:
                        y[indices[e]] += y[s] * data[e]
        for i in range(size):
            place[members[start[k] + i]] = -1
    return 0
