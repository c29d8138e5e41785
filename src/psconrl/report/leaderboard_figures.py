"""Figures of the leaderboard and of the sensitivity study.

They are apart from the data, which are also shown without Matplotlib.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from psconrl.learning.registry import title_of
from psconrl.report.figure_files import LITERAL
from psconrl.report.leaderboard import Board, short
from psconrl.report.number_format import format_number
from psconrl.report.panel_axes import thin_out_ticks
from psconrl.report.sensitivity import Hyperparameter
from psconrl.report.style import GREY, looks_of

LEAST, MOST = 0.5, 200.0  # range of the colours, in percent of uniform play
DARK = 8.0  # text is white below this loss
ACROSS = 4  # panels of the sensitivity study in a row


@LITERAL
def leaderboard_figure(boards: Mapping[str, Board]) -> Figure:
    """Draw a panel per board: agents in rows, the best first, environments in columns; dot: not significantly worse.

    The environments of a part stand together, under its title.
    """
    wide = max(len(board.environments) for board in boards.values())
    tall = sum(len(board.standings) for board in boards.values())
    size = (3.0 + 0.55 * wide, 0.6 + 1.3 * len(boards) + 0.28 * tall)
    figure = Figure(figsize=size, layout="constrained")
    heights = [len(board.standings) for board in boards.values()]
    panels = figure.subplots(len(boards), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, board) in zip(panels, boards.items(), strict=True):
        environments = _by_part(board)
        places = [[board.places[environment].get(s.label) for environment in environments] for s in board.standings]
        losses = np.array([[np.nan if p is None else p.loss for p in row] for row in places])
        shown = axes.imshow(np.clip(losses, LEAST, MOST), norm=LogNorm(LEAST, MOST), cmap="viridis", aspect="auto")
        for (i, j), loss in np.ndenumerate(losses):
            place = places[i][j]
            if place is not None:
                text = format_number(float(loss), 2) + ("•" if place.not_worse else "")
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if loss < DARK else "black")
        names = [short(environment) for environment in environments]
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
        ranked = [f"{s.title}  {float(s.rank.mean):.1f}" for s in board.standings]
        axes.set_yticks(range(len(ranked)), ranked, fontsize=7)
        axes.set_title(f"{name}: loss in % of uniform play", fontsize=9, pad=16 if board.parts else None)
        _mark_parts(axes, board)
    bar = figure.colorbar(shown, ax=panels, shrink=0.4, pad=0.01)
    bar.set_ticks([0.5, 1, 10, 100], labels=["0.5", "1", "10", "100"], fontsize=7)
    figure.supxlabel("after the names: mean rank; •: not significantly worse than the best", fontsize=7)
    return figure


def _by_part(board: Board) -> list[str]:
    """Return the environments in the order of the parts."""
    return [environment for part in board.parts for environment in part.environments] or list(board.environments)


def _mark_parts(axes: Axes, board: Board) -> None:
    """Write the title of every part above its columns, and draw a line between the parts."""
    first = 0
    for part in board.parts:
        last = first + len(part.environments)
        axes.text((first + last - 1) / 2, -0.7, part.title, ha="center", va="bottom", fontsize=7)
        if last < len(board.environments):
            axes.axvline(last - 0.5, color="white", lw=3.0)
        first = last


@LITERAL
def sensitivity_figure(found: Sequence[Hyperparameter]) -> Figure:
    """Draw the mean loss over environments with its 95% interval on log-log axes; a ring marks the best value.

    A value of 0 is drawn where the next one of a geometric grid would be.
    """
    rows = -(-len(found) // ACROSS)
    figure = Figure(figsize=(2.1 * ACROSS, 1.55 * rows + 0.4), layout="constrained")
    looks = looks_of(hyperparameter.label for hyperparameter in found)
    subplots = figure.subplots(rows, ACROSS, squeeze=False, sharey=True)
    for axes in subplots.flat[len(found) :]:
        axes.set_axis_off()
    for axes, hyperparameter in zip(subplots.flat, found, strict=False):
        mean, low, high = (
            np.array([getattr(x, end) for x in hyperparameter.losses]) for end in ("mean", "low", "high")
        )
        colour = looks[hyperparameter.label].colour
        axes.fill_between(hyperparameter.values, low, high, color=colour, alpha=0.2, lw=0)
        axes.plot(hyperparameter.values, mean, marker=".", color=colour, lw=1.2)
        axes.plot(
            hyperparameter.values[hyperparameter.best],
            mean[hyperparameter.best],
            marker="o",
            mfc="none",
            mec=colour,
            ms=9,
        )
        if hyperparameter.values[0] > 0:
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=hyperparameter.values[1])
        axes.set_yscale("log")
        axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        axes.axhline(100, color=GREY, lw=0.6, ls=":")
        axes.set_title(title_of(hyperparameter.label), fontsize=8)
        axes.set_xlabel(hyperparameter.option, fontsize=7, labelpad=1)
        axes.tick_params(labelsize=6)
        axes.minorticks_off()
    figure.supylabel("loss, % of uniform play", fontsize=8)
    figure.draw_without_rendering()  # so that ticks know where they are
    for axes, hyperparameter in zip(subplots.flat, found, strict=False):
        thin_out_ticks(axes, [(value, f"{value:g}") for value in hyperparameter.values])
    return figure
