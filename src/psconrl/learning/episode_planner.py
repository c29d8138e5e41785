"""Planning in a sampled or estimated model, again and again, from where the last plan left off."""

from typing import Any, NamedTuple

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.products import dot
from psconrl.learning.posterior.sampled_rows import DENSE_STATES
from psconrl.learning.runtime.contract import uniform_policy
from psconrl.markov.elimination_order import NO_ORDER, Order, order_for
from psconrl.markov.hitting_times import shortest_path
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import RestartingTransition, SparseTransition, Transition
from psconrl.planning.certificate import units
from psconrl.planning.mixture.solve import Solution, solve
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem
from psconrl.planning.proof import Status
from psconrl.planning.tolerances import FEASIBLE, PLAYABLE_GAP
from psconrl.products import product


class Columns(NamedTuple):
    """The deterministic policies that an optimal plan mixes: each is optimal for its Lagrangian."""

    policies: tuple[Ints, ...]
    shares: Floats  # (k,) of sum one
    averages: Floats  # (k, m+1) costs of each in the model that was planned
    prices: Floats  # (m,) of the limits, in units of the objective

    @classmethod
    def of(cls, found: Solution, problem: Problem) -> "Columns | None":
        """Those of a solution; None if it mixes nothing."""
        if len(found.policies) < 2:
            return None
        mixture = found.mixture
        scaled = np.array([column.costs for column in mixture.answers])
        shift, scale = problem.scaling
        weights = found.weights / scale
        return cls(found.policies, mixture.shares, shift + scale * scaled, weights[1:] / weights[0])


class Choice(NamedTuple):
    """The policy for an episode, the average objective it promises, as a cost, and the policies that it mixes."""

    policy: Floats  # (S, A)
    value: float
    columns: Columns | None = None


# What happens less often than this does not happen in an episode: a sample that cannot be settled as it is, is planned
# without such transitions.
UNLIKELY = 1e-12
# In a large model a plan for ever is one that begins anew, in the present state, once in so many rounds: whatever falls
# apart in the sample, there is one chain then. It moves no average by more than this times the span of its bias.
ENDLESS = 1e-9
# Up to this size a sparse sample is planned as a dense one: elimination takes less time than products.
ELIMINATED = 128
# Multiplications of one elimination, about a second.
MOST_WORK = 5e8
# How far, in the units of a certificate, a plan for one episode may be from its bound or beyond a limit. In large
# models that is enough for the quick methods, too; what they cannot settle is tried in twice the precision if small.
EPISODE_TOL = 1e-6
CAREFUL_STATES = 200


class Refutation(NamedTuple):
    """Why no policy of a model meets some limits: all have at least this weighted average of the limited costs."""

    transition: Transition
    costs: Floats
    weights: Floats  # (m,)
    bound: float

    def holds_for(self, transition: Transition, costs: Floats, thresholds: Floats) -> bool:
        """Does the same show that no policy meets other limits either?"""
        same = self.transition is transition and self.costs is costs
        return same and bool(self.bound - dot(self.weights, thresholds) > 2.0 * FEASIBLE)


class EpisodePlanner:
    """Keeps the scaled costs and the last policies, so that the next sample is solved in a few steps.

    No plan with an open gap leaves it: what the fast method cannot settle is planned by the general one, with a
    certificate, and if that fails too, it says so by a ``SolverError``.
    """

    def __init__(self, n_states: int, n_actions: int) -> None:
        self._all_actions: Bools = np.ones((n_states, n_actions), dtype=bool)
        self._problem: Problem | None = None
        self._scaled_from: tuple[Floats, Floats] | None = None
        self.last: tuple[Ints, ...] = ()
        self.weights: Floats | None = None  # of the last optimum's costs
        self._refuted: Refutation | None = None  # what was asked for last, if it was impossible
        self._pattern: tuple[Ints, Ints] | None = None
        self._order: Order = NO_ORDER

    def optimal(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """The optimal policy of the model from a state, or None if the thresholds cannot be met.

        Raises ``SolverError`` if neither could be settled in floating point.
        """
        if P.restarts_in is None and len(self._all_actions) > DENSE_STATES:
            P = P.restarting(state, ENDLESS)
        if P.restarts_in is None and not P.communicates:
            return self._on_reachable_part(P, costs, thresholds, state)
        if self._refuted is not None and self._refuted.holds_for(P, costs, thresholds):
            return None
        problem = self._scaled(P.dense_up_to(ELIMINATED), costs, thresholds)
        found = self._solved(problem)
        if found is None:
            return self._from_general_planner(P, costs, thresholds, state)
        self.last = found.policies
        if not found.feasible:
            self._refuted = self._refutation(P, costs, problem, found)
            return None
        self.weights = found.weights
        shift, scale = problem.scaling
        return Choice(found.policy, float(shift[0] + scale[0] * found.value), Columns.of(found, problem))

    def least_excess(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice:
        """The policy whose largest excess over the thresholds is least, where none keeps them.

        From scratch each time: it is asked for seldom, and what is remembered is for plans that keep them.
        """
        if P.restarts_in is None and not P.communicates:
            P = P.restarting(state, ENDLESS)
        problem = Problem.scaled(P.dense_up_to(ELIMINATED), costs, thresholds, self._all_actions)
        found = solve(problem, least_excess=True, order=self._order_for(problem.transition))
        if not found.settled_within(EPISODE_TOL):
            raise SolverError(f"the least excess of a sampled model could not be settled (gap {found.gap:.1e})")
        shift, scale = problem.scaling
        return Choice(found.policy, float(shift[0] + scale[0] * found.value))

    def _refutation(self, P: Transition, costs: Floats, problem: Problem, found: Solution) -> Refutation | None:
        """In the user's units. In small models every question is answered anew, as it always was."""
        if len(self._all_actions) <= DENSE_STATES:
            return None
        shift, scale = (part[1:] for part in problem.scaling)
        weights = found.weights[1:] / scale
        bound = dot(found.weights[1:], problem.thresholds) - found.gap + dot(weights, shift)
        return Refutation(P, costs, weights, bound)

    def _solved(self, problem: Problem) -> Solution | None:
        """What is proven, or None."""
        if len(self._all_actions) <= DENSE_STATES:
            options: dict[str, Any] = {}
            start = self.last
        else:
            known = self.weights is not None and self.weights.size == len(problem.costs)
            options = {
                "near": self.weights if known else None,
                "order": self._order_for(problem.transition),
                "careful_states": CAREFUL_STATES,
                "within": EPISODE_TOL,
            }
            # Where much is unknown, the last policies are no longer good ones; but the prices of the limits are.
            start = self.last[:1] if known else self.last
        try:
            found = solve(problem, start, **options)
        except SolverError:
            return None
        return found if found.settled_within(options.get("within", PLAYABLE_GAP)) else None

    def _order_for(self, P: Transition) -> Order:
        """The order in which to eliminate samples of a pattern: found once, and kept as long as it is the same."""
        base = P.base if isinstance(P, RestartingTransition) else P
        if not isinstance(base, SparseTransition) or not base.repeats:
            return NO_ORDER
        pattern = (base.matrix.indptr, base.matrix.indices)
        if self._pattern is None or not all(map(np.array_equal, self._pattern, pattern)):
            self._pattern = pattern
            self._order = order_for(*pattern, base.n_states, MOST_WORK)
        return self._order

    def way_to(self, P: Transition, target: int, state: int) -> Ints:
        """The actions that lead to a state: on the shortest path, or in a large model such that it is met most often.

        The latter is an ordinary plan, for which there are quick methods: whoever wants to meet a state often must get
        there, and return, soon.
        """
        if len(self._all_actions) <= DENSE_STATES:
            return self._shortest_way_to(P, target)
        met = np.zeros((1, *self._all_actions.shape))
        met[0, target] = -1.0
        last, weights = self.last, self.weights  # of plans for the true costs
        try:
            choice = self.optimal(P, met, np.empty(0), state)
        finally:
            self.last, self.weights = last, weights
        assert choice is not None  # without limits there is always one
        return np.asarray(choice.policy.argmax(axis=1))

    def _shortest_way_to(self, P: Transition, target: int) -> Ints:
        """The actions of the shortest path to a state; in the state itself, of the soonest return."""
        path = shortest_path(P, self._all_actions, target)
        actions = path.policy.copy()
        times = np.where(np.isfinite(path.times), path.times, path.times[np.isfinite(path.times)].max() + 1e6)
        A = self._all_actions.shape[1]
        actions[target] = int(product(P.rows(target * A + np.arange(A)), times).argmin())
        return actions

    def _scaled(self, P: Transition, costs: Floats, thresholds: Floats) -> Problem:
        # Known costs are the same array in every episode: scale them once.
        known = self._scaled_from
        if self._problem is None or known is None or known[0] is not costs or known[1] is not thresholds:
            self._problem = Problem.scaled(P, costs, thresholds, self._all_actions)
            self._scaled_from = (costs, thresholds)
        else:
            self._problem = self._problem.with_transition(P)
        return self._problem

    def _on_reachable_part(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """With a prior of known support some states may be out of reach: plan without them."""
        S, A = self._all_actions.shape
        states = np.flatnonzero(P.reachable_from(np.arange(S) == state))
        if states.size == S:
            return self._from_general_planner(P, costs, thresholds, state)
        # From scratch each time: what is in reach may change, and a saved agent must continue with the same bits.
        part = EpisodePlanner(states.size, A)
        here = int(np.searchsorted(states, state))
        choice = part.optimal(P.restrict(states), costs[:, states], thresholds, here)
        if choice is None:
            return None
        policy = uniform_policy(S, A)
        policy[states] = choice.policy
        columns = choice.columns
        if columns is not None:
            whole = tuple(_put(np.zeros(S, dtype=np.int64), states, part) for part in columns.policies)
            columns = columns._replace(policies=whole)
        return Choice(policy, choice.value, columns)

    def _from_general_planner(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """Samples of very small priors can fall apart: plan from the present state, whatever the structure."""
        self.last = ()
        sample = CMDP(P.without(UNLIKELY).matrix, costs, thresholds, initial=state)
        result = plan_unexplained(sample)
        if result.status is Status.INFEASIBLE:
            return None
        allowed = EPISODE_TOL * units(sample, result.occupancy)
        near = result.status is not Status.UNCERTIFIED or abs(result.gap) <= allowed[0]
        if not near or (result.policy_certificate.excess > allowed[1:]).any():
            raise SolverError(f"a sampled model could not be settled (gap {result.gap:.1e})")
        return Choice(result.policy, float(result.policy_certificate.upper))


def _put(whole: Ints, places: Ints, values: Ints) -> Ints:
    whole[places] = values
    return whole
