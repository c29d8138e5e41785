"""The paper's figures in the paper's layout, from a results file.

By default they show signed cumulative regret and violation, mean over runs with a 95% band (Student's t).
``metric="paper"`` draws the paper's smoothed, one-sided curves instead, with the standard deviation over runs, only for
comparison with its figures. Environments that do not fit into three columns continue below.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.report.curves import Experiment
from psconrl.report.example_diagram import draw_example
from psconrl.report.metrics import measures, window_of
from psconrl.report.panel_axes import tidy
from psconrl.report.panel_contents import Line, PlottedCurve, Row, over_rounds, rows_of
from psconrl.report.panels import Print, band, panel_figure
from psconrl.report.statistics import mean_interval

METRICS = {"signed": ("regret", "violation"), "paper": ("paper-regret", "paper-violation")}
ACROSS_THREE = Print(across=3)  # columns of figures 2 and 3, one for each environment of the paper
COUNTEREXAMPLE_WINDOW = 50  # rounds of the average cost in figure 1


def figure1(experiment: Experiment) -> Figure:
    """Draw the counterexample: its diagram, average cost of the last rounds and of all so far, and the sampled theta.

    The paper shows the average over the last 50 rounds.
    """
    if not all(curves.probe.size for curves in experiment.curves.values()):
        raise ConfigError(f"experiment {quoted(experiment.name)} recorded no sampled probability (probe = [...])")
    figure = Figure(figsize=(8.6, 6.4))
    (diagram, sampled), (recent, so_far) = figure.subplots(2, 2)
    draw_example(diagram, experiment.model)
    for k, curves in enumerate(experiment.curves.values()):
        x = curves.rounds.astype(np.float64)
        shown = (curves.moving_average(1, COUNTEREXAMPLE_WINDOW), curves.average(1), curves.probe)
        for axes, values in zip((recent, so_far, sampled), shown, strict=True):
            band(axes, PlottedCurve(curves.title, curves.look, x, mean_interval(values)), k)
    threshold = next(iter(experiment.curves.values())).thresholds[0, 0]
    for axes in (recent, so_far):
        axes.axhline(threshold, color="black", lw=0.9, ls=":", label=f"threshold {threshold:g}")
        axes.set(xlabel="round", ylabel="average cost", ylim=(0, 1.05))
    if experiment.model is not None:
        theta = float(experiment.model.transition.toarray()[1, 1])
        sampled.axhline(theta, color="black", lw=0.9, ls=":", label=rf"true $\theta$ = {theta:g}")
    recent.set_title(f"average cost, last {COUNTEREXAMPLE_WINDOW} rounds")
    so_far.set_title("average cost so far")
    sampled.set(xlabel="round", ylabel=r"sampled $\theta$", title=r"sampled $\theta$", ylim=(0.3, 1))
    for axes in (recent, so_far, sampled):
        tidy(axes)
        axes.set_xlim(left=0)
        axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


def figure2(experiments: Sequence[Experiment], metric: str = "signed") -> Figure:
    """Draw regret above and violation below, with one column per environment."""
    if metric not in METRICS:
        raise ConfigError(f"metric must be one of {', '.join(METRICS)}; got {quoted(metric)}")
    _check(experiments)
    return panel_figure(experiments, rows_of(measures(experiments, METRICS[metric])), ACROSS_THREE)


def figure3(experiments: Sequence[Experiment]) -> Figure:
    """Draw average reward above, with the optimal, safe and fast lines, and the average constrained cost below.

    Averages are those of the last rounds, as in the paper, and begin where the first window is full.
    """
    _check(experiments)
    rows = [
        Row(
            "average reward (1 - cost)",
            over_rounds(lambda e, c: 1.0 - c.moving_average(0, window_of(e, c))),
            _rewards,
        ),
        Row("average constrained cost", over_rounds(lambda e, c: c.moving_average(1, window_of(e, c))), _limits),
    ]
    return panel_figure(experiments, rows, ACROSS_THREE)


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
