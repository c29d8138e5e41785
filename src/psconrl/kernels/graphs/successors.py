"""Successor lists of states and pairs: possible transitions, predecessors, and reachability.

A graph has CSR form: the successors of pair ``s * A + a`` are
``indices[indptr[s * A + a] : indptr[s * A + a + 1]]``. A chain is the case A = 1.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstVector,
    Flags,
    IntMatrix,
    Ints,
    Places,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rise(starts: ConstPlaces, first: cython.Py_ssize_t, last: cython.Py_ssize_t) -> cython.bint:
    """Return whether the row starts from the first to the last are non-decreasing."""
    down: cython.Py_ssize_t = 0
    for i in range(first, last):
        down += starts[i] > starts[i + 1]
    return down == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _within(
    indices: ConstPlaces, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, bound: cython.Py_ssize_t
) -> cython.bint:
    """Return whether the indices in a range of entries are at least 0 and below the bound; the loop is branch-free."""
    signs: cython.Py_ssize_t = 0
    for e in range(begin, end):
        i: cython.Py_ssize_t = indices[e]
        signs |= i | (bound - 1 - i)  # negative if one of them is
    return signs >= 0


def check_rows(indptr, entries):
    """Raise unless these are the row starts of a matrix of at most ``entries`` entries."""
    n = indptr.shape[0] - 1
    if n < 0 or indptr[0] != 0 or indptr[n] > entries or not _rise(indptr, 0, n):
        raise ValueError("the row starts of a matrix must begin at 0, not descend and not lead out of its entries")


def check_some_rows(indptr, indices, entries, first, last, n_columns):
    """Raise unless these rows of a matrix are valid row starts, with columns below ``n_columns``."""
    if indptr[first] < 0 or indptr[last] > min(entries, indices.shape[0]) or not _rise(indptr, first, last):
        raise ValueError("the row starts of a matrix must begin at 0, not descend and not lead out of its entries")
    if not _within(indices, indptr[first], indptr[last], n_columns):
        raise ValueError("a matrix has no such column")


def check_matrix(indptr, indices, entries, n_columns):
    """Raise unless this is a matrix of ``n_columns`` columns and at most ``entries`` entries."""
    check_rows(indptr, min(entries, indices.shape[0]))
    if not _within(indices, 0, indptr[indptr.shape[0] - 1], n_columns):
        raise ValueError("a matrix has no such column")


def check_graph(indptr, indices, entries, n_states):
    """Raise unless these are the successors of S * A pairs, at most ``entries``, among ``n_states`` states."""
    pairs = indptr.shape[0] - 1
    if pairs < 0 or n_states < 0 or (pairs % n_states if n_states else pairs):
        raise ValueError("a graph of S states and A actions needs S * A + 1 row starts")
    check_rows(indptr, min(entries, indices.shape[0]))
    if not _within(indices, 0, indptr[pairs], n_states):
        raise ValueError("a successor is not one of the states")


def check_numbers(numbers, bound, otherwise):
    """Raise with this message unless all numbers are at least 0 and below the bound."""
    for i in range(numbers.shape[0]):
        if not 0 <= numbers[i] < bound:
            raise ValueError(otherwise)


def check_starts(start, entries):
    """Raise unless these are the starts of consecutive lists of at most ``entries`` entries."""
    n = start.shape[0] - 1
    fits: cython.bint = n >= 0 and start[0] == 0 and start[n] <= entries
    for k in range(n):
        fits &= start[k] <= start[k + 1]
    if not fits:
        raise ValueError("lists must begin one after the other, and not lead out of their entries")


def check_lists(start, members, bound):
    """Raise unless the members of list k, from ``start[k]`` to ``start[k + 1]``, are at least 0 and below the bound."""
    check_starts(start, members.shape[0])
    check_numbers(members[: start[start.shape[0] - 1]], bound, "there is no such member")


def check_closed(indptr, indices, data, keep, start, members, n_states):
    """Raise unless every class has members, and none of their kept pairs (all, if none are given) leaves it.

    The graph and the lists of members are already checked.
    """
    A = (indptr.shape[0] - 1) // max(n_states, 1)
    label: Ints = np.full(n_states, -1, np.int64)
    fits: cython.bint = True
    for k in range(start.shape[0] - 1):
        fits &= start[k] < start[k + 1]
        for i in range(start[k], start[k + 1]):
            label[members[i]] = k
    for s in range(n_states):
        if label[s] >= 0:
            for pair in range(s * A, (s + 1) * A):
                if keep.shape[0] == 0 or keep[pair]:
                    for e in range(indptr[pair], indptr[pair + 1]):
                        fits &= label[indices[e]] == label[s] or not data[e] > 0.0
    if not fits:
        raise ValueError("a class has no members, or leads out of itself")


def count_above(values, n, least):
    """Return how many of the first n values exceed the least."""
    count: cython.Py_ssize_t = 0
    for e in range(n):
        count += values[e] > least
    return count


def keep_above(indptr, indices, data, least, starts, successors):
    """Copy a graph without the entries that do not exceed the least."""
    k: cython.Py_ssize_t = 0
    starts[0] = 0
    for i in range(indptr.shape[0] - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] > least:
                successors[k] = indices[e]
                k += 1
        starts[i + 1] = k


def support_of_sparse(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, n_states: cython.Py_ssize_t, least: cython.double
):
    """Return the graph (indptr, indices) of the entries above ``least`` of a CSR matrix: its own arrays, if all are."""
    n, entries = indptr.shape[0] - 1, min(indices.shape[0], data.shape[0])
    check_graph(indptr, indices, entries, n_states)
    possible = count_above(data, entries, least)
    if possible == entries:
        return np.asarray(indptr), np.asarray(indices)
    first, kept = np.empty(n + 1, np.intc), np.empty(possible, np.intc)
    starts: Places = first
    successors: Places = kept
    with cython.nogil:
        keep_above(indptr, indices, data, least, starts, successors)
    return first, kept


def support_of_dense(P: ConstMatrix, least: cython.double):
    """Return the graph (indptr, indices) of the entries above ``least`` of a dense matrix."""
    n, S = P.shape[0], P.shape[1]
    if n * S >= 2**31:
        raise ValueError("a dense matrix of fewer than 2**31 entries is needed")
    first, every = np.empty(n + 1, np.intc), np.empty(n * S, np.intc)
    starts: Places = first
    successors: Places = every
    k: cython.Py_ssize_t = 0
    with cython.nogil:
        starts[0] = 0
        for i in range(n):
            for j in range(S):
                if P[i, j] > least:
                    successors[k] = j
                    k += 1
            starts[i + 1] = k
    return first, every[:k].copy()


def group(label, start, members):
    """Compute ``grouped`` in given arrays; see ``successors.pxd``."""
    count = start.shape[0] - 2
    for k in range(count + 2):
        start[k] = 0
    # Counted two positions ahead, summed up one ahead, so that each group ends where the next one begins.
    for s in range(label.shape[0]):
        if label[s] >= 0:
            start[label[s] + 2] += 1
    for k in range(count):
        start[k + 2] += start[k + 1]
    for s in range(label.shape[0]):
        if label[s] >= 0:
            j: cython.Py_ssize_t = label[s] + 1
            members[start[j]] = s
            start[j] += 1


def grouped(label: ConstInts, count: cython.Py_ssize_t):
    """Return the starts of the groups, (count + 1,), and their members, in order; a label of -1 is no group."""
    for s in range(label.shape[0]):
        if label[s] >= count:
            raise ValueError("there is no such group")
    first, by_group = np.empty(count + 2, np.int64), np.empty(label.shape[0], np.int64)
    start: Ints = first
    members: Ints = by_group
    group(label, start, members)
    return first[: count + 1], by_group[: start[count]]


def reached(indptr: ConstPlaces, indices: ConstPlaces, start: ConstFlags):
    """Return the states on some path from the start, including the start."""
    n = start.shape[0]
    pairs = indptr.shape[0] - 1
    check_graph(indptr, indices, indices.shape[0], n)
    A = pairs // n if n else 0
    met = np.empty(n, np.bool_)
    seen: Flags = met
    stack: Ints = np.empty(n, np.int64)
    with cython.nogil:
        size: cython.Py_ssize_t = 0
        for s in range(n):
            seen[s] = start[s]
            if seen[s]:
                stack[size] = s
                size += 1
        while size > 0:
            size -= 1
            s = stack[size]
            for e in range(indptr[s * A], indptr[(s + 1) * A]):
                t: cython.Py_ssize_t = indices[e]
                if not seen[t]:
                    seen[t] = True
                    stack[size] = t
                    size += 1
    return met


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _all_met(P: ConstMatrix, A: cython.Py_ssize_t, forward: cython.bint, waiting: Ints, rest: Ints) -> cython.bint:
    """Return whether state 0 leads to all others, or, backward, all others lead there."""
    n = P.shape[1]
    for j in range(1, n):
        rest[j - 1] = j
    left: cython.Py_ssize_t = n - 1  # number of states not reached: the first ones of the rest
    waiting[0] = 0
    size: cython.Py_ssize_t = 1
    while size > 0 and left > 0:
        size -= 1
        s: cython.Py_ssize_t = waiting[size]
        still: cython.Py_ssize_t = 0
        for k in range(left):
            j = rest[k]
            met: cython.bint = False
            for a in range(A):
                if (P[s * A + a, j] if forward else P[j * A + a, s]) > 0.0:
                    met = True
                    break
            if met:
                waiting[size] = j
                size += 1
            else:
                rest[still] = j
                still += 1
        left = still
    return left == 0


def all_communicate(P: ConstMatrix, n_actions: cython.Py_ssize_t):
    """Return whether every state can reach every other under some policy; dense P (S*A, S), at most O(S^2 A)."""
    n = P.shape[1]
    if n_actions < 1 or P.shape[0] != n * n_actions:
        raise ValueError("transitions (S*A, S) are needed")
    room = np.empty((2, n), np.int64)
    work: IntMatrix = room
    with cython.nogil:
        answer: cython.bint = _all_met(P, n_actions, True, work[0], work[1]) and _all_met(
            P, n_actions, False, work[0], work[1]
        )
    return answer
