"""The empirical order of growth of regret: a log-log slope, over the last decade of a run, between two rounds, or over
runs of several lengths.
"""

from collections.abc import Sequence

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.report.statistics import INTERVAL_RUNS, LEVEL, MeanInterval, interval, mean_weights, without_interval

DECADE = 10.0  # last round over first round of the fit
FIT_POINTS = 12
EARLY = 16  # last round over the round from which the growth of a score is measured
# Smaller regrets are rounding residue, without a growth rate.
NEGLIGIBLE_REGRET = 1e-6


def growth_exponent(rounds: Ints, regret: Floats) -> MeanInterval:
    """Return the log-log slope of the mean regret in T over the last decade of a run; regret is (runs, n).

    >>> t = np.arange(100, 10_001, 100)
    >>> slope = growth_exponent(t, np.sqrt(t) * np.array([[1.0], [2.0], [3.0]]))
    >>> round(float(slope.mean), 3)
    0.5
    """
    wanted = np.geomspace(max(rounds[-1] / DECADE, rounds[0]), rounds[-1], FIT_POINTS)
    at = np.unique(np.searchsorted(rounds, wanted).clip(max=rounds.size - 1))
    if at.size < 3:
        return without_interval(np.nan)
    return _slope(rounds[at], regret[:, at])


def growth_over_horizons(horizons: Sequence[int], finals: Floats) -> MeanInterval:
    """Return the log-log slope of the mean final regret (runs, n) in T, from the same runs of n lengths.

    >>> T = np.array([100, 10_000])
    >>> round(float(growth_over_horizons(T, np.sqrt(T) * np.array([[1.0], [2.0], [3.0]])).mean), 3)
    0.5
    """
    return _slope(np.asarray(horizons), finals)


def _slope(rounds: Ints, values: Floats) -> MeanInterval:
    """Return the least-squares slope of the logarithm of the mean of ``values`` (runs, n) in that of the rounds."""
    x = np.log(rounds) - np.log(rounds).mean()
    means = values.mean(axis=0)
    if (means <= NEGLIGIBLE_REGRET).any():
        return without_interval(np.nan)
    slope = np.log(means) @ x / (x @ x)
    if len(values) < INTERVAL_RUNS:
        return without_interval(slope)
    drawn = np.tensordot(mean_weights(len(values)), values, axes=1)
    usable = np.asarray((drawn > NEGLIGIBLE_REGRET).all(axis=1))
    if usable.mean() < LEVEL:
        return without_interval(slope)
    return MeanInterval(np.asarray(slope), *interval(np.log(drawn[usable]) @ x / (x @ x)))


def early_checkpoint(rounds: Ints) -> int:
    """Return the index of the first checkpoint from T/16 on."""
    return int(np.searchsorted(rounds, rounds[-1] / EARLY))


def growth_of_score(rounds: Ints, score: Floats) -> float:
    """Return the exponent at which the mean score (runs, n) grows from T/16 to T; nan unless it is positive at both.

    >>> t = np.arange(100, 1601, 100)
    >>> round(growth_of_score(t, np.sqrt(t) * np.array([[1.0], [3.0]])), 3)
    0.5
    """
    at = early_checkpoint(rounds)
    early, final = score[:, [at, -1]].mean(axis=0)
    if rounds[at] == rounds[-1] or min(early, final) <= NEGLIGIBLE_REGRET:
        return float("nan")
    return float(np.log(final / early) / np.log(rounds[-1] / rounds[at]))
