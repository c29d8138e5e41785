r"""Posterior sampling with an online multiplier (Provodin et al. 2022, "An empirical evaluation of posterior sampling
for constrained reinforcement learning"), without solving any constrained program.

Each episode plays the policy that is optimal for :math:`c_0 + \lambda \cdot c` in a sampled model, and then moves the
multiplier along the gradient estimated from the observed costs:

.. math:: \lambda_i \leftarrow \Big[\lambda_i + \frac{\eta}{\sqrt t}\, \frac{u_0}{u_i^2}
          \sum_{s \in k} (c_i(s) - \tau_i)\Big]_+ , \qquad \lambda_i \le \lambda_{\max}\, \frac{u_0}{u_i}

with the sum over the rounds of episode k, t the rounds so far, and :math:`u_i` the range of cost i. A multiplier has
units of objective per cost, so its step per excess has units of objective per cost squared. In ranges, the rate
:math:`\eta` is dimensionless. The method is cheap, but sensitive to the rate and to the initial multipliers. It has no
guarantee like that of PSConRL.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.kernels.products import combine, dot
from psconrl.learning.checks import as_amounts, as_positive, saved_multipliers
from psconrl.learning.part import Part
from psconrl.learning.parts.fallbacks import NO_LIMITS
from psconrl.learning.parts.schedules import Ouyang, Schedule
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.sampler import Sampler
from psconrl.planning.scaling import cost_units


class LagrangianPSRL(Sampler):
    """Posterior sampling of the transitions, with gradient ascent on the multipliers.

    ``rate``: step size of the gradient, dimensionless: costs are measured in their ranges over all pairs (those of the
    learned means if costs are learned). ``start``: initial multipliers, objective per cost in the user's units.
    ``ceiling``: largest multipliers, range of the objective per range of the cost. The rest is as in PSConRL.
    """

    name: ClassVar[str] = "lagrangian"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": Dirichlet(),
        "schedule": Ouyang(),
        "cost_belief": EmpiricalMeans(),
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
        rate: float = 0.1,
        start: ArrayLike = 0.0,
        ceiling: float = 100.0,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self._set_up(belief, schedule, cost_belief, optimistic_cost, guessed_costs, cost_weight)
        self.rate, self.ceiling = as_positive(rate, "rate"), as_positive(ceiling, "ceiling")
        self.start = as_amounts(start, "start", self.thresholds.size)
        self.multipliers = np.broadcast_to(self.start, self.thresholds.shape).astype(np.float64)

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy for the Lagrangian at the present multipliers."""
        P = self._draw()
        costs = self._episode_costs()
        more = combine(self.multipliers, costs[1:].reshape(self.n_costs - 1, costs[0].size)).reshape(costs.shape[1:])
        weighted = costs[:1] + more
        max_steps, caps = self.schedule.caps(self.counts)
        try:
            choice = self.planner.optimal(P, weighted, NO_LIMITS, state)
        except SolverError:  # the sample cannot be solved in floating point
            choice = None
        if choice is None:
            return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
        expected = choice.value - dot(self.multipliers, self.thresholds)
        return Episode(choice.policy, max_steps, caps, "lagrangian", expected)

    def end(self, record: Record) -> None:
        """Learn from an episode, and update the multipliers by the excess over the thresholds."""
        super().end(record)
        excess = record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds
        unit = cost_units(self._known_or_mean_costs())
        step = self.rate / np.sqrt(max(self.rounds, 1)) * unit[0] / unit[1:] ** 2
        self.multipliers = np.clip(self.multipliers + step * excess, 0.0, self.ceiling * unit[0] / unit[1:])

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {"multipliers": self.multipliers}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        self.multipliers = saved_multipliers(state["multipliers"], self.thresholds.shape)
