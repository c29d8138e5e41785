"""Levels of a multigrid method: groups of the states of a chain, and the chain of the groups.

A level is a chain without its diagonal: transition rates in CSR form, and their row sums. See ``markov.multigrid``.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstPlaces, ConstVector, Ints, Places, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers, check_rows


def moves_of(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector):
    """Return the transitions of a chain to other states, and the probability of leaving each state."""
    n, entries = indptr.shape[0] - 1, indices.shape[0]
    check_graph(indptr, indices, data.shape[0], n)
    starts, columns, values, sums = (
        np.zeros(n + 1, np.intc),
        np.empty(entries, np.intc),
        np.empty(entries),
        np.zeros(n),
    )
    to_starts: Places = starts
    to_columns: Places = columns
    to_values: Vector = values
    leaving: Vector = sums
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    with cython.nogil:
        for s in range(n):
            for e in range(indptr[s], indptr[s + 1]):
                if indices[e] != s and data[e] > 0.0:
                    to_columns[k] = indices[e]
                    to_values[k] = data[e]
                    leaving[s] += data[e]
                    k += 1
            to_starts[s + 1] = k
    return starts, columns[:k].copy(), values[:k].copy(), sums


def scaled(indptr: ConstPlaces, data: ConstVector, mass: ConstVector):
    """Return every row multiplied by the mass of its state."""
    if indptr.shape[0] != mass.shape[0] + 1:
        raise ValueError("moves of as many states as there are masses are needed")
    check_rows(indptr, data.shape[0])
    result = np.empty(data.shape[0])
    out: Vector = result
    with cython.nogil:
        for s in range(mass.shape[0]):
            for e in range(indptr[s], indptr[s + 1]):
                out[e] = mass[s] * data[e]
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pair(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    flow: ConstVector,
    t_indptr: ConstPlaces,
    t_indices: ConstPlaces,
    t_flow: ConstVector,
    strong: cython.double,
    tie: Vector,
    pair: Ints,
) -> cython.void:
    """Compute ``pairs_of``, with -1 in every entry of ``pair`` and zeros in ``tie`` on entry."""
    s: cython.Py_ssize_t
    t: cython.Py_ssize_t
    e: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    for s in range(pair.shape[0]):
        if pair[s] >= 0:
            continue
        for e in range(indptr[s], indptr[s + 1]):
            tie[indices[e]] += flow[e]
        for e in range(t_indptr[s], t_indptr[s + 1]):
            tie[t_indices[e]] += t_flow[e]
        strongest: cython.double = 0.0
        of_best: cython.double = 0.0
        best: cython.Py_ssize_t = -1
        for e in range(indptr[s], indptr[s + 1]):
            t = indices[e]
            strongest = max(strongest, tie[t])
            if tie[t] > of_best and pair[t] < 0:
                best = t
                of_best = tie[t]
        for e in range(t_indptr[s], t_indptr[s + 1]):
            t = t_indices[e]
            strongest = max(strongest, tie[t])
            if tie[t] > of_best and pair[t] < 0:
                best = t
                of_best = tie[t]
        for e in range(indptr[s], indptr[s + 1]):
            tie[indices[e]] = 0.0
        for e in range(t_indptr[s], t_indptr[s + 1]):
            tie[t_indices[e]] = 0.0
        pair[s] = k
        if best >= 0 and of_best >= strong * strongest:
            pair[best] = k
        k += 1


def pairs_of(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    flow: ConstVector,
    t_indptr: ConstPlaces,
    t_indices: ConstPlaces,
    t_flow: ConstVector,
    strong: cython.double,
):
    """Pair every state with the free state of largest mutual flow; return the index of the pair, (n,).

    ``strong``: share of a state's strongest coupling; weaker couplings do not make a pair.
    """
    n = indptr.shape[0] - 1
    if t_indptr.shape[0] != n + 1:
        raise ValueError("the flow of n states by rows and by columns is needed")
    check_graph(indptr, indices, flow.shape[0], n)
    check_graph(t_indptr, t_indices, t_flow.shape[0], n)
    pairs = np.full(n, -1, np.int64)
    pair: Ints = pairs
    tie: Vector = np.zeros(n)
    with cython.nogil:
        _pair(indptr, indices, flow, t_indptr, t_indices, t_flow, strong, tie, pair)
    return pairs


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort_members(group: ConstInts, first: Ints, member: Ints) -> cython.void:
    """List the members of every group, group by group; ``first`` (groups + 2) receives the start of each."""
    s: cython.Py_ssize_t
    a: cython.Py_ssize_t
    for s in range(group.shape[0]):  # counted two positions ahead, so that each group ends where the next one begins
        first[group[s] + 2] += 1
    for a in range(2, first.shape[0]):
        first[a] += first[a - 1]
    for s in range(group.shape[0]):
        a = group[s] + 1
        member[first[a]] = s
        first[a] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    flow: ConstVector,
    group: ConstInts,
    first: ConstInts,
    member: ConstInts,
    place: Ints,
    starts: Places,
    columns: Places,
    values: Vector,
) -> cython.void:
    """Compute ``gathered``, with -1 in every ``place`` on entry."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    q: cython.Py_ssize_t = 0
    starts[0] = 0
    for a in range(place.shape[0]):
        begin: cython.Py_ssize_t = q
        for i in range(first[a], first[a + 1]):
            s = member[i]
            for e in range(indptr[s], indptr[s + 1]):
                b = group[indices[e]]
                if b == a:
                    continue
                if place[b] < begin:
                    place[b] = q
                    columns[q] = b
                    values[q] = 0.0
                    q += 1
                values[place[b]] += flow[e]
        starts[a + 1] = q


def gathered(indptr: ConstPlaces, indices: ConstPlaces, flow: ConstVector, group: ConstInts, k: cython.Py_ssize_t):
    """Return the flow between k groups."""
    entries = indices.shape[0]
    if indptr.shape[0] != group.shape[0] + 1:
        raise ValueError("the flow of as many states as have a group is needed")
    check_graph(indptr, indices, flow.shape[0], group.shape[0])
    check_numbers(group, k, "there is no such group")
    first: Ints = np.zeros(k + 2, np.int64)
    member: Ints = np.empty(group.shape[0], np.int64)
    place: Ints = np.full(k, -1, np.int64)
    starts, columns, values = np.empty(k + 1, np.intc), np.empty(entries, np.intc), np.empty(entries)
    to_starts: Places = starts
    to_columns: Places = columns
    to_values: Vector = values
    with cython.nogil:
        _sort_members(group, first, member)
        _gather(indptr, indices, flow, group, first, member, place, to_starts, to_columns, to_values)
        entries = to_starts[k]
    return starts, columns[:entries].copy(), values[:entries].copy()


def per_mass(indptr: ConstPlaces, flow: Vector, mass: ConstVector):
    """Divide flow by mass, in place; return the row sums."""
    if indptr.shape[0] != mass.shape[0] + 1:
        raise ValueError("moves of as many states as there are masses are needed")
    check_rows(indptr, flow.shape[0])
    result = np.zeros(mass.shape[0])
    sums: Vector = result
    with cython.nogil:
        for a in range(mass.shape[0]):
            for e in range(indptr[a], indptr[a + 1]):
                flow[e] /= mass[a]
                sums[a] += flow[e]
    return result


def sums_of(group: ConstInts, values: ConstVector, k: cython.Py_ssize_t):
    """Return the sum over each of k groups."""
    if values.shape[0] != group.shape[0]:
        raise ValueError("as many values as states are needed")
    check_numbers(group, k, "there is no such group")
    result = np.zeros(k)
    out: Vector = result
    with cython.nogil:
        for s in range(group.shape[0]):
            out[group[s]] += values[s]
    return result
