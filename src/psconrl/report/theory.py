r"""Comparison of runs with the bounds of the theory.

The bounds are on the number of episodes (``Schedule.most_episodes``) and, :math:`2 D S \sqrt{A T} + 1`, on the rounds
spent exploring (the paper's Exploration lemma).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import growth_exponent
from psconrl.report.statistics import MeanInterval, mean_interval


@dataclass(frozen=True)
class Check:
    """Quantities that the theory bounds, for one agent in one experiment: means, and largest ratios over runs."""

    experiment: str
    agent: str  # label of the agent
    states: int
    diameter: float  # mean over runs
    regret: MeanInterval  # strong: by exact evaluation, without sampling noise, never offset by violations
    slope: MeanInterval
    signed: MeanInterval  # realised
    episodes: float  # mean
    episodes_ratio: float  # largest K_T / bound
    exploring: float  # mean
    exploring_ratio: float  # largest rounds / bound


def check_theory(experiments: Sequence[Experiment]) -> list[Check]:
    """Compare every experiment with the bounds."""
    return [_check(e.name, curves) for e in experiments for curves in e.curves.values()]


def _check(name: str, curves: Curves) -> Check:
    T = int(curves.rounds[-1])
    sizes = [[float(s.get(key, np.nan)) for s in curves.summaries] for key in ("states", "actions", "diameter")]
    S, A, D = np.array(sizes)
    episodes = np.array([s["episodes"] for s in curves.summaries])
    most = np.array([float(s.get("most_episodes", np.nan)) for s in curves.summaries])
    exploring = np.array([s["rounds"].get("explore", 0) for s in curves.summaries])
    return Check(
        name,
        curves.label,
        int(S[0]),
        float(D.mean()),
        mean_interval(curves.strong[:, -1, 0]),
        growth_exponent(curves.rounds, curves.strong[:, :, 0]),
        mean_interval(curves.regret[:, -1]),
        float(episodes.mean()),
        float((episodes / most).max()),
        float(exploring.mean()),
        float((exploring / exploring_bound(S, A, D, T)).max()),
    )


def exploring_bound(S: Floats, A: Floats, D: Floats, T: int) -> Floats:
    """Return the bound on the number of rounds spent exploring."""
    return np.asarray(2 * D * S * np.sqrt(A * T) + 1)
