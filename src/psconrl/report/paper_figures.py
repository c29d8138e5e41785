"""The paper's figures in the paper's layout, from a results file.

By default they show signed cumulative regret and violation, mean over runs with a 95% bootstrap band.
``metric="paper"`` draws the paper's smoothed, one-sided curves instead, only for comparison with its figures.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from psconrl.errors import ConfigError
from psconrl.escaping import quoted
from psconrl.report.curves import Experiment
from psconrl.report.metrics import measures, window_of
from psconrl.report.panels import Line, Row, band, panel_figure, rows_of, tidy

METRICS = {"signed": ("regret", "violation"), "paper": ("paper-regret", "paper-violation")}


def figure1(experiment: Experiment) -> Figure:
    """Draw the counterexample: average cost against its threshold, and the sampled theta."""
    if not all(curves.probe.size for curves in experiment.curves.values()):
        raise ConfigError(f"experiment {quoted(experiment.name)} recorded no sampled probability (probe = [...])")
    figure = Figure(figsize=(8.2, 3.2))
    left, right = figure.subplots(1, 2)
    for curves in experiment.curves.values():
        band(left, curves, curves.average(1))
        band(right, curves, curves.probe)
    thresholds = next(iter(experiment.curves.values())).thresholds
    left.axhline(thresholds[0, 0], color="black", lw=0.9, ls=":", label=f"threshold {thresholds[0, 0]:g}")
    if experiment.model is not None:
        theta = float(experiment.model.transition.toarray()[1, 1])
        right.axhline(theta, color="black", lw=0.9, ls=":", label=rf"true $\theta$ = {theta:g}")
    left.set(xlabel="round", ylabel="average cost", title="average cost so far")
    right.set(xlabel="round", ylabel=r"sampled $\theta$", title=r"sampled $\theta$", ylim=(0.3, 1))
    for axes in (left, right):
        tidy(axes)
        axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


def figure2(experiments: Sequence[Experiment], metric: str = "signed") -> Figure:
    """Draw regret above and violation below, with one column per environment."""
    if metric not in METRICS:
        raise ConfigError(f"metric must be one of {', '.join(METRICS)}; got {quoted(metric)}")
    _check(experiments)
    return panel_figure(experiments, rows_of(measures(experiments, METRICS[metric])))


def figure3(experiments: Sequence[Experiment]) -> Figure:
    """Draw average reward above, with the optimal, safe and fast lines, and the average constrained cost below."""
    _check(experiments)
    rows = [
        Row("average reward (1 - cost)", lambda e, c: 1.0 - c.moving_average(0, window_of(e, c)), _rewards),
        Row("average constrained cost", lambda e, c: c.moving_average(1, window_of(e, c)), _limits),
    ]
    return panel_figure(experiments, rows)


def _rewards(experiment: Experiment) -> list[Line]:
    facts = experiment.facts
    costs = {"optimum": facts.get("optimum", [None])[0], "safe": facts.get("safest"), "fast": facts.get("fastest")}
    dash = {"optimum": "--"}
    return [(name, 1.0 - cost, dash.get(name, ":")) for name, cost in costs.items() if cost is not None]


def _limits(experiment: Experiment) -> list[Line]:
    return [("threshold", threshold, "--") for threshold in experiment.facts.get("thresholds", [])]


def _check(experiments: Sequence[Experiment]) -> None:
    for e in experiments:
        if len(e.cost_names) < 2 or not all(np.isfinite(c.optimum).all() for c in e.curves.values()):
            raise ConfigError(
                f"experiment {quoted(e.name)} has no constraints, or they cannot be met: there is nothing to compare"
            )
