"""What the panels of a figure show: curves with bands, lines at optima and thresholds, and what is not known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.statistics import MeanInterval, estimate_of, mean_interval
from psconrl.report.style import Look

DRAWN_POINTS = 500  # of a curve in a panel
Line = tuple[str, float, str]  # name, level, dash
Reach = tuple[float, float]  # the ends of an axis


class PlottedCurve(NamedTuple):
    """A mean with its band, over rounds or over the values of an option."""

    title: str
    look: Look
    x: Floats
    estimate: MeanInterval
    every_point: bool = False  # mark every point, not only some
    level: bool = False  # the same at all values of an option

    def parted(self) -> tuple[Floats, MeanInterval]:
        """Return the places and the estimates with nan before the first positive place, for axes without a true zero.

        A level line is whole.
        """
        k = int(np.searchsorted(self.x, 0.0, side="right"))
        if self.level or k in (0, self.x.size):
            return self.x, self.estimate
        mean, low, high = (
            np.insert(each, k, np.nan) for each in (self.estimate.mean, self.estimate.low, self.estimate.high)
        )
        return np.insert(self.x, k, np.nan), MeanInterval(mean, low, high)


@dataclass(frozen=True)
class Row:
    """Contents of a row of panels."""

    title: str
    curves: Callable[[Experiment], list[PlottedCurve]]
    lines: Callable[[Experiment], list[Line]] = lambda e: []
    clip: bool = False  # cut off outlying curves and draw the zero line
    reach: Reach | None = None  # the ends of the vertical axis, if given
    applies: Callable[[Experiment], bool] = lambda e: True
    missing: Callable[[Experiment], str] = lambda e: ""  # what is not known of the experiment
    x_title: str = "round"
    ticks: Sequence[tuple[float, str]] = ()  # of the horizontal axis, if they are given


def rows_of(measured: Sequence[Measure], reach: Reach | None = None) -> list[Row]:
    """Return the rows of a figure for the given measures over rounds."""
    return [
        Row(
            m.title,
            over_rounds(m.values, m.known_of, partial(estimate_of, m)),
            levels_of(m),
            m.metric.cumulative,
            reach,
            m.applies_to,
            m.missing_in,
        )
        for m in measured
    ]


def over_rounds(
    values: Callable[[Experiment, Curves], Floats],
    known: Callable[[Experiment, Curves], bool] = lambda e, c: True,
    estimate: Callable[[Floats], MeanInterval] = mean_interval,
) -> Callable[[Experiment], list[PlottedCurve]]:
    """Return a function that gives the curves of an experiment over rounds, those of the agents that are known."""

    def curves_of(experiment: Experiment) -> list[PlottedCurve]:
        found = []
        for c in experiment.curves.values():
            if known(experiment, c):
                drawn = c.spread_over(DRAWN_POINTS)
                x = c.rounds[drawn].astype(np.float64)
                found.append(PlottedCurve(c.title, c.look, x, estimate(values(experiment, c)[:, drawn])))
        return found

    return curves_of


def levels_of(measure: Measure) -> Callable[[Experiment], list[Line]]:
    """Return a function that gives the lines of a panel: the optimum or the limit, for an average."""

    def lines(experiment: Experiment) -> list[Line]:
        facts, i = experiment.facts, measure.cost
        if measure.metric.cumulative:
            return []
        if i:
            return [("limit", facts["thresholds"][i - 1], "--")] if "thresholds" in facts else []
        sign = -1.0 if facts.get("maximise") else 1.0
        return [("optimum", sign * facts["optimum"][0], "--")] if "optimum" in facts else []

    return lines
