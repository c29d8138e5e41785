r"""Expected total cost collected in transient states until they are left.

.. math:: x = C + W x

for transitions W among n such states, in CSR form. States that communicate form a group, and groups are solved one
after the other, each after all that it leads to. A small group is solved by GTH elimination (``elimination``), a large
one is swept until convergence if it is left quickly. If it is not, the caller has to solve it.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstPlaces, ConstVector, Matrix
from cython.cimports.psconrl.kernels.chains.dense_transient import solve_transient
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_lists

_SWEEPS = cython.declare(cython.Py_ssize_t, 200)  # of a large group, before giving up
_QUICKLY = cython.declare(cython.double, 100.0)  # steps: sweeps then lose two digits, and are no slower than an LU
_INFINITE = cython.declare(cython.double, float("inf"))
_ROUNDING = cython.declare(cython.double, 4.5e-16)  # relative to the largest value: the accuracy that sweeps can reach


@cython.cclass
class Room:
    """Workspace for the groups of n states: dense systems of up to ``together`` states, with q right-hand sides."""

    def __init__(self, n: cython.Py_ssize_t, together: cython.Py_ssize_t, q: cython.Py_ssize_t):
        most: cython.Py_ssize_t = min(n, max(together, 1))
        system: Matrix = np.empty((most + 1, most + q))
        numbers: Matrix = np.empty((3, n))
        self.place = np.empty(n, np.int64)
        for s in range(n):
            self.place[s] = -1
        self.W, self.right, self.leave = system[:most, :most], system[:most, most:], system[most]
        self.one, self.two, self.three = numbers[0], numbers[1], numbers[2]

    def enter(self, group):
        """Give every member its position."""
        for i in range(group.shape[0]):
            self.place[group[i]] = i

    def leave_again(self, group):
        """Clear the positions of the members."""
        for i in range(group.shape[0]):
            self.place[group[i]] = -1


def longest_time(indptr, indices, data, group, room):
    r"""Return an upper bound on the expected time in a group, from each state; inf if some sweeps do not find one.

    Where :math:`t - W t \ge 1/2`, the time is at most 2 t.
    """
    n = group.shape[0]
    t, place = room.one, room.place
    for i in range(n):
        t[i] = 0.0
    longest: cython.double = 0.0
    after: cython.double
    for _ in range(_SWEEPS):
        least: cython.double = _INFINITE
        for i in range(n):
            after = 1.0
            for e in range(indptr[group[i]], indptr[group[i] + 1]):
                j = place[indices[e]]
                if j >= 0:
                    after += data[e] * t[j]
            least = min(least, 1.0 - (after - t[i]))
            t[i] = after
            longest = max(longest, after)
        if least >= 0.75 or longest > _QUICKLY:
            break
    for i in range(n):
        after = 0.0
        for e in range(indptr[group[i]], indptr[group[i] + 1]):
            j = place[indices[e]]
            if j >= 0:
                after += data[e] * t[j]
        if not t[i] - after >= 0.5:
            return _INFINITE
    return 2.0 * longest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _swept(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    C: ConstMatrix,
    group: ConstInts,
    x: Matrix,
    room: Room,
) -> cython.bint:
    """Solve for a large group by Gauss-Seidel sweeps, if it is left quickly; return whether it is."""
    n, q = group.shape[0], C.shape[1]
    done: cython.bint = False
    room.enter(group)
    if longest_time(indptr, indices, data, group, room) <= _QUICKLY:
        for _ in range(_SWEEPS):
            change: cython.double = 0.0
            size: cython.double = 0.0
            for i in range(n):
                s = group[i]
                for c in range(q):
                    after: cython.double = C[s, c]
                    for e in range(indptr[s], indptr[s + 1]):
                        after += data[e] * x[indices[e], c]
                    change = max(change, abs(after - x[s, c]))
                    size = max(size, abs(after))
                    x[s, c] = after
            # The residual is at most the last change, and the error of x at most that times the expected time.
            if change <= _ROUNDING * size:
                done = True
                break
    room.leave_again(group)
    if not done:
        for i in range(n):
            for c in range(q):
                x[group[i], c] = 0.0
    return done


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect_alone(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    C: ConstMatrix,
    out: cython.double,
    s: cython.Py_ssize_t,
    x: Matrix,
) -> cython.bint:
    """Solve for a state that is a group by itself, from the probability of leaving all; return whether it is left."""
    q = C.shape[1]
    for c in range(q):
        x[s, c] = C[s, c]
    for e in range(indptr[s], indptr[s + 1]):
        t: cython.Py_ssize_t = indices[e]
        if t != s:
            out += data[e]
            for c in range(q):
                x[s, c] += data[e] * x[t, c]
    if not out > 0.0:
        return False
    for c in range(q):
        x[s, c] /= out
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect_together(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    C: ConstMatrix,
    exits: ConstVector,
    group: ConstInts,
    x: Matrix,
    room: Room,
) -> cython.bint:
    """Solve for a small group as a dense system; return whether every state is left."""
    n, q = group.shape[0], C.shape[1]
    W, right, leave, place = room.W, room.right, room.leave, room.place
    room.enter(group)
    for i in range(n):
        s = group[i]
        leave[i] = exits[s]
        for j in range(n):
            W[i, j] = 0.0
        for c in range(q):
            right[i, c] = C[s, c]
        for e in range(indptr[s], indptr[s + 1]):
            t: cython.Py_ssize_t = indices[e]
            if place[t] >= 0:
                W[i, place[t]] += data[e]
            else:
                leave[i] += data[e]
                for c in range(q):
                    right[i, c] += data[e] * x[t, c]
    room.leave_again(group)
    if not solve_transient(W, right, leave, n):
        return False
    for i in range(n):
        for c in range(q):
            x[group[i], c] = right[i, c]
    return True


def collect(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    C: ConstMatrix,
    exits: ConstVector,
    start: ConstInts,
    members: ConstInts,
    done: cython.Py_ssize_t,
    together: cython.Py_ssize_t,
    x: Matrix,
):
    """Solve x = C + W x group by group, from number ``done`` on; return the first unsolved group, or their number.

    ``members[start[k] : start[k + 1]]`` are the states of group k, which leads to no later one; those of more than
    ``together`` states are swept. ``exits`` (n,) is the probability that each state leads out of all of them. Raises
    ``ZeroDivisionError`` if some state is left with probability zero.
    """
    n, K = C.shape[0], start.shape[0] - 1
    if indptr.shape[0] != n + 1 or exits.shape[0] != n or x.shape[0] != n or x.shape[1] != C.shape[1]:
        raise ValueError("moves (n, n), what is collected (n, q), exits (n,) and room for the solution are needed")
    check_graph(indptr, indices, data.shape[0], n)
    if not 0 <= done <= K or start[K] != n or members.shape[0] != n:
        raise ValueError("every state must be in one group")
    check_lists(start, members, n)
    room = Room(n, together, C.shape[1])
    group: ConstInts
    k: cython.Py_ssize_t = done
    solved: cython.bint = True
    with cython.nogil:
        while k < K:
            if start[k + 1] - start[k] == 1:
                s = members[start[k]]
                solved = _collect_alone(indptr, indices, data, C, exits[s], s, x)
            else:
                group = members[start[k] : start[k + 1]]
                if group.shape[0] <= together:
                    solved = _collect_together(indptr, indices, data, C, exits, group, x, room)
                elif not _swept(indptr, indices, data, C, group, x, room):
                    break
            if not solved:
                break
            k += 1
    if not solved:
        raise ZeroDivisionError("a state is left with probability zero")
    return k
