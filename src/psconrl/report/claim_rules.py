r"""How a claim of the paper is tested on runs: a mean in a range, or a value read off a figure.

A mean over runs, or a difference of two, has Welch's t interval: with means :math:`\bar x, \bar y`, standard deviations
:math:`s_x, s_y` and numbers of runs :math:`n_x, n_y`,

.. math:: \bar x - \bar y \pm t_\nu \sqrt{s_x^2 / n_x + s_y^2 / n_y}, \qquad
          \nu = \frac{(s_x^2 / n_x + s_y^2 / n_y)^2}{(s_x^2 / n_x)^2 / (n_x - 1) + (s_y^2 / n_y)^2 / (n_y - 1)}

A comparison says that a mean or a difference is in a range. It agrees if the whole interval is in the range, differs if
the whole interval is outside, and otherwise the claim is undecided. The level of the interval is .05 divided by the
number of comparisons, so that a single wrong verdict among all of them has a probability of at most .05. A mean of a
single run may be anything.

A value read off a figure has an error of reading and, because the figure shows a mean over runs as well, a standard
error. It agrees if it is at most the error of reading outside the 95% interval of the difference, which is about two
standard errors wide on either side. This level is not divided by the number of values: wider intervals would let more
values agree. So at most one faithful value in twenty is said to differ. The authors' scripts draw the root of the mean
squared deviation of the n runs, which is less than the standard deviation by a factor :math:`\sqrt{(n-1)/n}`.

No verdict is given on fewer than five runs.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import t as student

from psconrl.base.arrays import Floats
from psconrl.report.number_format import format_number

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"
LEAST_RUNS = 5
WRONG_VERDICTS = 0.05  # probability of a wrong verdict: among all comparisons, and for every single value


class MeanOfRuns(NamedTuple):
    """A mean over runs with their standard deviation."""

    mean: float
    deviation: float
    runs: int


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class FigureValue:
    """A value read off a figure of the paper."""

    mean: float
    error: float  # of reading, half the width
    runs: int  # over which the figure averages
    deviation: float | None = None  # root of the mean squared deviation, if the figure shows it; otherwise as here

    def as_runs(self, here: MeanOfRuns) -> MeanOfRuns:
        """Return the mean over the paper's runs."""
        if self.deviation is None:
            return MeanOfRuns(self.mean, here.deviation, self.runs)
        return MeanOfRuns(self.mean, self.deviation * math.sqrt(self.runs / max(self.runs - 1, 1)), self.runs)


def mean_of_runs(values: Floats) -> MeanOfRuns:
    """Return the mean of the values of runs.

    >>> import numpy as np
    >>> mean_of_runs(np.array([1.0, 2.0, 3.0]))
    MeanOfRuns(mean=2.0, deviation=1.0, runs=3)
    """
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return MeanOfRuns(float(values.mean()) if values.size else math.nan, deviation, int(values.size))


def welch_interval(first: MeanOfRuns, second: MeanOfRuns | None, level: float) -> Ends:
    """Return the two-sided interval of the first mean, or of the first minus the second, for an error of ``level``.

    >>> low, high = welch_interval(MeanOfRuns(3.0, 2.0, 16), None, 0.05)  # a t interval: 3 ± 2.131 * 2 / 4
    >>> round(low, 3), round(high, 3)
    (1.934, 4.066)
    """
    parts = [first] if second is None else [first, second]
    mean = first.mean - (0.0 if second is None else second.mean)
    if min(part.runs for part in parts) < 2:
        return Ends(-math.inf, math.inf)
    largest = max(part.deviation for part in parts)
    if largest == 0:
        return Ends(mean, mean)
    squares = [(part.deviation / largest) ** 2 / part.runs for part in parts]  # relative, which cannot overflow
    total = sum(squares)
    freedom = total**2 / sum(square**2 / (part.runs - 1) for square, part in zip(squares, parts, strict=True))
    half = float(student.isf(level / 2, freedom)) * largest * math.sqrt(total)
    return Ends(mean - half, mean + half)


def judge_range(found: Ends, low: float, high: float) -> str:
    """Return the verdict on a comparison: whether the mean that the interval estimates is between two numbers.

    >>> judge_range(Ends(-3, -1), -math.inf, 0)
    'agrees'
    >>> judge_range(Ends(1, 3), -math.inf, 0)
    'differs'
    >>> judge_range(Ends(-1, 3), -math.inf, 0)
    'undecided'
    """
    if low <= found.low and found.high <= high:
        return AGREES
    return DIFFERS if found.high < low or found.low > high else UNDECIDED


def judge_value(here: MeanOfRuns, value: FigureValue) -> str:
    """Return the verdict on a value read off a figure.

    >>> judge_value(MeanOfRuns(55.0, 0.0, 30), FigureValue(50.0, 5.0, 30))
    'agrees'
    >>> judge_value(MeanOfRuns(56.0, 0.0, 30), FigureValue(50.0, 5.0, 30))
    'differs'
    """
    found = welch_interval(here, value.as_runs(here), WRONG_VERDICTS)
    return AGREES if found.low <= value.error and found.high >= -value.error else DIFFERS


def measured_text(found: MeanOfRuns) -> str:
    """Format a mean with its standard error.

    >>> measured_text(MeanOfRuns(38.25, 12.0, 36))
    '38.2 ± 2 (36 runs)'
    """
    runs = f"{found.runs} run" + ("s" if found.runs != 1 else "")
    if found.runs < 2:
        return f"{format_number(found.mean)} ({runs})"
    return f"{format_number(found.mean)} ± {format_number(found.deviation / math.sqrt(found.runs), 2)} ({runs})"
