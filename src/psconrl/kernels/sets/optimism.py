"""Optimism: policy iteration and backward recursion over actions and the best distributions in their boxes.

Boxes are given by ``low`` and ``high``, (S*A, S), or as the ``BestRows`` in it; see ``boxes``.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import row_dot, row_sum
from cython.cimports.psconrl.kernels._types import (
    ConstFlags,
    ConstIntMatrix,
    ConstInts,
    ConstMatrix,
    ConstVector,
    FlagMatrix,
    IntMatrix,
    Ints,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.arithmetic.sorting import argsort_into
from cython.cimports.psconrl.kernels.graphs.attractor import Attractor
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers
from cython.cimports.psconrl.kernels.search.improvement import weigh_biases
from cython.cimports.psconrl.kernels.sets.best_rows import BestRows
from cython.cimports.psconrl.kernels.sets.boxes import pour_into, weigh_costs

_INFINITE = cython.declare(cython.double, float("inf"))


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_costs(box: BestRows, costs: ConstMatrix, weights: ConstVector) -> cython.int:
    """Raise a ValueError unless there are costs (q, S*A) of all pairs and their weights (q,)."""
    if costs.shape[1] != box.S * box.A or weights.shape[0] != costs.shape[0]:
        raise ValueError("costs (q, S*A) and their weights (q,) are needed")
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _improve(
    box: BestRows,
    cost: ConstVector,
    h: ConstVector,
    tol: cython.double,
    order: ConstInts,
    difference: Matrix,
    policy: Ints,
    kernel: Matrix,
) -> tuple[cython.double, cython.Py_ssize_t]:
    """Compute ``improve_optimistic`` in place, given weighted cost (S*A,), bias h (S,) and the states ordered by it.

    The current and the new distribution are summed in the same way: if they are equal, so are their values.
    """
    S = box.S
    box.follow(order)
    bound: cython.double = _INFINITE
    switched: cython.Py_ssize_t = 0
    for s in range(S):
        for j in range(S):
            difference[0, j] = h[j] - h[s]
        best, action = box.hope_for(s, difference[0], cost)
        current: cython.double = row_dot(kernel, s, difference, 0, S) + cost[s * box.A + policy[s]]
        bound = min(bound, best)
        if current - best > tol * max(1.0, abs(h[s])):
            policy[s] = action
            for j in range(S):
                kernel[s, j] = box.rows[s * box.A + action, j]
            switched += 1
    return bound, switched


def improve_optimistic(
    box: BestRows,
    costs: ConstMatrix,
    weights: ConstVector,
    policy: ConstInts,
    kernel: ConstMatrix,
    biases: ConstMatrix,
    tol: cython.double,
):
    """Run Howard's step over pairs (action, distribution in its box); return bound, number of switches, new ones.

    ``kernel`` (S, S) is the optimistic distribution of the next state under the policy (S,).
    """
    _check_costs(box, costs, weights)
    S = box.S
    if policy.shape[0] != S or kernel.shape[0] != S or kernel.shape[1] != S:
        raise ValueError("actions (S,) and distributions (S, S) are needed")
    if biases.shape[0] != costs.shape[0] or biases.shape[1] != S:
        raise ValueError("biases (q, S) are needed")
    check_numbers(policy, box.A, "there is no such action")
    new_policy, new_kernel = np.empty(S, np.int64), np.empty((S, S))
    actions: Ints = new_policy
    hoped: Matrix = new_kernel
    order: IntMatrix = np.empty((2, S), np.int64)
    room: Matrix = np.empty((2, S))
    cost: Vector = np.empty(costs.shape[1])
    with cython.nogil:
        actions[:] = policy
        hoped[:, :] = kernel
        weigh_biases(weights, biases, room[0])
        argsort_into(room[0], order[0], order[1])
        weigh_costs(costs, weights, cost)
        bound, switched = _improve(box, cost, room[0], tol, order[0], room[1:], actions, hoped)
    return bound, switched, new_policy, new_kernel


@cython.cclass
class OptimisticAttractor(Attractor):
    """Attractor along the distributions in the boxes that are likeliest to step into the set.

    ``order``: the reached states, then the others, both in their order; ``kernel`` (S, S): the distributions chosen.
    """

    low: ConstMatrix
    high: ConstMatrix
    kernel: Matrix
    tried: Matrix
    order: Ints
    n: cython.Py_ssize_t

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _candidates(self, S: cython.Py_ssize_t) -> cython.Py_ssize_t:
        self.n = 0
        for s in range(S):
            if self.reached[s]:
                self.order[self.n] = s
                self.n += 1
        n: cython.Py_ssize_t = 0
        for s in range(S):
            if not self.reached[s]:
                self.order[self.n + n] = self.waiting[n] = s
                n += 1
        return n

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _reached_in(self, W: ConstMatrix, i: cython.Py_ssize_t) -> cython.double:
        """Return the probability of the reached states in a row."""
        mass: cython.double = 0.0
        for k in range(self.n):
            mass += W[i, self.order[k]]
        return mass

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _own(self, s: cython.Py_ssize_t, pair: cython.Py_ssize_t) -> cython.double:
        return self._reached_in(self.kernel, s)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _into(self, pair: cython.Py_ssize_t) -> cython.double:
        left: cython.double = 1.0 - row_sum(self.low, pair, self.low.shape[1])
        pour_into(self.low, self.high, pair, left, self.order, self.tried, 0)
        return self._reached_in(self.tried, 0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _take(self, s: cython.Py_ssize_t) -> cython.void:
        for j in range(self.low.shape[1]):
            self.kernel[s, j] = self.tried[0, j]


def drive_to(low: ConstMatrix, high: ConstMatrix, inside: ConstFlags, policy: Ints, kernel: Matrix):
    """Change actions and distributions outside a set, in place, so that all states reach it with probability one.

    Returns False if some cannot. A state keeps its action if that may move it closer.
    """
    pairs, S = low.shape[0], low.shape[1]
    if S == 0 or pairs == 0 or pairs % S or high.shape[0] != pairs or high.shape[1] != S or inside.shape[0] != S:
        raise ValueError("bounds (S*A, S) and some of the states (S,) are needed")
    if policy.shape[0] != S or kernel.shape[0] != S or kernel.shape[1] != S:
        raise ValueError("actions (S,) and distributions (S, S) are needed")
    check_numbers(policy, pairs // S, "there is no such action")
    grown: OptimisticAttractor = OptimisticAttractor(S)
    grown.low, grown.high, grown.kernel = low, high, kernel
    grown.tried, grown.order = np.empty((1, S)), np.empty(S, np.int64)
    all_actions: FlagMatrix = np.ones((S, pairs // S), np.uint8)
    for s in range(S):
        grown.reached[s] = inside[s]
    grown.lead(all_actions, policy, 0.0, True)
    return bool(np.asarray(grown.reached).all())


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _backward(box: BestRows, cost: ConstVector, actions: IntMatrix, orders: IntMatrix, values: Matrix) -> cython.void:
    """Compute the recursion of ``optimistic_horizon``: actions (H, S), first values (S,).

    ``orders`` (H + 1, S): for every step the states by increasing value after it; the last row is scratch. The first
    values are in the first row of ``values``; its second row is scratch.
    """
    H = actions.shape[0]
    for s in range(box.S):
        values[0, s] = 0.0
    for t in range(H - 1, -1, -1):
        argsort_into(values[0], orders[t], orders[H])
        box.follow(orders[t])
        for s in range(box.S):
            values[1, s], actions[t, s] = box.hope_for(s, values[0], cost)
        for s in range(box.S):
            values[0, s] = values[1, s]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _forward(
    box: BestRows, costs: ConstMatrix, actions: ConstIntMatrix, orders: ConstIntMatrix, visits: Matrix, totals: Vector
) -> cython.void:
    """Compute visits (H, S) of the chosen path from those of its first step, and its costs, (q,)."""
    H, S = actions.shape[0], actions.shape[1]
    for t in range(H):
        box.follow(orders[t])
        for s in range(S):
            mass: cython.double = visits[t, s]
            if mass > 0.0:
                pair: cython.Py_ssize_t = s * box.A + actions[t, s]
                for i in range(costs.shape[0]):
                    totals[i] += mass * costs[i, pair]
                if t + 1 < H:
                    for j in range(S):
                        visits[t + 1, j] += mass * box.rows[pair, j]


def optimistic_horizon(
    box: BestRows, costs: ConstMatrix, weights: ConstVector, horizon: cython.Py_ssize_t, start: cython.Py_ssize_t
):
    r"""Run the backward recursion :math:`Q_h = c_w + \min_{p} p \cdot V_{h+1}`, then forward along its choices.

    Returns the optimal weighted cost from the start (a total), the total of every cost (q,), the actions (H, S) and the
    visits (H, S) of the optimistic path.
    """
    _check_costs(box, costs, weights)
    S, q = box.S, costs.shape[0]
    if horizon < 1 or not 0 <= start < S:
        raise ValueError("a horizon of at least one step and one of the states are needed")
    chosen, visited, total = np.empty((horizon, S), np.int64), np.zeros((horizon, S)), np.zeros(q)
    actions: IntMatrix = chosen
    visits: Matrix = visited
    totals: Vector = total
    cost: Vector = np.empty(costs.shape[1])
    values: Matrix = np.empty((2, S))
    orders: IntMatrix = np.empty((horizon + 1, S), np.int64)
    with cython.nogil:
        weigh_costs(costs, weights, cost)
        _backward(box, cost, actions, orders, values)
        visits[0, start] = 1.0
        _forward(box, costs, actions, orders, visits, totals)
    return values[0, start], total, chosen, visited
