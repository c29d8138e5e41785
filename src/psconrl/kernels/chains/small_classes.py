"""Closed classes of sparse chains: many small ones at once, and the one in which a policy ends from a state.

The rows of a model are in CSR form, as in ``graph``; GTH elimination is used, as in ``elimination``.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstTables,
    ConstVector,
    Flags,
    IntMatrix,
    Ints,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.graph import label_components
from cython.cimports.psconrl.kernels.graphs.successors import check_closed, check_graph, check_lists
from cython.cimports.psconrl.kernels.linear.elimination import eliminate, solve_unichain, stationary_distribution

_SMALL = cython.declare(cython.Py_ssize_t, 100)  # states up to which a class is solved as a dense chain
_NO_NUMBER = cython.declare(cython.double, float("nan"))
_EVERY_PAIR = np.empty(0, np.bool_)


def solve_small_classes(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    costs: ConstMatrix,
    start: ConstInts,
    members: ConstInts,
    gains: Matrix,
    biases: Matrix,
    distribution: Vector,
):
    """Fill in gains (q, K), biases (q, S) of mean zero and the distribution (S,) in each class; return which are done.

    ``members[start[k] : start[k + 1]]`` are the states of class k; costs are (q, S).
    """
    q, S, K = costs.shape[0], costs.shape[1], start.shape[0] - 1
    if indptr.shape[0] != S + 1 or biases.shape[0] != q or biases.shape[1] != S or distribution.shape[0] != S:
        raise ValueError("a chain (S, S), costs (q, S) and room for the results are needed")
    if gains.shape[0] != q or gains.shape[1] != K:
        raise ValueError("the classes do not fit the room for their gains")
    check_graph(indptr, indices, data.shape[0], S)
    check_lists(start, members, S)
    check_closed(indptr, indices, data, _EVERY_PAIR, start, members, S)
    most: cython.Py_ssize_t = 0  # states of the largest small class
    for k in range(K):
        if start[k + 1] - start[k] <= _SMALL:
            most = max(most, start[k + 1] - start[k])
    solved = np.zeros(K, np.bool_)
    done: Flags = solved
    place: Ints = np.empty(S, np.int64)
    chain: Matrix = np.empty((most, most))
    W: Matrix = np.empty((most, most))
    cost: Matrix = np.empty((q, most))
    C: Matrix = np.empty((most, q + 1))
    g: Vector = np.empty(q)
    h: Matrix = np.empty((q, most))
    mu: Vector = np.empty(most)
    with cython.nogil:
        for k in range(K):
            begin: cython.Py_ssize_t = start[k]
            n: cython.Py_ssize_t = start[k + 1] - begin
            if n > _SMALL:
                continue
            for i in range(n):
                place[members[begin + i]] = i
            for i in range(n):
                s = members[begin + i]
                for j in range(n):
                    chain[i, j] = 0.0
                for e in range(indptr[s], indptr[s + 1]):
                    if data[e] > 0.0:
                        chain[i, place[indices[e]]] += data[e]
                for c in range(q):
                    cost[c, i] = costs[c, s]
            reference, _ = solve_unichain(chain[:n, :n], cost[:, :n], 0, W[:n, :n], C[:n], g, h[:, :n], mu[:n])
            if reference < 0:
                continue
            done[k] = True
            for c in range(q):
                gains[c, k] = g[c]
                mean: cython.double = 0.0
                for i in range(n):
                    mean += mu[i] * h[c, i]
                for i in range(n):
                    biases[c, members[begin + i]] = h[c, i] - mean
            for i in range(n):
                distribution[members[begin + i]] = mu[i]
    return solved


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _play(policy: ConstMatrix, never: cython.double, played: Matrix) -> cython.void:
    """Copy the policy without actions of probability at most ``never``."""
    for s in range(policy.shape[0]):
        total: cython.double = 0.0
        for a in range(policy.shape[1]):
            played[s, a] = policy[s, a] if policy[s, a] > never else 0.0
            total += played[s, a]
        for a in range(policy.shape[1]):
            played[s, a] /= total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ending(
    keep: ConstFlags,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    state: cython.Py_ssize_t,
    label: Ints,
    met: Flags,
    left: Flags,
    room: IntMatrix,
) -> cython.Py_ssize_t:
    """Mark the states reached from one state by the pairs kept; return the label of the closed class it ends in.

    The label is -1 if there are several. No state is marked on entry.
    """
    S = label.shape[0]
    A = keep.shape[0] // S
    for s in range(S):
        label[s] = -1
        room[0, s] = -1
    room[7, 0] = state
    count = label_components(indptr, successors, keep, room[7, :1], label, left, room, 0)
    for k in range(count):  # of components, from here on
        left[k] = False
    stack = room[1]
    met[state] = True
    stack[0] = state
    size: cython.Py_ssize_t = 1
    while size > 0:
        size -= 1
        s = stack[size]
        for pair in range(s * A, (s + 1) * A):
            if keep[pair]:
                for e in range(indptr[pair], indptr[pair + 1]):
                    t = successors[e]
                    if probabilities[e] > 0.0:
                        if label[t] != label[s]:
                            left[label[s]] = True
                        if not met[t]:
                            met[t] = True
                            stack[size] = t
                            size += 1
    last: cython.Py_ssize_t = -1
    for s in range(S):
        if met[s] and not left[label[s]]:
            if last >= 0 and last != label[s]:
                return -1
            last = label[s]
    return last


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _cost(policy: ConstMatrix, costs: ConstTables, i: cython.Py_ssize_t, s: cython.Py_ssize_t) -> cython.double:
    total: cython.double = 0.0
    for a in range(policy.shape[1]):
        total += policy[s, a] * costs[i, s, a]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _class_gains(
    policy: ConstMatrix,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    costs: ConstTables,
    states: ConstInts,
    place: Ints,
    W: Matrix,
    mu: Vector,
    gains: Vector,
) -> cython.void:
    """Compute the averages (q,) of costs (q, S, A) under a policy in a closed class; NaN if nearly decomposable.

    Dense: O(n^3) for n states. W (n, n) is zero on entry; mu (n,) becomes the stationary distribution.
    """
    n, A, q = states.shape[0], policy.shape[1], costs.shape[0]
    for k in range(n):
        place[states[k]] = k
    for k in range(n):
        s = states[k]
        for a in range(A):
            if policy[s, a] > 0.0:
                for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                    if probabilities[e] > 0.0:
                        W[k, place[successors[e]]] += policy[s, a] * probabilities[e]
    stuck, _ = eliminate(W, W[:, :0])
    if stuck > 0:
        for i in range(q):
            gains[i] = _NO_NUMBER
        return
    stationary_distribution(W, mu)
    for i in range(q):
        base = _cost(policy, costs, i, states[0])  # an offset of the costs must not hide their differences
        total: cython.double = 0.0
        for k in range(1, n):
            total += mu[k] * (_cost(policy, costs, i, states[k]) - base)
        gains[i] = base + total


def long_run(
    policy: ConstMatrix,
    never: cython.double,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    costs: ConstTables,
    state: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    gains: Matrix,
):
    """Fill in the gains (q, S) of a policy from one state, and from all states that it reaches from there.

    Actions of probability at most ``never`` are ignored. Returns the policy without them, the states that it reaches
    and those of the closed class that it ends in. Gains are unchanged if that class has more than ``most`` states, or
    if there are several: then no states are returned.
    """
    S, A, q = policy.shape[0], policy.shape[1], costs.shape[0]
    check_graph(indptr, successors, probabilities.shape[0], S)
    if indptr.shape[0] != S * A + 1 or costs.shape[1] != S or costs.shape[2] != A or not 0 <= state < S:
        raise ValueError("transitions (S*A, S), a policy (S, A), costs (q, S, A) and one of the states are needed")
    if gains.shape[0] != q or gains.shape[1] != S:
        raise ValueError("gains (q, S) are needed")
    likely, seen, ends = np.empty((S, A)), np.zeros(S, np.bool_), np.empty(S, np.int64)
    played: Matrix = likely
    met: Flags = seen
    states: Ints = ends
    keep: Flags = np.empty(S * A, np.bool_)
    left: Flags = np.empty(S, np.bool_)
    label: Ints = np.empty(S, np.int64)
    room: IntMatrix = np.empty((8, S), np.int64)
    n: cython.Py_ssize_t = 0
    with cython.nogil:
        _play(policy, never, played)
        for s in range(S):
            for a in range(A):
                keep[s * A + a] = played[s, a] > 0.0
        last = _ending(keep, indptr, successors, probabilities, state, label, met, left, room)
        if last >= 0:
            for s in range(S):
                if met[s] and label[s] == last:
                    states[n] = s
                    n += 1
    if 0 < n <= most:
        W: Matrix = np.zeros((n, n))
        mu: Vector = np.empty(n)
        found: Vector = np.empty(q)
        with cython.nogil:
            _class_gains(played, indptr, successors, probabilities, costs, states[:n], room[0], W, mu, found)
            for s in range(S):
                if met[s]:
                    for i in range(q):
                        gains[i, s] = found[i]
    return likely, seen, ends[:n]
