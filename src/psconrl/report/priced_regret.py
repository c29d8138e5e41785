"""Regret and violations in one number: the score of a run, and regret at shadow prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.report.curves import Curves


@dataclass(frozen=True)
class Charge:
    r"""What positive violations cost: a multiple of their shadow prices, but at least their largest range price.

    With the shadow prices :math:`\lambda_i`, the range prices :math:`\rho_i` and the positive parts :math:`V_i^+` of
    the violations, the charge is the larger one of ``factor`` :math:`\sum_i \lambda_i V_i^+` and ``floor``
    :math:`\max_i \rho_i V_i^+`. The first is a sum and the second a maximum, so that a constraint that is stated twice
    is charged as if it were stated once, however its price is split.
    """

    factor: float = 2.0  # multiple of the shadow prices
    floor: float = 1.0  # multiple of the range prices

    def of(self, violations: Floats, facts: Mapping[str, Any]) -> Floats:
        """Return the charge (...) for violations (..., m) in an environment whose facts have both kinds of prices."""
        excess = np.maximum(violations, 0.0)
        largest = (excess * np.array(facts["range_prices"])).max(axis=-1)
        return np.maximum(self.factor * (excess @ np.array(facts["prices"])), self.floor * largest)


USUAL_CHARGE = Charge()
AT_PRICES = Charge(factor=1.0)  # what violations are worth in columns of their own


def regret_at_prices(curves: Curves, prices: Sequence[float]) -> Floats:
    """Return the regret plus the violations weighted by prices, (runs, n)."""
    return curves.regret + sum((p * curves.violation(i) for i, p in enumerate(prices, start=1)), start=0.0)


def score(curves: Curves, facts: Mapping[str, Any], charge: Charge = USUAL_CHARGE) -> Floats:
    """Return the regret plus the charge for positive violations, (runs, n): the score of the leaderboard.

    No policy gets below 0 in the long run, and only an optimal policy that meets all constraints attains 0: a gain from
    violations is at most their sum at shadow prices, which costs twice as much, and a violation of a constraint without
    a shadow price costs something as well. Regret at shadow prices, in contrast, is 0 for every policy that the optimum
    mixes, also for one that always violates a constraint or never uses its budget.
    """
    violations = np.stack([curves.violation(i) for i in range(1, len(facts["prices"]) + 1)], axis=-1)
    return curves.regret + charge.of(violations, facts)


def final_score(curves: Curves, facts: Mapping[str, Any], charge: Charge = USUAL_CHARGE) -> Floats:
    """Return the score after the last round, (runs,)."""
    return score(curves, facts, charge)[:, -1]


def has_score(facts: Mapping[str, Any]) -> bool:
    """Return True if runs of an environment with these facts have a score: all have one model, with constraints."""
    return bool(facts.get("prices")) and "range_prices" in facts
