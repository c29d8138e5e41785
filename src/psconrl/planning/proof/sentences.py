"""Sentences on what a certificate proves, with the absolute tolerances that applied, in the units of the costs.

Gaps and excesses are rounded up, so that the printed sentence is true and not only the number behind it.
"""

import math
from fractions import Fraction

from psconrl.check_proof.plain_model import rounded_up
from psconrl.model.names import Names
from psconrl.planning.proof.certificate import Certificate, Status


def proven(status: Status, proof: Certificate, names: Names) -> tuple[str, ...]:
    """Return a line for the objective, or for infeasibility, and one for each limit.

    >>> import psconrl
    >>> ward = {"counted": {"deaths": "deaths"}, "round": "day"}
    >>> costs, names = [[[0, 1]], [[1, 0]]], ["beds", "deaths"]
    >>> model = psconrl.CMDP([[[1.0], [1.0]]], costs, [0.25], cost_names=names, units=ward)
    >>> print(psconrl.plan(model))
    Plan(optimal, value=0.75, costs=[0.25], gap=0.0e+00)
      beds: no policy within the limits is better by more than 0 (tolerance 2e-09)
      limit on deaths: kept (tolerance 2e-09 deaths a day)
    """
    objective = names.costs[0]
    if not proof.holds:
        return ("nothing is proven: the certificate does not hold",)
    if status is Status.INFEASIBLE:
        return (f"no policy meets all limits: margin {proof.margin:.2g}, which counts from {proof.tolerance:.2g} on",)
    gap = names.units.with_unit(_at_most(max(float(proof.gap), 0.0)), objective)
    judged = f" (tolerance {proof.tolerance:.2g})" if status is Status.OPTIMAL else ""
    lines = [f"{objective}: no policy within the limits is better by more than {gap}{judged}"]
    for name, excess, allowed in zip(names.costs[1:], proof.excess, proof.limit_tolerances, strict=True):
        within = "" if excess <= 0 else f" within {names.units.with_unit(_at_most(float(excess)), name)}"
        lines.append(f"limit on {name}: kept{within} (tolerance {names.units.with_unit(f'{allowed:.2g}', name)})")
    return tuple(lines)


def _at_most(x: float) -> str:
    return rounded_up(Fraction(str(x)), 2) if math.isfinite(x) else str(x)
