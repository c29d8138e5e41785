r"""The least value of a ratio of averages whose denominator may be zero, and what a positive denominator costs.

A policy whose denominator is zero keeps every limit :math:`E[a - \tau b] \le 0` with equality: a line that makes
nothing has no scrap. The least ratio :math:`r^*` of the other policies is found by Dinkelbach's iteration from above:
from the ratio r of a policy with :math:`E[b] > 0`, the policy of least :math:`E[a] - r E[b]` has a smaller one, unless
this minimum is zero. As the ratio decreases at every step, no policy with a zero denominator is ever needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.answers.denominators import POSITIVE, Denominator
from psconrl.answers.found import Found
from psconrl.answers.policy_averages import PolicyAverages
from psconrl.answers.shortfalls_and_ratios import MOST_RATIOS, SAME_RATIO
from psconrl.answers.solve_statement import solve_statement
from psconrl.answers.stated_model import ModelCosts
from psconrl.errors import ModelError
from psconrl.systems.expectations import Expectations
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantities import ONE, Averages, Combination, Mean, Percentile, Quantity, Ratio
from psconrl.systems.quantity_units import counted_unit
from psconrl.systems.system import System

RATIO_SLACK = 1e-7  # relative: a limit at the least ratio itself would leave no room for rounding


@dataclass(frozen=True)
class LeastRatio:
    """The least ratio of policies with a positive denominator, or the largest."""

    value: float
    largest_bottom: float  # average of the denominator, over all policies


def least_ratio(system: System, ratio: Ratio, largest: bool, others: Sequence[Requirement] = ()) -> LeastRatio | None:
    """Return the least ratio under some limits, or the largest; None if its denominator is zero whatever the policy.

    It is infinite if the numerator can have the better sign while the denominator is zero.
    """
    measures = system.expectations
    unit = float(np.abs(measures.cost(ratio.bottom)).max())
    found = _best(system, ratio.bottom, True, others)
    if not found.plan.feasible or not -found.value > POSITIVE * unit:
        return None
    most, sign = -found.value, -1.0 if largest else 1.0
    least = ratio.value(PolicyAverages(measures, found.plan.occupancy))
    for _ in range(MOST_RATIOS):
        found = _best(system, ratio.cleared(least), largest, others)
        averages = PolicyAverages(measures, found.plan.occupancy)
        if averages.mean(ratio.bottom) <= POSITIVE * unit:
            below_zero = found.value < -POSITIVE * float(np.abs(measures.cost(ratio.top)).max())
            return LeastRatio(-sign * np.inf if below_zero else least, most)
        now = ratio.value(averages)
        if sign * (least - now) <= SAME_RATIO * max(abs(now), abs(least)):
            break
        least = now
    return LeastRatio(least, most)


def _best(system: System, combination: Combination, maximises: bool, others: Sequence[Requirement]) -> Found:
    goal = Mean(str(combination), combination)
    return solve_statement(system.with_statement(Statement(goal, maximises, tuple(others))))


def is_undefined(limit: Requirement, averages: Averages, measures: Expectations | ModelCosts) -> bool:
    """Whether the denominator of a limited quantity is zero on average."""
    bottom = limit.quantity.denominator
    if bottom is None:
        return False
    return averages.mean(bottom) <= POSITIVE * float(np.abs(measures.cost(bottom)).max())


def without_denominator(system: System, limit: Requirement, value: float, base: float) -> str:
    """Return what can be reached with a positive denominator, and at which cost, for a policy that has none.

    ``value``: the objective of this policy. ``base``: the denominator of the objective, or one.
    """
    ratio, number, below = _as_ratio(limit)
    if ratio is None:
        return ""
    others = [one for one in system.statement.requirements if one is not limit]
    words = Denominator(ratio.bottom)
    try:
        found = least_ratio(system, ratio, below, others)
        if found is None:
            return f"{words.is_zero}, whatever the policy"
        beyond = number > found.value if below else number < found.value
        reached = found.value if beyond else number
        cost = _cost_of_some(system, ratio, reached, below, others, value, base)
    except ModelError:  # another ratio, whose denominator may be negative
        return ""
    best = f"{words.where}, {ratio.text} is at {'most' if below else 'least'} {found.value:.6g}"
    limited = f"{best}; the limit is {number:g}" if beyond else f"{best}, which the limit allows"
    some, relax = words.some_of(found.largest_bottom), f", and relax {limit.name}" if beyond else ""
    return f"{limited}{cost}; to ask for it, add a limit such as '{some}'{relax}"


def _as_ratio(limit: Requirement) -> tuple[Ratio | None, float, bool]:
    """Return a limit as one on a ratio; of two sides the upper one. None if it is on an expected shortfall."""
    quantity: Quantity = limit.quantity
    number, below = limit.sides[0]
    if isinstance(quantity, Percentile):
        number, quantity, below = quantity.allowed(below), quantity.outside(number, below), False
    return (quantity if isinstance(quantity, Ratio) else None), number, below


def _cost_of_some(
    system: System, ratio: Ratio, reached: float, below: bool, others: list[Requirement], value: float, base: float
) -> str:
    """Return what a unit of the denominator costs, at a ratio that can be reached; empty if that is not known."""
    goal = system.statement.goal
    if isinstance(goal, Ratio):
        worse = goal.cleared(value)
    elif isinstance(goal, Mean):
        worse = goal.top + Combination(((-value, ONE),))
    else:
        return ""
    slack = RATIO_SLACK * max(abs(reached), RATIO_SLACK)
    kept = Requirement(ratio.text, ratio, reached - slack if below else None, None if below else reached + slack)
    found = least_ratio(
        system, Ratio("", worse * (1.0 / base), ratio.bottom), system.statement.maximises, [*others, kept]
    )
    if found is None or not np.isfinite(found.value):
        return ""
    change = -found.value if system.statement.maximises else found.value
    size = f"{abs(change):.4g} {counted_unit(goal, system.units)}".rstrip()
    does = "costs" if change >= 0 else f"improves {goal.text} by"
    return f"; then {Denominator(ratio.bottom).one(system.units)} {does} {size}"
