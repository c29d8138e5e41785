"""Figures for print: panels of curves, one for every experiment and measure, of an exact width.

Curves are means over runs with 95% bands (Student's t), in the paper's metric with the standard deviation. A curve that
leaves the axes is cut off: a triangle in its colour marks where, and a note above the axes says where it ends. If only
its band leaves them, the triangle is hollow. Texts are measured and wrapped, so that none is cut off at the border of
the figure.
"""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from psconrl.base.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.report.curves import Experiment
from psconrl.report.cut_curves import CutCurve, cut_curves, notes_on, reach_of
from psconrl.report.panel_axes import log_locator, mark_borders, plain, set_scales, thin_out_ticks, tidy
from psconrl.report.panel_contents import Line, PlottedCurve, Row
from psconrl.report.statistics import INTERVAL_RUNS, without_reason
from psconrl.report.style import GREY
from psconrl.report.typeface import POINTS_AN_INCH, Typeface, typeface_for
from psconrl.report.unfinished import unfinished_in_words

NARROWEST = 0.18  # inches for every point of the font, of a panel: with less, experiments are placed below one another
ASPECT, LOWEST, TALLEST = 0.6, 1.02, 2.4  # height of the axes: by the width of a panel, then in inches
LINE_WIDTH, ALONE_WIDTH = 1.3, 6.0  # points, of a curve and of the interval of a point that is not joined
MARKED_EVERY = 0.17  # of the diagonal of the axes, between two markers of a curve
TITLE_PAD = 6.0  # points between the title of a panel and what is below it
NOTE_PAD = 5.0  # points between the axes and the notes above them, with space for the triangles
LINE_SPACING = 1.2  # of the height of the font
NOTE_GREY, FRAME_GREY = "#444444", "#CCCCCC"
HANDLE = 3.6  # length of a line in the legend, in font sizes: long enough to show a dash and a marker
LEGEND_GAPS = 2.8  # of a column of the legend, in font sizes
LEGEND_COLUMNS = 5  # at most
FITTING_TITLES = 0.85  # share of the titles of the legend that its columns are wide enough for; others are wrapped
SMALL_PANEL = 2.2  # inches
FEW_TICKS, USUAL_TICKS = 3, 5  # intervals between ticks at most, in small panels and in others
ADJUSTMENTS = 3  # of the height of a figure
LOWEST_AXES = 0.6  # inches, in a figure of a given height


@dataclass(frozen=True)
class Print:
    """The form of a figure for print."""

    width: float | None = None  # inches, exact
    height: float | None = None  # inches, exact
    across: int | None = None  # experiments side by side, at most
    family: str | None = None  # of the font
    size: float | None = None  # of the font, in points
    log: str = ""  # logarithmic axes: x, y or xy


class _Panel(NamedTuple):
    experiment: Experiment
    row: Row
    first: bool  # the first of its experiment, with the name above it
    left: bool  # the leftmost, with the name of the measure
    last: bool  # the last of its column


class _Drawn(NamedTuple):
    """A panel with its axes."""

    axes: Axes
    panel: _Panel
    notes: list[str]
    levels: list[Line]  # the lines within the axes
    empty: bool = False  # no curve is known: the notes say why


def panel_figure(experiments: Sequence[Experiment], rows: Sequence[Row], form: Print | None = None) -> Figure:
    """Draw a row of panels for each measure and a column for each experiment.

    Experiments beyond ``form.across``, or that do not fit side by side, continue below. A single experiment has its
    measures side by side.
    """
    form = form or Print()
    experiments = [e for e in experiments if e.curves]
    if not experiments or not rows:
        raise ConfigError("there is nothing to draw: no finished runs")
    across = form.across or len(experiments)
    width = 3.6 * min(len(experiments), across) + 0.6 if form.width is None else form.width
    letters = typeface_for(width, form.family, form.size)
    grid = _arranged(
        experiments,
        rows,
        min(max(1, int(width / (NARROWEST * letters.label))), form.across or len(experiments) * len(rows)),
    )
    if not grid:
        raise ConfigError("there is nothing to draw: no experiment has these metrics")
    tall = float(np.clip(ASPECT * width / len(grid[0]), LOWEST, TALLEST))
    figure = _figure_of(experiments, grid, form, letters, width, tall)
    if form.height is None:
        return figure
    for _ in range(ADJUSTMENTS):  # labels are wrapped to the height of the axes
        tall = max(LOWEST_AXES, tall + (form.height - figure.get_figheight()) / len(grid))
        figure = _figure_of(experiments, grid, form, letters, width, tall)
        least = math.ceil(10 * figure.get_figheight()) / 10
        if tall == LOWEST_AXES and form.height < least:
            raise ConfigError(
                f"the texts do not fit a figure {form.height:.3g}in high; set --height to {least:g}in or more, or a "
                "smaller --fontsize"
            )
    figure.set_figheight(form.height)
    _lay_out(figure)
    return figure


def _figure_of(
    experiments: Sequence[Experiment],
    grid: Sequence[Sequence[_Panel | None]],
    form: Print,
    letters: Typeface,
    width: float,
    tall: float,
) -> Figure:
    """Draw the panels with axes ``tall`` inches high."""
    wide = width / len(grid[0])
    ticks = FEW_TICKS if wide < SMALL_PANEL else USUAL_TICKS
    # Matplotlib warns of some fonts whose formulas are not drawn here.
    with mpl.rc_context({"font.family": letters.families, "axes.formatter.use_mathtext": True}):
        figure = Figure(figsize=(width, (tall + 4.0) * len(grid) + 4.0), layout="constrained")
        subplots = figure.subplots(len(grid), len(grid[0]), squeeze=False)
        _add_legend(figure, experiments, letters)
        if len(experiments) == 1:
            figure.suptitle(
                _heading(experiments[0], 0.95 * width, letters), fontsize=letters.tick, linespacing=LINE_SPACING
            )
        drawn = []
        for beside, line in zip(subplots, grid, strict=True):
            drawn.append(
                [_draw(axes, p, form, letters, tall, ticks) for axes, p in zip(beside, line, strict=True) if p]
            )
            for axes, nothing in zip(beside, line, strict=True):
                if nothing is None:
                    axes.set_axis_off()
        _lay_out(figure)  # the width of the axes is known from here on
        for together in drawn:
            _write_above(together, letters)
        _set_height(figure, [one.axes for together in drawn for one in together], tall, len(grid))
        for together in drawn:
            for one in together:
                _name_levels(one, letters)
                thin_out_ticks(one.axes, one.panel.row.ticks)
    return figure


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
    lines = [line for line in lines if any(line)]
    longest = max(map(len, lines), default=0)
    return [line + [None] * (longest - len(line)) for line in lines]


def _last_of(experiment: Experiment, rows: Sequence[Row]) -> Row | None:
    """Return the last row that applies to an experiment."""
    return next((row for row in reversed(rows) if row.applies(experiment)), None)


def _draw(axes: Axes, panel: _Panel, form: Print, letters: Typeface, tall: float, ticks: int) -> _Drawn:
    """Draw the curves and the axes of a panel; what is written above it comes later, when its width is known."""
    experiment, row = panel.experiment, panel.row
    curves, lines, missing = row.curves(experiment), row.lines(experiment), row.missing(experiment)
    if panel.left:
        axes.set_ylabel(
            letters.wrapped(row.title, letters.label, tall), fontsize=letters.label, linespacing=LINE_SPACING
        )
    axes.set_xlabel(plain(row.x_title) if panel.last else "", fontsize=letters.label)
    if not curves:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color(FRAME_GREY)
        return _Drawn(axes, panel, [missing], [], empty=True)
    set_scales(axes, curves, form.log)
    means = [band(axes, curve, k) for k, curve in enumerate(curves)]
    cut: list[CutCurve] = []
    if row.clip:
        axes.axhline(0.0, color=GREY, lw=0.7)
    reach = row.reach
    if reach is None and row.clip and "y" not in form.log:
        low, high = reach_of(means, (end for c in curves for end in (c.estimate.low, c.estimate.high)))
        margin = 0.05 * (high - low)
        reach = (low - margin, high + margin) if margin > 0 else None
    tidy(axes, letters.tick, ticks, letters.families)
    if curves[0].every_point:
        axes.margins(x=0.05)
    if axes.get_yscale() == "log":
        reach = reach or axes.get_ylim()
        if reach[0] <= 0:
            raise ConfigError(f"--ylim: LOW must be positive on a logarithmic axis; got {reach[0]:g}")
        axes.yaxis.set_major_locator(log_locator(*reach))
    if reach is not None:
        axes.set_ylim(reach)
        cut = cut_curves(curves, reach)
        mark_borders(axes, cut)
    low, high = reach or (-np.inf, np.inf)
    inside = [line for line in lines if low <= line[1] <= high]
    for _, level, dash in inside:
        axes.axhline(level, color="black", lw=0.9, ls=dash)
    notes = notes_on(cut, [line for line in lines if line not in inside], (low, high))
    return _Drawn(axes, panel, [*notes, *([missing] if missing else [])], inside)


def band(axes: Axes, curve: PlottedCurve, k: int = 0) -> Floats:
    """Draw the k-th curve of some axes, a mean with its band, and return the mean.

    Over the values of an option on a logarithmic axis, zero has no true place: it is not joined with the next value.
    """
    look = curve.look
    parted = curve.every_point and axes.get_xscale() == "symlog"
    x, estimate = curve.parted() if parted else (curve.x, curve.estimate)
    every = None if curve.every_point else ((0.03 * (1 + k % 5)), MARKED_EVERY)
    style = look.marked_line | ({"marker": look.marker or "."} if curve.every_point else {})
    axes.plot(x, estimate.mean, lw=LINE_WIDTH, label=plain(curve.title), markevery=every, **style)
    axes.fill_between(x, estimate.low, estimate.high, color=look.colour, alpha=0.18, lw=0)
    if x.size > 1 and np.isnan(x[1]):  # a point alone has no band
        axes.vlines(x[0], estimate.low[0], estimate.high[0], color=look.colour, alpha=0.18, lw=ALONE_WIDTH)
    return curve.estimate.mean


def _write_above(together: Sequence[_Drawn], letters: Typeface) -> None:
    """Write headings and notes above the panels of a line, no wider than their axes."""
    written = []
    for one in together:
        width = _inches(one.axes)[0] * (0.9 if one.empty else 1.0)
        text = "\n".join(letters.wrapped(note, letters.note, width) for note in one.notes)
        written.append("" if one.empty else text)
        if one.empty:
            centre: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "transform": one.axes.transAxes,
                "color": NOTE_GREY,
            }
            one.axes.text(0.5, 0.5, text, fontsize=letters.note, linespacing=LINE_SPACING, parse_math=False, **centre)
    above = max(
        (_write_notes(one.axes, text, letters) for one, text in zip(together, written, strict=True)), default=0.0
    )
    for one in together:
        if one.panel.first:
            heading = _heading(one.panel.experiment, _inches(one.axes)[0], letters)
            one.axes.set_title(heading, fontsize=letters.tick, pad=TITLE_PAD + above, linespacing=LINE_SPACING)


def _write_notes(axes: Axes, text: str, letters: Typeface) -> float:
    """Write notes above the axes and return the height that they take, in points."""
    if not text:
        return 0.0
    written = axes.annotate(
        text,
        (0.0, 1.0),
        (0.0, NOTE_PAD),
        xycoords="axes fraction",
        textcoords="offset points",
        va="bottom",
        fontsize=letters.note,
        linespacing=LINE_SPACING,
        color=NOTE_GREY,
        parse_math=False,
    )
    figure = axes.get_figure()
    assert figure is not None
    return NOTE_PAD + float(written.get_window_extent().height) / figure.dpi * POINTS_AN_INCH


def _inches(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of laid-out axes."""
    figure = axes.get_figure()
    assert figure is not None
    size = axes.get_window_extent()
    return float(size.width / figure.dpi), float(size.height / figure.dpi)


def _lay_out(figure: Figure) -> None:
    """Place all parts of the figure; an error if it is too narrow for its texts."""
    engine = figure.get_layout_engine()
    assert engine is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            engine.execute(figure)
        except UserWarning:
            width = figure.get_figwidth()
            raise ConfigError(
                f"the texts do not fit a figure {width:.3g}in wide; set a larger --width or a smaller --fontsize"
            ) from None


def _set_height(figure: Figure, panels: Sequence[Axes], tall: float, lines: int) -> None:
    """Set the height of the figure such that axes are ``tall`` inches high."""
    for _ in range(ADJUSTMENTS):
        _lay_out(figure)
        missing = tall - min(_inches(axes)[1] for axes in panels)
        if abs(missing) < 0.01 * tall:
            break
        figure.set_figheight(figure.get_figheight() + lines * missing)
    _lay_out(figure)


def _name_levels(one: _Drawn, letters: Typeface) -> None:
    """Write the names of the lines at their right ends, the lowest first, none on another."""
    axes, tall = one.axes, _inches(one.axes)[1]
    needed = LINE_SPACING * letters.note / POINTS_AN_INCH / tall  # of the height of the axes
    taken = -np.inf
    for name, level, _ in sorted(one.levels, key=lambda line: line[1]):
        place = float(axes.transAxes.inverted().transform(axes.transData.transform((0.0, level)))[1])
        place = max(place, taken)
        taken = place + needed
        axes.text(
            1.0,
            place,
            name,
            fontsize=letters.note,
            ha="right",
            va="bottom",
            transform=axes.transAxes,
            parse_math=False,
            bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.3},
            zorder=6,
        )


def _add_legend(figure: Figure, experiments: Sequence[Experiment], letters: Typeface) -> None:
    """Add a legend of all agents below the panels."""
    width, size = figure.get_figwidth(), letters.tick
    handle = (HANDLE + LEGEND_GAPS) * size / POINTS_AN_INCH  # the line and the gaps
    agents = dict.fromkeys((c.title, c.look) for e in experiments for c in e.curves.values())
    wide = sorted(letters.width(title, size) for title, _ in agents)
    longest_word = max((letters.width(word, size) for title, _ in agents for word in title.split()), default=0.0)
    usual = handle + max(longest_word, wide[math.ceil(FITTING_TITLES * (len(wide) - 1))])
    columns = max(1, min(len(agents), LEGEND_COLUMNS, int(width / usual)))
    titles = [letters.wrapped(title, size, 0.97 * width / columns - handle) for title, _ in agents]
    figure.legend(
        handles=[
            Line2D([], [], lw=LINE_WIDTH, label=plain(title), **look.marked_line)
            for title, (_, look) in zip(titles, agents, strict=True)
        ],
        loc="outside lower center",
        ncols=columns,
        fontsize=size,
        frameon=False,
        handlelength=HANDLE,
        borderpad=0.1,
    )


def _heading(experiment: Experiment, wide: float, letters: Typeface) -> str:
    """Return the title of the experiment, the number of runs of its agents, and the runs that are not done."""
    lines = [experiment.title, runs_of(experiment)]
    lines += [f"unfinished: {unfinished_in_words(experiment.unfinished)}"] * bool(experiment.unfinished)
    return plain("\n".join(letters.wrapped(line, letters.tick, wide) for line in lines))


def runs_of(experiment: Experiment) -> str:
    """Return the number of runs that most agents have, then the exceptions, e.g. "50 runs; 10 of A and of B".

    If some have too few for an interval, it says so.
    """
    counts = Counter(curves.runs for curves in experiment.curves.values())
    ((usual, _),) = counts.most_common(1)
    others = [
        f"{runs} of {' and of '.join(c.title for c in experiment.curves.values() if c.runs == runs)}"
        for runs in sorted(counts, reverse=True)
        if runs != usual
    ]
    shown = "; ".join([f"{usual} run{'s' if usual > 1 else ''}", *others])
    if min(counts) >= INTERVAL_RUNS:
        return shown
    return f"{shown}: no interval" if len(counts) == 1 else f"{shown} ({without_reason(counts).rstrip('.')})"
