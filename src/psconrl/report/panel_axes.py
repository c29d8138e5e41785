"""Axes of panels: scales, ticks, and triangles where curves leave them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, Locator, LogLocator, MaxNLocator

from psconrl.report.cut_curves import CutCurve, log_reach, with_minus
from psconrl.report.panel_contents import PlottedCurve

DECADES = 2  # whole ones of a logarithmic axis with both signs, on each side of zero
LOG_FACTOR = 1.3  # factor between the curves and the ends of a logarithmic axis
# Values of an option have a logarithmic axis if there are at least three, and the ratio of the ends is at least this.
GEOMETRIC = 20.0


def set_scales(axes: Axes, curves: Sequence[PlottedCurve], log: str) -> None:
    """Make axes logarithmic; one with zero or both signs is linear next to zero.

    ``log``: x, y or xy. The axis of an option of a geometric grid is logarithmic in any case.
    """
    x = np.unique(np.concatenate([curve.x for curve in curves]))
    positive = x[x > 0]
    if "x" in log or (curves[0].every_point and positive.size > 2 and positive[-1] >= GEOMETRIC * positive[0]):
        if x[0] > 0:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(log_locator(float(x[0]), float(x[-1])))
        else:
            axes.set_xscale("symlog", linthresh=positive[0] if positive.size else 1.0)
        axes.minorticks_off()
    if "y" in log:
        values = np.concatenate([curve.estimate.mean for curve in curves])
        values = values[np.isfinite(values)]
        if (values > 0).all() and values.size:
            axes.set_yscale("log")
            low, high = log_reach([curve.estimate for curve in curves])
            axes.set_ylim(low / LOG_FACTOR, high * LOG_FACTOR)
        else:
            linear = linear_part(float(np.abs(values).max(initial=0.0)))
            axes.set_yscale("symlog", linthresh=linear)
            decades = [linear * 10**k for k in range(DECADES + 1)]
            axes.yaxis.set_major_locator(FixedLocator([*(-x for x in decades), 0.0, *decades]))
        axes.minorticks_off()


def log_locator(low: float, high: float) -> Locator:
    """Return the places of the labels of a logarithmic axis: powers of ten, within a decade also 2 and 5 times these.

    Within a smaller range they are evenly spaced.

    >>> [float(x) for x in log_locator(30.0, 400.0).tick_values(30.0, 400.0) if 30 <= x <= 400]
    [50.0, 100.0, 200.0]
    """
    for factors in ((1.0,), (1.0, 2.0, 5.0)):
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        places = np.outer(powers, factors)
        if ((places >= low) & (places <= high)).sum() > 1:
            return LogLocator(subs=factors, numticks=5)
    return MaxNLocator(4, steps=[1, 2, 5, 10])


def linear_part(largest: float) -> float:
    """Return the size up to which a logarithmic axis with both signs is linear, from that of its largest value.

    >>> linear_part(450.0), linear_part(0.0)
    (1.0, 1.0)
    """
    return float(10.0 ** (np.floor(np.log10(largest)) - DECADES)) if largest > 0 else 1.0


def tidy(axes: Axes, size: float | None = None, ticks: int = 5, families: Sequence[str] | None = None) -> None:
    """Format the axes: readable numbers, a light grid, no frame.

    ``ticks``: the number of intervals between ticks of the horizontal axis, at most. Numbers are no formulas, which
    would have a font of their own.
    """
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(EngFormatter(sep="", useMathText=False))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: with_minus(y, 4)))
    axes.tick_params(labelsize=size)
    if families:
        axes.tick_params(labelfontfamily=list(families))
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=ticks)
    axes.margins(x=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def mark_borders(axes: Axes, cut: Sequence[CutCurve]) -> None:
    """Draw a triangle on the border of the axes where a curve leaves them, a hollow one where only its band does."""
    for curve in cut:
        axes.plot(
            [curve.x],
            [1.0 if curve.over else 0.0],
            transform=axes.get_xaxis_transform(),
            marker="^" if curve.over else "v",
            ms=5.0,
            mfc="white" if curve.band else curve.look.colour,
            mec=curve.look.colour if curve.band else "black",
            mew=0.8 if curve.band else 0.5,
            clip_on=False,
            zorder=5,
        )


def thin_out_ticks(axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Put given ticks on the horizontal axis, without the labels that would touch the one before."""
    if not ticks:
        return
    figure = axes.get_figure()
    assert figure is not None
    axes.set_xticks([x for x, _ in ticks], [plain(text) for _, text in ticks])
    axes.minorticks_off()
    end = -np.inf
    for label in axes.get_xticklabels():
        extent = label.get_window_extent()
        label.set_visible(bool(extent.x0 > end))
        end = extent.x1 + 0.03 * figure.dpi if label.get_visible() else end


def plain(name: str) -> str:
    """Escape a name for Matplotlib, where $ starts a formula and a leading _ hides a legend entry."""
    escaped = name.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped
