r"""Posterior sampling with an online multiplier (Provodin et al. 2022, "An empirical evaluation of posterior sampling
for constrained reinforcement learning"): no constrained program at all.

Each episode plays the policy that is optimal for :math:`c_0 + \lambda \cdot c` in a sampled model, and then moves the
multiplier along the gradient of what was observed:

.. math:: \lambda_i \leftarrow \Big[\lambda_i + \frac{\eta}{\sqrt t}\, \frac{u_0}{u_i^2}
          \sum_{s \in k} (c_i(s) - \tau_i)\Big]_+ , \qquad \lambda_i \le \lambda_{\max}\, \frac{u_0}{u_i}

over the rounds of episode k, t the rounds so far, :math:`u_i` the range of cost i. A multiplier is objective per cost,
so a step per excess is objective per cost squared: in ranges, the rate :math:`\eta` is a plain number. Cheap, but
sensitive to it and to where it starts; no guarantee of the kind PSConRL has.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.learning.agent import Agent
from psconrl.learning.checks import saved_floats, saved_policies
from psconrl.learning.counts import Record
from psconrl.learning.episode import Episode
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.options import as_amounts, as_positive, check_optimistic_cost
from psconrl.learning.posterior import Dirichlet
from psconrl.learning.schedule import schedule_named
from psconrl.learning.units import cost_units

NO_LIMITS = np.empty(0)


class LagrangianPSRL(Agent):
    """Posterior sampling of the transitions, gradient ascent on the multipliers.

    ``rate``: step of the gradient, a plain number: costs are measured in their ranges over all pairs (if they are
    learned, in those of the means so far). ``start``: first multipliers, objective per cost in the user's units.
    ``ceiling``: the largest ones, range of the objective per range of the cost. ``optimistic_cost``: as in PSConRL.
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
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.rate, self.ceiling = as_positive(rate, "rate"), as_positive(ceiling, "ceiling")
        self.belief = Dirichlet(1.0 / n_states if prior is None else prior, n_states, n_actions)
        self.start = as_amounts(start, "start", self.thresholds.size)
        self.optimistic_cost = check_optimistic_cost(optimistic_cost)
        self.multipliers = np.broadcast_to(self.start, self.thresholds.shape).astype(np.float64)
        self.schedule_name, self.schedule = schedule, schedule_named(schedule)
        self.planner = EpisodePlanner(n_states, n_actions)
        self._last_length = 1

    def _begin(self, state: int) -> Episode:
        P = self.belief.sample(self.counts, self.rng)
        costs = self._known_or_mean_costs()
        weighted = costs[:1] + np.tensordot(self.multipliers, costs[1:], axes=1)
        max_steps, caps = self.schedule(self.counts, self._last_length)
        try:
            choice = self.planner.optimal(P, weighted, NO_LIMITS, state)
        except SolverError:  # a sample beyond floating point
            choice = None
        if choice is None:
            return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
        expected = choice.value - float(self.multipliers @ self.thresholds)
        return Episode(choice.policy, max_steps, caps, "lagrangian", expected)

    def _end(self, record: Record) -> None:
        self._last_length = record.steps
        excess = record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds
        unit = cost_units(self._known_or_mean_costs())
        step = self.rate / np.sqrt(max(self.rounds, 1)) * unit[0] / unit[1:] ** 2
        self.multipliers = np.clip(self.multipliers + step * excess, 0.0, self.ceiling * unit[0] / unit[1:])

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        return super().config() | {
            "prior": self.belief.prior,
            "rate": self.rate,
            "start": self.start,
            "ceiling": self.ceiling,
            "schedule": self.schedule_name,
            "optimistic_cost": self.optimistic_cost,
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
