"""Curves that leave the axes of a figure: how far the axes reach, and what is said of a curve that is cut off."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.report.number_format import format_number
from psconrl.report.panel_contents import Line, PlottedCurve, Reach
from psconrl.report.style import Look

# An outlying agent would flatten all the others: the axes reach at most this many times as far as the median curve.
CLIP = 4.0
MINUS = "\N{MINUS SIGN}"


class CutCurve(NamedTuple):
    """A curve that is cut off."""

    title: str
    look: Look
    over: bool  # above the axes, or below them
    x: float  # where it leaves the axes for good, or its extreme if it comes back
    value: str  # its last value, or its extreme if it comes back, in words


def reach_of(means: Iterable[Floats]) -> Reach:
    """Return the range of an axis for these curves: at most CLIP times as far from zero as the median curve.

    For an even number of curves, the median is the smaller of the two in the middle.

    >>> reach_of([np.array([0.0, 10.0]), np.array([-5.0, 3.0]), np.array([0.0, 900.0])])
    (-5.0, 40.0)
    """
    curves = list(means)
    sizes = sorted(float(np.abs(curve).max()) for curve in curves)
    most = CLIP * sizes[(len(sizes) - 1) // 2]
    return (
        max(min(0.0, *(float(curve.min()) for curve in curves)), -most),
        min(max(0.0, *(float(curve.max()) for curve in curves)), most),
    )


def cut_curves(curves: Iterable[PlottedCurve], reach: Reach) -> list[CutCurve]:
    """Return the curves whose means leave the axes, once for each side."""
    low, high = reach
    found = []
    for curve in curves:
        known = np.isfinite(curve.estimate.mean)
        x, mean = curve.x[known], curve.estimate.mean[known]
        for over, beyond in ((True, mean > high), (False, mean < low)):
            if not beyond.any():
                continue
            extreme = int(mean.argmax() if over else mean.argmin())
            if beyond[-1] and not curve.every_point:
                at = int(np.flatnonzero(~beyond)[-1]) + 1 if not beyond.all() else 0
                value = f"ends at {with_minus(float(mean[-1]))}"
            else:
                at, value = extreme, f"{'up' if over else 'down'} to {with_minus(float(mean[extreme]))}"
            found.append(CutCurve(curve.title, curve.look, over, float(x[at]), value))
    return found


def notes_on(cut: Sequence[CutCurve], lines: Iterable[Line], reach: Reach) -> list[str]:
    """Return the notes that name what is beyond the axes: a note for all above them, and a note for all below.

    >>> from psconrl.report.style import UNKNOWN
    >>> one, two = CutCurve("A", UNKNOWN, True, 9.0, "ends at 1,000"), CutCurve("B", UNKNOWN, True, 5.0, "ends at 70")
    >>> notes_on([one, two], [("limit", -2.0, "--")], (-1.0, 10.0))
    ['↑ A ends at 1,000; B ends at 70', '↓ limit at −2']
    """
    low, high = reach
    notes = []
    for arrow, over in (("↑", True), ("↓", False)):
        parts = [f"{curve.title} {curve.value}" for curve in cut if curve.over is over]
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
