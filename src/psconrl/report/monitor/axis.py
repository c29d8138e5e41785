"""The range of a y-axis that a spike does not flatten."""

import math
from collections.abc import Iterable

import numpy as np

from psconrl.base.arrays import Floats, Ints

MARGIN, LOG_MARGIN = 4.0, 1.0  # how far an axis may reach beyond the quartiles, in multiples of their distance
LEAST_FACTOR = 2.0  # a logarithmic axis reaches at least this many times as far as the quartiles
WORTHWHILE = 1.5  # clip only if the whole range is more than this many times as wide
AXIS_STEPS = 400  # moments, evenly spread over the rounds, at which quartiles are taken
CONSTANT = 1e-6  # quartiles that are relatively closer than this are equal: the curve is constant


def clipped_range(curves: Iterable[tuple[Floats | Ints, Floats]], log: bool = False) -> list[float] | None:
    """Return the lowest and the highest value to show of (rounds, values); None to show all of them.

    The range reaches from the least lower quartile of a curve to the largest upper one, and ``MARGIN`` times their
    distance beyond, but not beyond the values. Quartiles are over the rounds, so that neither a spike nor many short
    episodes at the start move them. The last value of each curve is always within the range. All values are shown if
    clipping would gain less than a factor of ``WORTHWHILE``. With ``log``, distances are those of logarithms, and the
    margin is ``LOG_MARGIN``, at least a factor of ``LEAST_FACTOR``.

    >>> rounds, ramp = np.arange(101), np.linspace(0.0, 1.0, 101)
    >>> clipped_range([(rounds, ramp)]) is None
    True
    >>> ramp[90] = 50.0
    >>> clipped_range([(rounds, ramp)])
    [0.0, 2.75]
    """
    known = [(rounds[finite], values[finite]) for rounds, values in curves if (finite := np.isfinite(values)).any()]
    if not known or (log and any((values <= 0.0).any() for _, values in known)):
        return None
    scaled = [(rounds, np.log10(values) if log else values) for rounds, values in known]
    quartiles = np.array([_quartiles(rounds, values) for rounds, values in scaled])
    low, high = float(quartiles.min()), float(quartiles.max())
    if high - low <= CONSTANT * max(abs(low), abs(high)):
        return None
    margin = max(LOG_MARGIN * (high - low), math.log10(LEAST_FACTOR)) if log else MARGIN * (high - low)
    everything = np.concatenate([values for _, values in scaled])
    last = [float(values[-1]) for _, values in scaled]
    least, most = float(everything.min()), float(everything.max())
    low, high = min(max(low - margin, least), *last), max(min(high + margin, most), *last)
    if most - least <= WORTHWHILE * (high - low):
        return None
    return [10.0**low, 10.0**high] if log else [low, high]


def _quartiles(rounds: Floats | Ints, values: Floats) -> Floats:
    """Return the lower and the upper quartile over the rounds."""
    moments = np.linspace(rounds[0], rounds[-1], AXIS_STEPS + 1)
    return np.asarray(np.quantile(np.interp(moments, rounds, values), (0.25, 0.75)))
