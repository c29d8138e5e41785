"""Means, intervals and comparisons over runs.

Intervals are percentile bootstraps over runs. They assume nothing about the distribution, but are too narrow with fewer
than ten runs. The resampling is seeded, so the same results give the same report. Metrics of the paper have the
standard deviation over runs instead, as in its figures. Verdicts between agents come from
paired t-tests, corrected for the number of pairs (Bonferroni), and are not given for fewer than ten runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import t as student

from psconrl.arrays import Floats
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.number_format import format_number

RESAMPLES = 2000
FEW_RUNS = 10
LEVEL = 0.95


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


class MeanDeviation(MeanInterval):
    """A mean with the standard deviation over runs, below and above it."""

    def __str__(self) -> str:
        """Format the estimate as in a table.

        >>> str(mean_deviation(np.array([2.0, 4.0])))
        '3 ± 1'
        """
        mean, deviation = (format_number(float(x)) for x in (self.mean, self.high - self.mean))
        return f"{mean} ± {deviation}" if self.has_interval else mean


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


def mean_deviation(values: Floats) -> MeanDeviation:
    """Return the mean over the first axis, the n runs, with their standard deviation: the root of the sum over n."""
    mean = values.mean(axis=0)
    deviation = values.std(axis=0) if len(values) > 1 else np.full_like(mean, np.nan)
    return MeanDeviation(mean, mean - deviation, mean + deviation)


def estimate_of(measure: Measure, values: Floats) -> MeanInterval:
    """Return the mean over runs with what is shown beside it in this measure: an interval or the deviation."""
    return mean_deviation(values) if measure.metric.deviation else mean_interval(values)


def interval(resampled: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% interval of resamples (the first axis)."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def compare(first: Curves, second: Curves, score: Callable[[Curves], Floats]) -> Comparison:
    """Compare the scores (runs,) of two agents over the runs that both have."""
    _, one, two = np.intersect1d(first.replicates, second.replicates, return_indices=True)
    difference = score(first)[one] - score(second)[two]
    estimate = mean_interval(difference) if difference.size else without_interval(np.nan)
    p_value = np.nan
    if difference.size >= FEW_RUNS:
        spread = difference.std(ddof=1) / np.sqrt(difference.size)
        t = abs(difference.mean()) / spread if spread > 0 else (np.inf if difference.any() else 0.0)
        p_value = float(2 * student.sf(t, difference.size - 1))
    return Comparison(first.title, second.title, estimate, int(difference.size), p_value)


def final(measure: Measure, experiment: Experiment, curves: Curves) -> MeanInterval:
    """Return a measure after the last round."""
    return estimate_of(measure, measure.values(experiment, curves)[:, -1])


def without_interval(mean: float) -> MeanInterval:
    """Return a number without an interval."""
    return MeanInterval(np.asarray(mean), np.asarray(np.nan), np.asarray(np.nan))


@cache
def resample_weights(runs: int) -> Floats:
    """Return the weight of every run in each resample, (resamples, runs), which depend on the number of runs only."""
    rng = np.random.default_rng(0)
    weights = np.asarray(rng.multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES) / runs)
    weights.flags.writeable = False
    return weights
