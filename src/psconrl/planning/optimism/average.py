r"""Exact optimistic planning: the best policy in the best model of a confidence box.

.. math:: \min_{\mu,\, p \in \mathcal C} \mu c_0 \quad\text{s.t.}\quad \mu c_i \le \tau_i, \qquad
          \mathcal C = \{p : lo \le p \le hi\}

(UCRL-CMDP; Singh, Gupta and Shroff 2020). It has been called an intractable non-linear program. But with
:math:`q(s,a,s') = \mu(s,a)\,p(s'|s,a)` it is linear, with S^2 A variables. And for fixed multipliers it is an ordinary
average-cost MDP whose actions are pairs (a, vertex of the box), so Howard's policy iteration can serve as the oracle.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic.products import combine, dot
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.kernels.sets.best_rows import BestRows
from psconrl.kernels.sets.boxes import likeliest_first
from psconrl.kernels.sets.optimism import drive_to, improve_optimistic
from psconrl.markov.chain import DenseChain
from psconrl.planning.mixture.column_generation import Mixture, mix
from psconrl.planning.mixture.oracle import Oracle
from psconrl.planning.mixture_frequencies import mixed_occupancy
from psconrl.planning.scaling import Scaling
from psconrl.planning.tolerances import CAUTION, SWITCH_TOL, WORSE_TOL


@dataclass(frozen=True, eq=False, slots=True)
class OptimisticColumn:
    """A policy and its optimistic model."""

    policy: Ints  # (S,)
    kernel: Floats  # (S, S) distribution of the next state under the policy
    costs: Floats  # (m+1,)
    biases: Floats  # (m+1, S)
    stationary: Floats  # (S,)


class OptimisticHoward(Oracle[OptimisticColumn]):
    """Policy iteration as an oracle over a box of models; costs (m+1, S*A) may include bonuses."""

    def __init__(self, low: Floats, high: Floats, costs: Floats) -> None:
        self._low, self._high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        self._box = BestRows(self._low, self._high)
        self._costs = np.ascontiguousarray(costs)
        self._pairs = np.arange(0, low.shape[0], low.shape[0] // low.shape[1])
        self._states = np.arange(low.shape[1])
        self._reference = 0

    def first(self, weights: Floats) -> OptimisticColumn:
        """Evaluate the one-step greedy policy in the model with the most mass on the likeliest successors."""
        S = self._states.size
        policy = combine(weights, self._costs).reshape(S, -1).argmin(axis=1)
        return self.evaluate(policy, likeliest_first(self._low, self._high, policy), weights)

    def evaluate(self, policy: Ints, kernel: Floats, weights: Floats) -> OptimisticColumn:
        """Compute all gains and biases; a chain with several closed classes is first driven to its best one."""
        costs = np.ascontiguousarray(self._costs[:, self._pairs + policy])
        optimistic = DenseChain(kernel)
        chain = optimistic.solve(costs, self._reference)
        if chain is None:
            classes = optimistic.closed_classes()
            gains = [dot(weights, _gains_in(optimistic, states, costs)) for states in classes]
            inside = np.zeros(self._states.size, dtype=bool)
            inside[classes[int(np.argmin(gains))]] = True
            policy, kernel = policy.copy(), kernel.copy()
            if not drive_to(self._low, self._high, inside, policy, kernel):
                raise SolverError("the confidence set holds no communicating model")
            costs = np.ascontiguousarray(self._costs[:, self._pairs + policy])
            chain = DenseChain(kernel).solve(costs, self._reference)
            if chain is None:
                raise SolverError("the confidence set holds no communicating model")
        self._reference = chain.reference
        return OptimisticColumn(policy, kernel, chain.gains, chain.biases, chain.stationary)

    def improve(self, answer: OptimisticColumn, weights: Floats) -> tuple[float, OptimisticColumn | None]:
        """Make one step of policy iteration; if rounding makes a switch worse, repeat with larger gains only."""
        price = dot(weights, answer.costs)
        for caution in CAUTION:
            bound, switched, policy, kernel = improve_optimistic(
                self._box,
                self._costs,
                weights,
                answer.policy,
                answer.kernel,
                answer.biases,
                caution * SWITCH_TOL,
            )
            if not switched:
                break
            better = self.evaluate(policy, kernel, weights)
            if dot(weights, better.costs) <= price + WORSE_TOL:
                return bound, better
        return bound, None


def _gains_in(chain: DenseChain, states: Ints, costs: Floats) -> Floats:
    """Return the averages (m+1,) in a closed class, for costs (m+1, S); many have a single state."""
    return costs[:, states[0]].copy() if states.size == 1 else chain.solve_class(costs, states).gains


def solve_optimistic(low: Floats, high: Floats, costs: Floats, thresholds: Floats) -> Mixture[OptimisticColumn]:
    """Return the cheapest mixture in the best model of a box, or one of least excess if none meets the thresholds.

    ``low``, ``high``: (S*A, S) with ``low.sum(axis=1) <= 1 <= high.sum(axis=1)``. ``costs``: (m+1, S*A), preferably in
    [0, 1].
    """
    return mix(OptimisticHoward(low, high, costs), thresholds, least_excess=True).required()


def optimistic_policy(mixture: Mixture[OptimisticColumn], n_actions: int, rng: np.random.Generator) -> Floats:
    """Return a policy (S, A) with the occupancy of the mixture; in states without mass, that of the largest column.

    If the columns have disjoint classes, no stationary policy has this occupancy: it would stay forever in the class of
    the initial state. Then one column is drawn with probability equal to its share. It has the averages of the mixture
    in expectation and, like the mixture, is optimistic over the box.
    """
    if len(mixture.answers) > 1 and _falls_apart(mixture):
        drawn = int(rng.choice(len(mixture.answers), p=mixture.shares / mixture.shares.sum()))
        return one_hot(mixture.answers[drawn].policy, n_actions)
    guide = mixture.answers[int(mixture.shares.argmax())].policy
    occupancy = mixed_occupancy(mixture.answers, mixture.shares, n_actions)
    return policy_from_occupancy(occupancy, one_hot(guide, n_actions), 0.0)


def _falls_apart(mixture: Mixture[OptimisticColumn]) -> bool:
    """Whether the mixed chain, on the recurrent states of the columns, has several closed classes."""
    flow = sum(
        share * column.stationary[:, None] * column.kernel
        for column, share in zip(mixture.answers, mixture.shares, strict=True)
    )
    recurrent = np.flatnonzero(np.asarray(flow).sum(axis=1) > 0.0)
    return len(DenseChain(np.asarray(flow)[np.ix_(recurrent, recurrent)]).closed_classes()) > 1


class BoxPlan(NamedTuple):
    """The optimistic plan, or the plan of least excess if the constraints are infeasible even in the best model."""

    mixture: Mixture[OptimisticColumn]
    value: float  # the optimistic average objective, as a cost
    prices: Floats | None  # (m,) shadow prices of the constraints, in units of the objective; None if infeasible

    @property
    def feasible(self) -> bool:
        """True if the plan satisfies the constraints."""
        return self.mixture.feasible

    def policy(self, n_actions: int, rng: np.random.Generator) -> Floats:
        """Return a policy (S, A) with the averages of the plan; if the columns never meet, one of them, at random."""
        return optimistic_policy(self.mixture, n_actions, rng)


def plan_in_box(low: Floats, high: Floats, costs: Floats, thresholds: Floats) -> BoxPlan:
    """Plan over a box (S*A, S), with costs (m+1, S, A) and thresholds (m,) in the user's units.

    Raise ``SolverError`` if the plan cannot be certified.
    """
    everything = np.ones(costs.shape[1:], dtype=bool)
    scaling = Scaling.of(costs, thresholds, everything)
    mixture = solve_optimistic(low, high, *scaling.apply(costs, thresholds, everything))
    value = scaling.invert(combine(mixture.shares, np.array([column.costs for column in mixture.answers])))[0]
    weights = mixture.weights / scaling.scale
    return BoxPlan(mixture, float(value), weights[1:] / weights[0] if mixture.feasible else None)
