r"""PSConRL: posterior sampling for constrained reinforcement learning (Provodin, Kaptein and Pechenizkiy, ICML 2024).

Each episode draws transitions from the posterior. If some policy of the sampled model meets the thresholds, the optimal
one is played; if none does, the agent explores: it takes the shortest path to the state visited least, which makes
infeasible samples ever rarer. Bayesian regret :math:`\tilde O(D S \sqrt{A T})` for every cost in communicating CMDPs
(Theorem 4.1). Needs neither horizon, span, mixing time nor a safe policy.

That is the paper's algorithm, the recipe ``psconrl-paper``, with its prior and Ouyang et al.'s stopping rule; see
``schedules.Ouyang`` for how the paper's text differs. What this library plays by default has other parts, which
benchmarks/study.py chose: a prior that is learned, longer episodes, a ledger by which every limit is met over the whole
run, and plans that do not wait for miracles. docs/theory.md says what is proven of which.

CMDP-PSRL (Agarwal, Bai and Aggarwal 2022) is the same with other parts, as the registry has it: epochs end on doubling
only, and while the sample is infeasible the limits are ignored. In an ergodic model every policy explores, so that this
is harmless. In a communicating one it need not be: on Example 1 of the PSConRL paper it breaks the limit for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.occupancy import one_hot
from psconrl.learning.checks import as_number, as_numbers
from psconrl.learning.episode_planner import UNLIKELY, Choice
from psconrl.learning.part import Part
from psconrl.learning.parts.commitment import Commitment, RandomisedPlan, WhenSlow
from psconrl.learning.parts.fallbacks import Explore, Fallback, Sample
from psconrl.learning.parts.ledger import Balance, Ledger
from psconrl.learning.parts.planning_horizons import PlanningHorizon, Proportional
from psconrl.learning.parts.schedules import Schedule, SquareRoot
from psconrl.learning.posterior.beliefs import Belief
from psconrl.learning.posterior.cost_beliefs import CostBelief, SampledCosts
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.sampler import Sampler
from psconrl.model.transition import Transition

USUAL_LEDGER = Balance(0.1)  # with names, since None is none at all
USUAL_COMMITMENT = WhenSlow(0.05)
# Where limits cannot be met as soon as the outlook has it, look so many times further; but while it is shorter than so
# many rounds, explore instead, which costs little then.
FURTHER = 100.0
SHORT = 300.0


class PSConRL(Sampler):
    """Posterior sampling with exploration whenever the sampled model is infeasible.

    ``thresholds``: (m,) in the order of the costs, or by name, ``{"delay": 2.0, "power": 0.3}``, in that order, too.
    ``costs``: (m+1, S, A) if known; else they are learned. What the objective may be where nothing is known is 0, which
    is optimistic while costs are not negative; if the objective is a reward, give minus the largest possible reward as
    ``optimistic_cost``. ``guessed_costs`` (m+1, S, A) count as ``cost_weight`` observations, a number or one for every
    pair; None: how much they are worth is learned. ``trusting`` makes an agent of a rough model.

    Its parts: ``belief``, how scattered transitions are and where they lead; ``cost_belief``, what costs are taken to
    be while they are learned; ``schedule``, when to think again; ``fallback``, what to play if the sample is
    infeasible; ``ledger``, which makes up for what was spent beyond a limit, and spends what was left (None for no
    ledger, as in the paper); ``outlook``, how far ahead plans look; ``commitment``, when to play one deterministic
    policy instead of a randomised plan (None for never).
    """

    name: ClassVar[str] = "psconrl"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": LearnedMass(),
        "schedule": SquareRoot(),
        "cost_belief": SampledCosts(),
        "fallback": Explore(),
        "ledger": USUAL_LEDGER,
        "planning_horizon": Proportional(),
        "commitment": USUAL_COMMITMENT,
    }

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
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, belief, schedule, cost_belief, optimistic_cost, guessed_costs,
            cost_weight, seed,
        )  # fmt: skip
        self.fallback: Fallback = self._part("fallback", fallback)
        self.ledger: Ledger | None = None if ledger is None else self._part("ledger", ledger)
        self.planning_horizon: PlanningHorizon = self._part("planning_horizon", planning_horizon)
        self.commitment: Commitment | None = None if commitment is None else self._part("commitment", commitment)

    def begin(self, state: int) -> Episode:
        """Draw a model; play its optimal policy, or the fallback if it has none that keeps the limits."""
        P = self._draw()
        costs = self._episode_costs()
        max_steps, caps = self.schedule.limits(self.counts)
        try:
            planned = self._optimal(P, costs, state)
            if planned is not None:
                kind, choice = planned
                policy = self._committed(P, costs, state, choice, max_steps)
                return Episode(policy, max_steps, caps, kind, choice.value)
            instead = self.fallback.infeasible(self._sample(P, costs, state))
        except SolverError:  # a sample beyond floating point
            instead = self.fallback.unsettled(self._sample(P, costs, state))
        return Episode(instead.policy, max_steps, caps, instead.kind, instead.value)

    def _optimal(self, P: Transition, costs: Floats, state: int) -> tuple[str, Choice] | None:
        """The plan that keeps the limits, or those below them that the ledger asks for; None if no policy does."""
        probabilities = self._probabilities()
        ahead = self._ahead(P, state, probabilities[0])
        if self.ledger is not None:
            for targets in self.ledger.targets(self.thresholds, self.rounds):
                if targets is not self.thresholds:
                    choice = self.planner.optimal(ahead, costs, self._checked(targets), state)
                    if choice is not None:
                        return self.ledger.name, choice
        choice = self.planner.optimal(ahead, costs, self.thresholds, state)
        for probability in probabilities[1:]:
            if choice is None:
                choice = self.planner.optimal(self._ahead(P, state, probability), costs, self.thresholds, state)
        return None if choice is None else ("optimal", choice)

    def _committed(self, P: Transition, costs: Floats, state: int, choice: Choice, steps: int) -> Floats:
        """The policy of a plan, or that of its deterministic policies to which the agent commits itself."""
        if self.commitment is None or choice.columns is None:
            return choice.policy
        steps = min(steps, max(1, self.rounds))  # some schedules know no other bound
        chosen = self.commitment.choose(
            RandomisedPlan(
                choice.policy, choice.columns, P, costs, self.thresholds, state, steps, self.rounds, self.ledger,
                self.rng,
            )
        )  # fmt: skip
        return choice.policy if chosen is None else one_hot(choice.columns.policies[chosen], self.n_actions)

    def _ahead(self, P: Transition, state: int, probability: float) -> Transition:
        """The model of a plan that begins anew, here, with a chance in every round."""
        return P.restarting(state, probability) if probability else P

    def _probabilities(self) -> list[float]:
        """The chance of a restart that the outlook has, and smaller ones, should the limits not be met that soon."""
        probability = self.planning_horizon.restart(self.rounds)
        if not self._trusted:
            probability = as_number(
                probability, "the chance of an outlook", "a number from 0 to 1", lambda x: 0 <= x <= 1
            )
        probabilities = [probability]
        while UNLIKELY < probabilities[-1] < 1.0 / SHORT:
            probabilities.append(max(probabilities[-1] / FURTHER, UNLIKELY))
        return probabilities

    def _checked(self, targets: Any) -> Floats:
        """The limits of a ledger; one of somebody else's may ask for anything."""
        if self._trusted:
            return np.asarray(targets)
        limits = as_numbers(targets, "the limits of a ledger")
        if limits.shape != self.thresholds.shape or not np.isfinite(limits).all():
            raise AgentError(f"the ledger must ask for {self.thresholds.size} finite limits; got {targets!r}")
        return limits

    def _sample(self, P: Transition, costs: Floats, state: int) -> Sample:
        if P.is_sparse:  # whoever explores a large model looks as far ahead as plans do
            P = self._ahead(P, state, self._probabilities()[0])
        return Sample(P, costs, state, self.counts, self.planner, self.rng, self.thresholds)

    def end(self, record: Record) -> None:
        """Learn from an episode, and book it."""
        super().end(record)
        if self.ledger is not None:
            self.ledger.enter(record, self.thresholds)

    def _limits_changed(self, playing: Record | None) -> None:
        """Debts under the old limits are forgotten."""
        if self.ledger is not None:
            self.ledger.begin_again(playing, self.thresholds)
