r"""Exact long-run evaluation of a policy under dense transitions, in one call; ``markov.evaluation`` explains it.

Classes and transient states are solved by GTH elimination (``elimination``, ``dense_transient``): O(S^3).
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import dot, total
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstInts,
    ConstMatrix,
    ConstTables,
    ConstVector,
    Flags,
    IntMatrix,
    Ints,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.chains.costs import extent_of
from cython.cimports.psconrl.kernels.chains.dense_transient import solve_transient
from cython.cimports.psconrl.kernels.chains.policy_chain import mix_costs, mix_rows
from cython.cimports.psconrl.kernels.graphs.graph import closed_classes
from cython.cimports.psconrl.kernels.graphs.successors import group
from cython.cimports.psconrl.kernels.linear.elimination import solve_unichain


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(chain: ConstMatrix, states: ConstInts, W: Matrix) -> cython.void:
    """Copy the transitions among n states to W (n, n)."""
    for i in range(states.shape[0]):
        for j in range(states.shape[0]):
            W[i, j] = chain[states[i], states[j]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _solve_class(
    chain: ConstMatrix,
    costs: ConstMatrix,
    states: ConstInts,
    room: Matrix,
    collected: Matrix,
    gain: Vector,
    biases: Matrix,
    distribution: Vector,
) -> cython.bint:
    """Solve a closed class of n states; return whether it is left nowhere with a probability that rounds to zero.

    Writes gains (q,) and, in the columns of the class, biases (q, S) of stationary mean zero and the stationary
    distribution (S,). Overwritten: ``room``, of 2 n + 2 q + 1 rows of length n or more, and ``collected`` (n, q + 1).
    """
    n, q = states.shape[0], costs.shape[0]
    inside: Matrix = room[:n, :n]
    W: Matrix = room[n : 2 * n, :n]
    cost: Matrix = room[2 * n : 2 * n + q, :n]
    h: Matrix = room[2 * n + q : 2 * n + 2 * q, :n]
    mu: Vector = room[2 * n + 2 * q, :n]
    for i in range(q):
        for k in range(n):
            cost[i, k] = costs[i, states[k]]
    _gather(chain, states, inside)
    reference, _ = solve_unichain(inside, cost, 0, W, collected[:n], gain, h, mu)
    if reference < 0:
        return False
    for i in range(q):
        mean: cython.double = 0.0
        for k in range(n):
            mean += mu[k] * h[i, k]
        for k in range(n):
            biases[i, states[k]] = h[i, k] - mean
    for k in range(n):
        distribution[states[k]] = mu[k]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _absorb(
    chain: ConstMatrix, label: ConstInts, transient: ConstInts, exits: ConstVector, room: Matrix, absorbed: Matrix
) -> cython.bint:
    """Compute the probability of ending in each class, (n, K), from n transient states; return whether all are left."""
    n = transient.shape[0]
    for i in range(n):
        for k in range(absorbed.shape[1]):
            absorbed[i, k] = 0.0
        for s in range(chain.shape[0]):
            if label[s] >= 0:
                absorbed[i, label[s]] += chain[transient[i], s]
    if not _collect(chain, transient, exits, room, absorbed):
        return False
    for i in range(n):
        mass: cython.double = total(absorbed[i])
        for k in range(absorbed.shape[1]):
            absorbed[i, k] /= mass
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(
    chain: ConstMatrix, transient: ConstInts, exits: ConstVector, room: Matrix, collected: Matrix
) -> cython.bint:
    """Replace costs (n, q) of a step from n transient states by the total until they are left; whether all are left.

    Overwritten: ``room``, of n + 1 rows of length n or more.
    """
    n = transient.shape[0]
    W, leaving = room[:n, :n], room[n, :n]
    _gather(chain, transient, W)
    leaving[:] = exits
    return solve_transient(W, collected, leaving, n)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _evaluate_transient(
    chain: ConstMatrix,
    costs: ConstMatrix,
    label: ConstInts,
    transient: ConstInts,
    class_gains: ConstMatrix,
    room: Matrix,
    exits: Vector,
    absorbed: Matrix,
    onward: Matrix,
    gains: Matrix,
    biases: Matrix,
) -> cython.bint:
    """Compute gains and biases in n transient states, and where they end, ``absorbed`` (n, K).

    Returns whether all of them are left. Overwritten: exits (n,), onward (n, q), and ``room``, as in ``_collect``.
    """
    n, q, S = transient.shape[0], costs.shape[0], chain.shape[0]
    outside = room[n, :S]
    for s in range(S):
        outside[s] = label[s] >= 0
    for i in range(n):
        exits[i] = dot(chain[transient[i]], outside)
    if not _absorb(chain, label, transient, exits, room, absorbed):
        return False
    for i in range(n):
        s = transient[i]
        for c in range(q):
            gain: cython.double = 0.0
            for k in range(absorbed.shape[1]):
                if absorbed[i, k] > 0.0:
                    gain += absorbed[i, k] * class_gains[k, c]
            after: cython.double = 0.0
            for t in range(S):
                if label[t] >= 0 and chain[s, t] > 0.0:
                    after += chain[s, t] * biases[c, t]
            gains[c, s] = gain
            onward[i, c] = (costs[c, s] - gain) + after
    if not _collect(chain, transient, exits, room, onward):
        return False
    for i in range(n):
        for c in range(q):
            biases[c, transient[i]] = onward[i, c]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_the_start(
    initial: ConstVector, label: ConstInts, absorbed: ConstMatrix, gains: ConstMatrix, share: Vector, averages: Vector
) -> cython.void:
    """Compute the probability of ending in each class, (K,), and the averages (q,), from an initial distribution."""
    for k in range(share.shape[0]):
        share[k] = 0.0
    for c in range(averages.shape[0]):
        averages[c] = 0.0
    i: cython.Py_ssize_t = 0  # of transient states
    for s in range(initial.shape[0]):
        if label[s] >= 0:
            share[label[s]] += initial[s]
        else:
            for k in range(share.shape[0]):
                share[k] += initial[s] * absorbed[i, k]
            i += 1
        if initial[s] > 0.0:
            for c in range(averages.shape[0]):
                averages[c] += initial[s] * gains[c, s]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _evaluate(
    chain: ConstMatrix,
    costs: ConstMatrix,
    initial: ConstVector,
    label: ConstInts,
    start: ConstInts,
    members: ConstInts,
    transient: Ints,
    wide: Matrix,
    distribution: Vector,
    averages: Vector,
    gains: Matrix,
    biases: Matrix,
) -> cython.bint:
    """Evaluate a chain (S, S) with costs (q, S), given its closed classes; the last four arrays are the results.

    Returns whether all states are left often enough for floating point. Overwritten: ``transient`` (n,) and ``wide``,
    of ``_rows(S, q)`` rows.
    """
    S, q, K, n = chain.shape[0], costs.shape[0], start.shape[0] - 1, transient.shape[0]
    class_gains: Matrix = wide[:K, :q]
    onward: Matrix = wide[K : K + n, :q]
    collected: Matrix = wide[S : 2 * S, : q + 1]
    absorbed: Matrix = wide[2 * S : 2 * S + n, :K]
    share: Vector = wide[3 * S, :K]
    exits: Vector = wide[3 * S + 1, :n]
    room: Matrix = wide[3 * S + 2 :]
    for k in range(K):
        states: ConstInts = members[start[k] : start[k + 1]]
        if not _solve_class(chain, costs, states, room, collected, class_gains[k], biases, distribution):
            return False
        for i in range(states.shape[0]):
            for c in range(q):
                gains[c, states[i]] = class_gains[k, c]
    size: cython.Py_ssize_t = 0
    for s in range(S):
        if label[s] < 0:
            transient[size] = s
            size += 1
    if n and not _evaluate_transient(
        chain, costs, label, transient, class_gains, room, exits, absorbed, onward, gains, biases
    ):
        return False
    if K == 1 and n == 0:
        averages[:] = class_gains[0]
        return True
    _from_the_start(initial, label, absorbed, gains, share, averages)
    for s in range(S):
        distribution[s] = share[label[s]] * distribution[s] if label[s] >= 0 else 0.0
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rows(S: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the number of rows of the workspace of ``_evaluate``."""
    return 5 * S + 2 * q + 3


def evaluated(P: ConstMatrix, policy: ConstMatrix, costs: ConstTables, initial: ConstVector):
    """Evaluate a policy (S, A) for transitions (S*A, S), costs (q, S, A) and an initial distribution (S,).

    Returns averages (q,), occupancy (S, A), gains and biases (q, S), and the closed classes as the starts (K + 1,) of
    their lists and the states in them. Raises ``ZeroDivisionError`` if a state is left too rarely for floating point.
    """
    S, A, q = policy.shape[0], policy.shape[1], costs.shape[0]
    fits = P.shape[0] == S * A and P.shape[1] == S and initial.shape[0] == S
    if S < 1 or not fits or costs.shape[1] != S or costs.shape[2] != A:
        raise ValueError("transitions (S*A, S), a policy (S, A), costs (q, S, A) and a distribution (S,) are needed")
    if S * S >= 2**31:
        raise ValueError("a dense matrix of fewer than 2**31 entries is needed")
    averages, occupancy, gains, biases = np.empty(q), np.empty((S, A)), np.empty((q, S)), np.empty((q, S))
    average: Vector = averages
    played: Matrix = occupancy
    g: Matrix = gains
    h: Matrix = biases
    # Few arrays, since allocating several takes longer than evaluating a small model.
    numbers: IntMatrix = np.empty((9, S), np.int64)
    label: Ints = numbers[8]
    room: IntMatrix = numbers[:8]
    edges: cython.int[::1] = np.empty(S * S + S + 1, np.intc)
    left: Flags = np.empty(S, np.bool_)
    wide: Matrix = np.empty((S + q + 2 + _rows(S, q), max(S, q + 1)))
    chain: Matrix = wide[:S, :S]
    cost: Matrix = wide[S : S + q, :S]
    base: Vector = wide[S + q, :q]
    mu: Vector = wide[S + q + 1, :S]
    with cython.nogil:
        mix_rows(P, policy, chain)
        mix_costs(costs, policy, cost, base)
        count = closed_classes(chain, 0.0, label, edges, left, room)
    lists = np.empty(count + 2 + S, np.int64)
    start: Ints = lists
    with cython.nogil:
        group(label, start[: count + 2], start[count + 2 :])
        inside: cython.Py_ssize_t = start[count]
        members: ConstInts = start[count + 2 : count + 2 + inside]
        transient: Ints = room[0, : S - inside]
        done = _evaluate(
            chain, cost, initial, label, start[: count + 1], members, transient, wide[S + q + 2 :], mu, average, g, h
        )  # fmt: skip
        for s in range(S):
            for a in range(A):
                played[s, a] = mu[s] * policy[s, a]
        for c in range(q):
            average[c] = base[c] + average[c]
            for s in range(S):
                g[c, s] = base[c] + g[c, s]
    if not done:
        raise ZeroDivisionError("a state is left with probability zero")
    return averages, occupancy, gains, biases, lists[: count + 1], lists[count + 2 : count + 2 + inside]


def rounds_to_settle(
    costs: ConstTables, available: ConstFlagMatrix, initial: ConstVector, biases: ConstMatrix, settled: cython.double
):
    """Return the rounds until all averages are within ``settled`` of their cost's range of their long-run values.

    Costs are (q, S, A), biases (q, S); see ``planning.settling``. Constant costs are settled from the outset.
    """
    q, S = biases.shape[0], biases.shape[1]
    fits = available.shape[0] == S and available.shape[1] == costs.shape[2] and initial.shape[0] == S
    if S < 1 or not fits or costs.shape[0] != q or costs.shape[1] != S:
        raise ValueError("costs (q, S, A), pairs (S, A), a distribution (S,) and biases (q, S) are needed")
    longest: cython.double = 0.0
    for i in range(q):
        low, high, _ = extent_of(costs[i], available)
        if high - low > 0.0:
            start: cython.double = dot(biases[i], initial)
            lowest: cython.double = biases[i, 0]
            highest: cython.double = biases[i, 0]
            for s in range(1, S):
                lowest, highest = min(lowest, biases[i, s]), max(highest, biases[i, s])
            rounds: cython.double = max(start - lowest, highest - start) / (settled * (high - low))
            if rounds > longest or rounds != rounds:  # nan stays nan
                longest = rounds
    return longest
