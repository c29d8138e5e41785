r"""Policies to propose, planned in the mean of the posterior with margins for what is uncertain.

The planned model has one more action in every state: *as today*, which does what the policy that wrote the log does.
Its objective has no penalty. Any other action a has

.. math:: \tilde c_0(s,a) = c_0(s,a) + \kappa\, (1 - \pi_b(a|s))\, \sigma_0(s,a), \qquad
          \sigma_i^2(s,a) = \mathrm{Var}\big(p(\cdot|s,a) \cdot h_i + c_i(s,a)\big)

with the bias :math:`h_i` of the last plan: what is changed must be worth its risk. Thresholds are lowered by margins
:math:`m_i`, which are corrected by the mean and a quantile of the average in draws of the posterior,

.. math:: m_i \leftarrow m_i + \bar J_i + f (q_{1-\alpha}(J_i(\pi; \theta)) - \bar J_i) - \tau_i .

Several :math:`\kappa` and f give policies from bold to cautious.

Without a system, actions that were hardly tried in a state are not proposed there. States that were never left do as
today.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from psconrl.base.arrays import Floats
from psconrl.base.sizes import TABLE_DENSE_ENTRIES
from psconrl.data.posterior.mean_model import MeanModel
from psconrl.data.posterior.row_posterior import Models
from psconrl.errors import SolverError
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts

PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0)  # kappa
CAUTIONS = (1.0, 1.75, 2.5)  # f
CORRECTIONS = 3  # of the margins, at most
MARGINS_SETTLED = 0.1  # margins that are off by less, as a share of the uncertainty, are not corrected


class Proposal(NamedTuple):
    """A policy, and its averages in draws of every posterior."""

    policy: Floats  # (S, A)
    averages: tuple[Floats, ...]  # of (n, m+1)


class Planner:
    """Plans in the mean model of a posterior."""

    def __init__(self, mean: MeanModel) -> None:
        self.mean = mean
        S, A = mean.today.shape
        shares = csr_array(
            (mean.today.ravel(), np.arange(S * A), np.arange(0, S * A + 1, A)), shape=(S, S * A)
        )  # mixes rows as today
        stacked = vstack([mean.transition, shares @ mean.transition], format="csr")
        order = np.concatenate([np.arange(S * A).reshape(S, A), S * A + np.arange(S)[:, None]], axis=1).ravel()
        self._costs = self._with_today(mean.costs)
        P = stacked[order]
        dense = P.shape[0] * S <= TABLE_DENSE_ENTRIES
        self._available = np.column_stack([mean.allowed, np.ones(S, dtype=np.bool_)])
        self._model = CMDP(
            P.toarray() if dense else P,
            self._costs,
            np.zeros(len(mean.costs) - 1),
            initial=mean.start,
            available=self._available,
        )
        self._drafts = Drafts(self._model)

    def _with_today(self, values: Floats) -> Floats:
        """Return values (m+1, S*A) of pairs with those of acting as today, (m+1, S, A+1)."""
        own = values.reshape(-1, *self.mean.today.shape)
        return np.concatenate([own, (own * self.mean.today).sum(axis=2, keepdims=True)], axis=2)

    def biases(self, policy: Floats) -> Floats:
        """Return the biases (m+1, S) of a policy (S, A) in the mean model; zeros if they are not found."""
        found = self.mean.evaluate(policy)
        return np.zeros((len(self.mean.costs), len(policy))) if found is None else found.biases

    def plan(self, thresholds: Floats, kappa: float, h: Floats) -> tuple[Floats, bool] | None:
        """Return a policy (S, A) with penalties, and whether it keeps the thresholds; None if no plan is found."""
        costs = self._costs.copy()
        if kappa > 0.0 and self.mean.weights is not None:
            deviations = self.mean.deviations(h).reshape(-1, *self.mean.today.shape)
            deviations[0] *= 1.0 - self.mean.today
            costs[:, :, :-1] += kappa * deviations
            costs[1:, :, -1] += kappa * (deviations[1:] * self.mean.today).sum(axis=2)
        try:
            found = self._drafts.plan(costs, thresholds)
        except SolverError:
            return None
        policy = found.policy[:, :-1] + found.policy[:, -1:] * self.mean.today
        return policy / policy.sum(axis=1, keepdims=True), found.feasible


def proposals(planner: Planner, models: tuple[Models, ...], thresholds: Floats, alpha: float) -> Iterator[Proposal]:
    """Yield policies with their averages in the models drawn; margins aim at a probability ``alpha`` per failure."""
    rows = planner.mean.weights is not None
    h = planner.biases(planner.mean.today)
    margins = np.zeros(thresholds.size)
    for kappa in PENALTIES if rows else PENALTIES[:1]:
        for caution in CAUTIONS if thresholds.size else CAUTIONS[:1]:
            for _ in range(CORRECTIONS if thresholds.size else 1):
                found = planner.plan(thresholds - margins, kappa, h)
                if found is None:
                    break
                policy, feasible = found
                averages = tuple(own.averages(policy) for own in models)
                yield Proposal(policy, averages)
                if kappa == 0.0:
                    h = planner.biases(policy)
                if not feasible:
                    margins = 0.5 * margins
                    break
                expected = np.max([own[:, 1:].mean(axis=0) for own in averages], axis=0)
                high = np.max([np.quantile(own[:, 1:], 1.0 - alpha, axis=0) for own in averages], axis=0)
                over = expected + caution * (high - expected) - thresholds
                margins = margins + over
                if (np.abs(over) <= MARGINS_SETTLED * (high - expected)).all():
                    break
