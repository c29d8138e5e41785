"""Figures of the trade-off between objective and constraints: a curve over one threshold, a surface over two."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from psconrl.answers.answer import TradeOff
from psconrl.answers.pareto import Pareto, ParetoSurface
from psconrl.base.arrays import Floats
from psconrl.model.cmdp import CMDP
from psconrl.report.figure_files import LITERAL
from psconrl.report.style import BLUE, GREEN, GREY, ORANGE
from psconrl.systems.limits import Requirement
from psconrl.systems.quantity_units import is_percentage, quantity_unit

SATURATED_QUANTILE = 0.9  # quantile of the prices at which the colours of a surface saturate


@LITERAL
def pareto_figure(curve: Pareto, cmdp: CMDP, title: str = "") -> Figure:
    """Draw the optimal value against the threshold, and below it the shadow price, the worth of one more unit."""
    i, sign = curve.index - 1, float(cmdp.names.signs[curve.index])
    levels = sign * curve.thresholds
    prices = np.array([p.multipliers[i] if p.feasible else np.nan for p in curve.plans])
    objective, constraint = cmdp.units.named(curve.objective), cmdp.units.named(curve.constraint)
    return _curve_figure(
        levels, curve.values, prices, sign * float(cmdp.thresholds[i]), objective, f"threshold on {constraint}", title
    )


@LITERAL
def trade_off_figure(curve: TradeOff, limit: Requirement, title: str = "") -> Figure:
    """Draw the same for a limit of a system, in the terms in which it was stated."""
    asked = curve.answers[0].asked
    goal, units = asked.statement.goal, asked.units
    in_force = limit.low if limit.high is None else limit.high
    shown = [f"{q.text} ({unit})" if (unit := quantity_unit(q, units)) else q.text for q in (goal, limit.quantity)]
    return _curve_figure(
        curve.numbers, curve.values, curve.prices, float("nan") if in_force is None else in_force, shown[0],
        f"limit on {shown[1]}", title, is_percentage(limit.quantity, curve.numbers.tolist(), units),
    )  # fmt: skip


def _curve_figure(
    levels: Floats, values: Floats, prices: Floats, in_force: float, objective: str, constraint: str, title: str,
    percent: bool = False,
) -> Figure:  # fmt: skip
    figure = Figure(figsize=(5.5, 4.6))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    top.plot(levels, values, color=BLUE, marker="o", ms=3)
    bottom.step(levels, prices, where="mid", color=GREEN)
    top.set_ylabel(f"optimal {objective}")
    bottom.set(xlabel=constraint, ylabel="shadow price")
    if percent:
        bottom.xaxis.set_major_formatter(PercentFormatter(1.0))
    bottom.set_ylim(bottom=min(0.0, float(np.nanmin(prices, initial=0.0))))
    lost = levels[np.isnan(values)]
    for axes in (top, bottom):
        if lost.size:
            axes.axvspan(lost.min(), lost.max(), color=GREY, alpha=0.25, lw=0, label="infeasible")
        if levels.min() <= in_force <= levels.max():
            axes.axvline(
                in_force, color=ORANGE, ls="--", lw=1,
                label=f"in force: {f'{100 * in_force:g}%' if percent else f'{in_force:g}'}",
            )  # fmt: skip
        axes.grid(alpha=0.3)
    if top.get_legend_handles_labels()[0]:
        top.legend(fontsize=8)
    if title:
        figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure


@LITERAL
def surface_figure(surface: ParetoSurface, cmdp: CMDP, title: str = "") -> Figure:
    """Draw the optimal value over two thresholds, and next to it the price of each constraint; grey is infeasible."""
    figure = Figure(figsize=(12.0, 3.9))
    one, two = surface.constraints
    signs = cmdp.names.signs[list(surface.indices)]
    levels = [sign * given for sign, given in zip(signs, surface.thresholds, strict=True)]
    panels = [
        (surface.values, f"optimal {cmdp.units.named(surface.objective)}", "viridis"),
        (surface.prices[:, :, 0], f"shadow price of {one}", "Greens"),
        (surface.prices[:, :, 1], f"shadow price of {two}", "Greens"),
    ]
    for axes, (values, label, colours) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.set_facecolor("#D9D9D9")
        # Next to infeasible thresholds a price may be a thousand times larger than the others.
        top = np.nanquantile(values, SATURATED_QUANTILE) if np.isfinite(values).any() and colours != "viridis" else None
        mesh = axes.pcolormesh(*levels, values.T, cmap=colours, shading="nearest", vmax=top)
        figure.colorbar(mesh, ax=axes, extend="neither" if top is None else "max")
        if np.isfinite(values).all() and min(values.shape) > 1 and np.ptp(values) > 0 and colours == "viridis":
            lines = axes.contour(*levels, values.T, colors="white", linewidths=0.8)
            axes.clabel(lines, fontsize=7)
        axes.set_title(label, fontsize=9)
        axes.set(xlabel=f"threshold on {cmdp.units.named(one)}", ylabel=f"threshold on {cmdp.units.named(two)}")
        _mark_limits(axes, surface, cmdp)
    grey = "grey: no policy keeps both limits" if np.isnan(surface.values).any() else ""
    figure.suptitle("; ".join(filter(None, (title, grey))), fontsize=10)
    figure.tight_layout()
    return figure


def _mark_limits(axes: Axes, surface: ParetoSurface, cmdp: CMDP) -> None:
    """Mark the thresholds in force, if they lie within the axes."""
    x, y = (float(cmdp.names.signs[i] * cmdp.thresholds[i - 1]) for i in surface.indices)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if left <= x <= right and low <= y <= high:
        axes.plot([x], [y], "o", color=ORANGE, mec="black", ms=7)
        box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
        axes.annotate(
            f"in force: {x:g}, {y:g}", (x, y), (0, 9), textcoords="offset points", ha="center", fontsize=7, bbox=box
        )
