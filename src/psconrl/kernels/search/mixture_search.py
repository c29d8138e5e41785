r"""Compiled column generation, for dense and for sparse transitions.

The loop of ``planning.mixture.column_generation`` with the oracle ``Howard``, for a learning loop, which calls it
thousands of times. With one constraint it is Newton's method on the concave, piecewise linear dual. The tests compare
it with the general loop.
"""

from typing import Any, NamedTuple

import cython
import numpy as np
from cython.cimports.psconrl.kernels._signals import PyErr_CheckSignals
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstIntMatrix,
    ConstInts,
    ConstMatrix,
    ConstVector,
    IntMatrix,
    Ints,
    Matrix,
    Tables,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers
from cython.cimports.psconrl.kernels.search.columns import Columns
from cython.cimports.psconrl.kernels.search.master import mix_on_line
from cython.cimports.psconrl.kernels.search.transitions import Dense, Sparse, Transitions

from psconrl.kernels.search.transitions import Rows

OPTIMAL, INFEASIBLE, GIVE_UP = 1, 0, -1

_INFINITE = cython.declare(cython.double, float("inf"))
_OPTIMAL = cython.declare(cython.int, 1)
_INFEASIBLE = cython.declare(cython.int, 0)
_GIVE_UP = cython.declare(cython.int, -1)
# Maximum number of columns with one constraint, and how many more with each further one; beyond, the general loop takes
# over.
_CAPACITY = cython.declare(cython.Py_ssize_t, 64)
_CAPACITY_A_LIMIT = cython.declare(cython.Py_ssize_t, 32)
# Number of guesses priced before the master's own weights.
_GUESSES = cython.declare(cython.Py_ssize_t, 4)
# Arrays for up to this many states and first policies, and of this many shapes, are kept for the next search.
_KEPT_STATES = cython.declare(cython.Py_ssize_t, 128)
_KEPT_POLICIES = cython.declare(cython.Py_ssize_t, 8)
_KEPT_SHAPES = cython.declare(cython.Py_ssize_t, 8)
# In models with this many states an evaluation takes so long that Ctrl-C is checked before each.
_SLOW_STATES = cython.declare(cython.Py_ssize_t, 512)


class Searched(NamedTuple):
    """The result of a search. Of policies, gains and chains, the last is that whose biases carry the bound."""

    outcome: int  # ``OPTIMAL``, ``INFEASIBLE`` or ``GIVE_UP``: a claim, so that the caller must check the gap
    gap: float  # including possible rounding
    value: float  # the average of the objective
    occupancy: Any  # (S, A) frequencies of the mixture
    policy: Any  # (S, A) that has them; in states without mass it follows the heaviest column
    weights: Any  # (q,) dual weights of the best bound
    shares: Any  # (k,) of the mixture, all positive
    policies: Any  # (k + 1, S)
    gains: Any  # (k + 1, q)
    chains: Any  # (k + 1, q + 1, S) biases, and last the stationary distribution
    evaluated: int  # number of policies


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _some_positive(values: ConstVector, first: cython.Py_ssize_t) -> cython.bint:
    """Return whether any of the values is positive, from the first on."""
    for i in range(first, values.shape[0]):
        if values[i] > 0.0:
            return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _play(
    mixed: ConstInts,
    shares: ConstVector,
    k: cython.Py_ssize_t,
    policies: ConstIntMatrix,
    stationary: ConstMatrix,
    occupancy: Matrix,
    policy: Matrix,
) -> cython.void:
    """Write the frequencies (S, A) of a mixture of k columns, and the stationary policy (S, A) that has them."""
    S, A = policy.shape[0], policy.shape[1]
    heaviest: cython.Py_ssize_t = 0
    for i in range(k):
        if shares[i] > shares[heaviest]:
            heaviest = i
    for s in range(S):
        mass: cython.double = 0.0
        for a in range(A):
            occupancy[s, a] = 0.0
        for i in range(k):
            occupancy[s, policies[mixed[i], s]] += shares[i] * stationary[mixed[i], s]
        for a in range(A):
            mass += occupancy[s, a]
        for a in range(A):
            policy[s, a] = occupancy[s, a] / mass if k > 1 and mass > 0.0 else 0.0
        if k == 1 or (k > 1 and not mass > 0.0):
            policy[s, policies[mixed[heaviest], s]] = 1.0


@cython.cclass
class Search(Columns):
    """State of a search: its columns, and its progress."""

    capacity: cython.Py_ssize_t
    limit: cython.double  # threshold in the master of one constraint
    mixed: Ints
    shares: Vector
    guesses: cython.Py_ssize_t
    off: cython.double
    # Results.
    outcome: cython.int
    gap: cython.double
    evaluated: cython.Py_ssize_t
    kept: cython.Py_ssize_t  # columns in the mixture
    # Inputs.
    least_excess: cython.bint
    closed: cython.double
    switch: cython.double
    feasible_within: cython.double
    nearly_closed: cython.double
    same_class: cython.double
    least_guess: cython.double

    def __init__(self, transitions: Transitions, first_policies: cython.Py_ssize_t):
        q = transitions.q
        Columns.__init__(self, transitions, _capacity(q, first_policies))
        self.mixed, self.shares = np.empty(max(q, 2) + 1, np.int64), np.empty(max(q, 2))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _begin(self, near: ConstVector) -> cython.void:
        """Reset the last search; guess prices from the weights ``near`` (q,), if that is possible."""
        q = self.transitions.q
        self.empty()
        self.guesses = self.evaluated = self.kept = 0
        self.off, self.outcome, self.gap = 0.0, _GIVE_UP, _INFINITE
        self.limit = self.thresholds[0] if q > 1 else _INFINITE
        for i in range(self.shares.shape[0]):
            self.mixed[i], self.shares[i] = 0, 0.0
        if near.shape[0] > 1:
            total: cython.double = 0.0
            for i in range(q):
                if not near[i] >= 0.0:
                    return
                total += near[i]
            if near[0] > self.least_guess * total:
                for i in range(q):
                    self.prices[i] = near[i] / near[0]
                self.guesses = _GUESSES if _some_positive(self.prices, 1) else 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _ask(self) -> cython.bint:
        """Get prices from the master, and improve the cheapest column for them; return whether the search has ended."""
        q = self.transitions.q
        tau: cython.double = self.thresholds[0] if q > 1 else _INFINITE
        while True:  # once, and again after the thresholds were moved to the boundary
            feasible: cython.bint
            value: cython.double
            if q > 2:
                ended, value = self.table.mix(self.weights, self.mixed, self.shares)
                if not ended:
                    return True  # without a result
                feasible = self.table.feasible
            else:
                feasible, value = mix_on_line(
                    self.gains, self.n, tau, self.limit, self.weights, self.mixed, self.shares
                )
            guessing: cython.bint = self.guesses > 0 and not (feasible and _some_positive(self.weights, 1))
            if guessing:
                total: cython.double = 0.0
                for i in range(q):
                    total += self.prices[i]
                for i in range(q):
                    self.weights[i] = self.prices[i] / total
            else:
                self.guesses = 0
            self.choose_base()
            lower, switched = self.transitions.improve(
                self.weights,
                self.policies[self.base],
                self.biases_of(self.base),
                self.switch * self.caution,
                self.lowest,
                self.caution == 1.0,
            )
            for i in range(1, q):
                lower -= self.weights[i] * self.thresholds[i - 1]
            done: cython.bint = switched == 0 or value - lower <= self.closed
            if guessing:
                self.guesses = self.guesses - 1 if switched else 0
                self.bounded(lower / self.weights[0])
                if not switched:
                    continue
            elif feasible:
                self.bounded(lower / self.weights[0])
                if done:
                    self.outcome, self.gap = _OPTIMAL, value / self.weights[0] - self.best_bound
                    return True
            elif lower > self.feasible_within:
                if done or not self.least_excess:
                    self.outcome, self.gap, self.proof = _INFEASIBLE, -lower, self.base
                    self.best_weights[:] = self.weights
                    return True
            elif done:
                if value > 2.0 * self.feasible_within:
                    return True  # without a result
                self.limit = self.gains[self.mixed[0], 1]
                if q > 2:
                    self.table.allow(value)
                continue
            return False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _finish(self) -> cython.void:
        """Allow for rounding in the gap, and compute the missing stationary distributions."""
        if self.outcome == _GIVE_UP:
            return
        hidden: cython.double = self.transitions.rounding(self.best_weights, self.biases_of(self.proof)) + self.off
        self.gap += hidden / self.best_weights[0] if self.outcome == _OPTIMAL else hidden
        k: cython.Py_ssize_t = 0
        for i in range(self.shares.shape[0]):
            if self.shares[i] > 0.0:
                self.mixed[k], self.shares[k] = self.mixed[i], self.shares[i]
                k += 1
        for i in range(k):
            j = self.mixed[i]
            self.transitions.complete(self.policies[j], self.gains[j], self.stationary[j])
            if not _some_positive(self.stationary[j], 0):
                self.outcome = _GIVE_UP
                return
        self.kept = k

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def run(self, start: ConstIntMatrix, near: ConstVector) -> cython.int:
        """Search from deterministic policies (k, S). Ctrl-C ends it with a KeyboardInterrupt."""
        self.capacity = _capacity(self.transitions.q, start.shape[0])
        self._begin(near)
        pending: cython.Py_ssize_t = start.shape[0]
        reference: cython.Py_ssize_t = 0
        while self.evaluated < 4 * self.capacity and self.n < self.capacity:
            if self.transitions.S >= _SLOW_STATES:
                with cython.gil:
                    PyErr_CheckSignals()
            self.evaluated += 1
            searching: cython.bint = pending == 0
            if pending:
                self.transitions.policy[:] = start[self.n]
                pending -= 1
            reference = self.transitions.evaluate(
                self.weights, reference, self.biases_of(self.base), self.nearly_closed, self.same_class
            )
            self.off = max(self.off, self.transitions.off)
            if reference < 0:
                break
            self.keep(self.transitions, searching)
            if pending == 0 and self._ask():
                break
        self._finish()
        return 0

    @cython.cfunc
    def found(self) -> object:
        """Return the result, in arrays of its own."""
        S, A, q, k = self.transitions.S, self.transitions.A, self.transitions.q, self.kept
        self.mixed[k] = self.proof
        policies, gains, chains = np.empty((k + 1, S), np.int64), np.empty((k + 1, q)), np.empty((k + 1, q + 1, S))
        occupancy, policy, shares, weights = np.empty((S, A)), np.empty((S, A)), np.empty(k), np.empty(q)
        chosen: IntMatrix = policies
        averages: Matrix = gains
        solved: Tables = chains
        visited: Matrix = occupancy
        played: Matrix = policy
        parts: Vector = shares
        prices: Vector = weights
        value: cython.double = 0.0
        for i in range(k + 1):
            j = self.mixed[i]
            if i < k:
                parts[i] = self.shares[i]
                value += self.shares[i] * self.gains[j, 0]
            for c in range(q):
                averages[i, c] = self.gains[j, c]
                for s in range(S):
                    solved[i, c, s] = self.biases[j * q + c, s]
            for s in range(S):
                solved[i, q, s] = self.stationary[j, s]
                chosen[i, s] = self.policies[j, s]
        for i in range(q):
            prices[i] = self.best_weights[i]
        _play(self.mixed, self.shares, k, self.policies, self.stationary, visited, played)
        return Searched(
            self.outcome, self.gap, value, occupancy, policy, weights, shares, policies, gains, chains, self.evaluated
        )  # fmt: skip


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _capacity(q: cython.Py_ssize_t, first_policies: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the maximum number of columns of a search with q costs."""
    return _CAPACITY + _CAPACITY_A_LIMIT * max(q - 2, 0) + first_policies


# Idle searches by shape: allocating their arrays again takes as long as searching a small model.
_spare: dict[tuple[int, int, int], Search] = {}


def newton(
    P,
    costs: ConstMatrix,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    start: ConstIntMatrix,
    near: ConstVector,
    least_excess: cython.bint,
    closed: cython.double,
    switch: cython.double,
    feasible_within: cython.double,
    same: cython.double,
    nearly_closed: cython.double,
    same_class: cython.double,
    least_guess: cython.double,
):
    """Plan from the deterministic policies ``start`` (k, S), k >= 1, until the gap is at most ``closed``.

    Transitions P are dense, (S*A, S), or ``Rows``; the last six arguments are ``tolerances.SEARCH``.

    ``near``: weights (q,) near which those of the optimum are expected, or none. Then the first pricing steps are
    there, on either side: a master that has seen one side only gives extreme prices.
    """
    S, A, q, k = available.shape[0], available.shape[1], costs.shape[0], start.shape[0]
    if S < 1 or costs.shape[1] != S * A or q < 1 or thresholds.shape[0] != q - 1:
        raise ValueError("costs (q, S*A) and q - 1 thresholds are needed")
    if k < 1 or start.shape[1] != S or (near.shape[0] > 1 and near.shape[0] != q):
        raise ValueError("policies (k, S) to begin with, and no or q weights, are needed")
    finite: cython.bint = True
    for i in range(q):
        for j in range(S * A):
            finite &= -_INFINITE < costs[i, j] < _INFINITE  # with a NaN it would never end
    if not finite:
        raise ValueError("costs must be finite")
    for i in range(k):
        check_numbers(start[i], A, "there is no such action")
    dense: Dense = None
    search: Search
    shape = (S, A, q)
    if isinstance(P, Rows):
        search = Search(Sparse(P, costs, available), k)
    else:
        array: ConstMatrix = P
        if array.shape[0] != S * A or array.shape[1] != S:
            raise ValueError("transitions (S*A, S) are needed")
        search = _spare.pop(shape, None)  # no other caller has it then
        if search is None or search.gains.shape[0] < _capacity(q, k):
            search = Search(Dense(S, A, q), max(k, _KEPT_POLICIES))
        dense = search.transitions
        dense.take(array, costs, available)
    search.thresholds = thresholds
    search.least_excess, search.closed, search.switch = least_excess, closed, switch
    search.feasible_within, search.same, search.nearly_closed = feasible_within, same, nearly_closed
    search.same_class, search.least_guess = same_class, least_guess
    with cython.nogil:
        search.run(start, near)
    result = search.found()
    if dense is not None and S <= _KEPT_STATES:
        dense.release()
        search.thresholds = None
        if len(_spare) >= _KEPT_SHAPES:
            _spare.clear()
        _spare[shape] = search
    return result
