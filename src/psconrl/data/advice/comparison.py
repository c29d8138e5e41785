"""A policy beside the one that wrote a log, in the same draws of a posterior."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.data.posterior.row_posterior import Models, Posterior

EQUAL_AVERAGES = 1e-9  # relative difference of averages that are equal but for rounding
LEAST_DRAWS = 500
MOST_STORED = 20_000_000  # transitions of the models with which policies are verified, under one belief


@dataclass(frozen=True, eq=False)
class Compared:
    """A policy and that of the log in the same models, drawn from one posterior."""

    belief: str
    averages: Floats  # (n, m+1) of the policy, as costs
    today: Floats  # (n, m+1)
    thresholds: Floats  # (m,)

    @property
    def keeps(self) -> Floats:
        """Probabilities (m,) that each limit holds."""
        return np.asarray((self.averages[:, 1:] <= self.thresholds + self._rounding[1:]).mean(axis=0))

    @property
    def today_keeps(self) -> Floats:
        """Probabilities (m,) that each limit holds today."""
        return np.asarray((self.today[:, 1:] <= self.thresholds + self._rounding[1:]).mean(axis=0))

    @property
    def no_worse(self) -> float:
        """Probability that the objective is no worse than today's."""
        return float((self.averages[:, 0] <= self.today[:, 0] + self._rounding[0]).mean())

    @property
    def keeps_all(self) -> float:
        """Probability that all limits hold."""
        return float((self.averages[:, 1:] <= self.thresholds + self._rounding[1:]).all(axis=1).mean())

    @property
    def both(self) -> float:
        """Probability that all limits hold and the objective is no worse than today's."""
        held = (self.averages[:, 1:] <= self.thresholds + self._rounding[1:]).all(axis=1)
        return float((held & (self.averages[:, 0] <= self.today[:, 0] + self._rounding[0])).mean())

    @property
    def safety_of_limits(self) -> float:
        """Least slack of a limit in standard deviations of its average; infinite if there are none."""
        slack = self.thresholds + self._rounding[1:] - self.averages[:, 1:].mean(axis=0)
        return float(_ratio(slack, self.averages[:, 1:].std(axis=0)).min(initial=np.inf))

    @property
    def safety(self) -> float:
        """The same, or the gain in its standard deviations if that is less."""
        gained = self.today[:, 0] - self.averages[:, 0]
        gain = float(_ratio(gained.mean() + self._rounding[0], gained.std()))
        return min(self.safety_of_limits, gain)

    @property
    def _rounding(self) -> Floats:
        return np.asarray(EQUAL_AVERAGES * np.abs(np.vstack([self.averages, self.today])).max(axis=0))

    def gain(self, level: float) -> tuple[float, float, float]:
        """Return the mean of what the objective falls by, and its credible interval."""
        gained = self.today[:, 0] - self.averages[:, 0]
        low, high = np.quantile(gained, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        return float(gained.mean()), float(low), float(high)


class Verification:
    """Fresh draws of the posteriors, in which policies are compared with that of the log."""

    def __init__(
        self, posteriors: tuple[Posterior, ...], thresholds: Floats, draws: int, rng: np.random.Generator
    ) -> None:
        self._names, self._thresholds = [one.name for one in posteriors], thresholds
        numbers = [max(LEAST_DRAWS, int(min(draws, MOST_STORED / one.entries()))) for one in posteriors]
        self._blocks = [list(one.blocks(n, rng)) for one, n in zip(posteriors, numbers, strict=True)]
        self._today = [np.concatenate([models.today() for models in blocks]) for blocks in self._blocks]

    @property
    def models(self) -> Models:
        """Some of the models of the first belief."""
        return self._blocks[0][0]

    def of(self, policy: Floats) -> tuple[Compared, ...]:
        """Return a policy beside that of the log under every belief."""
        found = [np.concatenate([models.averages(policy) for models in blocks]) for blocks in self._blocks]
        return tuple(
            Compared(name, averages, now, self._thresholds)
            for name, averages, now in zip(self._names, found, self._today, strict=True)
        )


def _ratio(mean: ArrayLike, deviation: ArrayLike) -> Floats:
    """Return means in standard deviations; infinite if there is no deviation, with the sign of the mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(deviation, 0.0), np.sign(mean) * np.inf, np.divide(mean, deviation))
