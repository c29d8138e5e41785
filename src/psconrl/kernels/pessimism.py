"""Pessimism: the worst distribution within bounds, and value iteration for one policy against it.

Bounds are given by rows as in CSR form: the ``low`` and ``high`` of every observed successor, and for each pair the
largest probability of any other successor, ``unseen``.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.sorting import argsort_into
from cython.cimports.psconrl.kernels.successors import check_matrix, index

_INFINITE = cython.declare(cython.double, float("inf"))
# Relaxation of a sweep: with a full step, a periodic chain would cycle.
_STEP = cython.declare(cython.double, 0.9)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _worst_mean(
    pair: cython.Py_ssize_t,
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    h: cython.const[cython.double][::1],
    order: cython.const[cython.Py_ssize_t][::1],
    place: cython.Py_ssize_t[::1],
) -> cython.double:
    """Return the largest p.h of a pair: lowest probabilities, and the rest where h is largest, up to the highest.

    ``order``: the states by decreasing h. ``place`` (S,) must be -1 everywhere, and is so again on return.
    """
    left: cython.double = 1.0
    value: cython.double = 0.0
    for entry in range(indptr[pair], indptr[pair + 1]):
        place[successors[entry]] = entry
        left -= low[entry]
        value += low[entry] * h[successors[entry]]
    for k in range(order.shape[0]):
        if left <= 0.0:
            break
        at: cython.Py_ssize_t = order[k]
        seen: cython.Py_ssize_t = place[at]
        room: cython.double = high[seen] - low[seen] if seen >= 0 else unseen[pair]
        step: cython.double = min(room, left)
        value += step * h[at]
        left -= step
    for entry in range(indptr[pair], indptr[pair + 1]):
        place[successors[entry]] = -1
    return value + max(left, 0.0) * h[order[0]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _order_falling(
    h: cython.const[cython.double][::1],
    negative: cython.double[::1],
    order: cython.Py_ssize_t[::1],
    scratch: cython.Py_ssize_t[::1],
) -> cython.void:
    """Order the states by decreasing h, ties by index."""
    for s in range(h.shape[0]):
        negative[s] = -h[s]
    argsort_into(negative, order, scratch)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check(
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    n_states: cython.Py_ssize_t,
) -> cython.int:
    """Raise a ValueError unless there are bounds of every pair and of every entry."""
    entries = successors.shape[0]
    if indptr.shape[0] != unseen.shape[0] + 1 or low.shape[0] != entries or high.shape[0] != entries:
        raise ValueError("bounds of every pair and of every successor seen are needed")
    check_matrix(indptr, successors, entries, n_states)
    return 0


def worst_means(
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    h: cython.const[cython.double][::1],
):
    """Return the largest p.h of every pair, (S*A,)."""
    n, S = unseen.shape[0], h.shape[0]
    _check(indptr, successors, low, high, unseen, S)
    if S < 1 or n % S:
        raise ValueError("a number h for every state is needed")
    result = np.empty(n)
    out: cython.double[::1] = result
    negative: cython.double[::1] = np.empty(S)
    order: cython.Py_ssize_t[:, ::1] = np.empty((2, S), np.int64)
    place: cython.Py_ssize_t[::1] = np.full(S, -1, np.int64)
    with cython.nogil:
        _order_falling(h, negative, order[0], order[1])
        for pair in range(n):
            out[pair] = _worst_mean(pair, indptr, successors, low, high, unseen, h, order[0], place)
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    relying: cython.const[cython.uchar][::1],
    h: cython.const[cython.double][::1],
    order: cython.const[cython.Py_ssize_t][::1],
    place: cython.Py_ssize_t[::1],
    residual: cython.double[::1],
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
                mean = _worst_mean(pair, indptr, successors, low, high, unseen, h, order, place)
                value += policy[s, a] * (costs[pair] + mean)
        residual[s] = value
        worst, least = max(worst, value), min(least, value)
    return worst, least


def worst_case(
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    relying: cython.const[cython.uchar][::1],
    recovery: cython.double,
    limit: cython.double,
    sweeps: cython.Py_ssize_t,
    settled: cython.double,
    h: cython.double[::1],
):
    """Run value iteration from h (S,), in place; return the least bound found, and the h that attains it.

    Stops once the bound is within the limit, provably beyond it, or settled. States that are ``relying`` count
    ``recovery`` more than all others.
    """
    S, n = h.shape[0], unseen.shape[0]
    _check(indptr, successors, low, high, unseen, S)
    if policy.shape[0] != S or policy.shape[1] * S != n or costs.shape[0] != n or relying.shape[0] != S:
        raise ValueError("a policy (S, A), costs (S*A,) and the states that rely (S,) are needed")
    residual: cython.double[::1] = np.zeros(S)
    best: cython.double[::1] = np.empty(S)
    negative: cython.double[::1] = np.empty(S)
    order: cython.Py_ssize_t[:, ::1] = np.empty((2, S), np.int64)
    place: cython.Py_ssize_t[::1] = np.full(S, -1, np.int64)
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
            _order_falling(h, negative, order[0], order[1])
            worst, least = _sweep(
                policy, costs, indptr, successors, low, high, unseen, relying, h, order[0], place, residual
            )
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
