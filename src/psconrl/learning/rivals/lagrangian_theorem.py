r"""Posterior sampling with an online multiplier, with constants for which a rate is proven.

Each episode plays the policy that is optimal for :math:`c_0 + \lambda \cdot c` in a sampled model. It ends after
:math:`\lceil t^{1/3} \rceil` rounds, or when the visits of a pair have doubled. Then the multipliers move along the
observed excess, and are projected on a simplex:

.. math:: \lambda \leftarrow \mathrm{proj}_{\{\lambda \ge 0,\ \sum_i \lambda_i \le \Lambda\}}
          \Big(\lambda + \frac{\Lambda}{\sqrt m\, t^{2/3}} \sum_{s \in k} (c(s) - \tau)\Big), \qquad
          \Lambda = \frac{2}{\zeta}

with t the rounds so far, m the number of constraints and :math:`\zeta` the Slater gap; costs are measured in their
ranges. If the belief is the exact posterior, and all models of the prior have a diameter of at most D, which the agent
need not know, and a Slater gap of at least :math:`\zeta`, Bayesian regret and violation are
:math:`\tilde O((1 + 1/\zeta)\, [(D + \sqrt m)\, T^{2/3} + D S \sqrt{A T} + S A\, T^{1/3}])`. ``LagrangianPSRL`` has
steps of order :math:`t^{-1/2}` and longer episodes, for which the proof gives nothing.

The proof is for known costs. It extends to learned ones if every pair always has the same costs, from 0 on: the first
visit of a pair ends an episode, and an untried pair is free. For costs drawn at random it needs the exact posterior of
the costs, too (``SampledCosts`` is that of a model of its own); means are not enough, since they do not make the agent
try a pair again.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import LARGEST_COST
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import as_gap, as_number
from psconrl.learning.part import Part
from psconrl.learning.parts.schedules import CubeRoot, Schedule
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet
from psconrl.learning.rivals.lagrangian_sampler import LagrangianSampler
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.planning.scaling import cost_units


class TheoremLagrangian(LagrangianSampler):
    """Posterior sampling of the transitions, with projected gradient ascent on the multipliers; regret T^(2/3).

    ``gap``: the Slater gap, by how much a policy can stay below the thresholds, in units of the constrained costs; a
    number or one per threshold. ``rate``: a factor of the step size, 1 as in the theorem; it changes the constants of
    the bounds only. Its parts are ``belief``, ``schedule`` and ``cost_belief``; the rest is as in PSConRL.
    """

    name: ClassVar[str] = "lagrangian-theorem"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap",)
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": Dirichlet(),
        "schedule": CubeRoot(),
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
        gap: ArrayLike = 0.1,
        rate: float = 1.0,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, belief=belief, schedule=schedule, cost_belief=cost_belief,
            optimistic_cost=optimistic_cost, guessed_costs=guessed_costs, cost_weight=cost_weight, seed=seed,
        )  # fmt: skip
        self.gap = as_gap(gap, self.thresholds.size)
        size = f"a positive number up to {LARGEST_COST:g}"  # so that every step is finite
        self.rate = as_number(rate, "rate", size, lambda x: 0 < x <= LARGEST_COST)

    def end(self, record: Record) -> None:
        """Learn from an episode, and update the multipliers by the excess over the thresholds."""
        super().end(record)
        if not self.thresholds.size:
            return
        unit = cost_units(self._known_or_mean_costs())
        excess = (record.cost_sums[1:].sum(axis=1) - record.steps * self.thresholds) / unit[1:]
        ceiling = self._ceiling(unit)
        step = self.rate * ceiling / np.sqrt(self.thresholds.size) / special.cbrt(float(max(self.rounds, 1))) ** 2
        prices = self.multipliers * unit[1:] / unit[0] + step * excess  # per range of the costs
        self.multipliers = projected_on_simplex(prices, ceiling) * unit[0] / unit[1:]

    def _ceiling(self, unit: Floats) -> float:
        r"""Return :math:`\Lambda`, twice the inverse of the least gap in ranges of the costs."""
        return 2.0 / float((self.gap / unit[1:]).min())


def projected_on_simplex(point: Floats, size: float) -> Floats:
    r"""Return the nearest point with :math:`x \ge 0` and :math:`\sum_i x_i \le` ``size``.

    It is :math:`[x_i - \nu]_+`, with the least :math:`\nu \ge 0` for which the sum is small enough. O(m log m).

    >>> projected_on_simplex(np.array([3.0, 2.0, -1.0]), 4.0).tolist()
    [2.5, 1.5, 0.0]
    """
    positive = np.maximum(point, 0.0)
    if positive.sum() <= size:
        return positive
    largest = np.sort(point)[::-1]
    shifts = (np.cumsum(largest) - size) / np.arange(1, point.size + 1)  # nu if the k largest stay positive
    nu = shifts[np.flatnonzero(largest > shifts)[-1]]
    return np.asarray(np.maximum(point - nu, 0.0))
