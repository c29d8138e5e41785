"""Means, intervals, comparisons and growth rates over runs.

Intervals are percentile bootstraps over runs. They assume nothing about the distribution, but are too narrow with fewer
than ten runs. The resampling is seeded, so the same results give the same report. Verdicts between agents come from
paired t-tests, corrected for the number of pairs (Bonferroni), and are not given for fewer than ten runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from psconrl.arrays import Floats, Ints
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.numbers import format_number

RESAMPLES = 2000
FEW_RUNS = 10
# Smaller regrets are rounding residue, without a growth rate.
NEGLIGIBLE_REGRET = 1e-6
LEVEL = 0.95
# The growth exponent is fitted to the last decade of a run.
DECADE = 10.0
FIT_POINTS = 12


@dataclass(frozen=True, eq=False)
class MeanInterval:
    """A mean with its 95% interval: arrays of the same shape, or numbers."""

    mean: Floats
    low: Floats
    high: Floats

    def __str__(self) -> str:
        """Format the estimate as in a table.

        >>> str(MeanInterval(np.float64(12.345), np.float64(10.0), np.float64(5380.2)))
        '12.3 [10, 5,380]'
        """
        mean, low, high = (format_number(float(x)) for x in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]" if self.has_interval else mean

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval; a single run has none."""
        return not (np.isnan(self.low) or np.isnan(self.high))


@dataclass(frozen=True)
class Comparison:
    """Difference of a final quantity between two agents, over runs paired by their environment seed."""

    first: str
    second: str
    difference: MeanInterval
    runs: int
    p_value: float  # of a paired t-test; nan if there are too few runs


def mean_interval(values: Floats) -> MeanInterval:
    """Return the mean over the first axis, the runs, with its interval.

    >>> estimate = mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> float(estimate.mean), bool(estimate.low < 2.5 < estimate.high)
    (2.5, True)
    """
    runs = len(values)
    mean = values.mean(axis=0)
    if runs < 2:
        return MeanInterval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    return MeanInterval(mean, *interval(np.tensordot(resample_weights(runs), values, axes=1)))


def interval(resampled: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% interval of resamples (the first axis)."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def growth_exponent(rounds: Ints, regret: Floats) -> MeanInterval:
    """Return the log-log slope of the mean regret in T over the last decade of a run; regret is (runs, n).

    >>> t = np.arange(100, 10_001, 100)
    >>> slope = growth_exponent(t, np.sqrt(t) * np.array([[1.0], [2.0], [3.0]]))
    >>> round(float(slope.mean), 3)
    0.5
    """
    unknown = _numbers(np.nan, np.nan, np.nan)
    wanted = np.geomspace(max(rounds[-1] / DECADE, rounds[0]), rounds[-1], FIT_POINTS)
    at = np.unique(np.searchsorted(rounds, wanted).clip(max=rounds.size - 1))
    if at.size < 3:
        return unknown
    x = np.log(rounds[at]) - np.log(rounds[at]).mean()
    means = np.tensordot(resample_weights(len(regret)), regret[:, at], axes=1)
    every = np.vstack([regret[:, at].mean(axis=0), means])
    usable = np.asarray((every > NEGLIGIBLE_REGRET).all(axis=1))
    if not usable[0]:
        return unknown
    slopes = np.log(every[usable]) @ x / (x @ x)
    if len(regret) < 2 or usable.mean() < LEVEL:
        return _numbers(slopes[0], np.nan, np.nan)
    return MeanInterval(np.asarray(slopes[0]), *interval(slopes[1:]))


def compare(first: Curves, second: Curves, score: Callable[[Curves], Floats]) -> Comparison:
    """Compare the scores (runs,) of two agents over the runs that both have."""
    _, one, two = np.intersect1d(first.replicates, second.replicates, return_indices=True)
    difference = score(first)[one] - score(second)[two]
    estimate = mean_interval(difference) if difference.size else _numbers(np.nan, np.nan, np.nan)
    p_value = np.nan
    if difference.size >= FEW_RUNS:
        spread = difference.std(ddof=1) / np.sqrt(difference.size)
        t = abs(difference.mean()) / spread if spread > 0 else (np.inf if difference.any() else 0.0)
        p_value = float(2 * student.sf(t, difference.size - 1))
    return Comparison(first.title, second.title, estimate, int(difference.size), p_value)


def final(measure: Measure, experiment: Experiment, curves: Curves) -> MeanInterval:
    """Return a measure after the last round."""
    return mean_interval(measure.values(experiment, curves)[:, -1])


def final_cost(curves: Curves, prices: Sequence[float] = ()) -> Floats:
    """Return the final regret plus the final violations weighted by prices, (runs,)."""
    return curves.at_prices(prices)[:, -1]


def _numbers(mean: float, low: float, high: float) -> MeanInterval:
    return MeanInterval(np.asarray(mean), np.asarray(low), np.asarray(high))


def resample_weights(runs: int) -> Floats:
    """Return the weight of every run in each resample, (resamples, runs), which depend on the number of runs only."""
    rng = np.random.default_rng(0)
    return np.asarray(rng.multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES) / runs)
