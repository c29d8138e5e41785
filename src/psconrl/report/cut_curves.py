"""Curves and bands that leave the axes of a figure: how far the axes reach, and what is said of what is cut off."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.report.number_format import format_number
from psconrl.report.panel_contents import Line, PlottedCurve, Reach
from psconrl.report.statistics import MeanInterval
from psconrl.report.style import Look

# An outlying agent would flatten all the others: the axes reach at most this many times as far as the median curve.
CLIP = 4.0
MINUS = "\N{MINUS SIGN}"
BAND_ROUNDING = 1e-9  # of the axis: a band that is beyond by less is not cut off


class CutCurve(NamedTuple):
    """A curve that is cut off, or the band of one that is not."""

    title: str
    look: Look
    over: bool  # above the axes, or below them
    x: float  # where it leaves the axes for good, or its extreme if it comes back
    value: str  # its last value, or its extreme if it comes back, in words
    band: bool = False  # only the band is cut off


def reach_of(means: Iterable[Floats], bands: Iterable[Floats] = ()) -> Reach:
    """Return the range of an axis for curves and the ends of their bands.

    It goes at most CLIP times as far from zero as the median curve. For an even number of curves, the median is the
    smaller of the two in the middle. Bands may have nan, where there is no interval.

    >>> reach_of([np.array([0.0, 10.0]), np.array([-5.0, 3.0]), np.array([0.0, 900.0])], [np.array([-7.0, np.nan])])
    (-7.0, 40.0)
    """
    curves = list(means)
    sizes = sorted(float(np.abs(curve).max()) for curve in curves)
    most = CLIP * sizes[(len(sizes) - 1) // 2]
    values = np.concatenate([*curves, *bands])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return max(min(0.0, low), -most), min(max(0.0, high), most)


def log_reach(estimates: Sequence[MeanInterval]) -> Reach:
    """Return the range of a logarithmic axis for positive means with their bands.

    It goes at most by the factor CLIP beyond the means, since the low end of a band may be zero or negative.

    >>> log_reach([MeanInterval(np.array([10.0, 20.0]), np.array([-1.0, 15.0]), np.array([21.0, 25.0]))])
    (2.5, 25.0)
    """
    means, lows, highs = (np.concatenate([getattr(x, end) for x in estimates]) for end in ("mean", "low", "high"))
    least, most = float(np.nanmin(means)), float(np.nanmax(means))
    low, high = float(np.fmin.reduce(lows, initial=least)), float(np.fmax.reduce(highs, initial=most))
    return max(low, least / CLIP), min(high, most * CLIP)


def cut_curves(curves: Iterable[PlottedCurve], reach: Reach) -> list[CutCurve]:
    """Return the curves that leave the axes, once for each side, and those of which only the band does."""
    low, high = reach
    found = []
    for curve in curves:
        known = np.isfinite(curve.estimate.mean)
        x, mean = curve.x[known], curve.estimate.mean[known]
        for over, beyond in ((True, mean > high), (False, mean < low)):
            if not beyond.any():
                found += _cut_band(curve, over, high if over else low)
                continue
            extreme = int(mean.argmax() if over else mean.argmin())
            if beyond[-1] and not curve.every_point:
                at = int(np.flatnonzero(~beyond)[-1]) + 1 if not beyond.all() else 0
                value = f"ends at {with_minus(float(mean[-1]))}"
            else:
                at, value = extreme, f"{'up' if over else 'down'} to {with_minus(float(mean[extreme]))}"
            found.append(CutCurve(curve.title, curve.look, over, float(x[at]), value))
    return found


def _cut_band(curve: PlottedCurve, over: bool, end: float) -> list[CutCurve]:
    """Return the curve if its band goes beyond an end of the axis."""
    sign = 1.0 if over else -1.0
    beyond = sign * (curve.estimate.high if over else curve.estimate.low)
    if not beyond.size or np.isnan(beyond).all() or np.nanmax(beyond) <= sign * end + BAND_ROUNDING * abs(end):
        return []
    at = int(np.nanargmax(beyond))
    value = f"{'up' if over else 'down'} to {with_minus(float(sign * beyond[at]))}"
    return [CutCurve(curve.title, curve.look, over, float(curve.x[at]), value, band=True)]


def notes_on(cut: Sequence[CutCurve], lines: Iterable[Line], reach: Reach) -> list[str]:
    """Return the notes that name what is beyond the axes: a note for all above them, and a note for all below.

    >>> from psconrl.report.style import UNKNOWN
    >>> one, two = CutCurve("A", UNKNOWN, True, 9.0, "ends at 1,000"), CutCurve("B", UNKNOWN, True, 5.0, "ends at 70")
    >>> notes_on([one, two], [("limit", -2.0, "--")], (-1.0, 10.0))
    ['↑ A ends at 1,000; B ends at 70', '↓ limit at −2']
    >>> notes_on([CutCurve("C", UNKNOWN, False, 5.0, "down to 3", band=True)], [], (4.0, 10.0))
    ['↓ band of C down to 3']
    """
    low, high = reach
    notes = []
    for arrow, over in (("↑", True), ("↓", False)):
        parts = [f"{'band of ' if c.band else ''}{c.title} {c.value}" for c in cut if c.over is over]
        parts += [
            f"{name} at {with_minus(level)}" for name, level, _ in lines if (level > high if over else level < low)
        ]
        if parts:
            notes.append(f"{arrow} {'; '.join(parts)}")
    return notes


def with_minus(x: float, digits: int = 3) -> str:
    """Format a number with a minus sign in place of a hyphen.

    >>> with_minus(-1000.0)
    '−1,000'
    """
    return format_number(x, digits).replace("-", MINUS)
