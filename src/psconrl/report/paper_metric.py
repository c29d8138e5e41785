"""The quantity of the paper's figure 2, for every run."""

import numpy as np

from psconrl.arrays import Floats
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import WINDOWS


def figure_window(experiment: Experiment, curves: Curves) -> int:
    """Return the window of the paper's moving average; elsewhere a twentieth of the run."""
    last = int(curves.rounds[-1])
    return min(WINDOWS.get(experiment.facts.get("env", ""), max(last // 20, 1)), last)


def paper_metric_runs(experiment: Experiment, curves: Curves, i: int) -> Floats:
    """Return the curves (runs, n) of cost i in the paper's metric, which sums the excess of every full window."""
    window = figure_window(experiment, curves)
    target = curves.optimum[:, None] if i == 0 else curves.thresholds[:, i - 1 : i]
    excess = np.maximum(curves.moving_average(i, window) - target, 0.0)
    full = np.diff(np.maximum(curves.rounds, window - 1), prepend=window - 1)  # windows that end since the last one
    return np.asarray(np.cumsum(np.where(full > 0, excess, 0.0) * full, axis=1))
