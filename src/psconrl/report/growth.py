"""The empirical order of growth of regret: a log-log slope, over the last decade of a run or between two rounds."""

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
    unknown = without_interval(np.nan)
    wanted = np.geomspace(max(rounds[-1] / DECADE, rounds[0]), rounds[-1], FIT_POINTS)
    at = np.unique(np.searchsorted(rounds, wanted).clip(max=rounds.size - 1))
    if at.size < 3:
        return unknown
    x = np.log(rounds[at]) - np.log(rounds[at]).mean()
    means = regret[:, at].mean(axis=0)
    if (means <= NEGLIGIBLE_REGRET).any():
        return unknown
    slope = np.log(means) @ x / (x @ x)
    if len(regret) < INTERVAL_RUNS:
        return without_interval(slope)
    drawn = np.tensordot(mean_weights(len(regret)), regret[:, at], axes=1)
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
