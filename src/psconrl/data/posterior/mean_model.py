"""The mean of a posterior: one model, to plan in and to know where uncertainty matters."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats
from psconrl.base.sizes import TABLE_DENSE_ENTRIES
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.posterior.row_posterior import Models, Posterior, RowPosterior
from psconrl.errors import SolverError
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP

LEAST_TRIES = 5  # of an action in a state, in the rounds from which it is proposed
PRIOR_MASS = 1.0  # in the deviations of rows: the largest mass of the default belief


class MeanModel(NamedTuple):
    """The mean of a posterior."""

    transition: csr_array  # (S*A, S)
    costs: Floats  # (m+1, S*A)
    allowed: Bools  # (S, A) pairs that may be proposed
    today: Floats  # (S, A) the expected policy that wrote the log
    start: Floats  # (S,)
    weights: Floats | None  # (S*A,) observations of every row; None if rows are not learned by themselves
    cost_noise: Floats  # (m+1, S*A) standard deviations of the costs

    def evaluate(self, policy: Floats) -> Evaluation | None:
        """Evaluate a policy (S, A) in the mean model; None if that fails in floating point."""
        S, A = policy.shape
        P = self.transition.toarray() if S * S * A <= TABLE_DENSE_ENTRIES else self.transition
        try:
            return evaluate_policy(
                CMDP(P, self.costs.reshape(-1, S, A), [0.0] * (len(self.costs) - 1), initial=self.start), policy
            )
        except SolverError:
            return None

    def deviations(self, h: Floats) -> Floats:
        """Return the standard deviations (m+1, S*A) of what follows a pair, for functions h (m+1, S)."""
        if self.weights is None:
            return np.zeros_like(self.costs)
        mass = self.weights + PRIOR_MASS
        share = self.weights / mass
        found = np.empty_like(self.costs)
        for i, values in enumerate(h):
            first = share * (self.transition @ values) + (1.0 - share) * values.mean()
            second = share * (self.transition @ values**2) + (1.0 - share) * (values**2).mean()
            variance = np.maximum(second - first**2, 0.0) / (mass + 1.0)
            found[i] = np.sqrt(variance + self.cost_noise[i] ** 2)
        return found


def mean_model(posterior: Posterior, models: Models) -> MeanModel:
    """Return the mean of a posterior, of which models were drawn."""
    S, A = posterior.n_states, posterior.n_actions
    today, start = posterior.behaviour.mean(), posterior.start
    if isinstance(posterior, NoisePosterior):
        P, costs = posterior.mean(models)
        allowed = posterior.system.model_for_learning().available
        return MeanModel(P, costs, np.asarray(allowed), today, start, None, np.zeros_like(costs))
    assert isinstance(posterior, RowPosterior)
    moves, visits = posterior.counts.moves, posterior.counts.visits
    untried = np.flatnonzero(visits == 0)
    rows = np.concatenate([np.repeat(np.arange(S * A), np.diff(moves.indptr)), untried])
    columns = np.concatenate([moves.indices, np.full(untried.size, posterior.reference)])
    data = np.concatenate([moves.data / np.repeat(visits, np.diff(moves.indptr)), np.ones(untried.size)])
    P = csr_array((data, (rows, columns)), shape=(S * A, S))
    costs = models.costs.mean(axis=0)
    noise = models.costs.std(axis=0) if len(models.costs) > 1 else np.zeros_like(costs)
    allowed = posterior.counts.pairs >= LEAST_TRIES
    return MeanModel(P, costs, allowed, today, start, visits.astype(np.float64), noise)
