r"""PSConRL: posterior sampling for constrained reinforcement learning (Provodin, Kaptein and Pechenizkiy, ICML 2024).

Each episode draws transitions from the posterior. If some policy of the sampled model meets the thresholds, the optimal
one is played; if none does, the agent explores: it takes the shortest path to the state visited least, which makes
infeasible samples ever rarer. Bayesian regret :math:`\tilde O(D S \sqrt{A T})` for every cost in communicating CMDPs
(Theorem 4.1). Needs neither horizon, span, mixing time nor a safe policy.

The stopping rule is Ouyang et al.'s; see ``schedules.Ouyang`` for how the paper's text differs.

CMDP-PSRL (Agarwal, Bai and Aggarwal 2022) is the same with other parts, as the registry has it: epochs end on doubling
only, and while the sample is infeasible the limits are ignored. In an ergodic model every policy explores, so that this
is harmless. In a communicating one it need not be: on Example 1 of the PSConRL paper it breaks the limit for ever.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, SolverError
from psconrl.learning.contract import Episode
from psconrl.learning.counts import Record
from psconrl.learning.episode_planner import Choice
from psconrl.learning.parts.beliefs import Belief, Dirichlet
from psconrl.learning.parts.fallbacks import Explore, Fallback, Sample
from psconrl.learning.parts.ledger import Ledger
from psconrl.learning.parts.part import Part
from psconrl.learning.parts.schedules import Ouyang, Schedule
from psconrl.learning.sampler import Sampler
from psconrl.model.transition import Transition


class PSConRL(Sampler):
    """Posterior sampling with exploration whenever the sampled model is infeasible.

    ``costs``: (m+1, S, A) if known; else they are learned as empirical means, untried pairs counting as free. That is
    optimistic while costs are not negative; if the objective is a reward, give minus the largest possible reward as
    ``optimistic_cost``, which then counts as one observation of every pair.

    Its parts: ``belief``, by default ``Dirichlet()`` with the prior 1/S; ``schedule``, when to think again, by default
    ``Ouyang()``; ``fallback``, what to play if the sample is infeasible, by default ``Explore()``, the others being for
    comparison; ``ledger``, by default none, as in the paper: ``Repay(0.1)`` makes up for what was spent beyond a limit.
    """

    name: ClassVar[str] = "psconrl"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": Dirichlet(),
        "schedule": Ouyang(),
        "fallback": Explore(),
        "ledger": None,
    }

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        belief: Belief | None = None,
        schedule: Schedule | None = None,
        fallback: Fallback | None = None,
        ledger: Ledger | None = None,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, belief, schedule, optimistic_cost, seed)
        self.fallback: Fallback = self._part("fallback", fallback)
        self.ledger: Ledger | None = self._part("ledger", ledger)

    def begin(self, state: int) -> Episode:
        """Draw a model; play its optimal policy, or the fallback if it has none that keeps the limits."""
        P = self._draw()
        costs = self._known_or_mean_costs()
        max_steps, caps = self.schedule.limits(self.counts)
        try:
            planned = self._optimal(P, costs, state)
            if planned is not None:
                kind, choice = planned
                return Episode(choice.policy, max_steps, caps, kind, choice.value)
            instead = self.fallback.infeasible(self._sample(P, costs, state))
        except SolverError:  # a sample beyond floating point
            instead = self.fallback.unsettled(self._sample(P, costs, state))
        return Episode(instead.policy, max_steps, caps, instead.kind, instead.value)

    def _optimal(self, P: Transition, costs: Floats, state: int) -> tuple[str, Choice] | None:
        """The plan that keeps the limits, or those below them that the ledger asks for; None if no policy does."""
        thresholds = self.thresholds
        limits = (thresholds,) if self.ledger is None else self.ledger.targets(thresholds, self.rounds)
        for targets in limits:
            if targets is not thresholds and np.shape(targets) != thresholds.shape:
                raise AgentError(f"the ledger must ask for {thresholds.size} limits; got {targets!r}")
            choice = self.planner.optimal(P, costs, targets, state)
            if choice is not None:
                return "optimal" if self.ledger is None or targets is thresholds else self.ledger.name, choice
        return None

    def _sample(self, P: Transition, costs: Floats, state: int) -> Sample:
        return Sample(P, costs, state, self.counts, self.planner, self.rng)

    def end(self, record: Record) -> None:
        """Learn from an episode, and book it."""
        super().end(record)
        if self.ledger is not None:
            self.ledger.enter(record, self.thresholds)

    def _limits_changed(self, playing: Record | None) -> None:
        """Debts under the old limits are forgotten."""
        if self.ledger is not None:
            self.ledger.begin_anew(playing, self.thresholds)
