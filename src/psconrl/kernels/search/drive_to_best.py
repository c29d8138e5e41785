"""Drive a policy whose chain is nearly decomposable to the best of its parts.

Posterior samples of small priors have probabilities down to 1e-100. A policy then has sets of states that it hardly
ever leaves, its biases are as large as those times, and rounding hides all possible improvements inside. But if some
action leads quickly from one part to another, there is no need to wait: all states are driven to the cheapest part.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlagMatrix, ConstInts, ConstMatrix, ConstVector, Ints, Matrix
from cython.cimports.psconrl.kernels.chains.policy_chain import gather_rows
from cython.cimports.psconrl.kernels.graphs.attractor import DenseAttractor
from cython.cimports.psconrl.kernels.graphs.graph import closed_classes
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers
from cython.cimports.psconrl.kernels.linear.elimination import solve_unichain

_INFINITE = cython.declare(cython.double, float("inf"))


@cython.cclass
class DriveToBest:
    """Workspace for chains of up to S states, used for one after the other."""

    def __init__(self, n_states: cython.Py_ssize_t):
        S = n_states
        self.part, self.W, self.C = np.empty((S, S)), np.empty((S, S)), np.empty((S, 2))
        self.cost, self.biases, self.gains, self.stationary = (
            np.empty((1, S)),
            np.empty((1, S)),
            np.empty(1),
            np.empty(S),
        )
        self.label, self.states, self.room = (
            np.empty(S, np.int64),
            np.empty(S, np.int64),
            np.empty((8, S + 1), np.int64),
        )
        self.edges = np.empty(S * S + S + 1, np.int32)
        self.left, self.way = np.empty(S, np.uint8), DenseAttractor(S)

    def _class_cost(self, chain, costs, weights, k):
        """Return the weighted average cost of one class by itself."""
        n: cython.Py_ssize_t = 0
        for s in range(chain.shape[0]):
            if self.label[s] == k:
                self.states[n] = s
                n += 1
        for i in range(n):
            at = self.states[i]
            for j in range(n):
                self.part[i, j] = chain[at, self.states[j]]
            self.cost[0, i] = 0.0
            for c in range(weights.shape[0]):
                self.cost[0, i] += weights[c] * costs[c, at]
        reference, _ = solve_unichain(
            self.part[:n, :n],
            self.cost[:, :n],
            0,
            self.W[:n, :n],
            self.C[:n],
            self.gains,
            self.biases[:, :n],
            self.stationary[:n],
        )
        return _INFINITE if reference < 0 else self.gains[0]

    def lead(self, P, chain, costs, weights, available, policy, favoured, least, same):
        """Compute ``driven_to_best`` in place, given chain (S, S) and costs (q, S); return whether it changed."""
        count = closed_classes(chain, least, self.label[: chain.shape[0]], self.edges, self.left, self.room)
        if count < 2:
            return False
        best: cython.Py_ssize_t = -1
        lowest: cython.double = _INFINITE
        for k in range(count):
            cost = self._class_cost(chain, costs, weights, k)
            if cost < lowest - same or (k == self.label[favoured] and cost <= lowest + same):
                best, lowest = k, cost
        return best >= 0 and self._send(P, available, policy, best, least)

    def _send(self, P, available, policy, best, least):
        """Change the policy so that all states that can move into one class do so; return whether anything changed."""
        for s in range(available.shape[0]):
            self.way.reached[s] = self.label[s] == best
        self.way.P = P
        changed = self.way.lead(available, policy, least, True)
        self.way.P = self.part  # lets go of the transitions
        return changed > 0


def driven_to_best(
    P: ConstMatrix,
    costs: ConstMatrix,
    weights: ConstVector,
    available: ConstFlagMatrix,
    policy: ConstInts,
    favoured: cython.Py_ssize_t,
    least: cython.double,
    same: cython.double,
):
    """Return the policy, changed so that all states that can move into its cheapest nearly closed class do so.

    Moves of probability at most ``least`` are ignored; costs (q, S*A) that differ by at most ``same`` are equal. Among
    equally cheap classes, that of the favoured state is chosen. A state keeps its action if that moves it closer.
    """
    S, A, q = available.shape[0], available.shape[1], costs.shape[0]
    if P.shape[0] != S * A or P.shape[1] != S or costs.shape[1] != S * A or weights.shape[0] != q:
        raise ValueError("transitions (S*A, S) and costs (q, S*A) with q weights are needed")
    if policy.shape[0] != S or not 0 <= favoured < S:
        raise ValueError("a policy (S,) and one of the states are needed")
    check_numbers(policy, A, "there is no such action")
    new, rows = np.array(policy), np.arange(0, S * A, A, np.int64) + np.asarray(policy)
    chain, cost = np.empty((S, S)), np.empty((q, S))
    new_view: Ints = new
    row_view: Ints = rows
    chain_view: Matrix = chain
    cost_view: Matrix = cost
    room = DriveToBest(S)
    gather_rows(P, row_view, costs, chain_view, cost_view)
    room.lead(P, chain_view, cost_view, weights, available, new_view, favoured, least, same)
    return new
