"""Optimistic planning over a confidence box, in the user's units, for UCRL-CMDP and UC-CURL."""

from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.kernels.products import combine
from psconrl.learning.parts.radii import Box
from psconrl.planning.mixture.column_generation import Mixture
from psconrl.planning.optimism.average import OptimisticColumn, optimistic_policy, solve_optimistic
from psconrl.planning.scaling import Scaling


class BoxPlan(NamedTuple):
    """The optimistic plan, or the plan of least excess if the constraints are infeasible even in the best model."""

    mixture: Mixture[OptimisticColumn]
    value: float  # the optimistic average objective, as a cost

    @property
    def feasible(self) -> bool:
        """True if the plan satisfies the constraints."""
        return self.mixture.feasible

    def policy(self, n_actions: int, rng: np.random.Generator) -> Floats:
        """Return a policy (S, A) with the averages of the plan; if the columns never meet, one of them, at random."""
        return optimistic_policy(self.mixture, n_actions, rng)


def plan_in_box(box: Box, costs: Floats, thresholds: Floats) -> BoxPlan:
    """Plan with costs (m+1, S, A) for thresholds (m,). Raise ``SolverError`` if the plan cannot be certified."""
    everything = np.ones(costs.shape[1:], dtype=bool)
    scaling = Scaling.of(costs, thresholds, everything)
    mixture = solve_optimistic(box.low, box.high, *scaling.apply(costs, thresholds, everything))
    value = scaling.invert(combine(mixture.shares, np.array([column.costs for column in mixture.answers])))[0]
    return BoxPlan(mixture, float(value))
