"""The base class of posterior samplers that price the costs with multipliers, in place of constrained programs."""

from typing import ClassVar

import numpy as np

from psconrl.base.caps import LARGEST_COST
from psconrl.errors import AgentError
from psconrl.kernels.arithmetic.products import combine, dot
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.sampler import Sampler
from psconrl.model.validation import in_range


class LagrangianSampler(Sampler):
    """A posterior sampler whose episodes play the optimal policy for the Lagrangian in a sampled model."""

    keeps_multipliers: ClassVar[bool] = True

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy for the Lagrangian at the present multipliers."""
        P = self._draw()
        costs = self._episode_costs()
        prices = combine(self.multipliers, costs[1:].reshape(self.n_costs - 1, costs[0].size)).reshape(costs[0].shape)
        lagrangian, constant = costs[:1] + prices, dot(self.multipliers, self.thresholds)
        if not in_range(np.append(lagrangian, constant)).all():
            raise AgentError(
                f"{self.name}: a multiplier of {self.multipliers.max():.3g} is too large to plan with (priced costs "
                f"must be at most {LARGEST_COST:g}); take a smaller rate, or larger units of the costs"
            )
        basis = EpisodePlan(P, costs, self.thresholds, self.multipliers.copy(), sampled=P)
        return self._minimising(P, lagrangian, state, "lagrangian", basis, constant)
