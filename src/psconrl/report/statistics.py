r"""Means, intervals and comparisons over runs.

The interval of a mean over n runs is Student's t interval, :math:`\bar x \pm t_{n-1} s / \sqrt n`. It is exact for
normal values with any number of runs, where bootstraps are too narrow (``benchmarks/coverage.py``). If values are
skewed, it covers less than 95%, and no interval from few runs includes a rare event that none of them met. Fewer than
three runs have no interval: that of two is 12.7 standard errors long on either side, and says nothing.

Ranks and growth exponents are not means, but depend on the means of runs. Their intervals come from 2,000 draws of all
these means, each from the t distribution of its interval (``mean_weights``). The draws are seeded, so the same results
give the same report.

Metrics of the paper have the standard deviation over runs instead, as in its figures. Verdicts between agents come from
paired t-tests, corrected for the number of pairs (Bonferroni), and are not given for fewer than ten runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import t as student

from psconrl.base.arrays import Floats
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.number_format import format_number

MEAN_DRAWS = 2000
INTERVAL_RUNS = 3  # fewer have no interval
FEW_RUNS = 10  # fewer have no verdict
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
        """Whether there is an interval; one or two runs have none."""
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
    mean = values.mean(axis=0)
    if len(values) < INTERVAL_RUNS:
        return MeanInterval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    half = student.ppf((1 + LEVEL) / 2, len(values) - 1) * standard_error(values)
    return MeanInterval(mean, mean - half, mean + half)


def standard_error(values: Floats) -> Floats:
    """Return the standard error of the mean over the first axis, the runs; relative to the largest, against overflow.

    >>> round(float(standard_error(np.array([1.0, 2.0, 3.0]) * 1e200)) / 1e200, 12)  # 1 / sqrt(3)
    0.57735026919
    """
    deviations = values - values.mean(axis=0)
    largest = np.abs(deviations).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray((deviations / unit).std(axis=0, ddof=1) * unit / np.sqrt(len(values)))


def mean_deviation(values: Floats) -> MeanDeviation:
    """Return the mean over the first axis, the n runs, with their standard deviation: the root of the sum over n."""
    mean = values.mean(axis=0)
    deviation = values.std(axis=0) if len(values) > 1 else np.full_like(mean, np.nan)
    return MeanDeviation(mean, mean - deviation, mean + deviation)


def estimate_of(measure: Measure, values: Floats) -> MeanInterval:
    """Return the mean over runs with what is shown beside it in this measure: an interval or the deviation."""
    return mean_deviation(values) if measure.metric.deviation else mean_interval(values)


def interval(draws: Floats) -> tuple[Floats, Floats]:
    """Return the central 95% interval of draws (the first axis)."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def compare(first: Curves, second: Curves, score: Callable[[Curves], Floats]) -> Comparison:
    """Compare the scores (runs,) of two agents over the runs that both have."""
    _, one, two = np.intersect1d(first.replicates, second.replicates, return_indices=True)
    difference = score(first)[one] - score(second)[two]
    estimate = mean_interval(difference) if difference.size else without_interval(np.nan)
    p_value = np.nan
    if difference.size >= FEW_RUNS:
        spread = float(standard_error(difference))
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
def mean_weights(runs: int) -> Floats:
    r"""Return weights of runs, (draws, runs), with which means have the t distribution of their intervals.

    With g normal and :math:`\bar g` its mean, the weights of a draw are
    :math:`1/n + (g_k - \bar g) / \sqrt{n (n-1)} / \sqrt{\chi^2_{n-1} / (n-1)}`. The weighted mean of values of n runs
    then is :math:`\bar x + t_{n-1} s / \sqrt n`, and values of the same runs vary together.
    """
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(MEAN_DRAWS, runs))
    scale = np.sqrt(rng.chisquare(runs - 1, size=(MEAN_DRAWS, 1)) * runs)
    weights = np.asarray(1.0 / runs + (normal - normal.mean(axis=1, keepdims=True)) / scale)
    weights.flags.writeable = False
    return weights


def without_reason(runs: Iterable[int]) -> str:
    """Return why some estimates have no interval, by the numbers of runs of all; empty if all have one.

    >>> without_reason([10, 2, 1, 2]), without_reason([10])
    ('1 run, 2 runs: no interval.', '')
    """
    few = sorted({n for n in runs if n < INTERVAL_RUNS})
    return f"{', '.join(f'{n} run' + 's' * (n != 1) for n in few)}: no interval." if few else ""
