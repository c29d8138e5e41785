"""Drafts: plans without a proof, for one model with changing costs and thresholds.

An agent that certifies each policy itself before it plays it needs from a plan only the policy, the shadow prices and
the potential. A draft leaves out the proof and all that serves it: the exact evaluation, the search for a repair that
loses nothing, and planning again on other scales. What depends on the transitions alone, the reachable states and the
end components, is found once.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.chain import chain_of
from psconrl.markov.structure import attractor_policy, find_end_components
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Dual
from psconrl.planning.methods import guessed_weights
from psconrl.planning.mixture.solve import Solution, solve
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem
from psconrl.planning.randomisation import fewest_randomised
from psconrl.planning.repair import between_classes, connected, optimal_actions
from psconrl.planning.restriction import Restriction
from psconrl.planning.tolerances import LARGEST_PRICES

# Default share of the time in which a draft moves between classes that it mixes. Larger than that of a plan: a draft is
# played in short episodes, and a class that is left more rarely than once in an episode is never left.
DRAFT_SHARE = 0.1


class Draft(NamedTuple):
    """A policy, and the dual solution that belongs to it."""

    policy: Floats  # (S, A)
    feasible: bool  # whether some policy meets the thresholds; if not, this one has the least excess
    prices: Floats | None  # (m,) shadow prices; None if infeasible, or beyond LARGEST_PRICES for the model's own costs
    potential: Floats  # (S,) zero if prices are None
    split: bool = False  # whether an optimal plan mixes policies with classes of their own
    tied: bool = False  # whether some moves between these cost nothing


class Drafts:
    """Plans of one model for changing costs and thresholds."""

    def __init__(self, model: CMDP) -> None:
        self._model = model
        self._reached = Restriction(model)

    @cached_property
    def _part(self) -> CMDP:
        return self._reached.apply()

    @cached_property
    def _has_one_component(self) -> bool:
        P = self._part.transition
        return P.communicates or find_end_components(P, self._part.available).number <= 1

    def plan(self, costs: Floats, thresholds: Floats, share: float | None = None) -> Draft:
        """Return a plan for costs (m+1, S, A); if no policy meets the thresholds, one of least excess.

        ``share``: of the rounds that are spent on moves between classes that a plan mixes; by default a tenth, and
        moves that lose nothing if there are such. A model that the search does not settle is planned with a proof.
        Raises ``SolverError`` if that fails, too.
        """
        if self._has_one_component:
            part = self._part
            P = part.transition.dense_up_to(PLANNED_DENSE_STATES)
            own = np.ascontiguousarray(costs[:, self._reached.states])
            problem = Problem.scaled(P, own, thresholds, part.available)
            try:
                found = solve(problem, least_excess=True, near=guessed_weights(problem))
            except SolverError:
                found = None
            if found is not None and found.settled:
                return self._extended(problem, found, costs, thresholds, share)
        result = plan_unexplained(self._model.with_costs(costs).with_thresholds(thresholds))
        return self._draft(result.policy, result.feasible, result.multipliers, result.potential)

    def _draft(self, policy: Floats, feasible: bool, prices: Floats, potential: Floats) -> Draft:
        """Return a draft without prices and potential if it is infeasible or these are too large."""
        if not feasible or not (prices * self._ranges[1:] <= LARGEST_PRICES * self._ranges[0]).all():
            return Draft(policy, feasible, None, np.zeros(self._model.n_states))
        return Draft(policy, True, np.maximum(prices, 0.0), potential)

    @cached_property
    def _ranges(self) -> Floats:
        """Ranges of the model's own costs, (m+1,)."""
        met = self._model.costs[:, self._model.available]
        return np.asarray(met.max(axis=1) - met.min(axis=1))

    def _extended(
        self, problem: Problem, found: Solution, costs: Floats, thresholds: Floats, share: float | None
    ) -> Draft:
        """Return a solution in the user's units and in all states; unreachable ones play an arbitrary action."""
        states, S = self._reached.states, self._model.n_states
        policy = one_hot(self._model.available.argmax(axis=1), self._model.n_actions)
        potential, prices = np.zeros(S), np.full(thresholds.size, np.inf)
        if not found.feasible or found.weights[0] <= 0.0:
            policy[states] = found.policy
            return self._draft(policy, found.feasible, prices, potential)
        scaled = found.weights / found.weights[0]
        dual = Dual(scaled[1:], *found.mixture.proof.potential(scaled), None)
        policy[states], split, tied = self._in_one_class(problem, found, dual, costs, thresholds, share)
        prices, potential[states], *_ = problem.scaling.invert_dual(dual, True)
        return self._draft(policy, True, prices, potential)._replace(split=split, tied=tied)

    def _in_one_class(
        self, problem: Problem, found: Solution, dual: Dual, costs: Floats, thresholds: Floats, share: float | None
    ) -> tuple[Floats, bool, bool]:
        """Return the policy, connected if it mixes classes; whether it does, and whether by tied actions."""
        if len(found.policies) < 2:
            return found.policy, False, False
        classes = chain_of(problem.transition, found.policy).closed_classes()
        if len(classes) < 2:
            fewer = fewest_randomised(problem, found)[1]
            several = len(chain_of(problem.transition, fewer).closed_classes()) > 1
            return found.policy if several else fewer, False, False
        part = self._part.with_costs(costs[:, self._reached.states]).with_thresholds(thresholds)
        if share is None:
            ties = optimal_actions(problem, dual)
            tied = connected(part, problem, ties, (), DRAFT_SHARE) if _visits_all(problem, ties, classes) else None
            if tied is not None:
                return tied[0], True, True
        for actions in (_joining(problem, found.policy, classes), part.available):
            mixed = connected(part, problem, actions, found.policies, share or DRAFT_SHARE)
            if mixed is not None:
                return mixed[0], True, False
        return between_classes(part, found.occupancy)[0], True, False


def _visits_all(problem: Problem, actions: Bools, classes: Sequence[Ints]) -> bool:
    """Whether a policy that takes all of these actions has a single class, which contains those given."""
    own = chain_of(problem.transition, actions / actions.sum(axis=1, keepdims=True)).closed_classes()
    return len(own) == 1 and all(np.isin(states, own[0]).all() for states in classes)


def _joining(problem: Problem, policy: Floats, classes: Sequence[Ints]) -> Bools:
    """Return the actions (S, A) of a policy in its classes, and those that lead from everywhere to each class."""
    S, A = policy.shape
    actions = np.zeros((S, A), dtype=np.bool_)
    for states in classes:
        inside = np.zeros(S, dtype=np.bool_)
        inside[states] = True
        onward = attractor_policy(problem.transition, problem.available, inside, policy.argmax(axis=1))
        actions[~inside] |= one_hot(onward, A)[~inside] > 0.0
        actions[inside] |= policy[inside] > 0.0
    return actions
