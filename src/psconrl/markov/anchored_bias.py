r"""Weighted bias of a policy with several regimes, each of which it leaves once in 1e10 steps or never.

The biases of single costs are as large as the time to leave a regime, and their weighted sum, which is what policy
iteration compares, is lost in rounding. So the weighted cost c is solved by itself, with a clock that rings with
probability :math:`\epsilon` in every step:

.. math:: g + h(s) = c(s) + (1 - \epsilon) \sum_{s'} P(s'|s)\, h(s') + \epsilon\, a(s)

The anchor a is the bias of the policy before. If all regimes are left within :math:`1/\epsilon` steps, h is the bias.
Otherwise the anchor determines the levels of the regimes relative to each other, which c determines only by differences
of gains that are smaller than rounding errors. Any levels give a valid bound, so at first the best ones are chosen.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.kernels.chains.double_double import drift_sparse
from psconrl.kernels.linear import sparse_elimination
from psconrl.kernels.search import outward_improvement
from psconrl.markov.elimination_order import Order
from psconrl.model.matrix_product import product

CLOCK = 1e-12  # epsilon: shorter times than 1e12 steps are resolved, and rounding of a gain moves levels by 1e-4
ANCHOR_REFINEMENTS = 2  # of a solution: each reduces its error by the time to leave a regime times CLOCK
SEPARATE = 0.5  # least probability that the clock rings before a regime is left
LEVELS = 60  # most steps of the search for levels, which ends after about five
FARTHEST_LEVEL = 1e9  # levels beyond are not searched
LEVEL_TOL = 1e-13  # relative change of a level at which the search ends


class RingingChain:
    """A chain P (S, S) that moves to a reference whenever the clock rings, eliminated once for any number of costs."""

    def __init__(self, P: csr_array, reference: int, order: Order) -> None:
        self._P, self._reference, self._order = P, reference, order
        _, self._rows, self._stationary = sparse_elimination.censored(
            P.indptr, P.indices, P.data, reference, CLOCK, order
        )

    def anchored_bias(self, cost: Floats, anchor: Floats) -> Floats:
        """Return the bias (S,) of a cost (S,), which is zero at the reference."""
        right, h = cost + CLOCK * (anchor - anchor[self._reference]), np.zeros(cost.size)
        for _ in range(1 + ANCHOR_REFINEMENTS):
            h += self._until_reference(right - product(self._stationary, right))
            # What is left of the equation without a clock: a solution is the anchor of its refinement.
            right = cost + _drift(self._P, h)
            right -= right[self._reference]
        return h

    def regimes(self) -> Floats | None:
        """Return the probability (S,) that the clock rings before the reference is hit; None if it hardly ever does."""
        probability: Floats = CLOCK * self._until_reference(np.ones(self._stationary.size))
        return probability if probability.max() > SEPARATE else None

    def _until_reference(self, cost: Floats) -> Floats:
        """Return the expected total cost (S,) until the reference is hit, by itself or since the clock rings."""
        total: Floats = outward_improvement.until_reference(self._rows, cost, self._reference, self._order)
        return total


def best_level(values: Floats, change: Floats) -> float:
    r"""Return x that maximises :math:`\min (v + x d)` for values v and their changes d: of a concave function.

    >>> best_level(np.array([0.0, 2.0]), np.array([1.0, -1.0]))
    1.0
    """
    x, below, above = 0.0, -1, -1
    for _ in range(LEVELS):
        k = int((values + x * change).argmin())
        if change[k] > 0.0:
            below = k
        else:
            above = k
        if below >= 0 and above >= 0:
            new = float((values[above] - values[below]) / (change[below] - change[above]))
        else:
            new = x + (10.0 if above < 0 else -10.0) * max(1.0, abs(x))
        if abs(new) > FARTHEST_LEVEL or abs(new - x) <= LEVEL_TOL * max(1.0, abs(x)):
            break
        x = new
    return x


def _drift(P: csr_array, h: Floats) -> Floats:
    """Return P h - h."""
    moved: Floats = drift_sparse(P.indptr, P.indices, P.data, h, np.zeros(h.size)).ravel()
    return moved
