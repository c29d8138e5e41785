"""Figures of the trade-off between objective and constraints: a curve over one threshold, a surface over two."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from psconrl.answers.pareto import Pareto, ParetoSurface
from psconrl.answers.stated_model import Asked
from psconrl.report.figure_files import LITERAL
from psconrl.report.style import BLUE, GREEN, GREY, ORANGE
from psconrl.systems.limits import Requirement
from psconrl.systems.quantities import Quantity
from psconrl.systems.quantity_units import is_percentage, quantity_unit

SATURATED_QUANTILE = 0.9  # quantile of the prices at which the colours of a surface saturate


@LITERAL
def pareto_figure(found: Pareto | ParetoSurface, title: str = "") -> Figure:
    """Draw the optimal value over one threshold or two, and the shadow prices, the worth of one more unit."""
    return _curve_figure(found, title) if isinstance(found, Pareto) else _surface_figure(found, title)


def _named(asked: Asked, quantity: Quantity) -> str:
    unit = quantity_unit(quantity, asked.units)
    return f"{quantity.text} ({unit})" if unit and unit != quantity.text else quantity.text


def _in_force(limit: Requirement) -> float:
    return limit.sides[0][0]


def _curve_figure(curve: Pareto, title: str) -> Figure:
    asked, limit = curve.answers[0].asked, curve.limit
    levels, values, prices, in_force = curve.thresholds, curve.values, curve.prices, _in_force(limit)
    percent = is_percentage(limit.quantity, levels.tolist(), asked.units)
    figure = Figure(figsize=(5.5, 4.6))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    top.plot(levels, values, color=BLUE, marker="o", ms=3)
    bottom.step(levels, prices, where="mid", color=GREEN)
    top.set_ylabel(f"optimal {_named(asked, asked.statement.goal)}")
    bottom.set(xlabel=f"threshold on {_named(asked, limit.quantity)}", ylabel="shadow price")
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


def _surface_figure(surface: ParetoSurface, title: str) -> Figure:
    """Draw the optimal value over two thresholds, and next to it the price of each constraint; grey is infeasible."""
    figure = Figure(figsize=(12.0, 3.9))
    asked = surface.answers[0][0].asked
    one, two = (_named(asked, limit.quantity) for limit in surface.limits)
    levels = surface.thresholds
    panels = [
        (surface.values, f"optimal {_named(asked, asked.statement.goal)}", "viridis"),
        (surface.prices[:, :, 0], f"shadow price of {surface.constraints[0]}", "Greens"),
        (surface.prices[:, :, 1], f"shadow price of {surface.constraints[1]}", "Greens"),
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
        axes.set(xlabel=f"threshold on {one}", ylabel=f"threshold on {two}")
        _mark_limits(axes, surface)
    grey = "grey: no policy keeps both limits" if np.isnan(surface.values).any() else ""
    figure.suptitle("; ".join(filter(None, (title, grey))), fontsize=10)
    figure.tight_layout()
    return figure


def _mark_limits(axes: Axes, surface: ParetoSurface) -> None:
    """Mark the thresholds in force, if they lie within the axes."""
    x, y = map(_in_force, surface.limits)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if left <= x <= right and low <= y <= high:
        axes.plot([x], [y], "o", color=ORANGE, mec="black", ms=7)
        box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
        axes.annotate(
            f"in force: {x:g}, {y:g}", (x, y), (0, 9), textcoords="offset points", ha="center", fontsize=7, bbox=box
        )
