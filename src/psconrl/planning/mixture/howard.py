r"""Howard's policy iteration as an oracle, for weakly communicating models (Puterman 1994, sections 8.6 and 9.5).

A policy is evaluated exactly for all costs at once. Then every state takes the action that is best for the weighted
cost, given the biases. The least :math:`\min_a [c_w + P h - h(s)]` over all states bounds the gain of every policy.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic.products import dot, times
from psconrl.kernels.chains.double_double import combine
from psconrl.kernels.search.improvement import cheapest_for_one_step
from psconrl.markov.chain import chain_of
from psconrl.markov.gain_bias import FALLS_APART, Unichain
from psconrl.markov.policy_iteration import PolicySteps, policy_steps
from psconrl.markov.structure import attractor_policy
from psconrl.planning.mixture.oracle import Oracle
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import (
    BEYOND_OFF,
    CAUTION,
    LEAST_ROUGH,
    NEARLY_CLOSED,
    NEARLY_CLOSED_DOUBLE_DOUBLE,
    OVERLAP,
    PLAYABLE_GAP,
    ROUGH,
    ROUGH_SHARE,
    SAME_CLASS_COST,
    SEARCH_GAP,
    STALLED,
    STALLED_SHARE,
    SWITCH_TOL,
    SWITCH_TOL_OF_LARGE,
    WORSE_TOL,
)


class Column(NamedTuple):
    """A deterministic policy and its evaluation, in scaled costs."""

    policy: Ints  # (S,)
    chain: Unichain
    # Bounds and potentials that are not weighted sums of the biases: high and low parts (S,).
    proofs: dict[bytes, tuple[float, Floats, Floats]]

    @classmethod
    def of(cls, policy: Ints, chain: Unichain) -> "Column":
        """Return an evaluated policy about which nothing is proven yet."""
        return cls(policy, chain, {})

    @property
    def costs(self) -> Floats:
        """Averages (m+1,)."""
        return self.chain.gains

    @property
    def biases(self) -> Floats:
        """Biases of every cost, (m+1, S)."""
        return self.chain.biases

    @property
    def stationary(self) -> Floats:
        """Stationary distribution of the states, (S,)."""
        return self.chain.stationary

    @property
    def log_masses(self) -> Floats:
        """Logarithms of the stationary distribution, (S,)."""
        logs = self.chain.log_masses
        return logs - np.log(np.exp(logs).sum())

    def prove(self, weights: Floats, bound: float, potential: tuple[Floats, Floats]) -> None:
        """Keep a potential for some weights if it gives the best bound so far."""
        key = _direction(weights)
        if key not in self.proofs or bound > self.proofs[key][0]:
            self.proofs[key] = (bound, *_scaled(1.0 / weights.sum(), *potential))

    def potential(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weighted bias as a high and a low part."""
        proof = self.proofs.get(_direction(weights)) if self.proofs else None
        if proof is not None:
            return _scaled(weights.sum(), *proof[1:])
        low = np.zeros(self.biases.shape) if self.chain.low_biases is None else self.chain.low_biases
        high, low = combine(weights, self.biases, low)
        return high, low


def _scaled(factor: float, high: Floats, low: Floats) -> tuple[Floats, Floats]:
    """Return the high and the low part of a multiple of a potential (S,)."""
    high, low = combine(np.array([factor]), high[None, :], low[None, :])
    return high, low


def _direction(weights: Floats) -> bytes:
    """Return a key for weights that is the same for their multiples."""
    return np.round(weights / weights.sum(), 15).tobytes()


def disjoint_log_masses(columns: Sequence[Column], shares: Floats) -> Floats | None:
    """Return the logarithms of the masses (k, S) of the columns of a mixture, if they hardly visit the same states."""
    masses = np.array([share * column.stationary for column, share in zip(columns, shares, strict=True)])
    if masses.sum() - masses.max(axis=0).sum() > OVERLAP:
        return None
    return np.array([np.log(share) + column.log_masses for column, share in zip(columns, shares, strict=True)])


def greedy_policy(problem: Problem) -> Ints:
    """Return the one-step greedy policy for equally weighted costs, a starting point if nothing is known."""
    policy: Ints = cheapest_for_one_step(problem.costs, problem.available)
    return policy


class Howard(Oracle[Column]):
    """Policy iteration on a weakly communicating model.

    ``careful``: work in double-double precision, for the few models on which rounding would decide. If parts of a model
    are left once in 1e8 to 1e18 steps, one double per state cannot hold the bias. ``hasty``: evaluate policies roughly
    while large improvements remain; the caller must have answers ``refined`` before mixing them. ``steps``: those
    of another search of the same transitions, costs and actions.
    """

    def __init__(
        self, problem: Problem, *, careful: bool = False, hasty: bool = False, steps: PolicySteps | None = None
    ) -> None:
        self.problem = problem
        self.steps = steps or policy_steps(problem.transition, problem.costs, problem.available, double_double=careful)
        self._nearly_closed = NEARLY_CLOSED_DOUBLE_DOUBLE if careful else NEARLY_CLOSED
        self._reference = 0
        self._within = ROUGH if hasty else 0.0  # allowed error of gains
        self._hasty, self._last_gap = hasty, np.inf
        self._switch = SWITCH_TOL_OF_LARGE if hasty else SWITCH_TOL
        self._asked: set[int] = set()

    def first(self, weights: Floats) -> Column:
        """Evaluate the one-step greedy policy."""
        return self.evaluate(greedy_policy(self.problem), weights)

    def evaluate(self, policy: Ints, weights: Floats, near: Column | None = None) -> Column:
        """Compute all gains and biases of a policy.

        A policy with several closed, or nearly closed, classes is first driven to the best of them. ``near``: an
        evaluated policy that differs in few states.
        """
        chain = self._solve(policy, None if near is None else near.chain)
        if chain is None:
            policy = self._driven_to_best(policy, weights, 0.0)
            chain = self._solve(policy)
        if chain is not None and chain.slowest < self._nearly_closed:
            driven = self._driven_to_best(policy, weights, self._nearly_closed)
            if not np.array_equal(driven, policy):
                policy, chain = driven, self._solve(driven)
        if chain is None:
            raise SolverError("the model is not weakly communicating")
        self._reference = chain.reference
        return Column.of(policy, chain)

    def improve(self, answer: Column, weights: Floats) -> tuple[float, Column | None]:
        """Make one step of policy iteration: switch all states that gain and evaluate the result.

        A switch that makes things worse was due to rounding; the step is then repeated with larger gains only.
        """
        question = hash((answer.policy.tobytes(), weights.tobytes(), answer.chain.off))
        going_round = question in self._asked  # a cycle caused by rounding, which exceeds the remaining improvement
        self._asked.add(question)
        price = dot(weights, answer.costs)
        least = max(SEARCH_GAP, BEYOND_OFF * answer.chain.off)  # smallest improvement that is worth an evaluation
        before, self._last_gap = self._last_gap, np.inf
        for caution in CAUTION:
            ahead = price if caution == CAUTION[0] else None
            bound, policy, potential = self.steps.improve(
                answer.policy, answer.chain, weights, caution * self._switch, ahead
            )
            if potential is not None:
                answer.prove(weights, bound, potential)
            if policy is None or going_round or price - bound <= least or self._is_stalled(price - bound, before):
                break
            better = self.evaluate(policy, weights)
            if dot(weights, better.costs) <= price + WORSE_TOL + answer.chain.off + better.chain.off:
                self._within = min(self._within, ROUGH_SHARE * abs(price - dot(weights, better.costs)))
                if self._within < LEAST_ROUGH:
                    self._within = 0.0
                return bound, better
        return bound, None

    def _is_stalled(self, gap: float, before: float) -> bool:
        """Whether the gap of a large model is closed up to what only many more evaluations would close."""
        if self._hasty and not self._within:
            self._last_gap = gap
        return self._last_gap <= PLAYABLE_GAP * STALLED_SHARE and gap > STALLED * before

    def joined(self, answers: Sequence[Column], shares: Floats, weights: Floats) -> Column | None:
        """Return the policy of the column that visits each state most, for columns in different regimes.

        At the weights at which two regimes cost the same, every policy between them does, but one step of policy
        iteration moves the border between them by one state only. None if that policy is one of the columns.
        """
        masses = disjoint_log_masses(answers, shares) if self.steps.joins_regimes else None
        if masses is None:
            return None
        policies = np.array([answer.policy for answer in answers])
        policy = policies[masses.argmax(axis=0), np.arange(masses.shape[1])]
        if (policy == policies).all(axis=1).any():
            return None
        self.steps.forget_levels()
        return self.evaluate(policy, weights)

    def refined(self, answer: Column) -> Column | None:
        """Return a rough answer evaluated exactly; None if it is exact already."""
        if not answer.chain.rough:
            return None
        self._within = 0.0  # little improvement remains: evaluate exactly from now on
        chain = self.steps.evaluate(answer.policy, answer.chain.reference, guess=answer.chain)
        assert chain is not None
        return Column.of(answer.policy, chain)

    def _solve(self, policy: Ints, near: Unichain | None = None) -> Unichain | None:
        """Evaluate the chain of a policy; None if it has two closed classes."""
        chain = self.steps.evaluate(policy, self._reference, self._within, near)
        if chain is not None and not np.isfinite(chain.gains).all():
            raise SolverError(FALLS_APART)
        return chain

    def _driven_to_best(self, policy: Ints, weights: Floats, least: float) -> Ints:
        """Drive all states to the cheapest of the (nearly) closed classes to which that is possible.

        Moves that are no likelier than ``least`` do not count. Among equally cheap classes, that of the last reference
        state comes first.
        """
        P, states = self.problem.transition, np.arange(policy.size)
        chain, costs = chain_of(P, policy), self.problem.costs[:, states * P.n_actions + policy]
        classes = chain.closed_classes(least)
        if len(classes) < 2:
            return policy
        if least > 0.0:
            gains = np.array([chain.solve_class(costs, members).gains for members in classes])
        else:
            gains = chain.solve_classes(costs).gains.T
        prices = times(np.ascontiguousarray(gains), weights).tolist()
        cheap = min(prices) + SAME_CLASS_COST
        home = np.full(policy.size, -1)
        for k, members in enumerate(classes):
            home[members] = k
        order = sorted(range(len(classes)), key=lambda k: (prices[k] > cheap, k != home[self._reference], prices[k]))
        for k in order:
            driven = attractor_policy(P, self.problem.available, home == k, policy, least)
            if len(chain_of(P, driven).closed_classes(least)) == 1:
                return driven
        return attractor_policy(P, self.problem.available, home == order[0], policy, least)
