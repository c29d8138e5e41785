"""Why no policy keeps the limits of a system, in the words in which they were stated."""

from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from psconrl.answers.least_ratio import least_ratio
from psconrl.answers.nonlinear import solve_statement
from psconrl.errors import ModelError
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantities import ONE, Combination, Mean, Percentile, Quantity, Ratio, Shortfall
from psconrl.systems.stated import Stated

MORE = 1e-9  # relative: a limit that is missed by less is kept


def why_infeasible(system: Stated) -> str:
    """Return a sentence that says which limits cannot be kept, and what can be reached instead."""
    limits = system.requirements
    system.expectations.report.stage("the limits cannot be kept; finding out why")
    alone = [_miss(system, limit, ()) for limit in limits]
    if any(alone):
        return " ".join(sentence for sentence in alone if sentence)
    together = [(limit, _miss(system, limit, [one for one in limits if one is not limit])) for limit in limits]
    ways = [sentence.partition(";")[0] for _, sentence in together if sentence]
    some = [str(limit) for limit, sentence in together if sentence or not ways]
    involved = " and ".join(some if len(some) > 1 else map(str, limits))
    if not ways:
        return f"no policy keeps {involved} together; relax several of them"
    return f"no policy keeps {involved} together: with the other limits kept, {'; '.join(ways)}"


def _miss(system: Stated, limit: Requirement, others: list[Requirement] | tuple[()]) -> str:
    """Return a sentence if a limit cannot be kept under some others; empty if it can, or if they cannot themselves."""
    for number, below in limit.sides:
        best = best_value(system, limit, below, others)
        if best is None or (number - best if not below else best - number) >= -MORE * max(abs(number), abs(best)):
            continue
        return f"{limit.name} cannot be brought {'above' if below else 'below'} {best:.6g}; the limit is {number:g}."
    return ""


def best_value(system: Stated, limit: Requirement, below: bool, others: list[Requirement] | tuple[()]) -> float | None:
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


def _best_ratio(system: Stated, quantity: Quantity, below: bool, others: list[Requirement] | tuple[()]) -> float | None:
    """Return the best ratio of policies with a positive denominator; None if there are none, or it is infinite."""
    if not isinstance(quantity, Ratio):
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


def ranges_of(system: Stated) -> list[Range]:
    """Return the ranges of the objective, of all limited quantities as stated, and of the other costs."""
    statement = system.statement
    quantities = {statement.goal.text: statement.goal} | {one.name: one.quantity for one in system.requirements}
    texts = {quantity.text for quantity in quantities.values()}
    quantities |= {name: Mean(name, Combination.of(name)) for name in system.cost_names if name not in texts}
    return [
        Range(name, *(_end(system, quantity, side) for side in (False, True))) for name, quantity in quantities.items()
    ]


def _end(system: Stated, quantity: Quantity, largest: bool) -> float | None:
    if largest and isinstance(quantity, Shortfall):
        return None  # the largest of a minimum over levels is not linear
    found = best_value(system, Requirement(quantity.text, quantity), largest, ())
    return None if found is None else float(found)
