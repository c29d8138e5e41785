"""Moves between end components and transient states: their targets, and the cheapest way to end.

Matrices are in CSR form. A node is an end component or a transient state; moves are sorted by the node that they leave,
those of node k are ``first[k] .. first[k + 1] - 1``.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstInts,
    ConstPlaces,
    ConstVector,
    Ints,
    Places,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.successors import (
    check_graph,
    check_matrix,
    check_numbers,
    check_starts,
)

_INFINITE = cython.declare(cython.double, float("inf"))
_STAY = cython.declare(cython.Py_ssize_t, -1)
_NONE = cython.declare(cython.Py_ssize_t, -2)  # neither a move nor staying is possible


def moves_away(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    pairs: ConstInts,
    node: ConstInts,
    n_actions: cython.Py_ssize_t,
):
    """Return where pairs lead, node by node, without the node that they leave; every row sums to one."""
    n, S = pairs.shape[0], node.shape[0]
    if indptr.shape[0] != S * n_actions + 1:
        raise ValueError("every state must have a node, and every pair a row")
    check_graph(indptr, indices, data.shape[0], S)
    check_numbers(pairs, S * n_actions, "there is no such pair")
    check_numbers(node, S, "there is no such node")
    most: cython.Py_ssize_t = 0
    for i in range(n):
        p: cython.Py_ssize_t = pairs[i]
        most += cython.cast(cython.Py_ssize_t, indptr[p + 1] - indptr[p])
    if most >= 2**31:
        raise ValueError("rows of fewer than 2**31 entries together are needed")
    starts, columns, values = np.zeros(n + 1, np.intc), np.empty(most, np.intc), np.empty(most)
    start: Places = starts
    to: Places = columns
    share: Vector = values
    at: Ints = np.full(S, -1, np.int64)  # position of a node in the current row
    k: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            p = pairs[i]
            total: cython.double = 0.0
            for e in range(indptr[p], indptr[p + 1]):
                j: cython.Py_ssize_t = node[indices[e]]
                if j == node[p // n_actions] or not data[e] > 0.0:
                    continue
                total += data[e]
                if at[j] < start[i]:
                    at[j] = k
                    to[k], share[k] = j, 0.0
                    k += 1
                share[at[j]] += data[e]
            for e in range(start[i], k):
                share[e] /= total
            start[i + 1] = k
    return starts, columns[:k].copy(), values[:k].copy()


def inside_rows(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    states: ConstInts,
    available: ConstFlagMatrix,
    n_states: cython.Py_ssize_t,
):
    """Return the rows of a component (n states, A actions) in CSR form; those of pairs that leave it are empty."""
    n, A = available.shape[0], available.shape[1]
    if states.shape[0] != n or indptr.shape[0] != n_states * A + 1:
        raise ValueError("states of the component and pairs of the model are needed")
    check_graph(indptr, indices, data.shape[0], n_states)
    check_numbers(states, n_states, "there is no such state")
    place: Ints = np.full(n_states, -1, np.int64)
    most: cython.Py_ssize_t = 0
    for i in range(n):
        s: cython.Py_ssize_t = states[i]
        place[s] = i
        most += indptr[(s + 1) * A] - indptr[s * A]
    if most >= 2**31:
        raise ValueError("rows of fewer than 2**31 entries together are needed")
    starts, columns, values = np.zeros(n * A + 1, np.intc), np.empty(most, np.intc), np.empty(most)
    start: Places = starts
    to: Places = columns
    probability: Vector = values
    k: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            for a in range(A):
                if available[i, a]:
                    p = states[i] * A + a
                    for e in range(indptr[p], indptr[p + 1]):
                        if data[e] > 0.0:
                            to[k], probability[k] = place[indices[e]], data[e]
                            k += 1
                start[i * A + a + 1] = k
    check_matrix(start, to, k, n)  # a pair that leaves the component leads to -1
    return starts, columns[:k].copy(), values[:k].copy()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _worth(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, move: cython.Py_ssize_t, x: ConstVector
) -> cython.double:
    """Return the mean value of a move, from the values of the nodes."""
    total: cython.double = 0.0
    for e in range(indptr[move], indptr[move + 1]):
        total += data[e] * x[indices[e]]
    return total


def swept(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    first: ConstInts,
    backwards: ConstInts,
    stay: ConstVector,
    per_move: cython.double,
    sweeps: cython.Py_ssize_t,
):
    """Return the choice (N,) after some sweeps, exact without cycles; -1 is to stay, -2 that nothing is possible.

    ``backwards`` (N,): every node after those that it leads to. ``stay`` (N,): the cost of staying, inf if impossible.
    """
    n = stay.shape[0]
    _check_nodes(n, first, indptr, indices, data)
    check_numbers(backwards, n, "there is no such node")
    choices, values = np.full(n, -2, np.int64), np.empty(n)
    choice: Ints = choices
    x: Vector = values
    with cython.nogil:
        for s in range(n):
            x[s] = stay[s] if stay[s] < _INFINITE else 0.0
        for _ in range(sweeps):
            changed: cython.bint = False
            for i in range(backwards.shape[0]):
                k: cython.Py_ssize_t = backwards[i]
                best: cython.double = stay[k]
                chosen: cython.Py_ssize_t = _STAY if stay[k] < _INFINITE else _NONE
                for move in range(first[k], first[k + 1]):
                    value = per_move + _worth(indptr, indices, data, move, x)
                    if value < best:
                        best, chosen = value, move
                if chosen != _NONE:
                    x[k] = best
                if chosen != choice[k]:
                    choice[k] = chosen
                    changed = True
            if not changed:
                break
    return choices


def improved(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    first: ConstInts,
    stay: ConstVector,
    per_move: cython.double,
    tolerance: cython.double,
    x: ConstVector,
    choice: Ints,
):
    """Change, in place, every choice (N,) that improves its value x (N,) by more than the tolerance; count them."""
    n = x.shape[0]
    _check_nodes(n, first, indptr, indices, data)
    if stay.shape[0] != n or choice.shape[0] != n:
        raise ValueError("costs of staying, values and choices (N,) are needed")
    switched: cython.Py_ssize_t = 0
    with cython.nogil:
        for k in range(n):
            best: cython.double = x[k] - tolerance * max(1.0, abs(x[k]))
            new: cython.Py_ssize_t = choice[k]
            if choice[k] != _STAY and stay[k] < best:
                best, new = stay[k], _STAY
            for move in range(first[k], first[k + 1]):
                if move != choice[k]:
                    value = per_move + _worth(indptr, indices, data, move, x)
                    if value < best:
                        best, new = value, move
            if new != choice[k]:
                choice[k] = new
                switched += 1
    return switched


@cython.cfunc
def _check_nodes(n: cython.Py_ssize_t, first: ConstInts, indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector):
    """Raise a ValueError unless every one of n nodes has its moves, and every move a node, and leads to nodes."""
    if first.shape[0] != n + 1 or first[n] != indptr.shape[0] - 1:
        raise ValueError("the moves of every node are needed")
    check_starts(first, indptr.shape[0] - 1)
    check_matrix(indptr, indices, data.shape[0], n)


def largest_fall(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, source: ConstInts, x: ConstVector):
    """Return the largest mean decrease of values x (N,) by a move, rounding included; not negative.

    Sums of n differences have an error of at most n + 2 roundings of the largest of them.
    """
    if indptr.shape[0] != source.shape[0] + 1:
        raise ValueError("every move must have a row")
    check_matrix(indptr, indices, data.shape[0], x.shape[0])
    check_numbers(source, x.shape[0], "there is no such node")
    largest: cython.double = 0.0
    for move in range(source.shape[0]):
        total: cython.double = 0.0
        size: cython.double = 0.0
        at: cython.double = x[source[move]]
        for e in range(indptr[move], indptr[move + 1]):
            fall = data[e] * (at - x[indices[e]])
            total += fall
            size += abs(fall)
        terms: cython.double = indptr[move + 1] - indptr[move] + 4
        largest = max(largest, total + terms * 1.2e-16 * size)
    return largest
