"""Runs of several lengths of the agents with theorems: how regret and violation grow with T.

An experiment of the spec ``theory`` belongs to a family by the beginning of its name. Some agents know the horizon, and
some models depend on it, so that every length has runs of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.learning.registry import title_of
from psconrl.report.curves import Experiment
from psconrl.report.growth import growth_over_horizons
from psconrl.report.number_format import format_number
from psconrl.report.statistics import MeanInterval, mean_interval

FAMILIES = {
    "rings": "Fifty rings, of which one is true",
    "leaks": "Leaky islands",
    "ferry": "A ferry with a diameter of 50",
}
LEAK = "leak="  # in the name of an experiment, before its leak
LARGEST_DENOMINATOR = 8  # of the power of T that a leak is
# Titles of the labels in the spec that are not agents of the library.
TITLES = {
    "exact-theorem-1": "Theorem 1",
    "exact-theorem-3": "Theorem 3",
    "exact-default": title_of("psconrl"),
    "exact-paper": title_of("psconrl-paper"),
    "exact-lagrangian": title_of("lagrangian"),
    "theorem-1": "Theorem 1",
    "theorem-1-slow": "Theorem 1, steps x 0.1",
    "theorem-1-long": "Theorem 1, longer episodes",
    "theorem-2": "Theorem 2",
    "theorem-2-bold": "Theorem 2, radii x 0.1",
    "theorem-3": "Theorem 3",
    "theorem-3-long": "Theorem 3, blocks x 4",
    "theorem-3-wide": "Theorem 3, wide potential",
}


@dataclass
class Line:
    """The final regret and violation of an agent after runs of several lengths."""

    label: str
    horizons: list[int] = field(default_factory=list)
    replicates: list[Ints] = field(default_factory=list)  # (runs,) for every horizon
    regret: list[Floats] = field(default_factory=list)  # (runs,), signed
    violation: list[Floats] = field(default_factory=list)  # (runs,), its positive part

    @property
    def title(self) -> str:
        """The agent in words."""
        return TITLES.get(self.label, title_of(self.label))

    def exponents(self, finals: Sequence[Floats]) -> str:
        """Return the exponents of growth from every length to the next, of the runs that have both, as in a table."""
        found = []
        for k in range(1, len(finals)):
            before, after = self.replicates[k - 1 : k + 1]
            _, first, last = np.intersect1d(before, after, return_indices=True)
            pairs = np.stack([finals[k - 1][first], finals[k][last]], axis=1)
            found.append(_exponent(growth_over_horizons(self.horizons[k - 1 : k + 1], pairs)))
        return "; ".join(found) or "-"


@dataclass
class Setting:
    """One model, or one rule by which a model depends on T, with the agents that are run in it."""

    title: str
    lines: dict[str, Line] = field(default_factory=dict)


@dataclass
class GrowthFamily:
    """Experiments that differ in their lengths, and in one setting."""

    name: str
    title: str
    settings: list[Setting]


def is_of_several_lengths(experiment: Experiment) -> bool:
    """Return whether an experiment is one of those that differ in their lengths."""
    return experiment.name.split("-")[0] in FAMILIES and "-1e" in experiment.name


def families(experiments: Sequence[Experiment]) -> list[GrowthFamily]:
    """Return the families that have runs, with the lengths in increasing order."""
    found: dict[str, dict[str, Setting]] = {}
    members = [e for e in experiments if is_of_several_lengths(e) and e.curves]
    for e in sorted(members, key=_horizon):
        settings = found.setdefault(e.name.split("-")[0], {})
        title = _setting(e.name, _horizon(e))
        setting = settings.setdefault(title, Setting(title))
        for label, curves in e.curves.items():
            line = setting.lines.setdefault(label, Line(label))
            line.horizons.append(int(curves.rounds[-1]))
            line.replicates.append(curves.replicates)
            line.regret.append(curves.regret[:, -1])
            line.violation.append(np.maximum(curves.violation(1)[:, -1], 0.0))
    return [GrowthFamily(name, FAMILIES[name], list(found[name].values())) for name in FAMILIES if name in found]


def _horizon(experiment: Experiment) -> int:
    return max(int(curves.rounds[-1]) for curves in experiment.curves.values())


def _setting(name: str, horizon: int) -> str:
    """Return what distinguishes an experiment from the others of its family: the leak as a power of T.

    >>> _setting("leaks-1e4 leak=0.01", 10_000), _setting("ferry-1e4", 10_000)
    ('leak T^(-1/2)', '')
    """
    if LEAK not in name:
        return ""
    power = math.log(float(name.partition(LEAK)[2])) / math.log(horizon)
    return f"leak T^({Fraction(power).limit_denominator(LARGEST_DENOMINATOR)})"


def growth_tables(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """Return a table for every family: final regret and violation at every T, and their exponents."""
    return [_table(family) for family in families(experiments)]


def _table(family: GrowthFamily) -> dict[str, Any]:
    several = len(family.settings) > 1
    rows = []
    for setting in family.settings:
        for line in setting.lines.values():
            cells = [", ".join(f"{T:,}" for T in line.horizons), ", ".join(str(len(runs)) for runs in line.regret)]
            for finals in (line.regret, line.violation):
                cells += ["; ".join(_mean(runs) for runs in finals), line.exponents(finals)]
            rows.append([*([setting.title] if several else []), line.title, *cells])
    return {
        "title": f"Growth with T: {family.title}",
        "note": "Means after T rounds with 95% intervals. Regret is signed; violation is the positive part of a run. "
        "Exponents: log-log slope of the mean from every T to the next, of the runs that have both; - where a mean is "
        "not positive.",
        "header": [
            *([""] if several else []), "agent", "T", "runs", "regret", "exponent", "violation", "exponent",
        ],
        "rows": rows,
    }  # fmt: skip


def _mean(runs: Floats) -> str:
    estimate = mean_interval(runs)
    if not estimate.has_interval:
        return format_number(float(estimate.mean), 3)
    return f"{format_number(float(estimate.mean), 3)} ± {format_number(float(estimate.high - estimate.mean), 2)}"


def _exponent(slope: MeanInterval) -> str:
    if np.isnan(slope.mean):
        return "-"
    return f"{slope.mean:.2f}" + (f" [{slope.low:.2f}, {slope.high:.2f}]" if slope.has_interval else "")
