"""Policies that others would choose from a log: the plan on means, and SPIBB's rule made continuing.

*SPIBB* (Laroche, Trichelair and Tachet des Combes 2019, algorithm Pi_b-SPIBB): a pair that was seen less than N times
is taken as often as by the policy that wrote the log; elsewhere the best policy in the estimated model is followed.
With B(s) the probability of rare actions in a state, playing a in s is then a row of its own,

    P'(s, a) = sum over rare b of pi_b(b|s) P(s, b) + (1 - B(s)) P(s, a),

so that the rule is a model with fewer actions, which is planned for its long-run averages, with limits or without.
Constrained methods for logs (Satija et al. 2021, arXiv 2106.00099; COptiDICE, arXiv 2204.08957) discount their costs.
"""

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.data.posterior.mean_model import mean_model
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.data.rounds.recorded import Recorded
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts


def estimated(log: Recorded, costs: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Return the frequencies (S, A, S), the costs (m+1, S, A) and the visits (S, A) of a log."""
    posterior = RowPosterior(log, Dirichlet(), costs)
    mean = mean_model(posterior, posterior.draw(8, np.random.default_rng(0)))
    S, A = log.n_states, log.n_actions
    return mean.transition.toarray().reshape(S, A, S), mean.costs.reshape(-1, S, A), posterior.counts.pairs


def plan_on_means(log: Recorded, thresholds: Floats, costs: Floats | None = None) -> Floats:
    """Return the policy (S, A) that is optimal in the estimated model, among the pairs that were tried."""
    P, c, visits = estimated(log, costs)
    return _planned(P, c, thresholds, _or_all(visits > 0))


def spibb(
    log: Recorded, thresholds: Floats, behaviour: Floats, least_visits: int = 10, costs: Floats | None = None
) -> Floats:
    """Return the policy (S, A) of SPIBB's rule, for a known policy (S, A) that wrote the log."""
    P, c, visits = estimated(log, costs)
    free = visits >= least_visits
    rare = np.where(free, 0.0, behaviour)
    left = 1.0 - rare.sum(axis=1)[:, None]
    mixed = np.einsum("sb,sbt->st", rare, P)[:, None] + left[:, :, None] * P
    paid = (rare * c).sum(axis=2)[:, :, None] + left * c
    none = ~free.any(axis=1)
    mixed[none], paid[:, none] = mixed[none][:, :1], paid[:, none][:, :, :1]
    shares = _planned(mixed, paid, thresholds, _or_all(free))
    return np.where(none[:, None], behaviour, rare + left * np.where(free, shares, 0.0))


def _or_all(allowed: Bools) -> Bools:
    """Return a mask (S, A) in which states without an allowed action have all."""
    return np.asarray(allowed | ~allowed.any(axis=1, keepdims=True))


def _planned(P: Floats, costs: Floats, thresholds: Floats, available: Bools) -> Floats:
    model = CMDP(P / P.sum(axis=2, keepdims=True), costs, thresholds, available=available)
    return Drafts(model).plan(costs, thresholds).policy
