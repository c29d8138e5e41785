r"""PSConRL: posterior sampling for constrained reinforcement learning (Provodin, Kaptein and Pechenizkiy, ICML 2024).

Each episode draws transitions from the posterior. If some policy of the sampled model meets the thresholds, the agent
plays the optimal one. Otherwise it explores: it takes the shortest path to the least visited state, which makes
infeasible samples ever rarer. The paper states a Bayesian regret of :math:`\tilde O(D S \sqrt{A T})` for every cost in
communicating CMDPs (Theorem 4.1; docs/theory.md has a counterexample). It needs neither horizon, span, mixing time
nor a safe policy.

The recipe ``psconrl-paper`` is this algorithm of the paper, with its prior and Ouyang et al.'s stopping rule; see
``schedules.Ouyang`` for how the paper's text differs. The default of this library has other parts, chosen by
benchmarks/study.py: a learned prior, longer episodes, a ledger by which every constraint is met over the whole run, and
a finite planning horizon, so that plans do not rely on events of negligible probability. Some of its episodes doubt the
belief, so that a wall may turn out to be a door. docs/theory.md says what is proven for each.

CMDP-PSRL (Agarwal, Bai and Aggarwal 2022) is this agent with other parts, listed in the registry: epochs end on
doubling only, and while the sample is infeasible the constraints are ignored. In an ergodic model this is harmless,
since every policy explores. In a communicating model it need not be: on Example 1 of the PSConRL paper it violates the
constraint for most of the run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.arithmetic.products import dot
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.learning.argument_checks import as_number, as_numbers
from psconrl.learning.episode_planner import UNLIKELY, Choice
from psconrl.learning.part import Part
from psconrl.learning.parts.balance import KeepsBalance
from psconrl.learning.parts.commitment import Commitment, RandomisedPlan, WhenSlow
from psconrl.learning.parts.doubt import Budget, Doubt
from psconrl.learning.parts.fallbacks import Fallback, LeastExcess, RarelyExplore, Sample
from psconrl.learning.parts.ledger import Balance, Ledger
from psconrl.learning.parts.planning_horizons import PlanningHorizon, Proportional
from psconrl.learning.parts.schedules import LengthOnly, Schedule, SquareRoot
from psconrl.learning.posterior.cost_beliefs import CostBelief, SampledCosts
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.runtime.running_episode import Play
from psconrl.learning.sampler import Sampler
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition

USUAL_LEDGER = Balance(0.1)  # explicit defaults, since None means no ledger
USUAL_COMMITMENT = WhenSlow(0.05)
USUAL_DOUBT = Budget()
# If the constraints cannot be met within the planning horizon, lengthen it by the factor FURTHER. While it is at most
# SHORT_HORIZON rounds, explore instead, which costs little then.
FURTHER = 100.0
SHORT_HORIZON = 300.0


class Planned(NamedTuple):
    """A plan for an episode, its kind, and the thresholds it is made for."""

    kind: str
    choice: Choice
    targets: Floats  # (m,)


class PSConRL(Sampler):
    """PSConRL: posterior sampling, with exploration whenever the sampled model is infeasible.

    ``n_states``, ``n_actions``: sizes of the system. ``seed``: of the agent's random numbers. ``thresholds``: (m,) in
    the order of the costs, or by name, ``{"delay": 2.0, "power": 0.3}``, in the same order. ``costs``: (m+1, S, A) if
    known; else they are learned. Where nothing is known the objective is taken to be 0, or better than the best so far
    if that is not positive; if it is a reward, give minus the largest possible reward as ``optimistic_cost``.
    ``guessed_costs`` (m+1, S, A) count as ``cost_weight`` observations, a number or one for every pair; None to learn
    their weight. ``trusting`` builds an agent from a rough model.

    Parts: ``belief``, the posterior over transitions; ``cost_belief``, the costs to plan with while they are learned;
    ``schedule``, when to plan again; ``fallback``, what to play if the sample is infeasible; ``ledger``, which makes up
    for past overspending and spends what is left (None for no ledger, as in the paper); ``planning_horizon``, how far
    ahead plans look; ``commitment``, when to play one deterministic policy instead of a randomised plan (None for
    never); ``doubt``, when to plan for what the belief excludes (None for never).

    >>> agent = PSConRL(n_states=16, n_actions=4, thresholds=[0.2], seed=0)
    >>> agent.act(0) in range(4)
    True
    """

    name: ClassVar[str] = "psconrl"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": LearnedMass(),
        "schedule": SquareRoot(),
        "cost_belief": SampledCosts(),
        "fallback": RarelyExplore(),
        "ledger": USUAL_LEDGER,
        "planning_horizon": Proportional(),
        "commitment": USUAL_COMMITMENT,
        "doubt": USUAL_DOUBT,
    }

    parts_for_systems: ClassVar[Mapping[str, Part]] = {"fallback": LeastExcess(), "schedule": LengthOnly()}

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        belief: Belief | None = None,
        schedule: Schedule | None = None,
        cost_belief: CostBelief | None = None,
        fallback: Fallback | None = None,
        ledger: Ledger | None = USUAL_LEDGER,
        planning_horizon: PlanningHorizon | None = None,
        commitment: Commitment | None = USUAL_COMMITMENT,
        doubt: Doubt | None = USUAL_DOUBT,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, belief=belief, schedule=schedule, cost_belief=cost_belief,
            optimistic_cost=optimistic_cost, guessed_costs=guessed_costs, cost_weight=cost_weight, seed=seed,
        )  # fmt: skip
        self.fallback: Fallback = self._part("fallback", fallback)
        self.ledger: Ledger | None = None if ledger is None else self._part("ledger", ledger)
        self.planning_horizon: PlanningHorizon = self._part("planning_horizon", planning_horizon)
        self.commitment: Commitment | None = None if commitment is None else self._part("commitment", commitment)
        self.doubt: Doubt | None = None if doubt is None else self._part("doubt", doubt)
        self._playing_interim = False  # whether the last policy is played while a plan is computed

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy, or the fallback if the model is infeasible."""
        doubted = None
        if self.doubt is not None and self.belief.can_doubt:
            doubted = self.doubt.begin(self.counts, state, self.rng, learns_costs=self._learns_costs)
        P = self._draw(doubted)
        costs = self._episode_costs(in_doubt=doubted is not None and not doubted.most_visits)
        max_steps, caps = self.schedule.caps(self.counts)
        likely = P if doubted else self.belief.expected_within(P, self.counts, state, self._steps(max_steps))
        probabilities = self._probabilities()
        try:
            planned = self._optimal(likely, costs, state, probabilities)
            if self.doubt is not None and doubted is None:
                self._refer(self.doubt, planned, costs)
            if planned is not None:
                kind, choice, targets = planned
                policy = self._committed(likely, costs, state, choice, max_steps)
                basis = EpisodePlan(
                    choice.model, costs, targets, choice.prices, choice.policy, self.sampled_in_doubt, P
                )
                return Episode(policy, max_steps, caps, kind, choice.value, basis)
            instead = self.fallback.infeasible(self._sample(P, costs, state))
        except SolverError:  # the sample cannot be solved in floating point
            instead = self.fallback.unsettled(self._sample(P, costs, state))
        model = self._ahead(likely, state, probabilities[-1])
        basis = EpisodePlan(model, costs, self.thresholds, in_doubt=self.sampled_in_doubt, sampled=P)
        return Episode(instead.policy, max_steps, caps, instead.kind, instead.value, basis)

    def _refer(self, doubt: Doubt, planned: Planned | None, costs: Floats) -> None:
        """Note the Lagrangian of a plan without doubt, with which doubts are compared."""
        if planned is None:
            doubt.refer_to_nothing()
            return
        _, choice, targets = planned
        if self._learns_costs:
            costs = self._hopeful_costs()
        value = choice.value + dot(choice.prices, targets - self.thresholds)  # prices of free constraints are 0
        if choice.columns is not None:  # the policy alone may be worse than what it is drawn from
            averages = product(choice.columns.shares, choice.columns.averages)
            value = averages[0] + dot(choice.prices, averages[1:] - self.thresholds)
        doubt.refer(float(value), choice.prices, costs, self.thresholds)

    def _optimal(self, P: Transition, costs: Floats, state: int, probabilities: list[float]) -> Planned | None:
        """Return the optimal plan for the ledger's targets, or else for the thresholds; None if both are infeasible.

        ``probabilities``: of a restart, those to try for the thresholds.
        """
        ahead = self._ahead(P, state, probabilities[0])
        if self.ledger is not None:
            for targets in self.ledger.targets(self.thresholds, self.rounds):
                if targets is not self.thresholds:
                    choice = self.planner.optimal(ahead, costs, self._checked(targets), state)
                    if choice is not None:
                        return Planned(self.ledger.name, choice, np.asarray(targets))
        choice = self.planner.optimal(ahead, costs, self.thresholds, state)
        for probability in probabilities[1:]:
            if choice is None:
                choice = self.planner.optimal(self._ahead(P, state, probability), costs, self.thresholds, state)
        return None if choice is None else Planned("optimal", choice, self.thresholds)

    def _committed(self, P: Transition, costs: Floats, state: int, choice: Choice, steps: int) -> Floats:
        """Return the policy of a plan, or the one of its deterministic policies that the agent commits to."""
        if self.commitment is None or choice.columns is None:
            return choice.policy
        balance, (least, largest) = self.commitment.balance, self.commitment.extremes
        plan = RandomisedPlan(
            choice.policy,
            choice.columns,
            P,
            costs,
            self.thresholds,
            state,
            self._steps(steps),
            self.rounds,
            balance,
            largest - least,
        )
        chosen = self.commitment.choose(plan)
        return choice.policy if chosen is None else one_hot(choice.columns.policies[chosen], self.n_actions)

    def _steps(self, steps: int) -> int:
        """Return the steps of an episode, at most the rounds so far: some schedules have no bound."""
        return max(1, min(steps, self.rounds))

    def _ahead(self, P: Transition, state: int, probability: float) -> Transition:
        """Return the model with restarts in ``state``, of the given probability in every round."""
        return P.restarting(state, probability) if probability else P

    def _probabilities(self) -> list[float]:
        """Return the planning horizon's restart probability, and smaller ones to try if it makes plans infeasible."""
        probability = self.planning_horizon.restart(self.rounds)
        if not self._trusted:
            probability = as_number(
                probability, "the restart probability", "a number from 0 to 1", lambda x: 0 <= x <= 1
            )
        probabilities = [probability]
        while UNLIKELY < probabilities[-1] < 1.0 / SHORT_HORIZON:
            probabilities.append(max(probabilities[-1] / FURTHER, UNLIKELY))
        return probabilities

    def _checked(self, targets: Any) -> Floats:
        """Return the targets of the ledger; check them if the ledger is a user's own."""
        if self._trusted:
            return np.asarray(targets)
        checked = as_numbers(targets, "the targets of a ledger")
        if checked.shape != self.thresholds.shape or not np.isfinite(checked).all():
            raise AgentError(f"the ledger must yield {self.thresholds.size} finite targets; got {quoted(targets)}")
        return checked

    def _sample(self, P: Transition, costs: Floats, state: int) -> Sample:
        if not P.eliminates:  # in a large model, exploration has the same horizon as plans
            P = self._ahead(P, state, self._probabilities()[0])
        return Sample(P, costs, state, self.counts, self.planner, self.rng, self.thresholds)

    def end(self, record: Record) -> None:
        """Learn from an episode, and enter it in the balances."""
        super().end(record)
        for part in self._balances():
            part.enter(record, self.thresholds)
        if self.doubt is not None:
            self.doubt.enter(record, interim=self._playing_interim)

    def _limits_changed(self, playing: Record | None) -> None:
        """Reset the balances: debts under the old thresholds are forgotten."""
        for part in self._balances():
            part.begin_again(playing, self.thresholds)
        if self.doubt is not None:
            self.doubt.begin_again()

    def _set_out(self, episode: Episode, planning_time: float = 0.0, interim: bool = False) -> Play:
        self._playing_interim = interim
        return super()._set_out(episode, planning_time, interim)

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        self._playing_interim = self._play is not None and self._play.interim

    def _balances(self) -> list[KeepsBalance]:
        """Return the parts that keep the balance of the run."""
        return [part for part in (self.ledger, self.commitment) if part is not None]
