"""The confidence region of UCRL2 (Jaksch, Ortner and Auer 2010): an L1 ball for every pair, and bounds on its cost."""

import math

import numpy as np

from psconrl.arrays import Floats
from psconrl.kernels import special
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime.cost_scale import ObjectiveRange
from psconrl.planning.optimism.ball import WHOLE_BALL


def ball_radii(counts: Counts, rounds: int, delta: float, factor: float) -> Floats:
    r"""Return :math:`\sqrt{14 S \log(2 A t / \delta) / N}` times a factor, (S*A,), after t - 1 rounds.

    An untried pair may have any distribution.
    """
    log = special.log(2.0 * counts.n_actions * (rounds + 1) / delta)
    widths = factor * math.sqrt(14.0 * counts.n_states * log) / np.sqrt(np.maximum(counts.visits, 1))
    return np.where(counts.visits > 0, np.minimum(widths, WHOLE_BALL), WHOLE_BALL)


def lowest_objective(counts: Counts, known: ObjectiveRange, rounds: int, delta: float, factor: float) -> Floats:
    r"""Return lower bounds (S, A) on the objective: its means minus :math:`\sqrt{7 \log(2 S A t / \delta) / (2 N)}`
    ranges, times a factor; the lowest value of the range for an untried pair."""
    log = special.log(2.0 * counts.n_states * counts.n_actions * (rounds + 1) / delta)
    widths = factor * math.sqrt(3.5 * log) / np.sqrt(np.maximum(counts.pairs, 1))
    low = np.maximum(counts.mean_costs()[0] - known.unit * widths, known.lowest)
    return np.where(counts.pairs > 0, low, known.lowest)
