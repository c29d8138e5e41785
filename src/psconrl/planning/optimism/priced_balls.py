r"""The price of one constraint in the best model of L1 balls.

.. math:: \varphi(\lambda) = \min_{\pi,\, p \in \mathcal C} J_p^\pi(c_0 + \lambda e), \qquad
          \lambda^\star \in \arg\max_{\lambda \ge 0} \varphi(\lambda)

with e the excess of a pair over its threshold and :math:`\mathcal C` the balls of ``planning.optimism.ball``. By
duality, :math:`\varphi(\lambda^\star)` is the value of the optimistic constrained program. A policy in its best model
is a line above :math:`\varphi`, which is concave and piecewise linear. The maximum lies between a line that rises and
one that does not: the price at which they cross is asked for, until the answer is no lower than there.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.markov.chain import DenseChain
from psconrl.planning.optimism.ball import plan_in_balls
from psconrl.planning.tolerances import PRICE_TOL

MOST_LINES = 1000  # a price takes half a dozen


class PricedPlan(NamedTuple):
    """The best policy at one price, in the model of the balls that is best for it."""

    policy: Floats  # (S, A)
    kernel: Floats  # (S, S), the distribution of the next state under the policy in that model
    objective: float  # its averages in that model
    excess: float


class BestPrice(NamedTuple):
    """The price of the constraint, and the value of the optimistic constrained program."""

    price: float
    value: float


def plan_at_price(p_bar: Floats, radius: Floats, objective: Floats, excess: Floats, price: float) -> PricedPlan:
    """Return the policy of least average ``objective + price * excess``, (S, A) each, over balls (S*A, S)."""
    return _answer(p_bar, radius, objective, excess, (1.0, price))


def price_in_balls(p_bar: Floats, radius: Floats, objective: Floats, excess: Floats) -> BestPrice | None:
    """Return the price of an excess (S, A) that must be 0 on average at most; None if no policy meets that."""
    falling = _answer(p_bar, radius, objective, excess, (0.0, 1.0))
    if falling.excess > PRICE_TOL:
        return None
    rising = plan_at_price(p_bar, radius, objective, excess, 0.0)
    if rising.excess <= max(falling.excess, 0.0):
        return BestPrice(0.0, rising.objective)
    for _ in range(MOST_LINES):
        slope = rising.excess - falling.excess
        price = max(falling.objective - rising.objective, 0.0) / slope
        crossing = rising.objective + price * rising.excess
        found = plan_at_price(p_bar, radius, objective, excess, price)
        value = found.objective + price * found.excess
        if value >= crossing - PRICE_TOL * (1.0 + price):
            return BestPrice(price, value)
        if found.excess > 0.0:
            rising = found
        else:
            falling = found
    raise SolverError(f"the price of the constraint has not settled within {MOST_LINES:,} policies")


def _answer(
    p_bar: Floats, radius: Floats, objective: Floats, excess: Floats, weights: tuple[float, float]
) -> PricedPlan:
    plan = plan_in_balls(p_bar, radius, weights[0] * objective + weights[1] * excess)
    costs = np.stack([(plan.policy * cost).sum(axis=1) for cost in (objective, excess)])
    chain = DenseChain(plan.kernel).solve(costs)
    if chain is None:
        raise SolverError("the confidence set holds no communicating model")
    return PricedPlan(plan.policy, plan.kernel, float(chain.gains[0]), float(chain.gains[1]))
