r"""Boxes of models: the distribution of the next state within a box that is best for given values.

For a pair with bounds :math:`lo \le p \le hi,\ \sum p = 1`, the p that minimises :math:`p \cdot h` starts at lo and
adds the remaining mass in increasing order of h, up to hi: one sort, then O(S) per pair. Ties are broken by state
index; otherwise the sort would determine the distribution. Boxes are given by ``low`` and ``high``, (S*A, S).
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.elimination import row_sum
from cython.cimports.psconrl.kernels.sorting import argsort_into
from cython.cimports.psconrl.kernels.successors import check_numbers

_INFINITE = cython.declare(cython.double, float("inf"))


@cython.cfunc
@cython.exceptval(-1, check=False)
def count_actions(
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
) -> cython.Py_ssize_t:
    """Return the number of actions of a model given by a box, costs (q, S*A) and their weights (q,)."""
    n, S = low.shape[0], low.shape[1]
    if S == 0 or n == 0 or n % S or high.shape[0] != n or high.shape[1] != S:
        raise ValueError("bounds (S*A, S) are needed")
    if costs.shape[1] != n or weights.shape[0] != costs.shape[0]:
        raise ValueError("costs (q, S*A) and their weights (q,) are needed")
    return n // S


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _dot(
    W: cython.const[cython.double][:, ::1], i: cython.Py_ssize_t, x: cython.const[cython.double][::1]
) -> cython.double:
    """Return the product of row i and a vector in eight lanes, as ``elimination.row_dot``, without a call per row."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    e: cython.double = 0.0
    f: cython.double = 0.0
    g: cython.double = 0.0
    h: cython.double = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for j in range(0, whole, 8):
        a += W[i, j] * x[j]
        b += W[i, j + 1] * x[j + 1]
        c += W[i, j + 2] * x[j + 2]
        d += W[i, j + 3] * x[j + 3]
        e += W[i, j + 4] * x[j + 4]
        f += W[i, j + 5] * x[j + 5]
        g += W[i, j + 6] * x[j + 6]
        h += W[i, j + 7] * x[j + 7]
    rest: cython.double = 0.0
    for j in range(whole, n):
        rest += W[i, j] * x[j]
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pour_into(
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    pair: cython.Py_ssize_t,
    left: cython.double,
    order: cython.const[cython.Py_ssize_t][::1],
    out: cython.double[:, ::1],
    row: cython.Py_ssize_t,
) -> cython.void:
    """Compute ``pour`` into a row of ``out``; ``left`` is one minus the lowest probabilities."""
    S = low.shape[1]
    for j in range(S):
        out[row, j] = low[pair, j]
    for k in range(S):
        if left <= 0.0:
            break
        at: cython.Py_ssize_t = order[k]
        room: cython.double = high[pair, at] - low[pair, at]
        if room > 0.0:
            step: cython.double = min(room, left)
            out[row, at] += step
            left -= step


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def leave_over(low: cython.const[cython.double][:, ::1], left: cython.double[::1]) -> cython.void:
    """Compute one minus the lowest probabilities of every pair, (S*A,)."""
    for pair in range(left.shape[0]):
        left[pair] = 1.0 - row_sum(low, pair, low.shape[1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def hope_for(
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    left: cython.const[cython.double][::1],
    state: cython.Py_ssize_t,
    order: cython.const[cython.Py_ssize_t][::1],
    x: cython.const[cython.double][::1],
    cost: cython.const[cython.double][::1],
    tried: cython.double[:, ::1],
) -> tuple[cython.double, cython.Py_ssize_t, cython.Py_ssize_t]:
    """Return the least cost (S*A,) plus mean of x (S,) in a state, its action, and the row of its distribution.

    ``left`` (S*A,): one minus the lowest probabilities. ``order``: the states by increasing x. ``tried`` (2, S) is
    scratch for the best distribution and another one.
    """
    A = low.shape[0] // low.shape[1]
    best: cython.double = _INFINITE
    action: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = 0
    for a in range(A):
        pour_into(low, high, state * A + a, left[state * A + a], order, tried, 1 - kept)
        value: cython.double = _dot(tried, 1 - kept, x) + cost[state * A + a]
        if value < best:
            best, action, kept = value, a, 1 - kept
    return best, action, kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_costs(
    costs: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
    cost: cython.double[::1],
) -> cython.void:
    """Compute the weighted sum (S*A,) of costs (q, S*A)."""
    for pair in range(cost.shape[0]):
        cost[pair] = 0.0
    for i in range(weights.shape[0]):
        for pair in range(cost.shape[0]):
            cost[pair] += weights[i] * costs[i, pair]


def pour(
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    pair: cython.Py_ssize_t,
    order: cython.const[cython.Py_ssize_t][::1],
):
    """Return the distribution (S,) in the box of a pair with the most possible mass on the first states of an order."""
    S = low.shape[1]
    if not 0 <= pair < low.shape[0] or high.shape[0] != low.shape[0] or high.shape[1] != S or order.shape[0] != S:
        raise ValueError("bounds (S*A, S), one of the pairs and an order of all states are needed")
    check_numbers(order, S, "an order of all states is needed")
    result = np.empty((1, S))
    out: cython.double[:, ::1] = result
    pour_into(low, high, pair, 1.0 - row_sum(low, pair, S), order, out, 0)
    return result[0]


def likeliest_first(
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    policy: cython.const[cython.Py_ssize_t][::1],
):
    """Return the distributions (S, S) under a policy (S,) with the most possible mass on the likeliest successors."""
    n, S = low.shape[0], low.shape[1]
    if S == 0 or n % S or high.shape[0] != n or high.shape[1] != S or policy.shape[0] != S:
        raise ValueError("bounds (S*A, S) and actions (S,) are needed")
    A = n // S
    check_numbers(policy, A, "there is no such action")
    kernel = np.empty((S, S))
    out: cython.double[:, ::1] = kernel
    unlikely: cython.double[::1] = np.empty(S)
    order: cython.Py_ssize_t[:, ::1] = np.empty((2, S), np.int64)
    for s in range(S):
        pair = s * A + policy[s]
        for j in range(S):
            unlikely[j] = -(low[pair, j] + high[pair, j])
        argsort_into(unlikely, order[0], order[1])
        pour_into(low, high, pair, 1.0 - row_sum(low, pair, S), order[0], out, s)
    return kernel
