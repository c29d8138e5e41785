r"""The question every constrained planner asks again and again: which policy is cheapest for these weights?

.. math:: \min_\pi\; g^\pi\Big(\sum_{i=0}^m w_i c_i\Big)

An oracle answers in two moves, so that the master can change the weights between them: ``evaluate`` a policy exactly
for all costs at once, and ``improve`` it for given weights, with a lower bound on what any policy can reach.
This one is Howard's policy iteration (Puterman 1994, sections 8.6 and 9.5) for communicating models.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _doubled
from psconrl.model.chain import solve_class
from psconrl.model.structure import approach
from psconrl.model.unichain import FALLS_APART, SparseSolver, Unichain, closed_classes, solve_dense
from psconrl.planning import _kernels
from psconrl.planning._leading import NEARLY_CLOSED, led_into_best
from psconrl.planning.problem import Problem

# An action is switched only if it gains more than this times the bias of its state, else rounding makes Howard cycle.
SWITCH_TOL = 1e-13
WORSE_TOL = 1e-12  # by how much an improved policy may seem worse


class HasCosts(Protocol):
    """What the master needs to know of an evaluated policy."""

    @property
    def costs(self) -> Floats: ...  # noqa: D102


Answer = TypeVar("Answer", bound=HasCosts)


class Oracle(Protocol[Answer]):
    """Evaluates policies and improves them for weighted costs; the master knows nothing else."""

    def first(self, weights: Floats) -> Answer:
        """Any evaluated policy to begin with."""

    def improve(self, answer: Answer, weights: Floats) -> tuple[float, Answer | None]:
        """A lower bound on the weighted cost of every policy, and a better answer, or None if this one is best."""


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """A deterministic policy and all that is known of it, in scaled costs."""

    policy: Ints  # (S,)
    costs: Floats  # (m+1,)
    biases: Floats  # (m+1, S)
    stationary: Floats  # (S,)
    low_biases: Floats | None = None  # (m+1, S) what one double a state cannot hold of the biases


def greedy_policy(problem: Problem) -> Ints:
    """The policy that is cheapest for one step, all costs weighted alike: where to begin if nothing is known."""
    cost = problem.costs.sum(axis=0).reshape(problem.available.shape)
    return np.asarray(np.where(problem.available, cost, np.inf).argmin(axis=1), dtype=np.int64)


class Howard:
    """Policy iteration on a weakly communicating model, dense or sparse."""

    nearly_closed = NEARLY_CLOSED

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        S, A = problem.available.shape
        self._first_pair = np.arange(0, S * A, A)
        self._sparse = None if isinstance(problem.transition, np.ndarray) else SparseSolver()
        self._reference = 0
        self._asked: set[bytes] = set()

    def first(self, weights: Floats) -> Column:
        """The policy that is cheapest for one step."""
        return self.evaluate(greedy_policy(self.problem), weights)

    def evaluate(self, policy: Ints, weights: Floats) -> Column:
        """All gains and biases of a policy. One that falls apart, or all but does, is first led into its best part."""
        found = self._solve(policy)
        if found is None:
            policy = self._led_into_best_class(policy, weights)
            found = self._solve(policy)
        if found is not None and found[1].slowest < self.nearly_closed:
            led = led_into_best(
                self.problem.transition, self.problem.costs, weights, self.problem.available, policy, self._reference,
                self.nearly_closed,
            )  # fmt: skip
            found = found if np.array_equal(led, policy) else self._solve(led)
        if found is None:
            raise SolverError("the model is not weakly communicating")
        column, chain = found
        self._reference = chain.reference
        return column

    def improve(self, answer: Column, weights: Floats) -> tuple[float, Column | None]:
        """One step of Howard's: switch all states that gain, evaluate the result.

        A switch that makes things worse was rounding: then only larger gains count.
        """
        question = answer.policy.tobytes() + weights.tobytes()
        if question in self._asked:
            raise SolverError("rounding makes policy iteration go round in circles")
        self._asked.add(question)
        price = float(weights @ answer.costs)
        for tolerance in (SWITCH_TOL, 1e2 * SWITCH_TOL, 1e4 * SWITCH_TOL, 1e6 * SWITCH_TOL):
            bound, policy = self._greedy(answer, weights, tolerance)
            if policy is None:
                break
            better = self.evaluate(policy, weights)
            if float(weights @ better.costs) <= price + WORSE_TOL:
                return bound, better
        return bound, None

    def _solve(self, policy: Ints) -> tuple[Column, Unichain] | None:
        """The evaluated policy and its chain; None if that has two closed classes."""
        P, costs = self.problem.transition, self.problem.costs
        rows = self._first_pair + policy
        if self._sparse is None:
            chain = solve_dense(P, rows, costs, self._reference)
        else:
            chain = self._sparse.solve(P[rows], costs[:, rows])
        if chain is None:
            return None
        if not np.isfinite(chain.gains).all():
            raise SolverError(FALLS_APART)
        return Column(policy, chain.gains, chain.biases, chain.stationary), chain

    def _greedy(self, answer: Column, weights: Floats, tolerance: float) -> tuple[float, Ints | None]:
        problem = self.problem
        P = problem.transition
        if isinstance(P, np.ndarray):
            bound, switched, policy = _kernels.improve(
                P, problem.costs, weights, problem.available, answer.policy, answer.biases, tolerance
            )
            bound -= _kernels.rounding_of_bound(P, weights, answer.biases)
            return bound, policy if switched else None
        h = weights @ answer.biases
        Q = priced(problem, weights) + _doubled.drift_sparse(P.indptr, P.indices, P.data, h, np.zeros(h.size))
        return switched_policy(problem, Q, answer.policy, tolerance * np.maximum(1.0, np.abs(h)))

    def _led_into_best_class(self, policy: Ints, weights: Floats) -> Ints:
        """Keep the closed class that is cheapest under the weights and send every other state towards it."""
        P, costs = self.problem.transition, self.problem.costs
        rows = self._first_pair + policy
        chain, cost = P[rows], costs[:, rows]
        classes = closed_classes(chain)
        gains = [float(weights @ solve_class(chain, cost, states).gains) for states in classes]
        kept = classes[int(np.argmin(gains))]
        inside = np.zeros(policy.size, dtype=bool)
        inside[kept] = True
        return approach(P, self.problem.available, inside, policy)


def priced(problem: Problem, weights: Floats) -> Floats:
    """The weighted cost of every pair, (S, A); inf where it is not available."""
    cost = (weights @ problem.costs).reshape(problem.available.shape)
    return np.where(problem.available, cost, np.inf)


def switched_policy(problem: Problem, Q: Floats, policy: Ints, tolerance: Floats) -> tuple[float, Ints | None]:
    """The least entry of Q (S, A), and the policy of its best actions where they gain more than the tolerance (S,)."""
    states = np.arange(policy.size)
    best = Q.argmin(axis=1)
    lowest = Q[states, best]
    switch = Q[states, policy] - lowest > tolerance
    return float(lowest.min()), np.where(switch, best, policy) if switch.any() else None
