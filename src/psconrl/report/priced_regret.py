"""Regret and violations in one number: the score of a run, and regret at shadow prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.report.curves import Curves, Experiment


@dataclass(frozen=True)
class Charge:
    r"""What a positive violation costs: a multiple of its shadow price, but at least one of its range price.

    With the shadow prices :math:`\lambda_i`, the range prices :math:`\rho_i` and the positive parts :math:`V_i^+` of
    the violations, the charge is :math:`\sum_i \max(f \lambda_i, g \rho_i) V_i^+` with :math:`f` the factor and
    :math:`g` the floor. Facts of environments have no prices of copies (``without_copies``), so that a constraint that
    is stated twice is charged once.
    """

    factor: float = 2.0  # multiple of the shadow prices
    floor: float = 1.0  # multiple of the range prices

    def of(self, violations: Floats, facts: Mapping[str, Any]) -> Floats:
        """Return the charge (...) for violations (..., m) in an environment whose facts have both kinds of prices."""
        shadow, ranges = (np.array(facts[key], dtype=np.float64) for key in ("prices", "range_prices"))
        return np.asarray(np.maximum(violations, 0.0) @ np.maximum(self.factor * shadow, self.floor * ranges))


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


def need_score(experiment: Experiment) -> None:
    """Raise an error unless the runs of an experiment have a score."""
    if has_score(experiment.facts):
        return
    if experiment.facts.get("prices"):
        lacks = "was run by an earlier version, without range prices; run it again, which keeps its runs"
    else:
        lacks = "has no score, since it has no shadow prices that all its runs share"
    raise ConfigError(f"experiment {quoted(experiment.name)} {lacks}")
