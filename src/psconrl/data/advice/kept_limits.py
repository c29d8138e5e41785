"""Limits and how sure it is that they hold: under the proposal and under today's policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.advice.comparison import Compared


@dataclass(frozen=True)
class KeptLimit:
    """A limit, in the units of the log.

    ``probability``: that the proposal keeps it, under the belief under which it is least; ``average``, ``low``,
    ``high``: of the proposal under the same belief. ``probability_today``: that today's policy keeps it.
    """

    name: str
    at_least: bool
    threshold: float
    probability: float
    average: float
    low: float
    high: float
    probability_today: float
    unit: str

    @classmethod
    def of(cls, i: int, name: str, sign: float, compared: tuple[Compared, ...], level: float, unit: str) -> "KeptLimit":
        """Return the limit of cost i."""
        least = min(compared, key=lambda one: float(one.keeps[i - 1]))
        own: Floats = sign * least.averages[:, i]
        low, high = np.quantile(own, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]).tolist()
        threshold = float(sign * least.thresholds[i - 1])
        today = min(float(one.today_keeps[i - 1]) for one in compared)
        return cls(
            name, sign < 0.0, threshold, float(least.keeps[i - 1]), float(own.mean()), low, high, today, unit
        )  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))

    def __str__(self) -> str:
        relation = ">=" if self.at_least else "<="
        return (
            f"{self.name} {relation} {self.threshold:g}: holds with probability {self.probability:.1%} "
            f"({self.average:.4g}, {self.low:.4g} to {self.high:.4g}); today {self.probability_today:.1%}"
        )
