"""Figures for print: panels of curves, one for every experiment and measure, of an exact width.

Curves are means over runs with 95% bootstrap bands, in the paper's metric with the standard deviation. A curve that
leaves the axes is cut off, and a note above the axes says where it ends.
"""

import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import EngFormatter, FuncFormatter

from psconrl.arrays import Floats, Ints
from psconrl.errors import ConfigError
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.number_format import format_number
from psconrl.report.statistics import MeanInterval, estimate_of, mean_interval
from psconrl.report.style import GREY

NARROWEST = 1.45  # inches, the least width of a panel: with less, experiments are placed below one another
DRAWN_POINTS = 500  # of a curve in a panel
WIDEST_PRINT = 7.5  # inches, the width of a printed page: up to here the font is small
# An outlying agent would flatten all the others: the axes reach at most this many times as far as the median curve.
CLIP = 4.0
TITLE_PAD = 6.0  # points between the title of a panel and what is below it
LINE_SPACING = 1.2  # of notes, in font sizes
HANDLE = 3.2  # length of a line in the legend, in font sizes: long enough to show a dash
Line = tuple[str, float, str]  # name, level, dash


@dataclass(frozen=True)
class Row:
    """Contents of a row of panels."""

    title: str
    values: Callable[[Experiment, Curves], Floats]
    lines: Callable[[Experiment], list[Line]] = lambda e: []
    clip: bool = False  # cut off outlying curves and draw the zero line
    applies: Callable[[Experiment], bool] = lambda e: True
    known: Callable[[Experiment, Curves], bool] = lambda e, c: True  # whether an agent has these values
    estimate: Callable[[Floats], MeanInterval] = mean_interval  # the mean over runs and its band


@dataclass(frozen=True)
class Sizes:
    """Font sizes in points."""

    label: float
    tick: float
    note: float


def rows_of(measured: Sequence[Measure]) -> list[Row]:
    """Return the rows of a figure for the given measures."""
    return [
        Row(m.title, m.values, _levels(m), m.metric.cumulative, m.applies_to, m.known_of, partial(estimate_of, m))
        for m in measured
    ]


def _levels(measure: Measure) -> Callable[[Experiment], list[Line]]:
    def lines(experiment: Experiment) -> list[Line]:
        facts, i = experiment.facts, measure.cost
        if measure.metric.cumulative:
            return []
        if i:
            return [("limit", facts["thresholds"][i - 1], "--")] if "thresholds" in facts else []
        sign = -1.0 if facts.get("maximise") else 1.0
        return [("optimum", sign * facts["optimum"][0], "--")] if "optimum" in facts else []

    return lines


def panel_figure(
    experiments: Sequence[Experiment], rows: Sequence[Row], width: float | None = None, across: int | None = None
) -> Figure:
    """Draw a row of panels for each measure and a column for each experiment; ``width`` in inches is exact.

    Experiments beyond ``across``, or that do not fit side by side, continue below. A single experiment has its
    measures side by side.
    """
    experiments = [e for e in experiments if e.curves]
    if not experiments or not rows:
        raise ConfigError("there is nothing to draw: no finished runs")
    width = 3.6 * min(len(experiments), across or len(experiments)) + 0.6 if width is None else width
    sizes = Sizes(8, 7, 6) if width <= WIDEST_PRINT else Sizes(10, 9, 7)
    fitting = max(1, int(width / NARROWEST))
    grid = _arranged(experiments, rows, min(fitting, across or fitting))
    wide = width / len(grid[0])
    tall = float(np.clip(0.75 * wide, 1.5, 2.9))
    legend = list(dict.fromkeys((c.title, c.look) for e in experiments for c in e.curves.values()))
    columns = _legend_columns([title for title, _ in legend], width, sizes)
    headings = max(_heading(e, wide, sizes).count("\n") for e in experiments)
    lines = headings * -(-len(experiments) // len(grid[0])) + -(-len(legend) // columns)
    figure = Figure(figsize=(width, tall * len(grid) + 1.5 * sizes.tick / 72 * lines), layout="constrained")
    subplots = figure.subplots(len(grid), len(grid[0]), squeeze=False)
    for beside, line in zip(subplots, grid, strict=True):
        panels = [(axes, panel) for axes, panel in zip(beside, line, strict=True) if panel is not None]
        above = max((_draw(axes, panel.experiment, panel.row, sizes, wide) for axes, panel in panels), default=0.0)
        for axes, panel in panels:
            if panel.first:
                heading = _heading(panel.experiment, wide, sizes)
                axes.set_title(heading, fontsize=sizes.tick, pad=TITLE_PAD + above)
            if panel.left:
                axes.set_ylabel(_wrapped(panel.row.title, 0.6 * tall, sizes.label), fontsize=sizes.label)
            axes.set_xlabel("round" if panel.last else "", fontsize=sizes.label)
        for axes, nothing in zip(beside, line, strict=True):
            if nothing is None:
                axes.set_axis_off()
        figure.set_figheight(figure.get_figheight() + above / 72)
    if len(experiments) == 1:
        figure.suptitle(_heading(experiments[0], width, sizes), fontsize=sizes.tick)
    handles = [Line2D([], [], lw=1.5, label=plain(title), **look.line) for title, look in legend]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        fontsize=sizes.tick,
        frameon=False,
        handlelength=HANDLE,
        borderpad=0.1,
    )
    return figure


class _Panel(NamedTuple):
    experiment: Experiment
    row: Row
    first: bool  # the first of its experiment, with the name above it
    left: bool  # the leftmost, with the name of the measure
    last: bool  # the last of its column


def _arranged(experiments: Sequence[Experiment], rows: Sequence[Row], across: int) -> list[list[_Panel | None]]:
    """Return the panels of a figure, line by line; None where there is nothing to show."""
    if len(experiments) == 1:
        (one,) = experiments
        panels = [_Panel(one, row, False, True, True) for row in rows if row.applies(one)]
        lines: list[list[_Panel | None]] = [list(panels[k : k + across]) for k in range(0, len(panels), across)]
    else:
        lines = []
        for k in range(0, len(experiments), across):
            together = experiments[k : k + across]
            for row in rows:
                left = next((e for e in together if row.applies(e)), None)
                lines.append(
                    [
                        _Panel(e, row, row is rows[0], e is left, row is _last_of(e, rows)) if row.applies(e) else None
                        for e in together
                    ]
                )
    longest = max(map(len, lines))
    return [line + [None] * (longest - len(line)) for line in lines]


def _last_of(experiment: Experiment, rows: Sequence[Row]) -> Row | None:
    """Return the last row that applies to an experiment."""
    return next((row for row in reversed(rows) if row.applies(experiment)), None)


def _draw(axes: Axes, experiment: Experiment, row: Row, sizes: Sizes, wide: float) -> float:
    """Draw a panel and return the height of the notes above it, in points."""
    shown = [c for c in experiment.curves.values() if row.known(experiment, c)]
    means = []
    for c in shown:
        drawn = c.spread_over(DRAWN_POINTS)
        means.append((c.title, band(axes, c, row.estimate(row.values(experiment, c)[:, drawn]), drawn)))
    if missing := [c.title for c in experiment.curves.values() if c not in shown]:
        note = _wrapped(f"not known: {', '.join(missing)}", 0.6 * wide, sizes.note)
        axes.text(
            0.98,
            0.02,
            note,
            fontsize=sizes.note,
            transform=axes.transAxes,
            ha="right",
            va="bottom",
            color="#444444",
            parse_math=False,
        )
    above = 0.0
    if row.clip:
        axes.axhline(0.0, color=GREY, lw=0.7)
        above = _cut(axes, means, sizes, wide)
    for name, level, dash in row.lines(experiment):
        axes.axhline(level, color="black", lw=0.9, ls=dash)
        axes.annotate(
            name, (1.0, level), xycoords=("axes fraction", "data"), fontsize=sizes.note, ha="right", va="bottom"
        )
    tidy(axes, sizes.tick, ticks=3 if wide < 2.2 else 5)
    return above


def band(axes: Axes, curves: Curves, estimate: MeanInterval, drawn: Ints | None = None) -> Floats:
    """Draw the mean over runs with its band and return the mean; ``drawn``: the checkpoints, if not all."""
    rounds = curves.rounds if drawn is None else curves.rounds[drawn]
    axes.plot(rounds, estimate.mean, lw=1.5, label=plain(curves.title), **curves.look.line)
    axes.fill_between(rounds, estimate.low, estimate.high, color=curves.look.colour, alpha=0.18, lw=0)
    return estimate.mean


def reach_of(means: Iterable[Floats]) -> tuple[float, float]:
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


def _cut(axes: Axes, means: list[tuple[str, Floats]], sizes: Sizes, wide: float) -> float:
    """Cut off outlying curves and note above the axes where they end; return the height of the notes in points."""
    low, high = reach_of([mean for _, mean in means])
    if low == high:
        return 0.0
    margin = 0.05 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    over, under = [], []
    for title, mean in means:
        end, most, least = float(mean[-1]), float(mean.max()), float(mean.min())
        if end > high or (most > high and end >= low):
            over.append(
                f"↑ {title} ends at {format_number(end)}" + ("" if end > high else f", from {format_number(most)}")
            )
        elif end < low or least < low:
            under.append(
                f"↓ {title} ends at {format_number(end)}" + ("" if end < low else f", from {format_number(least)}")
            )
    if not over and not under:
        return 0.0
    notes = "\n".join(_wrapped(note, 0.7 * wide, sizes.note) for note in [*over, *under])
    axes.annotate(
        notes,
        (0.0, 1.0),
        (0.0, 3.0),
        xycoords="axes fraction",
        textcoords="offset points",
        va="bottom",
        fontsize=sizes.note,
        linespacing=LINE_SPACING,
        color="#444444",
        parse_math=False,
    )
    return 3.0 + LINE_SPACING * sizes.note * (1 + notes.count("\n"))


def _heading(experiment: Experiment, wide: float, sizes: Sizes) -> str:
    """Return the title of the experiment and the number of runs of its agents."""
    return "\n".join(_wrapped(plain(line), 0.75 * wide, sizes.tick) for line in (experiment.title, runs_of(experiment)))


def runs_of(experiment: Experiment) -> str:
    """Return the number of runs that most agents have, then the exceptions, e.g. "50 runs; 10 of A and of B"."""
    counts = Counter(curves.runs for curves in experiment.curves.values())
    ((usual, _),) = counts.most_common(1)
    others = [
        f"{runs} of {' and of '.join(c.title for c in experiment.curves.values() if c.runs == runs)}"
        for runs in sorted(counts, reverse=True)
        if runs != usual
    ]
    return "; ".join([f"{usual} run{'s' if usual > 1 else ''}", *others])


def tidy(axes: Axes, letters: float | None = None, ticks: int = 5) -> None:
    """Format the axes: readable numbers, a light grid, no frame."""
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_number(y, 4).replace("-", "\N{MINUS SIGN}")))
    axes.tick_params(labelsize=letters)
    axes.locator_params(axis="x", nbins=ticks)
    axes.margins(x=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def plain(name: str) -> str:
    """Escape a name for Matplotlib, where $ starts a formula and a leading _ hides a legend entry."""
    escaped = name.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def _wrapped(text: str, wide: float, letters: float) -> str:
    return textwrap.fill(text, max(8, int(wide * 72 / (0.52 * letters))))


def _legend_columns(titles: Collection[str], width: float, sizes: Sizes) -> int:
    """Return the number of legend columns that fit side by side."""
    widest = max(TextPath((0, 0), plain(title), size=sizes.tick).get_extents().width for title in titles)
    column = (widest + (HANDLE + 2.8) * sizes.tick) / 72  # plus the line and the gaps
    return max(1, min(len(titles), 5, int(width / column)))
