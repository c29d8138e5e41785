"""Pessimism: the worst distribution of a confidence set, and value iteration for one policy against it.

``kernels.sets.confidence_sets`` defines the sets and their arguments.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstIntMatrix,
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstVector,
    Matrix,
    Vector,
    index,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix, check_numbers
from cython.cimports.psconrl.kernels.sets.confidence_sets import NoiseSets, RowSets, Sets

_INFINITE = cython.declare(cython.double, float("inf"))
# Relaxation of a sweep: with a full step, a periodic chain would cycle.
_STEP = cython.declare(cython.double, 0.9)


def row_sets(
    indptr: ConstPlaces,
    successors: ConstPlaces,
    low: ConstVector,
    high: ConstVector,
    unseen: ConstVector,
    n_states: cython.Py_ssize_t,
):
    """Return the sets of all distributions within bounds of every pair and of every entry."""
    n, entries = unseen.shape[0], successors.shape[0]
    if indptr.shape[0] != n + 1 or low.shape[0] != entries or high.shape[0] != entries:
        raise ValueError("bounds of every pair and of every successor seen are needed")
    if n_states < 1 or n % n_states:
        raise ValueError("a number h for every state is needed")
    check_matrix(indptr, successors, entries, n_states)
    for pair in range(n):
        if indptr[pair + 1] - indptr[pair] > n_states:
            raise ValueError("a pair has more successors than there are states")
    sets: RowSets = RowSets()
    sets.n_states, sets.n_pairs = n_states, n
    sets.indptr, sets.successors, sets.low, sets.high, sets.unseen = indptr, successors, low, high, unseen
    sets.negative, sets.place = np.empty(n_states), np.full(n_states, -1, np.int64)
    sets.order, sets.scratch = np.empty((2, n_states), np.int64)
    return sets


def noise_sets(
    successors: cython.const[index][:, ::1],
    paid: ConstMatrix,
    contexts: ConstInts,
    sizes: ConstInts,
    low: ConstMatrix,
    high: ConstMatrix,
    classes: ConstInts,
    blocks: ConstIntMatrix,
    least: ConstMatrix,
    most: ConstMatrix,
    n_states: cython.Py_ssize_t,
):
    """Return the sets of all distributions of the noise within bounds of its values, and of blocks of outcomes."""
    n, W = successors.shape[0], successors.shape[1]
    if n_states < 1 or n % n_states or contexts.shape[0] != n or paid.shape[0] != n or paid.shape[1] != W:
        raise ValueError("a context for every pair, and what every outcome costs, are needed")
    outcomes: cython.Py_ssize_t = 1
    values: cython.Py_ssize_t = 0
    for k in range(sizes.shape[0]):
        if not 1 <= sizes[k] <= W:
            raise ValueError("every noise has values")
        outcomes *= sizes[k]
        values += sizes[k]
        if outcomes > W:
            break
    if outcomes != W or low.shape[1] != values or high.shape[1] != values or high.shape[0] != low.shape[0]:
        raise ValueError("bounds of all values of every noise are needed")
    check_numbers(contexts, low.shape[0], "there is no such context")
    for pair in range(n):
        for w in range(W):
            if not 0 <= successors[pair, w] < n_states:
                raise ValueError("there is no such state")
    C = blocks.shape[0]
    if classes.shape[0] != n or blocks.shape[1] != W or least.shape[0] != C or most.shape[0] != C:
        raise ValueError("a class for every pair, and the blocks of every class, are needed")
    if least.shape[1] != W or most.shape[1] != W:
        raise ValueError("bounds of every block are needed")
    for pair in range(n):
        if not -1 <= classes[pair] < C:
            raise ValueError("there is no such class")
    for k in range(C):
        for w in range(W):
            first = blocks[k, w]
            if not -1 <= first < W or (first >= 0 and blocks[k, first] != first):
                raise ValueError("a block is named after its first outcome")
    sets: NoiseSets = NoiseSets()
    sets.n_states, sets.n_pairs = n_states, n
    sets.successors, sets.paid, sets.contexts = successors, paid, contexts
    sets.sizes, sets.low, sets.high = sizes, low, high
    sets.classes, sets.blocks, sets.least, sets.most = classes, blocks, least, most
    sets.values, sets.negative, sets.shares = np.empty((3, W))
    sets.order, sets.scratch, sets.worst = np.zeros((3, W), np.int64)
    return sets


@cython.cfunc
def _check_fits(sets: Sets, h: ConstVector):
    if h.shape[0] != sets.n_states:
        raise ValueError("a number h for every state is needed")


def worst_means(sets: Sets, h: ConstVector):
    """Return the largest mean of h, and of what outcomes cost, of every pair, (S*A,)."""
    _check_fits(sets, h)
    result = np.empty(sets.n_pairs)
    out: Vector = result
    with cython.nogil:
        sets.prepare(h)
        for pair in range(out.shape[0]):
            out[pair] = sets.mean(pair, h)
    return result


def distributions_of(sets: NoiseSets, h: ConstVector, pairs: ConstInts):
    """Return distributions of the joint outcomes (n, W) that attain the largest means of some pairs (n,)."""
    _check_fits(sets, h)
    check_numbers(pairs, sets.n_pairs, "there is no such pair")
    result = np.empty((pairs.shape[0], sets.successors.shape[1]))
    out: Matrix = result
    with cython.nogil:
        for k in range(pairs.shape[0]):
            sets.distribution(pairs[k], h, out[k])
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    sets: Sets, policy: ConstMatrix, costs: ConstVector, relying: ConstFlags, h: ConstVector, residual: Vector
) -> tuple[cython.double, cython.double]:
    """Compute the gain of a step minus h in states that do not rely, in ``residual``; return its largest and least."""
    S, A = policy.shape[0], policy.shape[1]
    worst: cython.double = -_INFINITE
    least: cython.double = _INFINITE
    for s in range(S):
        if relying[s]:
            continue
        value: cython.double = -h[s]
        for a in range(A):
            if policy[s, a] > 0.0:
                pair = s * A + a
                mean = sets.mean(pair, h)
                value += policy[s, a] * (costs[pair] + mean)
        residual[s] = value
        worst, least = max(worst, value), min(least, value)
    return worst, least


def worst_case(
    sets: Sets,
    policy: ConstMatrix,
    costs: ConstVector,
    relying: ConstFlags,
    recovery: cython.double,
    limit: cython.double,
    sweeps: cython.Py_ssize_t,
    settled: cython.double,
    h: Vector,
):
    """Run value iteration from h (S,), in place; return the least bound found, and the h that attains it.

    Stops once the bound is within the limit, provably beyond it, or settled. States that are ``relying`` count
    ``recovery`` more than all others.
    """
    S, n = h.shape[0], sets.n_pairs
    _check_fits(sets, h)
    if policy.shape[0] != S or policy.shape[1] * S != n or costs.shape[0] != n:
        raise ValueError("a policy (S, A) and costs (S*A,) are needed")
    if relying.shape[0] != S:
        raise ValueError("the states that rely (S,) are needed")
    residual: Vector = np.zeros(S)
    best: Vector = np.empty(S)
    bound: cython.double = _INFINITE
    with cython.nogil:
        for s in range(S):
            best[s] = h[s]
        for _ in range(sweeps):
            top: cython.double = -_INFINITE
            for s in range(S):
                if not relying[s]:
                    top = max(top, h[s])
            if top == -_INFINITE:  # all rely on the baseline
                bound = -_INFINITE
                break
            for s in range(S):
                if relying[s]:
                    h[s] = top + recovery
            sets.prepare(h)
            worst, least = _sweep(sets, policy, costs, relying, h, residual)
            if worst < bound:
                bound = worst
                for s in range(S):
                    best[s] = h[s]
            if bound <= limit or least > limit > -_INFINITE or worst - least <= settled:
                break
            for s in range(S):
                h[s] += _STEP * (residual[s] - worst)
        for s in range(S):
            h[s] = best[s]
    return bound
