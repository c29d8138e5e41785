"""The empirical order of growth of regret: a log-log slope, fitted to the last decade of a run."""

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.report.statistics import LEVEL, MeanInterval, interval, resample_weights, without_interval

DECADE = 10.0  # last round over first round of the fit
FIT_POINTS = 12
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
    means = np.tensordot(resample_weights(len(regret)), regret[:, at], axes=1)
    every = np.vstack([regret[:, at].mean(axis=0), means])
    usable = np.asarray((every > NEGLIGIBLE_REGRET).all(axis=1))
    if not usable[0]:
        return unknown
    slopes = np.log(every[usable]) @ x / (x @ x)
    if len(regret) < 2 or usable.mean() < LEVEL:
        return without_interval(slopes[0])
    return MeanInterval(np.asarray(slopes[0]), *interval(slopes[1:]))
