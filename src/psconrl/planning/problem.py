"""The problem passed to the solvers: original transitions, scaled costs and thresholds."""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.kernels.arithmetic.products import combine
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition
from psconrl.planning.scaling import Scaling


class Problem(NamedTuple):
    """A CMDP in scaled costs. ``costs`` is (m+1, S*A); pairs that are not available cost 0 and are never played."""

    transition: Transition
    costs: Floats
    thresholds: Floats
    available: Bools
    scaling: Scaling

    @classmethod
    def of(cls, cmdp: CMDP) -> "Problem":
        """Return the scaled problem of a model."""
        P = cmdp.transition.dense_up_to(PLANNED_DENSE_STATES)
        return cls.scaled(P, cmdp.costs, cmdp.thresholds, cmdp.available)

    @classmethod
    def scaled(
        cls, transition: Transition, costs: Floats, thresholds: Floats, available: Bools, scaling: Scaling | None = None
    ) -> "Problem":
        """Scale costs (m+1, S, A) and thresholds (m,) in the user's units; by default on their own scale."""
        costs = np.ascontiguousarray(costs)  # those of a part of the states, costs[:, states], are not
        scaling = scaling or Scaling.of(costs, thresholds, available)
        return cls(transition, *scaling.apply(costs, thresholds, available), available, scaling)

    def with_transition(self, transition: Transition) -> "Problem":
        """Return the problem with other transitions, as in a learning loop."""
        return Problem(transition, self.costs, self.thresholds, self.available, self.scaling)

    def with_thresholds(self, thresholds: Floats) -> "Problem":
        """Return the problem with other thresholds, given in the user's units."""
        return self._replace(thresholds=self.scaling.apply_to_thresholds(thresholds))

    def priced(self, weights: Floats) -> Floats:
        """Return the weighted cost of every pair, (S, A); inf for pairs that are not available."""
        cost = combine(weights, self.costs).reshape(self.available.shape)
        return np.where(self.available, cost, np.inf)
