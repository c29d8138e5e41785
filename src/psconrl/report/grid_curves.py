"""Measures against an option of a grid, of agents or of environments: values after the last round."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ConfigError, unknown_name
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.panel_contents import PlottedCurve, Reach, Row, levels_of
from psconrl.report.statistics import MeanInterval, final
from psconrl.report.style import looks_of
from psconrl.report.unfinished import UnfinishedAgent

OPTION = re.compile(r" ([^\s=]+)=")  # in the labels of a grid, "LABEL key=value key=value"


class GridPoint(NamedTuple):
    """The runs of an agent at one value of the option; None for an agent that does not have it."""

    value: str | None
    experiment: Experiment
    curves: Curves


@dataclass(frozen=True, eq=False)
class Grid:
    """The results of a grid.

    ``experiments``: as in the file, but without the option in the names of agents and experiments; ``points``: the runs
    at each value, by the names of the experiment and the agent.
    """

    option: str
    experiments: list[Experiment]
    points: dict[tuple[str, str], list[GridPoint]]

    @cached_property
    def places(self) -> dict[str, float]:
        """Where each value stands on the axis: at the number that it is, or one after another if any is a word."""
        values = list(dict.fromkeys(p.value for points in self.points.values() for p in points if p.value is not None))
        try:
            places = {value: float(value) for value in values}
        except ValueError:
            return {value: float(k) for k, value in enumerate(values)}
        return dict(sorted(places.items(), key=lambda place: place[1]))

    def rows(self, measured: Sequence[Measure], reach: Reach | None = None) -> list[Row]:
        """Return the rows of a figure for the given measures, over the values of the option."""
        ticks = tuple((x, value) for value, x in self.places.items())
        return [
            Row(
                f"final {m.title}" if m.metric.cumulative else m.title,
                self._curves_of(m),
                lambda e, m=m: levels_of(m)(e) if len(self.environments(e)) == 1 else [],  # type: ignore[misc]
                m.metric.cumulative,
                reach,
                m.applies_to,
                lambda e, m=m: self._missing(m, e),  # type: ignore[misc]
                self.option,
                ticks,
            )
            for m in measured
        ]

    def _curves_of(self, measure: Measure) -> Callable[[Experiment], list[PlottedCurve]]:
        def curves_of(experiment: Experiment) -> list[PlottedCurve]:
            found = []
            for label, c in experiment.curves.items():
                points = [p for p in self.points[experiment.name, label] if measure.known_of(p.experiment, p.curves)]
                if points:
                    x, estimate = self._line(measure, points)
                    found.append(
                        PlottedCurve(c.title, c.look, x, estimate, every_point=True, level=points[0].value is None)
                    )
            return found

        return curves_of

    def _line(self, measure: Measure, points: Sequence[GridPoint]) -> tuple[Floats, MeanInterval]:
        """Return the places and the estimates of an agent; one without the option is the same at all values."""
        finals = [final(measure, p.experiment, p.curves) for p in points]
        if points[0].value is None:
            x, finals = [min(self.places.values()), max(self.places.values())], finals[:1] * 2
        else:
            x = [self.places[p.value] for p in points if p.value is not None]
        order = np.argsort(x)
        mean, low, high = (
            np.array([float(getattr(each, end)) for each in finals])[order] for end in ("mean", "low", "high")
        )
        return np.array(x)[order], MeanInterval(mean, low, high)

    def environments(self, experiment: Experiment) -> list[Experiment]:
        """Return the experiments of the file that are one here."""
        members = [p.experiment for label in experiment.curves for p in self.points[experiment.name, label]]
        return list({e.name: e for e in members}.values())

    def _missing(self, measure: Measure, experiment: Experiment) -> str:
        """Return what is not known, in the words of the first experiment that lacks it."""
        return next(filter(None, map(measure.missing_in, self.environments(experiment))), "")


def grid_over(experiments: Sequence[Experiment], option: str) -> Grid:
    """Return the results as a grid over an option of agents, or else of environments.

    Experiments without this option are left out.
    """
    experiments = [e for e in experiments if e.curves]
    labels = [label for e in experiments for label in e.curves]
    names = [e.name for e in experiments]
    of_agents = any(_split(label, option)[1] is not None for label in labels)
    if not of_agents and not any(_split(name, option)[1] is not None for name in names):
        known = dict.fromkeys(key for text in [*labels, *names] for key in OPTION.findall(text))
        raise ConfigError("--against: " + unknown_name("option of a grid", option, known))
    merged: dict[str, Experiment] = {}
    points: dict[tuple[str, str], list[GridPoint]] = {}
    looks = looks_of(_split(label, option)[0] for label in labels)
    for e in experiments:
        name, of_environment = (e.name, None) if of_agents else _split(e.name, option)
        title = e.title if of_agents else _split(e.title, option)[0]
        one = merged.setdefault(name, replace(e, name=name, curves={}, title=title, unfinished=()))
        merged[name] = one = replace(one, unfinished=one.unfinished + _lacking_at(e, option, of_environment))
        for label, curves in e.curves.items():
            agent, value = _split(label, option) if of_agents else (label, of_environment)
            points.setdefault((name, agent), []).append(GridPoint(value, e, curves))
            title = title_of(_split(curves.title, option)[0]) if of_agents else curves.title
            one.curves.setdefault(agent, replace(curves, label=agent, title=title, look=looks[agent]))
    kept = [e for e in merged.values() if any(points[e.name, label][0].value is not None for label in e.curves)]
    return Grid(option, kept, points)


def _lacking_at(experiment: Experiment, option: str, value: str | None) -> tuple[UnfinishedAgent, ...]:
    """Return the agents that lack runs in an experiment; ``value``: that of an option of environments."""
    point = "" if value is None else f" at {option}={value}"
    return tuple(each._replace(title=f"{each.title}{point}") for each in experiment.unfinished)


def _split(name: str, option: str) -> tuple[str, str | None]:
    """Return a name without an option of its grid, and the value of that option; None if it has none.

    >>> _split("mine margin=0.5 depth=2", "margin"), _split("rover slip=0.1 (costs learned)", "slip")
    (('mine depth=2', '0.5'), ('rover (costs learned)', '0.1'))
    """
    found = re.search(rf" {re.escape(option)}=(.+?)(?= [^\s=]+=| \(|$)", name)
    return (name[: found.start()] + name[found.end() :], found[1]) if found else (name, None)
