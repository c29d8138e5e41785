"""The performance profiles of agents as a panel of a figure (Agarwal et al. 2021)."""

from collections.abc import Sequence

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.report.aggregates import LossTable, performance_profile
from psconrl.report.curves import Curves, Experiment
from psconrl.report.panel_contents import PlottedCurve, Reach, Row

PROFILE_REACH = (-0.03, 1.03)


def profile_panel(
    table: LossTable, shown: Sequence[Experiment], log: str = "", reach: Reach | None = None
) -> tuple[Experiment, Row]:
    """Return one experiment that stands for all, and the row of its figure: a curve for every agent.

    On a logarithmic axis, the profiles begin at the least positive loss.
    """
    curves: dict[str, Curves] = {label: shown[0].curves[label] for label in table.losses}
    of_agents = {label: np.concatenate(losses) for label, losses in table.losses.items()}
    ends = _ends(np.concatenate(list(of_agents.values())), "x" in log)
    count = len(table.environments)
    title = table.environments[0] if count == 1 else f"{count} environments"
    unfinished = tuple(
        each._replace(title=each.title if count == 1 else f"{each.title} in {e.title}")
        for e in table.experiments
        for each in e.unfinished
    )
    together = Experiment("profile", {}, None, curves, title=title, unfinished=unfinished)
    drawn = []
    for label, c in curves.items():
        taus = _steps(of_agents[label], ends)
        drawn.append(PlottedCurve(c.title, c.look, taus, performance_profile(table.losses[label], taus)))
    row = Row("share of runs above", lambda e: drawn, reach=reach or PROFILE_REACH, x_title=table.what)
    return together, row


def _ends(losses: Floats, positive: bool) -> tuple[float, float]:
    """Return the least and the largest loss of all agents, of the positive ones if the axis is logarithmic."""
    if positive:
        losses = losses[losses > 0]
        if not losses.size:
            raise ConfigError("--log x: no loss is positive")
    return float(losses.min()), float(losses.max())


def _steps(losses: Floats, ends: tuple[float, float]) -> Floats:
    """Return the values of tau at which a profile is drawn: each loss, and just below it, so that steps are upright.

    >>> _steps(np.array([3.0, 1.0]), (1.0, 9.0)).round(6).tolist()
    [1.0, 1.0, 3.0, 3.0, 9.0]
    """
    low, high = ends
    inside = losses[(losses >= low) & (losses <= high)]
    # Profiles begin just below the least loss of all, where nothing is lost yet.
    return np.unique(np.concatenate([inside, np.nextafter(inside, -np.inf), np.nextafter([low], -np.inf), [high]]))
