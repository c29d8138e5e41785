"""Why no policy keeps the limits of a system, and the values that quantities can be brought to."""

from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from psconrl.answers.least_ratio import least_ratio
from psconrl.answers.policy_averages import PolicyAverages
from psconrl.answers.solve_statement import solve_statement
from psconrl.answers.stated_model import Asked
from psconrl.errors import ModelError
from psconrl.planning.infeasibility import Infeasibility, least_values
from psconrl.planning.plan import Plan
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantities import ONE, Mean, Percentile, Quantity, Ratio, Shortfall
from psconrl.systems.system import System

MORE = 1e-9  # relative: a limit that is missed by less is kept


def why_infeasible(system: System, found: Plan) -> Infeasibility:
    """Return which limits cannot be kept, and what they could be brought to; ``found``: the plan of least excess."""
    system.report.stage("the limits cannot be kept; finding out why")
    sides = [(limit, number, below) for limit in system.statement.requirements for number, below in limit.sides]
    signs = np.array([-1.0 if below else 1.0 for _, _, below in sides])
    tau = signs * [number for _, number, _ in sides]
    hopeless = False

    def least(i: int, others: list[int]) -> float | None:
        nonlocal hopeless
        limit, _, below = sides[i]
        kept = [one for one in system.statement.requirements if others and one is not limit]
        best = None if others and hopeless else best_value(system, limit, below, kept)
        if best is None:
            return None
        x = float(signs[i] * best)
        missed = x - tau[i] > MORE * max(abs(x), abs(tau[i]))
        hopeless |= missed and not others
        return x if missed or others else min(x, float(tau[i]))

    alone, with_others = least_values(len(sides), least)
    averages = PolicyAverages(system.expectations, found.occupancy)
    jointly = signs * [limit.quantity.value(averages) for limit, _, _ in sides]
    means = all(isinstance(limit.quantity, Mean) for limit in system.statement.requirements)
    weights = found.multipliers if means else np.full(len(sides), np.nan)
    lower = tuple(below for _, _, below in sides)
    return Infeasibility(tuple(one.name for one, _, _ in sides), tau, alone, with_others, jointly, weights, lower)


def best_value(system: Asked, limit: Requirement, below: bool, others: list[Requirement] | tuple[()]) -> float | None:
    """Return the least value of a limited quantity under other limits, or the largest if the limit is a lower one.

    None if the other limits are infeasible, or the value is not known.
    """
    quantity = limit.quantity
    if isinstance(quantity, Percentile):
        quantity = replace(quantity, upper=below, nearest=None)
    if isinstance(quantity, Shortfall) and quantity.given is not ONE:
        return None
    try:
        found = solve_statement(system.with_statement(Statement(quantity, below, tuple(others))))
    except ModelError:  # a denominator that may be zero, or negative
        return _best_ratio(system, quantity, below, others)
    if not found.plan.feasible:
        return None
    return -found.value if below else found.value


def _best_ratio(system: Asked, quantity: Quantity, below: bool, others: list[Requirement] | tuple[()]) -> float | None:
    """Return the best ratio of policies with a positive denominator; None if there are none, or it is infinite."""
    if not isinstance(quantity, Ratio) or not isinstance(system, System):
        return None
    try:
        found = least_ratio(system, quantity, below, others)
    except ModelError:
        return None
    return found.value if found is not None and isfinite(found.value) else None


class Range(NamedTuple):
    """The values of a quantity that single policies can reach, without any limits; None where that is not known."""

    name: str
    least: float | None
    largest: float | None


def ranges_of(system: Asked) -> list[Range]:
    """Return the ranges of the objective, of all limited quantities as stated, and of the other costs."""
    statement = system.statement
    quantities = {statement.goal.text: statement.goal} | {
        one.name: one.quantity for one in system.statement.requirements
    }
    texts = {quantity.text for quantity in quantities.values()}
    quantities |= {name: system.cost_quantity(name) for name in system.cost_names if name not in texts}
    return [
        Range(name, *(_end(system, quantity, side) for side in (False, True))) for name, quantity in quantities.items()
    ]


def _end(system: Asked, quantity: Quantity, largest: bool) -> float | None:
    if largest and isinstance(quantity, Shortfall):
        return None  # the largest of a minimum over levels is not linear
    found = best_value(system, Requirement(quantity.text, quantity), largest, ())
    return None if found is None else float(found)
