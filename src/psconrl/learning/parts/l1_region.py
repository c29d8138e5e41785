"""Confidence regions: an L1 ball for every pair, and bounds on its cost, as in UCRL2 (Jaksch, Ortner and Auer 2010) or
by union bounds over the pairs and their visits."""

import math

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic import special
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


def weissman_radii(counts: Counts, delta: float, factor: float) -> Floats:
    r"""Return :math:`\sqrt{2 (S \log 2 + \log(S A N (N + 1) / \delta)) / N}` times a factor, (S*A,), at most 2.

    With factor 1 the balls hold the distributions of all pairs at all times with probability :math:`1 - \delta`
    (Weissman et al. 2003). An untried pair may have any distribution.
    """
    visits = np.maximum(counts.visits, 1).astype(np.float64)
    log = counts.n_states * special.log(2.0) + _log_of_visits(counts, visits, delta)
    return np.where(counts.visits > 0, np.minimum(factor * np.sqrt(2.0 * log / visits), WHOLE_BALL), WHOLE_BALL)


def hoeffding_widths(counts: Counts, delta: float, factor: float) -> Floats:
    r"""Return :math:`\sqrt{\log(4 S A N (N + 1) / \delta) / (2 N)}` times a factor, (S, A), at most 1.

    With factor 1 the means of two costs in [0, 1] are that close to the truth, in all pairs at all times, with
    probability :math:`1 - \delta`. An untried pair may have any cost.
    """
    visits = np.maximum(counts.visits, 1).astype(np.float64)
    log = special.log(4.0) + _log_of_visits(counts, visits, delta)
    widths = np.where(counts.visits > 0, np.minimum(factor * np.sqrt(log / (2.0 * visits)), 1.0), 1.0)
    return widths.reshape(counts.pairs.shape)


def _log_of_visits(counts: Counts, visits: Floats, delta: float) -> Floats:
    r"""Return :math:`\log(S A N (N + 1) / \delta)`, (S*A,)."""
    logs = np.asarray(special.log_array(visits * (visits + 1.0)))
    return logs + special.log(counts.n_states * counts.n_actions / delta)
