"""Figure of a policy with many states: the action over the two most informative coordinates, and along each one."""

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from psconrl.base.arrays import Floats, Ints
from psconrl.model.cmdp import CMDP
from psconrl.model.coordinates import Coordinates, with_total
from psconrl.planning.plan import Plan
from psconrl.report.number_format import format_number
from psconrl.report.style import PALETTE

Mask = NDArray[np.bool_]

VISITED = 1e-9  # long-run share below which a state does not show
COLOURED_ACTIONS = 9  # actions with a colour of their own; the others share one
MOST_AXES = 4  # coordinates along which shares are drawn
MOST_CELLS = 1_000_000  # cells of the map
OUTLINED_SHARE = 0.99  # share of the time that the outline covers
PALE = "#D0D0D0"


def rule_figure(cmdp: CMDP, plan: Plan, places: Coordinates, caption: str) -> Figure:
    """Draw the long-run policy over the coordinates of its states; only visited states count."""
    places = with_total(places)
    order = np.argsort(-plan.occupancy.sum(axis=0), kind="stable")
    used = [int(a) for a in order if plan.occupancy[:, a].sum() > VISITED]
    named, others = used[:COLOURED_ACTIONS], used[COLOURED_ACTIONS:]
    flow = np.column_stack([plan.occupancy[:, named], plan.occupancy[:, others].sum(axis=1)])
    colours = np.array([to_rgb(colour) for colour in (*PALETTE[: len(named)], PALE)])
    levels = [np.unique(column, return_inverse=True) for column in places.values.T]
    pair, decided = deciding_pair(flow, levels)
    axes_shown = [*pair, *(k for k in range(len(levels)) if k not in pair)][:MOST_AXES]
    figure = Figure(figsize=(9.2, 5.2), layout="constrained")
    grid = figure.add_gridspec(len(axes_shown), 1 + bool(pair), width_ratios=[1.3, 1] if pair else None)
    one_a_cell = len(levels) == len(pair)
    if pair:
        axes = figure.add_subplot(grid[:, 0])
        randomised = [s for s in plan.randomised_states if flow[s].sum() > VISITED] if one_a_cell else []
        _map(axes, flow, colours, [levels[k] for k in pair], randomised)
        axes.set(xlabel=places.names[pair[0]], ylabel=places.names[pair[1]])
        if not one_a_cell:
            axes.set_title(f"these two decide {100 * decided:.3g}% of the time; pale: the rest matters", fontsize=9)
    for row, k in enumerate(sorted(axes_shown)):
        axes = figure.add_subplot(grid[row, -1])
        _shares(axes, flow, colours, levels[k])
        axes.set_xlabel(places.names[k], fontsize=9)
        axes.set_ylabel("share", fontsize=9)
    handles = [
        Patch(color=colours[k], label=f"{cmdp.action_name(a)} ({format_number(100 * flow[:, k].sum())}%)")
        for k, a in enumerate(named)
    ]
    if others:
        handles.append(Patch(color=PALE, label=f"{len(others)} others ({format_number(100 * flow[:, -1].sum())}%)"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=2 if len(handles) > 4 else 4,
        fontsize=8,
        frameon=False,
        title="action, and how often",
        title_fontsize=8,
    )
    visited = int((flow.sum(axis=1) > VISITED).sum())
    notes = [f"outlined: {OUTLINED_SHARE:.0%} of the time"] if pair else []
    notes += ["white dot: randomised action"] if one_a_cell and pair else []
    notes += ["black line: how often", f"{visited:,} of {cmdp.n_states:,} states are visited"]
    figure.suptitle(f"{caption}\n{'; '.join(notes)}", fontsize=9)
    return figure


def deciding_pair(flow: Floats, levels: list[tuple[Floats, Ints]]) -> tuple[tuple[int, ...], float]:
    """Return the two coordinates that predict the action best, and how often they do; empty if none can be drawn."""
    pairs = combinations(range(len(levels)), 2)
    drawable = [(i, j) for i, j in pairs if levels[i][0].size * levels[j][0].size <= MOST_CELLS]
    decided = [float(_cells(flow, levels[i], levels[j]).max(axis=2).sum()) for i, j in drawable]
    return max(zip(drawable, decided, strict=True), key=lambda found: found[1], default=((), 0.0))


def _cells(flow: Floats, one: tuple[Floats, Ints], two: tuple[Floats, Ints]) -> Floats:
    """Return how often each action is taken at each pair of values, (values of one, values of two, actions)."""
    total = np.zeros((one[0].size, two[0].size, flow.shape[1]))
    np.add.at(total, (one[1], two[1]), flow)
    return total


def _map(axes: Axes, flow: Floats, colours: Floats, levels: list[tuple[Floats, Ints]], randomised: list[int]) -> None:
    """Draw the most frequent action at each pair of values, paler the more often others are taken."""
    (x, along), (y, up) = levels
    cells = _cells(flow, levels[0], levels[1])
    mass = cells.sum(axis=2)
    shown = mass > VISITED
    certain = np.divide(cells.max(axis=2), mass, out=np.zeros_like(mass), where=shown)
    paint = 1.0 - certain[..., None] * (1.0 - colours[cells.argmax(axis=2)])
    axes.pcolormesh(_edges(x), _edges(y), paint.transpose(1, 0, 2))
    axes.add_collection(LineCollection(_outline(_most_visited(mass), _edges(x), _edges(y)), colors="black", lw=1.2))
    axes.plot(x[along[randomised]], y[up[randomised]], "o", color="white", mec="black", ms=4, mew=0.6)
    axes.set_xlim(*_seen(_edges(x), shown.any(axis=1)))
    axes.set_ylim(*_seen(_edges(y), shown.any(axis=0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))


def _most_visited(mass: Floats) -> Mask:
    """Return the fewest cells that hold nearly all of the time."""
    order = np.argsort(-mass, axis=None, kind="stable")
    enough = int(np.searchsorted(np.cumsum(mass.ravel()[order]), OUTLINED_SHARE * mass.sum())) + 1
    chosen = np.zeros(mass.size, dtype=bool)
    chosen[order[:enough]] = True
    return chosen.reshape(mass.shape)


def _outline(inside: Mask, x: Floats, y: Floats) -> list[list[tuple[float, float]]]:
    """Return the edges between the cells inside and those outside."""
    padded = np.pad(inside, 1)
    upright = [[(x[i], y[j]), (x[i], y[j + 1])] for i, j in np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1])]
    level = [[(x[i], y[j]), (x[i + 1], y[j])] for i, j in np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1])]
    return upright + level


def _shares(axes: Axes, flow: Floats, colours: Floats, level: tuple[Floats, Ints]) -> None:
    """Draw the shares of actions at each value of a coordinate, and a line of its frequency relative to the largest."""
    values, at = level
    total = np.zeros((values.size, flow.shape[1]))
    np.add.at(total, at, flow)
    mass = total.sum(axis=1)
    shown = mass > VISITED
    shares = np.divide(total, mass[:, None], out=np.zeros_like(total), where=shown[:, None])
    edges, tops = _edges(values), shares.cumsum(axis=1)
    for k in range(shares.shape[1]):
        axes.stairs(tops[:, k], edges, baseline=tops[:, k] - shares[:, k], fill=True, color=colours[k])
    for colour, wide in (("white", 2.4), ("black", 1.0)):
        axes.step(values[shown], mass[shown] / mass.max(), color=colour, lw=wide, where="mid")
    axes.set(xlim=_seen(edges, shown), ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=8)


def _seen(edges: Floats, shown: Mask) -> tuple[float, float]:
    """Return the range of values that occur."""
    places = np.flatnonzero(shown)
    return float(edges[places[0]]), float(edges[places[-1] + 1])


def _edges(values: Floats) -> Floats:
    """Return the edges of cells around values."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
