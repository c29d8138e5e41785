"""Costs scaled to [0, 1] by their ranges, for algorithms whose constants assume it."""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.planning.scaling import cost_units


class ObjectiveRange(NamedTuple):
    """The lowest and highest value that the objective may have, and the range of those that were met."""

    lowest: float
    highest: float
    unit: float

    @classmethod
    def grown(cls, met: Floats) -> "ObjectiveRange":
        """Return the range that values which were met suggest, if nothing else is known.

        Positive values are costs: the lowest is 0, the highest 1 or more. If there was a value of 0 or less, it may be
        a reward, and there may be larger ones: the lowest lies below the least that was met, by as much as that lies
        below the highest one or 0; by 1 if all are 0.

        >>> [tuple(ObjectiveRange.grown(np.array(met))) for met in ([0.5, 0.2], [0.0], [-1.0, -3.0], [2.0, -3.0])]
        [(0.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (-6.0, 0.0, 3.0), (-8.0, 2.0, 5.0)]
        """
        least, most = float(met.min()), max(float(met.max()), 0.0)
        highest = most if least < 0.0 else max(most, 1.0)
        if least > 0.0:
            return cls(0.0, highest, highest)
        return cls(least - (most - least or 1.0), highest, highest - least)


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

    def with_objective(self, lowest: float, highest: float) -> "CostScale":
        """Return the scale with another range of the objective."""
        if (lowest, highest) == (self.lowest[0], self.highest[0]):
            return self
        ends = [np.concatenate([[end], rest[1:]]) for end, rest in ((lowest, self.lowest), (highest, self.highest))]
        return CostScale(ends[0], ends[1], np.concatenate([[highest - lowest or 1.0], self.units[1:]]))

    def losses(self, costs: Floats) -> Floats:
        """Return costs (..., m+1) as losses, 0 for the lowest and 1 for the highest."""
        return np.asarray((costs - self.lowest) / self.units)

    def thresholds(self, thresholds: Floats) -> Floats:
        """Return thresholds (m,) of costs as thresholds of losses."""
        return np.asarray((thresholds - self.lowest[1:]) / self.units[1:])
