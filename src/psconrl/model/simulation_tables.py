"""A CMDP laid out for simulation: successors, cumulative probabilities, and the cost of every transition."""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats, Places
from psconrl.errors import ConfigError, ModelError, unknown_name
from psconrl.kernels.linear import csr
from psconrl.kernels.play.play_loop import EXACT, LARGEST_POISSON_MEAN, POISSON, TWO_POINT, UNIFORM, emit
from psconrl.model.cmdp import CMDP

EMISSIONS = ("deterministic", "uniform", "two-point", "bernoulli", "poisson")


@dataclass(frozen=True, eq=False)
class Tables:
    """Rows ``s * A + a`` of a model in CSR form, for simulation."""

    indptr: Places
    successors: Places
    cdf: Floats
    outcomes: Floats  # (m+1, entries) cost of each transition, or its mean if costs are random
    emission: int  # distribution of costs around their means, as in ``kernels.play.play_loop``
    ranges: Floats  # (2, m+1) the least and largest value of each cost in the model; 0 and 1 if costs are Bernoulli

    @classmethod
    def of(cls, cmdp: CMDP, emission: str) -> "Tables":
        """Lay out a model with exact costs, or with costs drawn around their means.

        ``"uniform"``: the mean plus a uniform number between -u/2 and u/2, where u is the range of the cost, its
        largest value anywhere in the model minus its least. The variance is u^2/12. A cost that is the same everywhere
        has no range and stays exact. ``"two-point"``: the least or the largest of these values, the largest variance
        that a cost within them can have; a cost that has only two values stays exact. ``"bernoulli"``: 0 or 1.
        ``"poisson"``: counts.
        """
        if emission not in EMISSIONS:
            raise ConfigError(unknown_name("emission", emission, EMISSIONS))
        P = cmdp.transition.csr()
        P.sort_indices()
        pairs = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        outcomes = np.empty((len(cmdp.costs), P.nnz))
        for i, by_successor in enumerate(cmdp.outcome_costs):
            if by_successor is None:
                outcomes[i] = cmdp.costs[i].ravel()[pairs]
            else:
                outcomes[i] = np.asarray(by_successor[pairs, P.indices]).ravel()
        kind, ranges = _drawn(outcomes, emission)
        cdf = csr.row_cdf(P.indptr, P.data.astype(np.float64))
        return cls(P.indptr, P.indices, cdf, outcomes, kind, ranges)

    def emitted(self, entry: int, uniforms: Floats) -> Floats:
        """Return the costs (m+1,) of one transition, from one uniform number per cost; exact costs need none."""
        costs = self.outcomes[:, entry]
        if self.emission == EXACT:
            return costs.copy()
        drawn = zip(costs, *self.ranges, uniforms, strict=True)
        return np.array([emit(mean, self.emission, low, high, uniform) for mean, low, high, uniform in drawn])


def _drawn(outcomes: Floats, emission: str) -> tuple[int, Floats]:
    """Return the kind of emission, and the least and largest value of each cost."""
    low, high = outcomes.min(axis=1), outcomes.max(axis=1)
    if emission == "bernoulli":
        if low.min() < 0.0 or high.max() > 1.0:
            raise ModelError("Bernoulli costs must lie in [0, 1]; emission='two-point' is for costs of any range")
        return TWO_POINT, np.array([np.zeros_like(low), np.ones_like(high)])
    if emission == "poisson" and (low.min() < 0.0 or high.max() > LARGEST_POISSON_MEAN):
        raise ModelError(
            f"Poisson costs must lie in [0, {LARGEST_POISSON_MEAN:g}]; emission='two-point' is for costs of any range"
        )
    kinds = {"deterministic": EXACT, "uniform": UNIFORM, "two-point": TWO_POINT, "poisson": POISSON}
    return kinds[emission], np.array([low, high])
