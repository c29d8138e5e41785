"""The best policy in the best model of a confidence box, in the user's units: what UCRL-CMDP and UC-CURL plan with."""

from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.kernels.products import combine
from psconrl.learning.parts.radii import Box
from psconrl.planning.mixture.column_generation import Mixture
from psconrl.planning.optimism.average import OptimisticColumn, optimistic_policy, solve_optimistic
from psconrl.planning.scaling import Scaling


class BoxPlan(NamedTuple):
    """The optimum, or what is nearest to the limits if not even the best model keeps them."""

    mixture: Mixture[OptimisticColumn]
    value: float  # the average objective that it hopes for, as a cost

    @property
    def feasible(self) -> bool:
        """Does it keep the limits?"""
        return self.mixture.feasible

    def policy(self, n_actions: int, rng: np.random.Generator) -> Floats:
        """A policy (S, A) with its averages; drawn by lot where its columns never meet."""
        return optimistic_policy(self.mixture, n_actions, rng)


def plan_in_box(box: Box, costs: Floats, thresholds: Floats) -> BoxPlan:
    """Plan for limits, with costs (m+1, S, A). Raises ``SolverError`` where that could not be settled."""
    everything = np.ones(costs.shape[1:], dtype=bool)
    scaling = Scaling.of(costs, thresholds, everything)
    mixture = solve_optimistic(box.low, box.high, *scaling.apply(costs, thresholds, everything))
    value = scaling.invert(combine(mixture.shares, np.array([column.costs for column in mixture.answers])))[0]
    return BoxPlan(mixture, float(value))
