"""A policy of many states as its rule: the action over the two numbers that decide most, and along each of them."""

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from psconrl.arrays import Floats, Ints
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.report.coordinates import Coordinates
from psconrl.report.numbers import written
from psconrl.report.style import GREY, PALETTE

VISITED = 1e-9  # long-run share below which a state does not show
MOST_ACTIONS = 9  # that have a colour of their own; the others share one
MOST_AXES = 4  # along which shares are drawn
USUAL = 0.99  # of the time: the outline


def rule_figure(cmdp: CMDP, plan: Plan, places: Coordinates, caption: str) -> Figure:
    """The long-run policy over the coordinates of its states; only what is visited counts."""
    order = np.argsort(-plan.occupancy.sum(axis=0), kind="stable")
    used = [int(a) for a in order if plan.occupancy[:, a].sum() > VISITED]
    named, others = used[:MOST_ACTIONS], used[MOST_ACTIONS:]
    flow = np.column_stack([plan.occupancy[:, named], plan.occupancy[:, others].sum(axis=1)])
    colours = np.array([to_rgb(colour) for colour in (*PALETTE[: len(named)], GREY)])
    levels = [np.unique(column, return_inverse=True) for column in places.values.T]
    alone = len(levels) == 1
    n = min(len(levels), MOST_AXES)
    figure = Figure(figsize=(9.2, 5.2), layout="constrained")
    grid = figure.add_gridspec(1 if alone else n, 1 if alone else 2, width_ratios=None if alone else [1.3, 1])
    if not alone:
        pair, decided = deciding_pair(flow, levels)
        axes = figure.add_subplot(grid[:, 0])
        _map(axes, flow, colours, [levels[k] for k in pair], plan.randomised_states)
        axes.set(xlabel=places.names[pair[0]], ylabel=places.names[pair[1]])
        if n > 2:
            axes.set_title(f"these two decide {100 * decided:.3g}% of the time; pale: the rest matters", fontsize=9)
    for k in range(n):
        axes = figure.add_subplot(grid[0, 0] if alone else grid[k, 1])
        _shares(axes, flow, colours, levels[k])
        axes.set_xlabel(places.names[k], fontsize=9)
        axes.set_ylabel("share", fontsize=9)
    handles = [
        Patch(color=colours[k], label=f"{cmdp.action_name(a)} ({written(100 * flow[:, k].sum())}%)")
        for k, a in enumerate(named)
    ]
    if others:
        handles.append(Patch(color=GREY, label=f"{len(others)} others ({written(100 * flow[:, -1].sum())}%)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if len(handles) > 4 else 4, fontsize=8,
                  frameon=False, title="action, and how often", title_fontsize=8)  # fmt: skip
    visited = int((flow.sum(axis=1) > VISITED).sum())
    note = "" if alone else f"outlined: {USUAL:.0%} of the time; white dot: a coin is tossed; "
    note += f"black line: how often; {visited:,} of {cmdp.n_states:,} states are visited"
    figure.suptitle(f"{caption}\n{note}", fontsize=9)
    return figure


def deciding_pair(flow: Floats, levels: list[tuple[Floats, Ints]]) -> tuple[tuple[int, int], float]:
    """The two coordinates by which the action can be told most often, and how often that is."""
    pairs = list(combinations(range(len(levels)), 2))
    decided = [float(_cells(flow, levels[i], levels[j]).max(axis=2).sum()) for i, j in pairs]
    best = int(np.argmax(decided))
    return pairs[best], decided[best]


def _cells(flow: Floats, one: tuple[Floats, Ints], two: tuple[Floats, Ints]) -> Floats:
    """How often each action is taken at each pair of values, (values of one, values of two, actions)."""
    total = np.zeros((one[0].size, two[0].size, flow.shape[1]))
    np.add.at(total, (one[1], two[1]), flow)
    return total


def _map(axes: Axes, flow: Floats, colours: Floats, levels: list[tuple[Floats, Ints]], randomised: Ints) -> None:
    (x, along), (y, up) = levels
    cells = _cells(flow, levels[0], levels[1])
    mass = cells.sum(axis=2)
    shown = mass > VISITED
    certain = np.divide(cells.max(axis=2), mass, out=np.zeros_like(mass), where=shown)
    paint = 1.0 - certain[..., None] * (1.0 - colours[cells.argmax(axis=2)])
    paint[~shown] = 1.0
    axes.pcolormesh(_edges(x), _edges(y), paint.transpose(1, 0, 2))
    usual = _most_visited(mass)
    for i, j in zip(*np.nonzero(usual), strict=True):
        _outline(axes, usual, (_edges(x), _edges(y)), int(i), int(j))
    tossed = [s for s in randomised if flow[s].sum() > VISITED]
    if cells.shape[0] * cells.shape[1] >= len(flow):  # a state a cell
        axes.plot(x[along[tossed]], y[up[tossed]], "o", color="white", mec="black", ms=4, mew=0.6)
    seen_x, seen_y = np.nonzero(shown.any(axis=1))[0], np.nonzero(shown.any(axis=0))[0]
    axes.set_xlim(_edges(x)[0], _edges(x)[seen_x.max() + 1])
    axes.set_ylim(_edges(y)[0], _edges(y)[seen_y.max() + 1])
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))


def _most_visited(mass: Floats) -> Floats:
    """The cells that hold nearly all of the time: as few as will do."""
    order = np.argsort(-mass, axis=None, kind="stable")
    enough = int(np.searchsorted(np.cumsum(mass.ravel()[order]), USUAL * mass.sum())) + 1
    chosen = np.zeros(mass.size, dtype=bool)
    chosen[order[:enough]] = True
    return chosen.reshape(mass.shape)


def _outline(axes: Axes, inside: Floats, edges: tuple[Floats, Floats], i: int, j: int) -> None:
    """Those sides of a cell that lead outside."""
    x, y = edges
    last_x, last_y = inside.shape[0] - 1, inside.shape[1] - 1
    sides = (
        (i == 0 or not inside[i - 1, j], (x[i], x[i]), (y[j], y[j + 1])),
        (i == last_x or not inside[i + 1, j], (x[i + 1], x[i + 1]), (y[j], y[j + 1])),
        (j == 0 or not inside[i, j - 1], (x[i], x[i + 1]), (y[j], y[j])),
        (j == last_y or not inside[i, j + 1], (x[i], x[i + 1]), (y[j + 1], y[j + 1])),
    )
    for leads_outside, across, up in sides:
        if leads_outside:
            axes.plot(across, up, color="black", lw=1.2, solid_capstyle="projecting")


def _shares(axes: Axes, flow: Floats, colours: Floats, level: tuple[Floats, Ints]) -> None:
    """What is done where a coordinate has a value, and as a line how often it has it."""
    values, at = level
    total = np.zeros((values.size, flow.shape[1]))
    np.add.at(total, at, flow)
    mass = total.sum(axis=1)
    shown = mass > VISITED
    shares = total[shown] / mass[shown, None]
    edges = _edges(values)
    bottom = np.zeros(shares.shape[0])
    for k in range(shares.shape[1]):
        axes.bar(edges[:-1][shown], shares[:, k], np.diff(edges)[shown], bottom, color=colours[k], align="edge")
        bottom += shares[:, k]
    axes.step(values[shown], mass[shown] / mass.max(), color="white", lw=2.4, where="mid")
    axes.step(values[shown], mass[shown] / mass.max(), color="black", lw=1.0, where="mid")
    last = int(np.nonzero(shown)[0].max())
    axes.set(xlim=(edges[0], edges[last + 1]), ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=8)


def _edges(values: Floats) -> Floats:
    """The borders of cells around values."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middle = (values[1:] + values[:-1]) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
