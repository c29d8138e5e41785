"""The paper's figures in the paper's layout, from a results file.

Honest by default: signed cumulative regret and violation, mean over runs with a 95% bootstrap band. ``metric="paper"``
draws the paper's own smoothed, one-sided curves instead, for comparison with its pictures and nothing else.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from psconrl.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.report.curves import Curves, Experiment
from psconrl.report.statistics import mean_interval
from psconrl.report.style import GREY, line_styles, title_of

METRICS = ("signed", "paper")
# Rounds of the paper's moving averages.
WINDOWS = {"marsrover-4x4": 500, "marsrover-8x8": 1_000, "box": 10_000}
GRIDS = ("marsrover-4x4", "marsrover-8x8", "box")
# A rival far off would flatten everybody else: the axis shows this many times the range of PSConRL, at least.
CLIP = 4.0

Measure = Callable[[Curves], Floats]


def figure1(experiment: Experiment) -> Figure:
    """The counterexample: average cost against its threshold, and the sampled theta."""
    if not all(curves.probe.size for curves in experiment.curves.values()):
        raise ConfigError(f"experiment {experiment.name!r} followed no sampled probability (probe = [...])")
    figure = Figure(figsize=(8.2, 3.2))
    left, right = figure.subplots(1, 2)
    styles = line_styles(experiment.curves)
    for label, curves in experiment.curves.items():
        _band(left, curves, curves.average(1), styles[label])
        _band(right, curves, curves.probe, styles[label])
    thresholds = next(iter(experiment.curves.values())).thresholds
    left.axhline(thresholds[0, 0], color="black", lw=0.9, ls=":", label=f"threshold {thresholds[0, 0]:g}")
    if experiment.model is not None:
        theta = float(experiment.model.transition.toarray()[1, 1])
        right.axhline(theta, color="black", lw=0.9, ls=":", label=rf"true $\theta$ = {theta:g}")
    left.set(xlabel="round", ylabel="average cost", title="average cost so far")
    right.set(xlabel="round", ylabel=r"sampled $\theta$", title=r"sampled $\theta$", ylim=(0.3, 1))
    for axes in (left, right):
        _tidy(axes)
        axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


def figure2(experiments: Sequence[Experiment], metric: str = "signed") -> Figure:
    """Regret above, violation below, one column an environment."""
    _check_metric(metric)
    if metric == "paper":
        rows: list[tuple[str, Callable[[Experiment], Measure]]] = [
            ("regret, paper's metric", lambda e: lambda c: c.paper_curve(0, _window(e, c))[None]),
            ("violation, paper's metric", lambda e: lambda c: c.paper_curve(1, _window(e, c))[None]),
        ]
    else:
        rows = [
            ("regret (signed)", lambda e: lambda c: c.regret),
            ("violation (signed)", lambda e: lambda c: c.violation(1)),
        ]
    return _columns(experiments, rows, clip=True)


def figure3(experiments: Sequence[Experiment]) -> Figure:
    """Average reward above, with the optimal, safe and fast lines; average of the constrained cost below."""
    rows: list[tuple[str, Callable[[Experiment], Measure]]] = [
        ("average reward (1 - cost)", lambda e: lambda c: 1.0 - c.moving_average(0, _window(e, c))),
        ("average constrained cost", lambda e: lambda c: c.moving_average(1, _window(e, c))),
    ]
    figure = _columns(experiments, rows, clip=False)
    for k, experiment in enumerate(experiments):
        top, bottom = figure.axes[k], figure.axes[k + len(experiments)]
        lines = {"optimum": ("--", experiment.facts.get("optimum", [None])[0])}
        lines |= {name: (":", experiment.facts.get(key)) for name, key in (("safe", "safest"), ("fast", "fastest"))}
        for name, (dash, cost) in lines.items():
            if cost is not None:
                top.axhline(1.0 - cost, color="black", lw=0.9, ls=dash)
                top.annotate(name, (1.0, 1.0 - cost), xycoords=("axes fraction", "data"), fontsize=7, ha="right",
                             va="bottom")  # fmt: skip
        for threshold in experiment.facts.get("thresholds", []):
            bottom.axhline(threshold, color="black", lw=0.9, ls="--")
            bottom.annotate("threshold", (1.0, threshold), xycoords=("axes fraction", "data"), fontsize=7, ha="right",
                            va="bottom")  # fmt: skip
    return figure


def _columns(
    experiments: Sequence[Experiment], rows: list[tuple[str, Callable[[Experiment], Measure]]], clip: bool
) -> Figure:
    experiments = [e for e in experiments if e.curves]
    if not experiments:
        raise ConfigError("there is nothing to draw: no finished runs")
    for e in experiments:
        if len(e.cost_names) < 2 or not all(np.isfinite(c.optimum).all() for c in e.curves.values()):
            raise ConfigError(
                f"experiment {e.name!r} has no limits, or none that can be met: there is nothing to compare"
            )
    n = len(experiments)
    figure = Figure(figsize=(3.6 * n + 0.6, 6.4))
    grid = figure.subplots(len(rows), n, squeeze=False)
    styles = line_styles(label for e in experiments for label in e.curves)
    for column, experiment in enumerate(experiments):
        for row, (title, measure_for) in enumerate(rows):
            axes = grid[row, column]
            measure = measure_for(experiment)
            for label, curves in experiment.curves.items():
                _band(axes, curves, measure(curves), styles[label])
            if clip:
                _clip(axes, experiment, measure)
                axes.axhline(0.0, color=GREY, lw=0.7)
            _tidy(axes)
            if row == 0:
                runs = {curves.runs for curves in experiment.curves.values()}
                shown = f"{min(runs)}-{max(runs)}" if len(runs) > 1 else str(max(runs))
                axes.set_title(f"{experiment.name} ({shown} runs)", fontsize=10)
            if column == 0:
                axes.set_ylabel(title)
            if row == len(rows) - 1:
                axes.set_xlabel("round")
    handles = {text: line for axes in figure.axes for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    columns = min(4, len(handles))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=columns, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.035 * -(-len(handles) // columns) + 0.01, 1, 1))
    return figure


def _band(axes: Axes, curves: Curves, values: Floats, style: dict[str, Any]) -> None:
    estimate = mean_interval(values)
    axes.plot(curves.rounds, estimate.mean, lw=1.5, label=title_of(curves.label), **style)
    axes.fill_between(curves.rounds, estimate.low, estimate.high, color=style["color"], alpha=0.18, lw=0)


def _clip(axes: Axes, experiment: Experiment, measure: Measure) -> None:
    """Cut off rivals that are far away, and say so in the picture."""
    ends = {label: measure(curves).mean(axis=0) for label, curves in experiment.curves.items()}
    own = [curve for label, curve in ends.items() if label.startswith("psconrl")]
    if not own or len(ends) == len(own):
        return
    reach = CLIP * max(float(np.abs(curve).max()) for curve in own)
    low = max(min(float(curve.min()) for curve in ends.values()), -reach)
    high = min(max(float(curve.max()) for curve in ends.values()), reach)
    margin = 0.05 * (high - low)
    axes.set_ylim(low - margin, high + margin)
    beyond = [
        f"{title_of(label)}: {curve[-1]:,.0f}" for label, curve in ends.items() if not low <= float(curve[-1]) <= high
    ]
    if beyond:
        axes.text(0.02, 0.98, "beyond: " + "\n".join(beyond), transform=axes.transAxes, fontsize=6.5, va="top",
                  color="#444444", bbox={"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 1})  # fmt: skip


def _tidy(axes: Axes) -> None:
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _window(experiment: Experiment, curves: Curves) -> int:
    return min(WINDOWS.get(experiment.name, int(curves.rounds[-1]) // 20), int(curves.rounds[-1]))


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise ConfigError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
