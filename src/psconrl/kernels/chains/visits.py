r"""Expected number of visits to each transient state.

.. math:: y = b + y W

for transitions W among n such states, in CSR form: as in ``transient``, but each group after all those that lead to it.
"""

import cython
from cython.cimports.psconrl.kernels._types import ConstInts, ConstPlaces, ConstVector, Vector
from cython.cimports.psconrl.kernels.chains.dense_transient import solve_visits
from cython.cimports.psconrl.kernels.chains.transient import Room, longest_time
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_lists

_SWEEPS = cython.declare(cython.Py_ssize_t, 2000)  # of a large group, before giving up
_QUICKLY = cython.declare(cython.double, 100.0)  # steps: sweeps then lose two digits, and are no slower than an LU
_ROUNDING = cython.declare(cython.double, 4.5e-16)  # relative to all visits: the accuracy that sweeps can reach


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _visit_alone(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, out: cython.double, s: cython.Py_ssize_t, y: Vector
) -> cython.bint:
    """Turn arrivals in a state that is a group by itself into visits, and pass them on; return whether it is left."""
    if not y[s] > 0.0:
        return True
    for e in range(indptr[s], indptr[s + 1]):
        if indices[e] != s:
            out += data[e]
    if not out > 0.0:
        return False
    y[s] /= out
    for e in range(indptr[s], indptr[s + 1]):
        if indices[e] != s:
            y[indices[e]] += y[s] * data[e]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _visit_together(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    exits: ConstVector,
    group: ConstInts,
    y: Vector,
    room: Room,
) -> cython.bint:
    """Turn arrivals in a small group into visits by a dense system, and pass them on; return whether each is left."""
    n = group.shape[0]
    W, visits, leave, place = room.W, room.one, room.leave, room.place
    some: cython.double = 0.0
    for i in range(n):
        visits[i] = y[group[i]]
        some += visits[i]
    if not some > 0.0:
        return True
    room.enter(group)
    for i in range(n):
        s = group[i]
        leave[i] = exits[s]
        for j in range(n):
            W[i, j] = 0.0
        for e in range(indptr[s], indptr[s + 1]):
            if place[indices[e]] >= 0:
                W[i, place[indices[e]]] += data[e]
            else:
                leave[i] += data[e]
    solved: cython.bint = solve_visits(W, visits, leave, n)
    for i in range(n):
        s = group[i]
        y[s] = visits[i]
        for e in range(indptr[s], indptr[s + 1]):
            if place[indices[e]] < 0:
                y[indices[e]] += y[s] * data[e]
    room.leave_again(group)
    return solved


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _flown(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, group: ConstInts, y: Vector, room: Room
) -> cython.bint:
    """Turn arrivals in a large group into visits, and pass on the exits, if left quickly; return whether it is."""
    n = group.shape[0]
    room.enter(group)
    longest = longest_time(indptr, indices, data, group, room)
    done: cython.bint = False
    visits, flying, arriving, place = room.one, room.two, room.three, room.place
    if longest <= _QUICKLY:
        for i in range(n):
            visits[i] = 0.0
            flying[i] = y[group[i]]
        for _ in range(_SWEEPS):
            left: cython.double = 0.0
            total: cython.double = 0.0
            for i in range(n):
                arriving[i] = 0.0
            for i in range(n):
                visits[i] += flying[i]
                total += visits[i]
                if flying[i] > 0.0:
                    for e in range(indptr[group[i]], indptr[group[i] + 1]):
                        j = place[indices[e]]
                        if j >= 0:
                            arriving[j] += data[e] * flying[i]
                            left += data[e] * flying[i]
            flying, arriving = arriving, flying
            if left * longest <= _ROUNDING * total:
                done = True
                break
    if done:
        for i in range(n):
            y[group[i]] = visits[i]
            for e in range(indptr[group[i]], indptr[group[i] + 1]):
                if place[indices[e]] < 0:
                    y[indices[e]] += data[e] * visits[i]
    room.leave_again(group)
    return done


def visit(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    exits: ConstVector,
    start: ConstInts,
    members: ConstInts,
    done: cython.Py_ssize_t,
    together: cython.Py_ssize_t,
    y: Vector,
):
    """Solve y = b + y W group by group, down from number ``done - 1``; return the number after where it ends.

    That is 0, or the number after a large group that is not left quickly. On entry y holds the arrivals b from outside;
    on return, the visits. For the rest see ``transient.collect``.
    """
    n = y.shape[0]
    if indptr.shape[0] != n + 1 or exits.shape[0] != n:
        raise ValueError("moves (n, n), exits (n,) and arrivals (n,) are needed")
    check_graph(indptr, indices, data.shape[0], n)
    if not 0 <= done < start.shape[0] or members.shape[0] != n:
        raise ValueError("every state must be in one group")
    check_lists(start, members, n)
    room = Room(n, together, 0)
    group: ConstInts
    k: cython.Py_ssize_t = done
    solved: cython.bint = True
    with cython.nogil:
        while k > 0:
            if start[k] - start[k - 1] == 1:
                s = members[start[k - 1]]
                solved = _visit_alone(indptr, indices, data, exits[s], s, y)
            else:
                group = members[start[k - 1] : start[k]]
                if group.shape[0] <= together:
                    solved = _visit_together(indptr, indices, data, exits, group, y, room)
                elif not _flown(indptr, indices, data, group, y, room):
                    break
            if not solved:
                break
            k -= 1
    if not solved:
        raise ZeroDivisionError("a state is left with probability zero")
    return k
