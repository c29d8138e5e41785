"""Figures of the runs of several lengths: regret and violation against T, beside the slopes of the theorems."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psconrl.base.arrays import Floats
from psconrl.report.curves import Experiment
from psconrl.report.panel_axes import plain
from psconrl.report.statistics import mean_interval
from psconrl.report.style import AMBER, BLACK, BROWN, LONG, LONG_SHORT, LOOKS, SHORT, SKY, Look
from psconrl.report.theory_growth import GrowthFamily, Line, families

# Of the labels in the spec that are not agents of the library; those in one figure differ in dash or marker.
LOOKS_OF_LABELS = LOOKS | {
    "exact-theorem-1": LOOKS["lagrangian-theorem"],
    "exact-theorem-3": LOOKS["psconrl-account"],
    "exact-default": LOOKS["psconrl"],
    "exact-paper": LOOKS["psconrl-paper"],
    "exact-lagrangian": Look(AMBER, LONG, "D"),
    "theorem-1": LOOKS["lagrangian-theorem"],
    "theorem-1-slow": Look(AMBER, LONG_SHORT, "^"),
    "theorem-1-long": Look(BROWN, SHORT, "D"),
    "theorem-2": LOOKS["tilted"],
    "theorem-2-bold": Look(BLACK, LONG, "s"),
    "theorem-3": LOOKS["psconrl-account"],
    "theorem-3-long": Look(SKY, LONG_SHORT, "s"),
    "theorem-3-wide": Look(BLACK, SHORT, "*"),
}
POWER_OF_T = re.compile(r"T\^\(([-/\d]+)\)")
REFERENCES = {0.5: r"$\sqrt{T}$", 2 / 3: "$T^{2/3}$", 1.0: "$T$"}
WIDTH, HEIGHT = 7.8, 2.3  # inches, of a figure and of a row
LEGEND_HEIGHT = 0.45  # inches
GROWTH_LEGEND_COLUMNS = 4
LARGEST_SPAN = 1e6  # of values in a panel; smaller ones are cut off


def growth_figures(experiments: Sequence[Experiment]) -> dict[str, Figure]:
    """Draw a figure for every family that has runs, by its name."""
    return {family.name: growth_figure(family) for family in families(experiments)}


def growth_figure(family: GrowthFamily) -> Figure:
    """Draw regret and violation against T: a row each and a column for every setting; if there is one, two columns."""
    n = len(family.settings)
    shape = (1, 2) if n == 1 else (2, n)
    figure = Figure(figsize=(WIDTH, HEIGHT * shape[0] + LEGEND_HEIGHT), layout="constrained")
    panels: Any = figure.subplots(*shape, squeeze=False)
    for k, setting in enumerate(family.settings):
        regret, violation = panels[0] if n == 1 else panels[:, k]
        lines = list(setting.lines.values())
        title = POWER_OF_T.sub(r"$T^{\1}$", setting.title)
        _panel(regret, lines, [line.regret for line in lines], "regret", title)
        _panel(violation, lines, [line.violation for line in lines], "violation", title)
    shown = {
        label: line for panel in panels.flat for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    look: Any = {"ncols": GROWTH_LEGEND_COLUMNS, "fontsize": 7, "handlelength": 3.0}
    figure.legend(shown.values(), shown, loc="outside lower center", **look)
    return figure


def _panel(axes: Axes, lines: Sequence[Line], finals: Sequence[Sequence[Floats]], name: str, title: str) -> None:
    """Draw the means with their intervals; means that are not positive have no place on a logarithmic axis."""
    lowest, highest = np.inf, 0.0
    for line, values in zip(lines, finals, strict=True):
        estimates = [mean_interval(runs) for runs in values]
        mean = np.array([float(each.mean) for each in estimates])
        half = np.nan_to_num(np.array([float(each.high - each.mean) for each in estimates]))
        shown = mean > 0
        T = np.array(line.horizons)[shown]
        look = LOOKS_OF_LABELS[line.label]
        low = np.minimum(half, 0.999 * mean)[shown]  # an interval that reaches below 0 goes down to the axis
        axes.errorbar(T, mean[shown], [low, half[shown]], capsize=2, lw=1.2, elinewidth=0.7, label=plain(line.title),
                      **look.marked_line)  # fmt: skip
        lowest, highest = min([lowest, *mean[shown]]), max([highest, *mean[shown]])
    axes.set(xscale="log", yscale="log", xlabel="T", ylabel=name, title=title)
    if highest > 0:
        _references(axes, lowest, highest)
    axes.title.set_fontsize(9)
    axes.grid(alpha=0.3, lw=0.4)


def _references(axes: Axes, lowest: float, highest: float) -> None:
    """Draw the slopes of the theorems from the lower left corner; their names are beside the axes."""
    floor, ceiling = max(lowest, highest / LARGEST_SPAN) / 3, 3 * highest
    axes.set_ylim(floor, ceiling)
    left, right = axes.get_xlim()
    for power, text in REFERENCES.items():
        end = min(right, left * (ceiling / floor) ** (1 / power))
        axes.plot([left, end], [floor, floor * (end / left) ** power], color=BLACK, lw=0.6, ls=":", zorder=0)
        beside = end >= right
        axes.annotate(
            text, (end, floor * (end / left) ** power), (2, 0) if beside else (0, 2), textcoords="offset points",
            fontsize=6, ha="left" if beside else "center", va="center" if beside else "bottom", annotation_clip=False,
        )  # fmt: skip
    axes.set_xlim(left, right)
