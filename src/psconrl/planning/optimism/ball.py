r"""Optimism over L1 balls of transition distributions, as in UCRL2 (Jaksch, Ortner and Auer 2010).

.. math:: \mathcal C = \{p : \lVert p(\cdot|s,a) - \bar p(\cdot|s,a) \rVert_1 \le d(s,a)\}

The best distribution of a ball for a value function moves mass d/2 to the best state and takes it from the worst
(their Figure 2). Extended value iteration repeats this; here Howard's policy iteration is used instead, which is exact
and finite. With a positive radius every pair reaches the best state, so that there is one recurrent class.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic.sorting import argsort
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.kernels.sets.balls import move_to_first
from psconrl.markov.chain import DenseChain
from psconrl.model.matrix_product import product
from psconrl.planning.tolerances import BALL_TOL

WHOLE_BALL = 2.0  # the radius of a ball that holds every distribution
MOST_MODELS = 1000  # policy iteration takes a dozen


def least_in_ball(p_bar: Floats, radius: Floats, values: Floats) -> Floats:
    """Return the distributions (n, S) of least mean value in L1 balls around ``p_bar`` (n, S), of given radii (n,).

    >>> least_in_ball(np.array([[0.5, 0.5, 0.0]]), np.array([0.4]), np.array([1.0, 3.0, 0.0])).round(9).tolist()
    [[0.5, 0.3, 0.2]]
    """
    order = argsort(np.ascontiguousarray(values, dtype=np.float64))
    return move_to_first(np.ascontiguousarray(p_bar), np.ascontiguousarray(radius), order)


class BallValues(NamedTuple):
    """A policy in the model of the balls that is best for it."""

    policy: Floats  # (S, A)
    gain: float  # average cost
    pairs: Floats  # (S, A), cost minus gain plus the mean bias of the successor, whose least value is 0
    kernel: Floats  # (S, S), the distribution of the next state under the policy in that model


def evaluate_in_balls(p_bar: Floats, radius: Floats, costs: Floats, policy: Floats) -> BallValues:
    """Return the least average cost of a policy (S, A) over the balls (S*A, S) of positive radii, and its values."""
    return _howard(p_bar, radius, costs, policy)


def plan_in_balls(p_bar: Floats, radius: Floats, costs: Floats) -> BallValues:
    """Return the policy of least average cost over the balls (S*A, S) of positive radii, for costs (S, A)."""
    return _howard(p_bar, radius, costs, None)


def _howard(p_bar: Floats, radius: Floats, costs: Floats, fixed: Floats | None) -> BallValues:
    """Improve the model, and the policy unless it is fixed, until no state gains more than rounding."""
    S, A = costs.shape
    kernel = least_in_ball(p_bar, radius, np.zeros(S))
    policy = one_hot(costs.argmin(axis=1), A) if fixed is None else fixed
    reference = 0
    for _ in range(MOST_MODELS):
        P = (policy[:, :, None] * kernel.reshape(S, A, S)).sum(axis=1)
        chain = DenseChain(P).solve(np.ascontiguousarray((policy * costs).sum(axis=1))[None], reference)
        if chain is None:
            raise SolverError("the confidence set holds no communicating model")
        gain, h, reference = float(chain.gains[0]), chain.biases[0], chain.reference
        h = h - h.min()
        kernel = least_in_ball(p_bar, radius, h)
        values = costs + product(kernel, h).reshape(S, A) - gain
        tol = BALL_TOL * (np.abs(costs).max() + h.max())
        mean = (policy * values).sum(axis=1)
        improved = bool((mean < h - tol).any())  # by the model
        if fixed is None:
            switched = values.min(axis=1) < mean - tol
            policy = np.where(switched[:, None], one_hot(values.argmin(axis=1), A), policy)
            improved = improved or bool(switched.any())
        if not improved:
            return BallValues(policy, gain, values, P)
    raise SolverError(f"policy iteration over L1 balls has not settled within {MOST_MODELS:,} steps")
