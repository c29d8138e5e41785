"""Drafts: plans without a proof, for one model with changing costs and thresholds.

An agent that certifies each policy itself before it plays it needs from a plan only the policy, the shadow prices and
the potential. A draft leaves out the proof and all that serves it: the exact evaluation, the search for a repair that
loses nothing, and planning again on other scales. What depends on the transitions alone, the reachable states and the
end components, is found once.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels.occupancy import one_hot
from psconrl.markov.chain import chain_of
from psconrl.markov.structure import find_end_components
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
from psconrl.sizes import PLANNED_DENSE_STATES

# Share of the time in which a draft moves between classes that it mixes. Larger than that of a plan: a draft is played
# in short episodes, and a class that is left more rarely than once in an episode is never left.
DRAFT_SHARE = 0.1


class Draft(NamedTuple):
    """A policy, and the dual solution that belongs to it."""

    policy: Floats  # (S, A)
    feasible: bool  # whether some policy meets the thresholds; if not, this one has the least excess
    prices: Floats | None  # (m,) shadow prices; None if infeasible, or beyond LARGEST_PRICES for the model's own costs
    potential: Floats  # (S,) zero if prices are None


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

    def plan(self, costs: Floats, thresholds: Floats) -> Draft:
        """Return a plan for costs (m+1, S, A); if no policy meets the thresholds, one of least excess.

        A model that the search does not settle is planned with a proof. Raises ``SolverError`` if that fails, too.
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
                return self._extended(problem, found, costs, thresholds)
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

    def _extended(self, problem: Problem, found: Solution, costs: Floats, thresholds: Floats) -> Draft:
        """Return a solution in the user's units and in all states; unreachable ones play an arbitrary action."""
        states, S = self._reached.states, self._model.n_states
        policy = one_hot(self._model.available.argmax(axis=1), self._model.n_actions)
        potential, prices = np.zeros(S), np.full(thresholds.size, np.inf)
        if not found.feasible or found.weights[0] <= 0.0:
            policy[states] = found.policy
            return self._draft(policy, found.feasible, prices, potential)
        scaled = found.weights / found.weights[0]
        dual = Dual(scaled[1:], *found.mixture.proof.potential(scaled), None)
        policy[states] = self._in_one_class(problem, found, dual, costs, thresholds)
        prices, potential[states], *_ = problem.scaling.invert_dual(dual, True)
        return self._draft(policy, True, prices, potential)

    def _in_one_class(self, problem: Problem, found: Solution, dual: Dual, costs: Floats, thresholds: Floats) -> Floats:
        """Return the policy, connected by tied actions or at a small loss if it mixes policies of different classes."""
        if len(found.policies) < 2:
            return found.policy
        if not _has_classes(problem, found.policy):
            fewer = fewest_randomised(problem, found)[1]
            return found.policy if _has_classes(problem, fewer) else fewer
        part = self._part.with_costs(costs[:, self._reached.states]).with_thresholds(thresholds)
        for actions, start in ((optimal_actions(problem, dual), ()), (part.available, found.policies)):
            mixed = connected(part, problem, actions, start, DRAFT_SHARE)
            if mixed is not None:
                return mixed[0]
        return between_classes(part, found.occupancy)[0]


def _has_classes(problem: Problem, policy: Floats) -> bool:
    """Whether the chain of a policy has several closed classes."""
    return len(chain_of(problem.transition, policy).closed_classes()) > 1
