"""Figure of the sensitivity study: a small panel for every agent with its loss over its one hyperparameter."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from psconrl.report.figures import LITERAL
from psconrl.report.sensitivity import Hyperparameter
from psconrl.report.style import GREY, looks_of, title_of

ACROSS = 4


@LITERAL
def sensitivity_figure(found: Sequence[Hyperparameter]) -> Figure:
    """Draw the mean loss over environments with its 95% interval on log-log axes; a ring marks the best value."""
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
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        axes.axhline(100, color=GREY, lw=0.6, ls=":")
        axes.set_title(title_of(hyperparameter.label), fontsize=8)
        axes.set_xlabel(hyperparameter.option, fontsize=7, labelpad=1)
        axes.tick_params(labelsize=6)
        axes.minorticks_off()
    figure.supylabel("loss, % of uniform play", fontsize=8)
    return figure
