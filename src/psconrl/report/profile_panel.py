"""The performance profiles of agents as a panel of a figure (Agarwal et al. 2021)."""

from collections.abc import Sequence

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.report.aggregates import LossTable, performance_profile
from psconrl.report.curves import Curves, Experiment
from psconrl.report.panel_contents import PlottedCurve, Reach, Row

PROFILE_STEPS = 150  # of a profile, at most
PROFILE_REACH = (-0.03, 1.03)


def profile_panel(
    table: LossTable, shown: Sequence[Experiment], log: str = "", reach: Reach | None = None
) -> tuple[Experiment, Row]:
    """Return one experiment that stands for all, and the row of its figure: a curve for every agent.

    On a logarithmic axis, the profiles begin at the least positive loss.
    """
    curves: dict[str, Curves] = {label: shown[0].curves[label] for label in table.losses}
    taus = _taus(np.concatenate([each for losses in table.losses.values() for each in losses]), "x" in log)
    count = len(table.environments)
    title = table.environments[0] if count == 1 else f"{count} environments"
    unfinished = tuple(
        each._replace(title=each.title if count == 1 else f"{each.title} in {e.title}")
        for e in table.experiments
        for each in e.unfinished
    )
    together = Experiment("profile", {}, None, curves, title=title, unfinished=unfinished)
    drawn = [
        PlottedCurve(c.title, c.look, taus, performance_profile(table.losses[label], taus))
        for label, c in curves.items()
    ]
    row = Row("share of runs above", lambda e: drawn, reach=reach or PROFILE_REACH, x_title=table.what)
    return together, row


def _taus(losses: Floats, positive: bool) -> Floats:
    """Return values of tau spread as the losses are: losses, and just below each, so that steps are upright."""
    if positive:
        losses = losses[losses > 0]
        if not losses.size:
            raise ConfigError("--log x: no loss is positive")
    steps = np.quantile(losses, np.linspace(0.0, 1.0, PROFILE_STEPS), method="nearest")
    return np.unique(np.append(steps, np.nextafter(steps, -np.inf)))
