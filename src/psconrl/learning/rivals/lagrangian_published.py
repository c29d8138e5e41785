r"""Posterior sampling with an online multiplier, as in the authors' published code (``PSRLLagrangian``).

An episode draws transitions from :math:`\mathrm{Dirichlet}(\max(N(s,a,\cdot), 0.01))`, and plays the policy that is
optimal for :math:`c_0 + \lambda \cdot c`. It ends once a pair has been visited :math:`3 (1 + N)` times. Then the
multipliers move by a constant step on the average excess of the episode:

.. math:: \lambda_i \leftarrow \Big[\lambda_i + \eta \Big(\frac{1}{L} \sum_{s \in k} c_i(s) - \tau_i\Big)\Big]_+

with L the length of episode k. Costs are learned as in ``PublishedMeans``. An excess counts alike whether the episode
was short or long. ``LagrangianPSRL`` is this library's own version, with other step sizes.

One thing differs from their code. It finds the policy by relative value iteration, which stops once the values of all
states change by the same up to 0.001, or after 50,000 sweeps, and breaks ties at random. Here the sample is planned
exactly.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.caps import LARGEST_COST
from psconrl.learning.argument_checks import as_number
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import Published, Schedule
from psconrl.learning.posterior.cost_beliefs import CostBelief, PublishedMeans
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.transition_beliefs import Belief, FlooredCounts
from psconrl.learning.rivals.lagrangian_sampler import LagrangianSampler
from psconrl.learning.runtime.constraint_names import Thresholds


class PublishedLagrangian(LagrangianSampler):
    """Lagrangian PSRL of the authors' code: a constant step on the average excess of every episode.

    ``rate``: step size, objective per squared cost. The authors' script has 2.9 on Marsrover 4x4, 0.0035 on 8x8 (the
    default) and 0.000165 on Box. Its parts are ``belief``, ``schedule`` and ``cost_belief``; the rest is as in PSConRL.
    """

    name: ClassVar[str] = "lagrangian-published"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": FlooredCounts(0.01),
        "schedule": Published(),
        "cost_belief": PublishedMeans(),
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
        rate: float = 0.0035,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, belief=belief, schedule=schedule, cost_belief=cost_belief,
            optimistic_cost=optimistic_cost, guessed_costs=guessed_costs, cost_weight=cost_weight, seed=seed,
        )  # fmt: skip
        size = f"a positive number up to {LARGEST_COST:g}"  # so that every step is finite
        self.rate = as_number(rate, "rate", size, lambda x: 0 < x <= LARGEST_COST)

    def end(self, record: Record) -> None:
        """Learn from an episode, and move the multipliers by its average excess over the thresholds."""
        super().end(record)
        averages = record.cost_sums[1:].sum(axis=1) / record.steps
        self.multipliers = np.maximum(self.multipliers + self.rate * (averages - self.thresholds), 0.0)
