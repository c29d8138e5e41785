"""Planning in a sampled or estimated model, again and again, from where the last plan left off."""

from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _kernels
from psconrl.model.cmdp import CMDP
from psconrl.model.distance import shortest_path
from psconrl.planning.certify import units
from psconrl.planning.plan import Status
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem
from psconrl.planning.solve import Brief, solve, solve_briefly, solve_carefully


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """The policy for an episode and the average objective it promises, as a cost."""

    policy: Floats  # (S, A)
    value: float


# What happens less often than this does not happen in an episode: a sample that cannot be settled as it is, is planned
# without such transitions.
UNLIKELY = 1e-12
# How far, in the units of a certificate, a plan for one episode may be from its bound or beyond a limit.
EPISODE_TOL = 1e-6


class SampledPlanner:
    """Keeps the scaled costs and the last policies, so that the next sample is solved in a few steps.

    No plan with an open gap leaves it: what the fast method cannot settle is planned by the general one, with a
    certificate, and if that fails too, it says so by a ``SolverError``.
    """

    def __init__(self, n_states: int, n_actions: int) -> None:
        self._all_actions: Bools = np.ones((n_states, n_actions), dtype=bool)
        self._problem: Problem | None = None
        self._scaled_from: tuple[Floats, Floats] | None = None
        self.last: tuple[Ints, ...] = ()

    def optimal(self, P: Floats, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """The optimal policy of the model from a state, or None if the thresholds cannot be met.

        Raises ``SolverError`` if neither could be settled in floating point.
        """
        if not _kernels.strongly_connected(P, self._all_actions.shape[1]):
            return self._on_reachable_part(P, costs, thresholds, state)
        problem = self._scaled(costs, thresholds)
        found = solve_briefly(problem, P, self.last) or self._solved(problem.with_transition(P))
        if found is None:
            return self._from_general_planner(P, costs, thresholds, state)
        self.last = found.policies
        if not found.feasible:
            return None
        return Choice(found.policy, float(problem.shift[0] + problem.scale[0] * found.value))

    def _solved(self, problem: Problem) -> Brief | None:
        """With any number of constraints, and the first time."""
        compiled_gave_up = bool(self.last) and problem.thresholds.size <= 1
        try:
            solution = (solve_carefully if compiled_gave_up else solve)(problem, self.last)
        except SolverError:
            return None
        if not solution.settled:
            return None
        value = float(problem.costs[0] @ solution.occupancy.ravel())
        return Brief(solution.feasible, value, solution.policies, solution.policy)

    def towards(self, P: Floats, target: int) -> Ints:
        """The actions of the shortest path to a state; in the state itself, of the soonest return."""
        path = shortest_path(P, self._all_actions, target)
        actions = path.policy.copy()
        times = np.where(np.isfinite(path.times), path.times, path.times[np.isfinite(path.times)].max() + 1e6)
        A = self._all_actions.shape[1]
        actions[target] = int((P[target * A : (target + 1) * A] @ times).argmin())
        return actions

    def _scaled(self, costs: Floats, thresholds: Floats) -> Problem:
        # Known costs are the same array in every episode: scale them once.
        known = self._scaled_from
        if self._problem is None or known is None or known[0] is not costs or known[1] is not thresholds:
            self._problem = Problem.scaled(np.empty((0, 0)), costs, thresholds, self._all_actions)
            self._scaled_from = (costs, thresholds)
        return self._problem

    def _on_reachable_part(self, P: Floats, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """With a prior of known support some states may be out of reach: plan without them."""
        S, A = self._all_actions.shape
        states = np.flatnonzero(reachable_from(P, state, A))
        if states.size == S:
            return self._from_general_planner(P, costs, thresholds, state)
        rows = (states[:, None] * A + np.arange(A)).ravel()
        # From scratch each time: which states are in reach may change, and a saved agent must go on with the same bits.
        part = SampledPlanner(states.size, A)
        here = int(np.searchsorted(states, state))
        choice = part.optimal(np.ascontiguousarray(P[np.ix_(rows, states)]), costs[:, states], thresholds, here)
        if choice is None:
            return None
        policy = np.full((S, A), 1.0 / A)
        policy[states] = choice.policy
        return Choice(policy, choice.value)

    def _from_general_planner(self, P: Floats, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """Samples of very small priors can fall apart: plan from the present state, whatever the structure."""
        self.last = ()
        likely = np.where(P < UNLIKELY, 0.0, P)
        likely /= likely.sum(axis=1, keepdims=True)
        sample = CMDP(likely, costs, thresholds, initial=state)
        result = plan_unexplained(sample)
        if result.status is Status.INFEASIBLE:
            return None
        allowed = EPISODE_TOL * units(sample, result.occupancy)
        near = result.status is not Status.UNCERTIFIED or abs(result.gap) <= allowed[0]
        if not near or (result.certificate.excess > allowed[1:]).any():
            raise SolverError(f"a sampled model could not be settled (gap {result.gap:.1e})")
        return Choice(result.policy, float(result.costs[0]))


def reachable_from(P: Floats, state: int, n_actions: int) -> Bools:
    """The states that a dense model can reach from a state, (S,)."""
    S = P.shape[1]
    edges = np.asarray((P.reshape(S, n_actions, S) > 0).any(axis=1))
    seen = np.zeros(S, dtype=bool)
    seen[state] = True
    while True:
        grown = seen | np.asarray(edges[seen].any(axis=0))
        if np.array_equal(grown, seen):
            return seen
        seen = grown
