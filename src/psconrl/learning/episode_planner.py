"""Repeated planning in sampled or estimated models, warm-started from the last plan."""

from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.sizes import ELIMINATED_SAMPLE_STATES, SAMPLE_DOUBLE_DOUBLE_STATES, SMALL_SAMPLE_STATES
from psconrl.errors import SolverError
from psconrl.learning.infeasibility_proof import Refutation
from psconrl.learning.runtime.contract import uniform_policy
from psconrl.markov.elimination_order import NO_ORDER, Order, order_for
from psconrl.markov.hitting_times import shortest_path
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition
from psconrl.planning.mixture.solve import Solution, solve
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate import Status
from psconrl.planning.proof.certificate_units import units
from psconrl.planning.tolerances import PLAYABLE_GAP


class MixedPolicies(NamedTuple):
    """The deterministic policies that an optimal plan mixes: each is optimal for its Lagrangian."""

    policies: tuple[Ints, ...]
    shares: Floats  # (k,), sum to one
    averages: Floats  # (k, m+1), average costs of each policy in the planned model
    prices: Floats  # (m,), shadow prices of the constraints, in units of the objective

    @classmethod
    def of(cls, found: Solution, problem: Problem) -> "MixedPolicies | None":
        """Return the columns of a solution; None if it is a single policy."""
        if len(found.policies) < 2:
            return None
        mixture = found.mixture
        scaled = np.array([column.costs for column in mixture.answers])
        shift, scale = problem.scaling
        return cls(found.policies, mixture.shares, shift + scale * scaled, prices_of(found, problem))

    @classmethod
    def of_plan(cls, result: Plan, costs: Floats) -> "MixedPolicies | None":
        """Return the policies of which a plan draws one for each run; None if it plays a single policy."""
        mixture = result.mixture
        if mixture is None:
            return None
        states = np.arange(costs.shape[1])
        each = zip(mixture.policies, mixture.distributions, strict=True)
        averages = np.array([product(costs[:, states, actions], mass) for actions, mass in each])
        return cls(tuple(mixture.policies), mixture.shares, averages, result.multipliers)


def prices_of(found: Solution, problem: Problem) -> Floats:
    """Return the shadow prices (m,) of a solution, in units of the objective."""
    weights = found.weights / problem.scaling[1]
    return np.asarray(weights[1:] / weights[0])


class Choice(NamedTuple):
    """The policy for an episode, its average objective in the planned model, as a cost, and the policies it mixes."""

    policy: Floats  # (S, A)
    value: float
    prices: Floats  # (m,), shadow prices of the constraints, in units of the objective
    model: Transition  # the planned model
    columns: MixedPolicies | None = None


# Transitions of smaller probability do not occur within an episode. A sample that cannot be solved as it is, is planned
# without them.
UNLIKELY = 1e-12
# In a large model, plans over an infinite horizon restart in the present state with this probability per round. So the
# sample is one chain, even if it decomposes. No average moves by more than this times the span of its bias.
ENDLESS = 1e-9
# Multiplications of one elimination; about a second.
MOST_WORK = 5e8
# How far, in the units of a certificate, a plan for one episode may be from its bound or beyond a threshold. In large
# models the fast methods stop there, too; what they cannot solve is tried in double-double precision if small.
EPISODE_TOL = 1e-6


class EpisodePlanner:
    """Plan one sampled model after another, warm-started from the scaled costs and the last policies.

    It never returns a plan with an open optimality gap. What the fast method cannot solve is planned by the general
    one, with a certificate; if that fails too, it raises ``SolverError``. In a sample of several end components perhaps
    no stationary policy is optimal: the policy then meets the thresholds, and the policies of the optimal mixture are
    returned with it.
    """

    def __init__(self, n_states: int, n_actions: int) -> None:
        self._all_actions: Bools = np.ones((n_states, n_actions), dtype=bool)
        self._problem: Problem | None = None
        self._scaled_from: tuple[Floats, Floats] | None = None
        self.last: tuple[Ints, ...] = ()
        self.weights: Floats | None = None  # Lagrangian weights of the costs at the last optimum
        self._refuted: Refutation | None = None  # proof that the last problem was infeasible, if it was
        self._pattern: tuple[Places, Places] | None = None
        self._order: Order = NO_ORDER

    def optimal(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """Return the optimal policy of the model from a state, or None if the thresholds are infeasible.

        Raise ``SolverError`` if neither could be proven in floating point.
        """
        if P.restarts_in is None and len(self._all_actions) > SMALL_SAMPLE_STATES:
            P = P.restarting(state, ENDLESS)
        if P.restarts_in is None and not P.communicates:
            return self._on_reachable_part(P, costs, thresholds, state)
        if self._refuted is not None and self._refuted.holds_for(P, costs, thresholds):
            return None
        problem = self._scaled(P.dense_up_to(ELIMINATED_SAMPLE_STATES), costs, thresholds)
        found = self._solved(problem)
        if found is None:
            return self._from_general_planner(P, costs, thresholds, state)
        self.last = found.policies
        if not found.feasible:
            small = len(self._all_actions) <= SMALL_SAMPLE_STATES  # solved again at little cost
            self._refuted = None if small else Refutation.of(found, problem, P, costs)
            return None
        self.weights = found.weights
        shift, scale = problem.scaling
        value = float(shift[0] + scale[0] * found.value)
        return Choice(found.policy, value, prices_of(found, problem), P, MixedPolicies.of(found, problem))

    def least_excess(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice:
        """Return the policy whose largest excess over the thresholds is least, for infeasible models.

        It starts from scratch each time: it is rarely needed, and the warm start is meant for feasible plans.
        """
        if P.restarts_in is None and not P.communicates:
            P = P.restarting(state, ENDLESS)
        problem = Problem.scaled(P.dense_up_to(ELIMINATED_SAMPLE_STATES), costs, thresholds, self._all_actions)
        found = solve(problem, least_excess=True, order=self._order_for(problem.transition))
        if not found.settled_within(EPISODE_TOL):
            raise SolverError(f"the least excess of a sampled model could not be settled (gap {found.gap:.1e})")
        shift, scale = problem.scaling
        return Choice(found.policy, float(shift[0] + scale[0] * found.value), np.zeros(thresholds.size), P)

    def _solved(self, problem: Problem) -> Solution | None:
        """Return the solution if its gap is closed, else None."""
        if len(self._all_actions) <= SMALL_SAMPLE_STATES:
            options: dict[str, Any] = {}
            start = self.last
        else:
            known = self.weights is not None and self.weights.size == len(problem.costs)
            options = {
                "near": self.weights if known else None,
                "order": self._order_for(problem.transition),
                "careful_states": SAMPLE_DOUBLE_DOUBLE_STATES,
                "within": EPISODE_TOL,
            }
            # If much is unknown, the last policies are a poor start, but the shadow prices are a good one.
            start = self.last[:1] if known else self.last
        try:
            found = solve(problem, start, **options)
        except SolverError:
            return None
        return found if found.settled_within(options.get("within", PLAYABLE_GAP)) else None

    def _order_for(self, P: Transition) -> Order:
        """Return the elimination order for the sparsity pattern of a sample; computed again if the pattern changes."""
        pattern = P.repeated_pattern
        if pattern is None:
            return NO_ORDER
        if self._pattern is None or not all(map(np.array_equal, self._pattern, pattern)):
            self._pattern = pattern
            self._order = order_for(*pattern, P.n_states, MOST_WORK)
        return self._order

    def way_to(self, P: Transition, target: int, state: int) -> Ints:
        """Return actions that reach a state: by the shortest path, or in a large model by maximising its visits.

        The latter is an ordinary average-reward plan, for which there are fast methods: a policy that visits a state
        often also reaches it soon.
        """
        if len(self._all_actions) <= SMALL_SAMPLE_STATES:
            return self._shortest_way_to(P, target)
        met = np.zeros((1, *self._all_actions.shape))
        met[0, target] = -1.0
        last, weights = self.last, self.weights  # keep the warm start for the true costs
        try:
            choice = self.optimal(P, met, np.empty(0), state)
        finally:
            self.last, self.weights = last, weights
        assert choice is not None  # without constraints every model is feasible
        return np.asarray(choice.policy.argmax(axis=1))

    def _shortest_way_to(self, P: Transition, target: int) -> Ints:
        """Return the actions of the shortest path to a state; in the state itself, those of the shortest return."""
        path = shortest_path(P, self._all_actions, target)
        actions = path.policy.copy()
        times = np.where(np.isfinite(path.times), path.times, path.times[np.isfinite(path.times)].max() + 1e6)
        A = self._all_actions.shape[1]
        actions[target] = int(product(P.rows(target * A + np.arange(A)), times).argmin())
        return actions

    def _scaled(self, P: Transition, costs: Floats, thresholds: Floats) -> Problem:
        # Known costs are the same array object in every episode: scale them once.
        known = self._scaled_from
        if self._problem is None or known is None or known[0] is not costs or known[1] is not thresholds:
            self._problem = Problem.scaled(P, costs, thresholds, self._all_actions)
            self._scaled_from = (costs, thresholds)
        else:
            self._problem = self._problem.with_transition(P)
        return self._problem

    def _on_reachable_part(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """Plan on the reachable states only: with a prior of known support some states may be unreachable."""
        S, A = self._all_actions.shape
        states = np.flatnonzero(P.reachable_from(np.arange(S) == state))
        if states.size == S:
            return self._from_general_planner(P, costs, thresholds, state)
        # From scratch each time: the reachable set may change, and a saved agent must continue bit for bit.
        part = EpisodePlanner(states.size, A)
        here = int(np.searchsorted(states, state))
        inside = P.restrict(states)
        choice = part.optimal(inside, costs[:, states], thresholds, here)
        if choice is None:
            return None
        model = P if choice.model is inside else P.without(UNLIKELY)
        policy = uniform_policy(S, A)
        policy[states] = choice.policy
        columns = choice.columns
        if columns is not None:
            whole = tuple(_put(np.zeros(S, dtype=np.int64), states, part) for part in columns.policies)
            columns = columns._replace(policies=whole)
        return Choice(policy, choice.value, choice.prices, model, columns)

    def _from_general_planner(self, P: Transition, costs: Floats, thresholds: Floats, state: int) -> Choice | None:
        """Plan from the present state by the general planner: samples of very small priors can be multichain."""
        self.last = ()
        sample = CMDP(P.without(UNLIKELY).matrix, costs, thresholds, initial=state)
        result = plan_unexplained(sample)
        if result.status is Status.INFEASIBLE:
            return None
        allowed = EPISODE_TOL * units(sample, result.occupancy)
        near = result.status is not Status.UNCERTIFIED or abs(result.gap) <= allowed[0]
        if not near or (result.policy_certificate.excess > allowed[1:]).any():
            raise SolverError(f"a sampled model could not be settled (gap {result.gap:.1e})")
        value = float(result.policy_certificate.upper)
        return Choice(result.policy, value, result.multipliers, sample.transition, MixedPolicies.of_plan(result, costs))


def _put(whole: Ints, places: Ints, values: Ints) -> Ints:
    whole[places] = values
    return whole
