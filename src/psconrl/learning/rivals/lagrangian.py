r"""Posterior sampling with an online multiplier (Provodin et al. 2022, "An empirical evaluation of posterior sampling
for constrained reinforcement learning"), without solving any constrained program.

Each episode plays the policy that is optimal for :math:`c_0 + \lambda \cdot c` in a sampled model, and then moves the
multiplier along the gradient estimated from the observed costs:

.. math:: \lambda_i \leftarrow \Big[\lambda_i + \frac{\eta}{\sqrt t}\, \frac{u_0}{u_i^2}
          \sum_{s \in k} (c_i(s) - \tau_i)\Big]_+ , \qquad \lambda_i \le \lambda_{\max}\, \frac{u_0}{u_i}

with the sum over the rounds of episode k, t the rounds so far, and :math:`u_i` the range of cost i. A multiplier has
units of objective per cost, so its step per excess has units of objective per cost squared. In ranges, the rate
:math:`\eta` is dimensionless. The method is cheap, but sensitive to the rate and to the initial multipliers. No bound
is known for these steps; ``TheoremLagrangian`` has others, with one.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.learning.argument_checks import as_amounts, as_positive
from psconrl.learning.parts.schedules import Schedule
from psconrl.learning.posterior.cost_beliefs import CostBelief
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.learning.rivals.lagrangian_sampler import LagrangianSampler
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.planning.scaling import cost_units


class LagrangianPSRL(LagrangianSampler):
    """Posterior sampling of the transitions, with gradient ascent on the multipliers.

    ``rate``: step size of the gradient, dimensionless: costs are measured in their ranges over all pairs (those of the
    learned means if costs are learned). ``start``: initial multipliers, objective per cost in the user's units.
    ``ceiling``: largest multipliers, range of the objective per range of the cost. The rest is as in PSConRL.
    """

    name: ClassVar[str] = "lagrangian"

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
        super().__init__(
            n_states, n_actions, thresholds, costs, belief=belief, schedule=schedule, cost_belief=cost_belief,
            optimistic_cost=optimistic_cost, guessed_costs=guessed_costs, cost_weight=cost_weight, seed=seed,
        )  # fmt: skip
        self.rate, self.ceiling = as_positive(rate, "rate"), as_positive(ceiling, "ceiling")
        self.start = as_amounts(start, "start", self.thresholds.size)
        self.multipliers = np.broadcast_to(self.start, self.thresholds.shape).astype(np.float64)

    def end(self, record: Record) -> None:
        """Learn from an episode, and update the multipliers by the excess over the thresholds."""
        super().end(record)
        excess = record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds
        unit = cost_units(self._known_or_mean_costs())
        step = self.rate / np.sqrt(max(self.rounds, 1)) * unit[0] / unit[1:] ** 2
        self.multipliers = np.clip(self.multipliers + step * excess, 0.0, self.ceiling * unit[0] / unit[1:])
