"""Figure of the test of the theory: growth of regret, episodes and exploring rounds, scaling with S and D."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from psconrl.answers.pareto import cost_ranges
from psconrl.errors import ConfigError
from psconrl.learning.registry import title_of
from psconrl.report.curves import Experiment
from psconrl.report.growth import growth_exponent
from psconrl.report.number_format import format_number
from psconrl.report.panel_axes import plain
from psconrl.report.statistics import mean_interval
from psconrl.report.style import BLUE, DASHES, GREY, MARKER_SIZE, MARKERS, ORANGE, nth_look
from psconrl.report.theory import Check, check_theory


def theory_figure(experiments: Sequence[Experiment]) -> Figure:
    """Draw six panels: regret against T for three families, final regret against D, episodes, exploring rounds."""
    if not experiments:
        raise ConfigError("there is nothing to draw: no finished runs of the theory bench")
    checks = check_theory(experiments)
    figure = Figure(figsize=(12.4, 8.4), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[1, 1.1])  # each has its own columns
    above, below = halves
    growth, (scaling, episodes, exploring) = above.subplots(1, 3), below.subplots(1, 3, width_ratios=[1.5, 1, 1])
    panels = {
        ("bayes", "hierarchy"): "Bayesian: models from the agent's own prior",
        ("theta",): "two states, diameter 1/theta",
        ("riverswim",): "RiverSwim",
    }
    for axes, (families, title) in zip(growth, panels.items(), strict=True):
        _growth(axes, [e for e in experiments if e.name.startswith(families)], title)
    _scaling(scaling, checks)
    _ratios(episodes, checks, "episodes_ratio", "episodes / bound of the schedule\n(largest of the runs)", named=True)
    _ratios(
        exploring,
        checks,
        "exploring_ratio",
        "rounds exploring / $(2DS\\sqrt{AT}+1)$\n(largest of the runs)",
        named=False,
    )
    notes = [note for e in experiments if (note := _about(e))]
    if notes:
        below.supxlabel("\n".join(notes), fontsize=8, x=0.99, ha="right")
    return figure


def _about(experiment: Experiment) -> str:
    """Return an explanation of an experiment whose name does not explain it; empty for the others."""
    if experiment.name != "tight" or experiment.model is None:
        return ""
    slack = float(experiment.model.thresholds[0] - cost_ranges(experiment.model)[1, 0])
    return (
        f"tight: the paper's Example 1, whose threshold, {experiment.model.thresholds[0]:g}, leaves a slack of "
        f"{format_number(slack, 2)}. Most sampled models are infeasible, so agents explore;\n"
        "the bound holds for horizons at which samples have become that exact."
    )


def _growth(axes: Axes, members: Sequence[Experiment], title: str) -> None:
    """Draw a family: a colour and a marker per member, a dash per agent; the legend has slopes over the last decade."""
    names = list(dict.fromkeys(_member(e.name) for e in members))
    labels = list(dict.fromkeys(label for e in members for label in e.curves))
    marked: dict[str, dict[str, Any]] = {
        name: {"color": nth_look(k).colour, "marker": MARKERS[k % len(MARKERS)], "ms": MARKER_SIZE}
        for k, name in enumerate(names)
    }
    dashes = {label: (0, dash) if dash else "-" for label, dash in zip(labels, DASHES, strict=False)}
    slopes: dict[str, list[str]] = {}
    reference: tuple[Any, float] | None = None
    for experiment in members:
        for curves in experiment.curves.values():
            late = curves.rounds >= 10
            t = curves.rounds[late]
            estimate = mean_interval(curves.strong[:, late, 0])
            slope = growth_exponent(curves.rounds, curves.strong[:, :, 0])
            name = _member(experiment.name)
            style, dash = marked[name], dashes[curves.label]
            slopes.setdefault(name, []).append("-" if np.isnan(slope.mean) else f"{slope.mean:.2f}")
            axes.plot(t, estimate.mean, lw=1.3, ls=dash, markevery=0.15, **style)
            axes.fill_between(t, estimate.low, estimate.high, color=style["color"], alpha=0.12, lw=0)
            reference = (t.astype(np.float64), float(max(estimate.mean[0], 1.0)))
    if reference is not None:
        t, start = reference
        axes.plot(t, start * np.sqrt(t / t[0]), color="black", lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log")
        handles = [Line2D([], [], label=plain(f"{name}: {', '.join(slopes[name])}"), **marked[name]) for name in slopes]
        handles += [Line2D([], [], color=GREY, ls=dashes[label], label=plain(title_of(label))) for label in dashes]
        handles.append(Line2D([], [], color="black", lw=0.8, ls=":", label=r"$\sqrt{T}$"))
        axes.legend(
            handles=handles,
            fontsize=6,
            loc="upper left",
            handlelength=2.6,
            borderpad=0.3,
            labelspacing=0.25,
            title="with exponents of T in the last decade",
            title_fontsize=6,
        )
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)  # space for the legend
    axes.set(title=title, xlabel="T", ylabel="strong regret")
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.3, which="both", lw=0.4)


def _scaling(axes: Axes, checks: Sequence[Check]) -> None:
    families = list(dict.fromkeys((_family(check.experiment), check.agent) for check in checks))
    sizes: set[int] = set()
    for k, (family, agent) in enumerate(families):
        mine = [c for c in checks if (_family(c.experiment), c.agent) == (family, agent)]
        own = [c for c in mine if float(c.regret.mean) > 0]
        own.sort(key=lambda c: c.diameter)
        if len(own) < 2:
            continue
        look = nth_look(k)
        x, y = [c.diameter for c in own], np.array([float(c.regret.mean) for c in own])
        error = np.abs(np.array([[float(c.regret.low), float(c.regret.high)] for c in own]).T - y)
        axes.errorbar(x, y, error, capsize=2, lw=1.2, label=plain(f"{family}, {title_of(agent)}"), **look.line)
        axes.scatter(x, y, [_area(c.states) for c in own], color=look.colour, zorder=3)
        sizes |= {c.states for c in own}
    axes.set(
        xscale="log", yscale="log", xlabel="diameter D", ylabel="final strong regret", title="scaling with D and S"
    )
    axes.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.12)
    axes.title.set_fontsize(10)
    if sizes:
        handles = axes.get_legend_handles_labels()[0]
        for states in (min(sizes), max(sizes)):
            dot = {"marker": "o", "color": GREY, "lw": 0, "ms": np.sqrt(_area(states))}
            handles.append(Line2D([], [], label=f"dot: S = {states}", **dot))
        axes.legend(handles=handles, fontsize=6, loc="upper left", labelspacing=0.25)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.6)  # space for the legend
    axes.grid(alpha=0.3, which="both", lw=0.4)


def _area(states: int) -> float:
    """Return the area of a dot in square points, linear in the number of states."""
    return 4.0 + 2.5 * states


def _ratios(axes: Axes, checks: Sequence[Check], field: str, title: str, named: bool) -> None:
    """Draw a bar per check on a square-root scale, which shows both zero and many times the bound, with numbers."""
    values = [float(getattr(check, field)) for check in checks]
    places = range(len(checks))
    axes.barh(places, values, color=[ORANGE if value > 1 else BLUE for value in values])
    axes.set_yticks(places, [f"{c.experiment}, {title_of(c.agent)}" if named else "" for c in checks], fontsize=6)
    axes.axvline(1.0, color="black", lw=0.9, ls="--")
    axes.set(xlim=(0, max(1.3, 1.05 * max(values))), title=title)
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    most = axes.get_xlim()[1]
    ticks = [0.0, 0.25, 0.5, 1.0] if most < 2 else [0.0, 1.0, 4.0, 10.0, 20.0]
    axes.set_xticks(ticks, ["the bound" if tick == 1 else format_number(tick) for tick in ticks], fontsize=7)
    for k, value in enumerate(values):
        axes.annotate(
            "< 0.001" if 0 < value < 1e-3 else format_number(value, 2),
            (1.02, k),
            fontsize=6,
            va="center",
            xycoords=("axes fraction", "data"),
        )
    axes.title.set_fontsize(9)
    axes.margins(y=0.01)
    axes.invert_yaxis()


def _family(name: str) -> str:
    return name.split(" ")[0].split("-")[0]


def _member(name: str) -> str:
    return name.split(" ", 1)[1] if " " in name else name.replace("-", " = ", 1).replace("_", ".")
