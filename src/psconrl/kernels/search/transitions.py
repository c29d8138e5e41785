"""The search's interface to transitions, dense (an array) or sparse (``Rows``).

Dense chains, and sparse ones with an elimination order, are solved by GTH elimination. Others are solved by Krylov
iterations alone; if these do not converge, the search gives up.
"""

from typing import Any, NamedTuple

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstMatrix,
    IntMatrix,
    Matrix,
)
from cython.cimports.psconrl.kernels.chains.policy_chain import gather_rows
from cython.cimports.psconrl.kernels.graphs.successors import check_graph
from cython.cimports.psconrl.kernels.linear import csr
from cython.cimports.psconrl.kernels.linear.elimination import solve_unichain
from cython.cimports.psconrl.kernels.linear.elimination_workspace import Elimination
from cython.cimports.psconrl.kernels.linear.krylov import Workspace, distribution_into, solve_into
from cython.cimports.psconrl.kernels.linear.sparse_elimination import eliminate_unichain
from cython.cimports.psconrl.kernels.search.drive_to_best import DriveToBest
from cython.cimports.psconrl.kernels.search.improvement import dense_rounding, improve_dense, weigh_biases
from cython.cimports.psconrl.kernels.search.sparse_improvement import improve_sparse, sparse_rounding, sweep_ahead

_INFINITE = cython.declare(cython.double, float("inf"))
_TOL = cython.declare(cython.double, 0.1)  # of a residual, relative to the largest bias, times ``off``
_LARGE = cython.declare(cython.Py_ssize_t, 512)  # states from which on a wrong distribution is refined twice,
_CLOSER = cython.declare(cython.double, 0.01)  # with this share of the last tolerance: a search costs far more
_APART = cython.declare(cython.double, 10.0)  # times ``off``: beyond, the stationary distribution is wrong
_SWEEPS = cython.declare(cython.Py_ssize_t, 4)  # of value iteration after each improvement
_MOST_ENTRIES = cython.declare(cython.Py_ssize_t, 2**31 - 1)


class Rows(NamedTuple):
    """Sparse transitions (S*A, S) in CSR form. Every step restarts in a state with a probability, or goes on."""

    indptr: Any
    indices: Any
    data: Any
    state: int
    restart: float
    order: Any  # elimination order; ``NO_ORDER`` for Krylov,
    products: int  # with at most this many products per chain,
    off: float  # until the error of its gains is at most this


@cython.cclass
class Transitions:
    """Costs (q, S*A), the policy (S,) that is evaluated next, or was last, and the solution of its chain.

    Gains (q,), biases (q, S) and stationary distribution (S,); gains may be wrong by ``off``. All are overwritten by
    the next evaluation, the policy by an improvement.
    """

    def __init__(self, n_states: cython.Py_ssize_t, n_actions: cython.Py_ssize_t, n_costs: cython.Py_ssize_t):
        S, q = n_states, n_costs
        self.S, self.A, self.q, self.off = S, n_actions, q, 0.0
        self.gains = np.empty(q)
        actions: IntMatrix = np.empty((2, S), np.int64)  # few arrays: each takes a microsecond
        self.policy, self.rows = actions[0], actions[1]
        numbers: Matrix = np.empty((q + 2, S))
        self.biases, self.stationary, self.h = numbers[:q], numbers[q], numbers[q + 1]

    def evaluate(self, weights, reference, guess, nearly_closed, same):
        """Solve the chain of the policy, from the biases (q, S) of another; return a recurrent state, or -1.

        If the chain is nearly decomposable, it may be driven to another class: then the policy has changed.
        """
        return -1

    def improve(self, weights, policy, biases, tolerance, gain, ahead):
        """Return a lower bound on the gain of every policy and the number of switches, and set the better policy.

        See ``improvement.improve``. ``ahead``: look further than one step, where that is cheap.
        """
        return -_INFINITE, 0

    def rounding(self, weights, biases):
        """Return the rounding error of the bound of ``improve``."""
        return _INFINITE

    def complete(self, policy, gains, stationary):
        """Compute the stationary distribution (S,) of a policy, if evaluating it does not; all zero if that fails."""

    def _choose_rows(self, policy):
        for s in range(self.S):
            self.rows[s] = s * self.A + policy[s]


@cython.cclass
class Dense(Transitions):
    """Dense transitions P (S*A, S); several may be used in turn."""

    def __init__(self, n_states: cython.Py_ssize_t, n_actions: cython.Py_ssize_t, n_costs: cython.Py_ssize_t):
        Transitions.__init__(self, n_states, n_actions, n_costs)
        S, q = n_states, n_costs
        numbers: Matrix = np.empty((2 * S + q + 1, S))
        self.chain, self.W = numbers[:S], numbers[S : 2 * S]
        self.cost, self.difference = numbers[2 * S : 2 * S + q], numbers[2 * S + q]
        self.C = np.empty((S, q + 1))
        self.drive = None  # allocated on demand

    def take(self, P, costs, available):
        """Set the transitions, costs (q, S*A) and actions (S, A) to search with."""
        self.P, self.costs, self.available = P, costs, available

    def release(self):
        """Release all references of a search that has ended."""
        self.P = self.costs = self.available = None

    def _solve(self, reference):
        self._choose_rows(self.policy)
        gather_rows(self.P, self.rows, self.costs, self.chain, self.cost)
        return solve_unichain(
            self.chain, self.cost, reference, self.W, self.C, self.gains, self.biases, self.stationary
        )

    def evaluate(self, weights, reference, guess, nearly_closed, same):
        """Solve the chain by GTH elimination."""
        found, slowest = self._solve(reference)
        if slowest < nearly_closed:
            if self.drive is None:
                with cython.gil:
                    self.drive = DriveToBest(self.S)
            if self.drive.lead(
                self.P, self.chain, self.cost, weights, self.available, self.policy, reference, nearly_closed, same
            ):
                found, slowest = self._solve(max(found, 0))
        return found

    def improve(self, weights, policy, biases, tolerance, gain, ahead):
        """Improve by one step: matrix-vector products take longer than elimination here."""
        weigh_biases(weights, biases, self.h)
        return improve_dense(
            self.P, self.costs, weights, self.available, policy, self.h, tolerance, self.difference, self.policy
        )

    def rounding(self, weights, biases):
        """Return the rounding error of sums over all states."""
        weigh_biases(weights, biases, self.h)
        return dense_rounding(self.P, self.h, self.difference)


@cython.cclass
class Sparse(Transitions):
    """Transitions in CSR form."""

    def __init__(self, rows, costs: ConstMatrix, available: ConstFlagMatrix):
        S, q = available.shape[0], costs.shape[0]
        Transitions.__init__(self, S, available.shape[1], q)
        self.costs, self.available = costs, available
        entries = int(rows.indptr[S * self.A]) if rows.indptr.size == S * self.A + 1 else -1
        if not 0 <= entries <= min(rows.indices.size, rows.data.size) or entries > _MOST_ENTRIES:
            raise ValueError("transitions (S*A, S) with fewer than 2**31 entries are needed")
        self.indptr = rows.indptr.astype(np.intc, copy=False)
        self.indices = rows.indices.astype(np.intc, copy=False)
        self.data = rows.data
        check_graph(self.indptr, self.indices, entries, S)
        if costs.shape[1] != S * self.A:
            raise ValueError("costs (q, S*A) are needed")
        if not 0 <= rows.state < S:
            raise ValueError("there is no such state to restart in")
        self.state, self.restart, self.products, self.wrong = rows.state, rows.restart, rows.products, rows.off
        self.cost = np.empty(S * self.A)
        self.elimination = self.work = None
        if rows.order.position.size:
            if rows.order.position.size != S:
                raise ValueError("an order of all states is needed")
            self.elimination = Elimination(rows.order, q)
            return
        entries = int(np.diff(rows.indptr).reshape(S, self.A).max(axis=1).sum()) + S  # of the longest chain
        if entries > _MOST_ENTRIES:
            raise ValueError("chains of fewer than 2**31 entries are needed")
        self.work = Workspace(S, entries)
        self.starts, self.columns, self.values = np.empty(S + 1, np.intc), np.empty(entries, np.intc), np.empty(entries)
        self.right, self.one = np.empty((q, S)), np.empty((1, S))

    def evaluate(self, weights, reference, guess, nearly_closed, same):
        """Solve by GTH elimination in an order, or by Krylov iterations; the policy is never driven elsewhere."""
        self._choose_rows(self.policy)
        return self._eliminate(reference) if self.elimination is not None else self._iterate(reference, guess)

    def _eliminate(self, reference):
        at = self.state if self.restart > 0.0 else reference
        stuck: cython.Py_ssize_t = -1
        for _ in range(2):
            stuck = eliminate_unichain(
                self.indptr, self.indices, self.data, self.rows, self.costs, at, self.restart, self.elimination,
                self.gains, self.biases, self.stationary,
            )  # fmt: skip
            if stuck < 0:
                return at
            if self.restart > 0.0:
                break
            at = stuck  # in a closed class: if all states lead there, it is the only one
        return -1

    def _iterate(self, reference, guess):
        S: cython.Py_ssize_t = self.S
        csr.gather_rows(
            self.indptr, self.indices, self.data, self.rows, self.state, self.restart, self.starts, self.columns,
            self.values,
        )  # fmt: skip
        for i in range(self.q):
            guessed: cython.double = 0.0
            cost: cython.double = 0.0
            for s in range(S):
                self.right[i, s] = self.costs[i, self.rows[s]]
                guessed += guess[i, s]
                cost += self.right[i, s]
            for s in range(S):
                self.biases[i, s] = guess[i, s] - guessed / S + cost / S
        off = solve_into(
            self.starts, self.columns, self.values, False, self.right, self.biases, _TOL * self.wrong, 0.5 * self.wrong,
            self.products, self.work,
        )  # fmt: skip
        for i in range(self.q):
            total: cython.double = 0.0
            base: cython.double = self.biases[i, reference]
            for s in range(S):
                total += self.biases[i, s]
                self.biases[i, s] -= base
            self.gains[i] = total / S
        for s in range(S):
            self.stationary[s] = 0.0  # not yet known
        self.off = off
        return reference if off <= self.wrong else -1

    def improve(self, weights, policy, biases, tolerance, gain, ahead):
        """Improve by one step, and by some sweeps of value iteration if that gains."""
        weigh_biases(weights, biases, self.h)
        for pair in range(self.cost.shape[0]):
            self.cost[pair] = 0.0
        for i in range(self.q):
            weight: cython.double = weights[i]
            for pair in range(self.cost.shape[0]):
                self.cost[pair] += weight * self.costs[i, pair]
        bound, switched = improve_sparse(
            self.indptr, self.indices, self.data, self.state, self.restart, self.cost, self.available, policy, self.h,
            tolerance, self.policy,
        )  # fmt: skip
        if switched and ahead:
            sweep_ahead(
                self.indptr, self.indices, self.data, self.state, self.restart, self.cost, self.available, self.h, gain,
                _SWEEPS, tolerance, self.policy,
            )  # fmt: skip
        return bound, switched

    def rounding(self, weights, biases):
        """Return the rounding error of sums over the longest row."""
        weigh_biases(weights, biases, self.h)
        return sparse_rounding(self.indptr, self.indices, self.data, self.state, self.restart, self.h)

    def complete(self, policy, gains, stationary):
        """Compute it by Krylov iterations, and compare with the gains as an independent check."""
        if self.elimination is not None:
            return
        S: cython.Py_ssize_t = self.S
        self._choose_rows(policy)
        csr.gather_rows(
            self.indptr, self.indices, self.data, self.rows, self.state, self.restart, self.starts, self.columns,
            self.values,
        )  # fmt: skip
        uniform: cython.double = 1.0 / cython.cast(cython.double, S)
        for s in range(S):
            self.right[0, s] = self.one[0, s] = uniform
        tolerance: cython.double = _TOL * self.wrong
        for _ in range(3 if S >= _LARGE else 1):
            distribution_into(
                self.starts, self.columns, self.values, self.right[:1], self.one, tolerance, 2 * self.products,
                self.work, stationary,
            )  # fmt: skip
            agrees: cython.bint = True
            for i in range(self.q):
                total: cython.double = 0.0
                for s in range(S):
                    total += stationary[s] * self.costs[i, self.rows[s]]
                agrees &= abs(total - gains[i]) <= _APART * self.wrong
            if agrees:
                return
            tolerance *= _CLOSER
        for s in range(S):
            stationary[s] = 0.0
