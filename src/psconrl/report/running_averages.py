"""Running averages of a run, and the choice of their window."""

import math

import numpy as np

from psconrl.base.arrays import Floats, Ints

WINDOWS_PER_RUN = 10  # a window is about 1/WINDOWS_PER_RUN of the run
FEWEST_ROUNDS = 100  # least number of rounds in a window, if the run has as many


def window_for(rounds: int) -> int:
    """Return the window for a run of ``rounds`` rounds: about a tenth, at least a hundred, a round number.

    >>> [window_for(n) for n in (0, 30, 1000, 19_961, 40_000, 500_000)]
    [1, 20, 100, 2000, 5000, 50000]
    """
    wanted = max(rounds / WINDOWS_PER_RUN, min(rounds, FEWEST_ROUNDS), 1)
    power = 10 ** math.floor(math.log10(wanted))
    nearest = min((1, 2, 5, 10), key=lambda m: abs(math.log(m * power / wanted)))
    return int(nearest * power)


def recent_mean(values: Floats, weights: Floats, ends: Ints, at: Ints, window: int) -> Floats:
    """Return means over the episodes that ended within the last ``window`` rounds, (n,), at the episodes ``at`` (n,).

    ``values`` and ``weights`` (K,) are those of episodes that ended in the increasing rounds ``ends`` (K,). Unknown
    values (nan) are left out; the mean is nan if all are unknown.

    >>> recent_mean(np.array([1.0, 4.0, np.nan]), np.array([1.0, 2.0, 9.0]), np.array([5, 10, 15]), np.arange(3), 10)
    array([1., 3., 4.])
    """
    known = np.isfinite(values)
    weight = np.append(0.0, np.cumsum(np.where(known, weights, 0.0)))
    total = np.append(0.0, np.cumsum(np.where(known, values * weights, 0.0)))
    gone = _gone(ends, at, window)
    counted = weight[at + 1] - weight[gone]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counted > 0.0, (total[at + 1] - total[gone]) / counted, np.nan)


def recent_maximum(values: Floats, ends: Ints, at: Ints, window: int) -> Floats:
    """Return maxima over the episodes that ended within the last ``window`` rounds, (n,); nan where none is known.

    >>> recent_maximum(np.array([4.0, 1.0, np.nan]), np.array([5, 10, 15]), np.arange(3), 10)
    array([4., 4., 1.])
    """
    known = np.where(np.isfinite(values), values, -np.inf)
    largest = np.array([known[first : k + 1].max() for first, k in zip(_gone(ends, at, window), at, strict=True)])
    return np.where(np.isfinite(largest), largest, np.nan)


def _gone(ends: Ints, at: Ints, window: int) -> Ints:
    """Return the number of episodes that had ended before each window began."""
    return np.asarray(np.searchsorted(ends, ends[at] - window, side="right"))
