"""The theory on trial: growth of regret, episodes and exploring rounds against their bounds, scaling with S and D."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from psconrl.errors import ConfigError
from psconrl.report.curves import Experiment
from psconrl.report.statistics import growth_exponent, mean_interval
from psconrl.report.style import GREY, line_styles, title_of
from psconrl.report.theory import Check, check_theory


def theory_figure(experiments: Sequence[Experiment]) -> Figure:
    """Six panels: regret against T for three families, final regret against D, episodes, exploring rounds."""
    if not experiments:
        raise ConfigError("there is nothing to draw: no finished runs of the theory bench")
    checks = check_theory(experiments)
    figure = Figure(figsize=(12.4, 7.4))
    grid = figure.subplots(2, 3)
    panels = {
        ("bayes", "hierarchy"): "Bayesian: models from the agent's own prior",
        ("theta",): "two states, diameter 1/theta",
        ("riverswim",): "RiverSwim",
    }
    for axes, (families, title) in zip(grid[0], panels.items(), strict=True):
        _growth(axes, [e for e in experiments if e.name.startswith(families)], title)
    _scaling(grid[1, 0], checks)
    _ratios(grid[1, 1], checks, "episodes_ratio", "episodes / bound of the schedule, largest of the runs")
    _ratios(grid[1, 2], checks, "exploring_ratio", r"rounds exploring / $(2DS\sqrt{AT}+1)$, largest of the runs")
    figure.tight_layout()
    return figure


def _growth(axes: Axes, members: Sequence[Experiment], title: str) -> None:
    """A colour for each member of a family, a dash for each agent; the legend has the slopes of the last decade."""
    colours = line_styles(_member(e.name) for e in members)
    dashes = line_styles(label for e in members for label in e.curves)
    slopes: dict[str, list[str]] = {}
    reference: tuple[Any, float] | None = None
    for experiment in members:
        for curves in experiment.curves.values():
            late = curves.rounds >= 10
            t = curves.rounds[late]
            estimate = mean_interval(curves.strong[:, late, 0])
            slope = growth_exponent(curves.rounds, curves.strong[:, :, 0])
            name = _member(experiment.name)
            colour, dash = colours[name]["color"], dashes[curves.label]["ls"]
            slopes.setdefault(name, []).append("-" if np.isnan(slope.mean) else f"{slope.mean:.2f}")
            axes.plot(t, estimate.mean, lw=1.5, color=colour, ls=dash)
            axes.fill_between(t, estimate.low, estimate.high, color=colour, alpha=0.12, lw=0)
            reference = (t.astype(np.float64), float(max(estimate.mean[0], 1.0)))
    if reference is not None:
        t, start = reference
        axes.plot(t, start * np.sqrt(t / t[0]), color="black", lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log")
        handles = [
            Line2D([], [], color=colours[name]["color"], label=f"{name}: {', '.join(slopes[name])}") for name in slopes
        ]
        handles += [Line2D([], [], color=GREY, ls=dashes[label]["ls"], label=title_of(label)) for label in dashes]
        handles.append(Line2D([], [], color="black", lw=0.8, ls=":", label=r"$\sqrt{T}$"))
        axes.legend(handles=handles, fontsize=6, loc="upper left", handlelength=2.6, borderpad=0.3, labelspacing=0.25)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
    axes.set(title=title, xlabel="T", ylabel="strong regret")
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.3, which="both", lw=0.4)


def _scaling(axes: Axes, checks: Sequence[Check]) -> None:
    families = dict.fromkeys((_family(check.experiment), check.agent) for check in checks)
    styles = line_styles(f"{family}, {title_of(agent)}" for family, agent in families)
    for family, agent in families:
        mine = [c for c in checks if (_family(c.experiment), c.agent) == (family, agent)]
        own = [c for c in mine if float(c.regret.mean) > 0]
        own.sort(key=lambda c: c.diameter)
        if len(own) < 2:
            continue
        name = f"{family}, {title_of(agent)}"
        x, y = [c.diameter for c in own], np.array([float(c.regret.mean) for c in own])
        error = np.abs(np.array([[float(c.regret.low), float(c.regret.high)] for c in own]).T - y)
        axes.errorbar(x, y, error, marker="o", ms=4, capsize=2, lw=1.2, label=name, **styles[name])
        for c, height in zip(own, y, strict=True):
            axes.annotate(f"{c.states}", (c.diameter, height), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="diameter D",
        ylabel="final strong regret",
        title="scaling with D and S (the numbers)",
    )
    axes.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.12)
    axes.title.set_fontsize(10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6, loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)
    axes.grid(alpha=0.3, which="both", lw=0.4)


def _ratios(axes: Axes, checks: Sequence[Check], field: str, title: str) -> None:
    values = [getattr(check, field) for check in checks]
    axes.barh(range(len(checks)), values, color=GREY)
    axes.set_yticks(
        range(len(checks)), [f"{check.experiment}, {title_of(check.agent)}" for check in checks], fontsize=5
    )
    axes.axvline(1.0, color="black", lw=0.9, ls="--", label="the bound")
    for k, value in enumerate(values):
        axes.text(value, k, f" {value:.3g}", va="center", fontsize=6)
    axes.legend(fontsize=6, loc="upper right")
    axes.set(xlim=(0, max(1.3, 1.15 * max(values))), title=title)
    axes.title.set_fontsize(8)
    axes.invert_yaxis()


def _family(name: str) -> str:
    return name.split(" ")[0].split("-")[0]


def _member(name: str) -> str:
    return name.split(" ", 1)[1] if " " in name else name.replace("-", " = ", 1).replace("_", ".")
