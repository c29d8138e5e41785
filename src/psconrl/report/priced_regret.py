"""Regret and violations in one number, at the shadow prices of the constraints."""

from collections.abc import Sequence

import numpy as np

from psconrl.arrays import Floats
from psconrl.report.curves import Curves

OVERSPENDING_FACTOR = 2.0  # multiple of the shadow price that a positive violation costs


def regret_at_prices(curves: Curves, prices: Sequence[float]) -> Floats:
    """Return the regret plus the violations weighted by prices, (runs, n)."""
    return curves.regret + sum((p * curves.violation(i) for i, p in enumerate(prices, start=1)), start=0.0)


def final_cost(curves: Curves, prices: Sequence[float] = ()) -> Floats:
    """Return the final regret plus the final violations weighted by prices, (runs,)."""
    return regret_at_prices(curves, prices)[:, -1]


def penalised_regret(curves: Curves, prices: Sequence[float], factor: float = OVERSPENDING_FACTOR) -> Floats:
    """Return the regret plus the positive violations at a multiple of their prices, by default twice, (runs, n).

    No policy gets below 0 in the long run, and only an optimal one attains 0. Regret at shadow prices, in contrast, is
    0 for every policy that the optimum mixes, also for one that always violates a constraint or never uses its budget.
    """
    excess = (np.maximum(curves.violation(i), 0.0) for i in range(1, len(prices) + 1))
    return curves.regret + sum((factor * p * x for p, x in zip(prices, excess, strict=True)), start=0.0)
