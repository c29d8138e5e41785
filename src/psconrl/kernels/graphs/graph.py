"""Graph of a model: strongly connected components and closed classes.

A graph is the sparsity pattern of transitions in CSR form: the successors of pair ``s * A + a`` are ``indices[indptr[s
* A + a] : indptr[s * A + a + 1]]``, and the successors of state s those of its kept pairs. A chain is the case A = 1.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstMatrix,
    ConstPlaces,
    ConstVector,
    Flags,
    IntMatrix,
    Ints,
    Places,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, count_above, keep_above

# Rows of the workspace of the component search: by state, when it was discovered; the states whose component is open;
# then the path to the current state: by depth, the state, the earliest open state that it leads back to, the position
# of its search, and whether it leads to a component other than its own. Last, all states.
_FOUND = cython.declare(cython.Py_ssize_t, 0)
_OPEN = cython.declare(cython.Py_ssize_t, 1)
_STATE = cython.declare(cython.Py_ssize_t, 2)
_LOW = cython.declare(cython.Py_ssize_t, 3)
_PAIR = cython.declare(cython.Py_ssize_t, 4)
_EDGE = cython.declare(cython.Py_ssize_t, 5)
_LEAVES = cython.declare(cython.Py_ssize_t, 6)
_ALL = cython.declare(cython.Py_ssize_t, 7)
_ROOM = cython.declare(cython.Py_ssize_t, 8)

_EVERY_PAIR = np.empty(0, np.bool_)


def label_components(indptr, indices, keep, roots, label, left, room, count):
    """Number, from ``count`` on, the components of the states that the roots lead to (Tarjan 1972).

    Returns the next number. A component is numbered after all those that it leads to. On entry ``label`` is -1 for
    these states, and so is the first row of the workspace, which records when a state was discovered, or the number of
    states if its component is done. The other rows but the last are overwritten. ``left`` receives whether the
    component of a state leads to others. If ``keep`` is empty, all pairs count.
    """
    n = label.shape[0]
    if n == 0:
        return count
    A = (indptr.shape[0] - 1) // n
    all_kept: cython.bint = keep.shape[0] == 0
    size: cython.Py_ssize_t = 0
    clock: cython.Py_ssize_t = 0
    for i in range(roots.shape[0]):
        onward: cython.Py_ssize_t = roots[i]
        if room[_FOUND, onward] >= 0:
            continue
        depth: cython.Py_ssize_t = -1
        while True:
            if onward >= 0:
                depth += 1
                room[_FOUND, onward] = clock
                room[_OPEN, size] = onward
                room[_STATE, depth] = onward
                room[_LOW, depth] = clock
                room[_PAIR, depth] = onward * A
                room[_EDGE, depth] = indptr[onward * A]
                room[_LEAVES, depth] = 0
                clock += 1
                size += 1
                onward = -1
            s: cython.Py_ssize_t = room[_STATE, depth]
            low: cython.Py_ssize_t = room[_LOW, depth]
            pair: cython.Py_ssize_t = room[_PAIR, depth]
            edge: cython.Py_ssize_t = room[_EDGE, depth]
            while pair < (s + 1) * A:
                if all_kept or keep[pair]:
                    end: cython.Py_ssize_t = indptr[pair + 1]
                    while edge < end:
                        t: cython.Py_ssize_t = indices[edge]
                        when: cython.Py_ssize_t = room[_FOUND, t]
                        edge += 1
                        if when < 0:
                            onward = t
                            break
                        if when < low:
                            low = when
                        elif when == n:
                            room[_LEAVES, depth] = 1
                    if onward >= 0:
                        break
                pair += 1
                edge = indptr[pair]
            if onward >= 0:
                room[_LOW, depth] = low
                room[_PAIR, depth] = pair
                room[_EDGE, depth] = edge
                continue
            leaves: cython.Py_ssize_t = room[_LEAVES, depth]
            if low == room[_FOUND, s]:
                while True:
                    size -= 1
                    t = room[_OPEN, size]
                    label[t] = count
                    left[t] = leaves
                    room[_FOUND, t] = n
                    if t == s:
                        break
                count += 1
                leaves = 1  # for the previous state
            if depth == 0:
                break
            depth -= 1
            room[_LOW, depth] = min(room[_LOW, depth], low)
            room[_LEAVES, depth] |= leaves
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin(label: Ints, room: IntMatrix) -> cython.void:
    """Reset the search: no state is discovered, and all are roots."""
    for s in range(label.shape[0]):
        label[s] = -1
        room[_FOUND, s] = -1
        room[_ALL, s] = s


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _closed_components(
    indptr: ConstPlaces, indices: ConstPlaces, label: Ints, left: Flags, room: IntMatrix
) -> cython.Py_ssize_t:
    """Number the closed components by their first states, and all other states -1; return the number of components."""
    n = label.shape[0]
    _begin(label, room)
    found = label_components(indptr, indices, left[:0], room[_ALL, :n], label, left, room, 0)
    number = room[_OPEN]
    for k in range(found):
        number[k] = -1
    count: cython.Py_ssize_t = 0
    for s in range(n):
        k = label[s]
        if left[s]:
            label[s] = -1
            continue
        if number[k] < 0:
            number[k] = count
            count += 1
        label[s] = number[k]
    return count


def closed_classes(P, least, label, edges, left, room):
    """Compute ``closed_classes_of_dense`` in given arrays; see ``graph.pxd``."""
    n = P.shape[0]
    k: cython.Py_ssize_t = 0
    edges[0] = 0
    for i in range(n):
        for j in range(n):
            if P[i, j] > least:
                edges[n + 1 + k] = j
                k += 1
        edges[i + 1] = k
    return _closed_components(edges[: n + 1], edges[n + 1 :], label, left, room)


def closed_classes_of_dense(P: ConstMatrix, least: cython.double):
    """Return the closed components of a dense chain (S, S) without moves of probability at most ``least``.

    Returns their number, and the index of every state's component, or -1. They are numbered by their first states.
    """
    n = P.shape[0]
    if P.shape[1] != n:
        raise ValueError("a chain (S, S) is needed")
    if n * n >= 2**31:
        raise ValueError("a dense matrix of fewer than 2**31 entries is needed")
    labels, rooms = np.empty(n, np.int64), np.empty((_ROOM, n), np.int64)
    moves, leads = np.empty(n * n + n + 1, np.intc), np.empty(n, np.bool_)
    label: Ints = labels
    room: IntMatrix = rooms
    edges: Places = moves
    left: Flags = leads
    with cython.nogil:
        count = closed_classes(P, least, label, edges, left, room)
    return count, labels


def closed_classes_of_sparse(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, least: cython.double):
    """Return the closed components of a chain in CSR form; see ``closed_classes_of_dense``."""
    n, entries = indptr.shape[0] - 1, min(indices.shape[0], data.shape[0])
    check_graph(indptr, indices, entries, n)
    labels, rooms, leads = np.empty(n, np.int64), np.empty((_ROOM, n), np.int64), np.empty(n, np.bool_)
    label: Ints = labels
    room: IntMatrix = rooms
    left: Flags = leads
    possible = count_above(data, entries, least)
    if possible == entries:
        with cython.nogil:
            count = _closed_components(indptr, indices, label, left, room)
        return count, labels
    starts: Places = np.empty(n + 1, np.intc)
    successors: Places = np.empty(possible, np.intc)
    with cython.nogil:
        keep_above(indptr, indices, data, least, starts, successors)
        count = _closed_components(starts, successors, label, left, room)
    return count, labels


def strong_components(indptr: ConstPlaces, indices: ConstPlaces, n_states: cython.Py_ssize_t, keep: ConstFlags = None):
    """Return the number of strongly connected components (Tarjan 1972) of the kept pairs, and every state's index.

    A component is numbered after all those that it leads to. O(pairs + edges), without recursion.
    """
    pairs = indptr.shape[0] - 1
    check_graph(indptr, indices, indices.shape[0], n_states)
    if keep is None:
        keep = _EVERY_PAIR
    elif keep.shape[0] != pairs:
        raise ValueError("of every pair it must be said whether to keep it")
    labels, rooms = np.empty(n_states, np.int64), np.empty((_ROOM, n_states), np.int64)
    leads = np.empty(n_states, np.bool_)
    label: Ints = labels
    room: IntMatrix = rooms
    left: Flags = leads
    with cython.nogil:
        _begin(label, room)
        count = label_components(indptr, indices, keep, room[_ALL], label, left, room, 0)
    return count, labels
