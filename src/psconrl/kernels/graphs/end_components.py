"""Maximal end components of a model: the sets in which a policy can stay for ever. Graphs are as in ``graph``."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstInts,
    ConstPlaces,
    FlagMatrix,
    Flags,
    IntMatrix,
    Ints,
)
from cython.cimports.psconrl.kernels.graphs.graph import label_components
from cython.cimports.psconrl.kernels.graphs.successors import check_graph

# Rows of the workspace for components that are free between two searches; see ``graph``.
_FOUND = cython.declare(cython.Py_ssize_t, 0)
_DEAD = cython.declare(cython.Py_ssize_t, 1)
_SIZES = cython.declare(cython.Py_ssize_t, 2)
_COPY = cython.declare(cython.Py_ssize_t, 3)
_ORDER = cython.declare(cython.Py_ssize_t, 7)
_ROOM = cython.declare(cython.Py_ssize_t, 8)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_into(indptr: ConstPlaces, indices: ConstPlaces, keep: ConstFlags, start: Ints) -> cython.Py_ssize_t:
    """Return the total number of pairs leading to states; ``start`` (S + 2) receives list starts, one ahead."""
    n = start.shape[0] - 2
    for s in range(n + 2):
        start[s] = 0
    for p in range(keep.shape[0]):
        if keep[p]:
            for e in range(indptr[p], indptr[p + 1]):
                start[indices[e] + 2] += 1
    for s in range(n):
        start[s + 2] += start[s + 1]
    return start[n + 1]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _list_into(indptr: ConstPlaces, indices: ConstPlaces, keep: ConstFlags, start: Ints, pairs: Ints) -> cython.void:
    """Fill in the lists; ``start`` receives the start of each."""
    for p in range(keep.shape[0]):
        if keep[p]:
            for e in range(indptr[p], indptr[p + 1]):
                k: cython.Py_ssize_t = start[indices[e] + 1]
                pairs[k] = p
                start[indices[e] + 1] = k + 1


def pairs_into(indptr: ConstPlaces, indices: ConstPlaces, n_states: cython.Py_ssize_t, keep: ConstFlags):
    """Return the kept pairs that may lead to each state, as a list for every state."""
    n_pairs = indptr.shape[0] - 1
    check_graph(indptr, indices, indices.shape[0], n_states)
    if keep.shape[0] != n_pairs:
        raise ValueError("of every pair it must be said whether to keep it")
    first = np.empty(n_states + 2, np.int64)
    start: Ints = first
    with cython.nogil:
        count = _count_into(indptr, indices, keep, start)
    sources = np.empty(count, np.int64)
    pairs: Ints = sources
    with cython.nogil:
        _list_into(indptr, indices, keep, start, pairs)
    return first[: n_states + 1], sources


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drop_leaving(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    members: ConstInts,
    label: ConstInts,
    base: cython.Py_ssize_t,
    keep: Flags,
    live: Ints,
    lost: Flags,
    dead: Ints,
) -> cython.Py_ssize_t:
    """Drop the pairs that leave their components; return the number of states without pairs, listed in ``dead``."""
    A = (indptr.shape[0] - 1) // label.shape[0]
    n_dead: cython.Py_ssize_t = 0
    for i in range(members.shape[0]):
        s = members[i]
        own = label[s]
        for p in range(s * A, (s + 1) * A):
            if keep[p]:
                for e in range(indptr[p], indptr[p + 1]):
                    if label[indices[e]] != own:
                        keep[p] = False
                        lost[own - base] = True
                        live[s] -= 1
                        break
        if live[s] == 0:
            dead[n_dead] = s
            n_dead += 1
    return n_dead


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drop_into(
    dead: Ints,
    n_dead: cython.Py_ssize_t,
    before: ConstInts,
    sources: ConstInts,
    label: ConstInts,
    base: cython.Py_ssize_t,
    keep: Flags,
    live: Ints,
    lost: Flags,
) -> cython.void:
    """Drop the pairs that may lead to a state without pairs, until there is none."""
    A = keep.shape[0] // label.shape[0]
    while n_dead > 0:
        n_dead -= 1
        t = dead[n_dead]
        for e in range(before[t], before[t + 1]):
            p = sources[e]
            if keep[p]:
                s = p // A
                keep[p] = False
                lost[label[s] - base] = True
                live[s] -= 1
                if live[s] == 0:
                    dead[n_dead] = s
                    n_dead += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _split(
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    live: ConstInts,
    lost: ConstFlags,
    label: Ints,
    room: IntMatrix,
    sections: IntMatrix,
    waiting: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Split the components that lost pairs, each remaining part as a section; return the number of waiting sections."""
    sizes, order, copied = room[_SIZES], room[_ORDER], room[_COPY]
    for k in range(count + 1):
        sizes[k] = 0
    n: cython.Py_ssize_t = 0
    for i in range(begin, end):
        s = order[i]
        if live[s] > 0 and lost[label[s] - base]:
            sizes[label[s] - base + 1] += 1
            copied[n] = s
            n += 1
    for k in range(count):
        if sizes[k + 1] > 0:
            sections[waiting, 0] = begin + sizes[k]
            sections[waiting, 1] = begin + sizes[k] + sizes[k + 1]
            waiting += 1
        sizes[k + 1] += sizes[k]
    for i in range(n):
        s = copied[i]
        k = label[s] - base
        order[begin + sizes[k]] = s
        sizes[k] += 1
        label[s] = -1
        room[_FOUND, s] = -1
    return waiting


def end_component_pairs(indptr: ConstPlaces, indices: ConstPlaces, n_states: cython.Py_ssize_t, keep: ConstFlags):
    """Return the maximal end components of the kept pairs: their number, each state's index or -1, and their pairs.

    Pairs that leave their component are dropped, and with them pairs that lead to a state without pairs, until none
    leaves (de Alfaro 1997). Only components that lost a pair are processed again. They are numbered by their first
    states.
    """
    n_pairs = indptr.shape[0] - 1
    A = n_pairs // n_states if n_states else 0
    check_graph(indptr, indices, indices.shape[0], n_states)
    if keep.shape[0] != n_pairs:
        raise ValueError("of every pair it must be said whether to keep it")
    room: IntMatrix = np.empty((_ROOM + 2, n_states + 2), np.int64)
    before, live = room[_ROOM], room[_ROOM + 1]  # where the pairs leading to a state begin; its remaining pairs
    with cython.nogil:
        into = _count_into(indptr, indices, keep, before)
    sources: Ints = np.empty(into, np.int64)
    inside = np.empty(n_pairs, np.bool_)
    kept: Flags = inside
    label: Ints = np.empty(n_states, np.int64)
    marks: FlagMatrix = np.empty((2, n_states), np.bool_)
    lost, left = marks[0], marks[1]
    sections: IntMatrix = np.empty((n_states + 1, 2), np.int64)  # of the order, still to be processed
    number: cython.Py_ssize_t = 0
    with cython.nogil:
        _list_into(indptr, indices, keep, before, sources)
        for s in range(n_states):
            label[s] = -1
            room[_FOUND, s] = -1
            room[_ORDER, s] = s
            live[s] = 0
            for p in range(s * A, (s + 1) * A):
                kept[p] = keep[p]
                live[s] += keep[p]
        sections[0, 0], sections[0, 1] = 0, n_states
        waiting: cython.Py_ssize_t = 1
        while waiting > 0:
            waiting -= 1
            begin: cython.Py_ssize_t = sections[waiting, 0]
            end: cython.Py_ssize_t = sections[waiting, 1]
            members = room[_ORDER, begin:end]
            base: cython.Py_ssize_t = number
            number = label_components(indptr, indices, kept, members, label, left, room, base)
            for k in range(number - base):
                lost[k] = False
            n_dead = _drop_leaving(indptr, indices, members, label, base, kept, live, lost, room[_DEAD])
            _drop_into(room[_DEAD], n_dead, before, sources, label, base, kept, live, lost)
            waiting = _split(begin, end, base, number - base, live, lost, label, room, sections, waiting)
    component, numbers = np.empty(n_states, np.int64), np.empty(number, np.int64)
    of_state: Ints = component
    names: Ints = numbers
    count: cython.Py_ssize_t = 0
    with cython.nogil:
        for k in range(number):
            names[k] = -1
        for s in range(n_states):
            of_state[s] = -1
            if live[s] > 0:
                if names[label[s]] < 0:
                    names[label[s]] = count
                    count += 1
                of_state[s] = names[label[s]]
    return count, component, inside
