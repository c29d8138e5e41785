r"""Posterior sampling with an online multiplier (Provodin et al. 2022, "An empirical evaluation of posterior sampling
for constrained reinforcement learning"): no constrained program at all.

Each episode plays the policy that is optimal for :math:`c_0 + \lambda \cdot c` in a sampled model, and then moves the
multiplier along the gradient of what was observed:

.. math:: \lambda \leftarrow \big[\lambda + \eta\, (\bar c_k - \tau)\big]_+ , \qquad \lambda \le \lambda_{\max}

Cheap, but sensitive to the rate :math:`\eta` and to where it starts; no guarantee of the kind PSConRL has.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.errors import AgentError
from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_numbers, saved_floats, saved_policies
from psconrl.learning.counts import Record
from psconrl.learning.episode import Episode
from psconrl.learning.posterior import Dirichlet
from psconrl.learning.sampled import SampledPlanner
from psconrl.learning.schedule import schedule_named

NO_LIMITS = np.empty(0)


class LagrangianPSRL(Agent):
    """Posterior sampling of the transitions, gradient ascent on the multipliers.

    ``rate``: step of the gradient, in units of the objective per unit of cost, times the length of the episode over the
    square root of the rounds so far. ``start``: first multipliers. ``ceiling``: their largest value.
    """

    name: ClassVar[str] = "lagrangian"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        prior: ArrayLike | None = None,
        rate: float = 0.1,
        start: ArrayLike = 0.0,
        ceiling: float = 100.0,
        schedule: str = "ouyang",
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        if not rate > 0 or not ceiling > 0:
            raise AgentError(f"rate and ceiling must be positive; got {rate} and {ceiling}")
        self.belief = Dirichlet(1.0 / n_states if prior is None else prior, n_states, n_actions)
        self.rate, self.ceiling = float(rate), float(ceiling)
        self.start = as_numbers(start, "start")
        if self.start.shape not in ((), self.thresholds.shape) or not (self.start >= 0).all():
            raise AgentError(f"start must be a multiplier from 0 on, or one per threshold; got {start!r}")
        self.multipliers = np.broadcast_to(self.start, self.thresholds.shape).astype(np.float64)
        self.schedule_name, self.schedule = schedule, schedule_named(schedule)
        self.planner = SampledPlanner(n_states, n_actions)
        self._last_length = 1

    def _begin(self, state: int) -> Episode:
        P = self.belief.sample(self.counts, self.rng)
        costs = self._known_or_mean_costs()
        weighted = costs[:1] + np.tensordot(self.multipliers, costs[1:], axes=1)
        max_steps, caps = self.schedule(self.counts, self._last_length)
        choice = self.planner.optimal(P, weighted, NO_LIMITS, state)
        if choice is None:  # without limits nothing is infeasible: a sample beyond floating point
            return Episode(np.full((self.n_states, self.n_actions), 1.0 / self.n_actions), max_steps, caps, "uniform")
        return Episode(choice.policy, max_steps, caps, "lagrangian", choice.value)

    def _end(self, record: Record) -> None:
        self._last_length = record.steps
        excess = record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds
        step = self.rate / np.sqrt(max(self.rounds, 1))
        self.multipliers = np.clip(self.multipliers + step * excess, 0.0, self.ceiling)

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        return super().config() | {
            "prior": self.belief.prior,
            "rate": self.rate,
            "start": self.start,
            "ceiling": self.ceiling,
            "schedule": self.schedule_name,
        }

    def state(self) -> dict[str, Any]:
        """All that has changed since."""
        own = {"multipliers": self.multipliers, "last_length": self._last_length, "last": list(self.planner.last)}
        return super().state() | own

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self.multipliers = saved_floats(state["multipliers"], self.thresholds.shape, "multipliers")
        self._last_length = int(state["last_length"])
        self.planner.last = saved_policies(state["last"], self.n_states, self.n_actions)
