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

from psconrl.arrays import Floats
from psconrl.kernels import sparse_elimination
from psconrl.kernels.double_double import drift_sparse
from psconrl.markov.elimination_order import Order

CLOCK = 1e-12  # epsilon: shorter times than 1e12 steps are resolved, and rounding of a gain moves levels by 1e-4
ANCHOR_REFINEMENTS = 2  # of a solution: each reduces its error by the time to leave a regime times CLOCK
SEPARATE = 0.5  # least probability that the clock rings before a regime is left
LEVELS = 60  # most steps of the search for levels, which ends after about five
FARTHEST_LEVEL = 1e9  # levels beyond are not searched
LEVEL_TOL = 1e-13  # relative change of a level at which the search ends


def anchored_bias(P: csr_array, cost: Floats, reference: int, anchor: Floats, order: Order) -> Floats:
    """Return the bias (S,) of a cost (S,), which is zero at the reference."""
    right, h = cost + CLOCK * (anchor - anchor[reference]), np.zeros(cost.size)
    for _ in range(1 + ANCHOR_REFINEMENTS):
        h += _ringing(P, right, reference, order)[0]
        # What is left of the equation without a clock: a solution is the anchor of its refinement.
        right = cost + _drift(P, h)
        right -= right[reference]
    return h


def regimes(P: csr_array, reference: int, order: Order) -> Floats | None:
    """Return the probability (S,) that the clock rings before the reference is hit; None if it hardly ever does."""
    away = np.ones(P.shape[0])
    away[reference] = 0.0
    time, stationary = _ringing(P, away, reference, order)
    probability: Floats = CLOCK * time / stationary[reference]
    return probability if probability.max() > SEPARATE else None


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


def _ringing(P: csr_array, cost: Floats, reference: int, order: Order) -> tuple[Floats, Floats]:
    """Solve the chain that moves to the reference whenever the clock rings: bias and stationary distribution."""
    _, _, biases, stationary = sparse_elimination.unichain(
        P.indptr, P.indices, P.data, np.arange(cost.size), cost[None, :], reference, CLOCK, order
    )
    return biases[0], stationary


def _drift(P: csr_array, h: Floats) -> Floats:
    """Return P h - h."""
    moved: Floats = drift_sparse(P.indptr, P.indices, P.data, h, np.zeros(h.size)).ravel()
    return moved
