r"""Least-squares value iteration on tables: ridge regression with one feature for every pair.

With features :math:`\phi(s,a) = e_{sa}` and :math:`\Lambda = \rho I + \sum \phi \phi^T` the regression of V on the
successors is :math:`\sum_{s'} N(s,a,s')\,V(s') / (N(s,a) + \rho)`, and :math:`\lVert\phi\rVert_{\Lambda^{-1}} = 1 /
\sqrt{N(s,a) + \rho}`.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Places
from psconrl.learning.posterior.counts import Counts


class RidgeRegression(NamedTuple):
    """The regression on what an agent has seen, as frequencies shrunk towards 0, (S*A, S) in CSR form."""

    indptr: Places
    successors: Places
    shares: Floats
    widths: Floats  # (S, A), the factor of the bonus

    @classmethod
    def of(cls, counts: Counts, ridge: float) -> "RidgeRegression":
        """Build the regression from the counts; ``ridge`` is the factor of the identity."""
        seen, worth = counts.moves, counts.visits + ridge
        shares = seen.data / np.repeat(worth, np.diff(seen.indptr))
        return cls(seen.indptr, seen.indices, shares, 1.0 / np.sqrt(worth).reshape(counts.pairs.shape))
