"""Costs scaled to [0, 1] by their ranges, for algorithms whose constants assume it."""

from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.planning.scaling import cost_units


class CostScale(NamedTuple):
    """The lowest and highest value of every cost, and its unit, (m+1,) each.

    >>> scale = CostScale.of(np.array([[[0.0, 100.0]], [[7.0, 7.0]]]), None, 2)
    >>> scale.losses(np.array([[25.0, 7.0]])).tolist(), scale.thresholds(np.array([10.5])).tolist()
    ([[0.25, 0.0]], [0.5])
    """

    lowest: Floats
    highest: Floats
    units: Floats

    @classmethod
    def of(cls, costs: Floats | None, ranges: Floats | None, n_costs: int) -> "CostScale":
        """Return the scale of given ranges (m+1, 2), else of known costs (m+1, S, A), else from 0 to 1."""
        if ranges is not None:
            return cls(ranges[:, 0].copy(), ranges[:, 1].copy(), ranges[:, 1] - ranges[:, 0])
        if costs is not None:
            return cls(costs.min(axis=(1, 2)), costs.max(axis=(1, 2)), cost_units(costs))
        return cls(np.zeros(n_costs), np.ones(n_costs), np.ones(n_costs))

    def losses(self, costs: Floats) -> Floats:
        """Return costs (..., m+1) as losses, 0 for the lowest and 1 for the highest."""
        return np.asarray((costs - self.lowest) / self.units)

    def thresholds(self, thresholds: Floats) -> Floats:
        """Return thresholds (m,) of costs as thresholds of losses."""
        return np.asarray((thresholds - self.lowest[1:]) / self.units[1:])
