r"""Boxes of models: the distribution of the next state within a box that is best for given values.

For a pair with bounds :math:`lo \le p \le hi,\ \sum p = 1`, the p that minimises :math:`p \cdot h` starts at lo and
adds the remaining mass in increasing order of h, up to hi: one sort, then O(S) per pair. Ties are broken by state
index; otherwise the sort would determine the distribution. Boxes are given by ``low`` and ``high``, (S*A, S).
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import row_sum
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, IntMatrix, Matrix, Vector
from cython.cimports.psconrl.kernels.arithmetic.sorting import argsort_into
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers


def pour_into(low, high, pair, left, order, out, row):
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


def leave_over(low, left):
    """Compute one minus the lowest probabilities of every pair, (S*A,)."""
    for pair in range(left.shape[0]):
        left[pair] = 1.0 - row_sum(low, pair, low.shape[1])


def weigh_costs(costs, weights, cost):
    """Compute the weighted sum (S*A,) of costs (q, S*A)."""
    for pair in range(cost.shape[0]):
        cost[pair] = 0.0
    for i in range(weights.shape[0]):
        for pair in range(cost.shape[0]):
            cost[pair] += weights[i] * costs[i, pair]


def pour(low: ConstMatrix, high: ConstMatrix, pair: cython.Py_ssize_t, order: ConstInts):
    """Return the distribution (S,) in the box of a pair with the most possible mass on the first states of an order."""
    S = low.shape[1]
    if not 0 <= pair < low.shape[0] or high.shape[0] != low.shape[0] or high.shape[1] != S or order.shape[0] != S:
        raise ValueError("bounds (S*A, S), one of the pairs and an order of all states are needed")
    check_numbers(order, S, "an order of all states is needed")
    result = np.empty((1, S))
    out: Matrix = result
    pour_into(low, high, pair, 1.0 - row_sum(low, pair, S), order, out, 0)
    return result[0]


def likeliest_first(low: ConstMatrix, high: ConstMatrix, policy: ConstInts):
    """Return the distributions (S, S) under a policy (S,) with the most possible mass on the likeliest successors."""
    n, S = low.shape[0], low.shape[1]
    if S == 0 or n % S or high.shape[0] != n or high.shape[1] != S or policy.shape[0] != S:
        raise ValueError("bounds (S*A, S) and actions (S,) are needed")
    A = n // S
    check_numbers(policy, A, "there is no such action")
    kernel = np.empty((S, S))
    out: Matrix = kernel
    unlikely: Vector = np.empty(S)
    order: IntMatrix = np.empty((2, S), np.int64)
    for s in range(S):
        pair = s * A + policy[s]
        for j in range(S):
            unlikely[j] = -(low[pair, j] + high[pair, j])
        argsort_into(unlikely, order[0], order[1])
        pour_into(low, high, pair, 1.0 - row_sum(low, pair, S), order[0], out, s)
    return kernel
