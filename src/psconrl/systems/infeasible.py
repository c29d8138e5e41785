"""Why no policy keeps the limits of a system, in the words in which they were stated."""

from dataclasses import replace

from psconrl.errors import ModelError
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantities import ONE, Percentile, Shortfall
from psconrl.systems.search import solve_statement
from psconrl.systems.stated import Stated

MORE = 1e-9  # relative: a limit that is missed by less is kept


def why_infeasible(system: Stated) -> str:
    """Return a sentence that says which limits cannot be kept, and what can be reached instead."""
    limits = system.requirements
    alone = [_miss(system, limit, ()) for limit in limits]
    if any(alone):
        return " ".join(sentence for sentence in alone if sentence)
    together = [(limit, _miss(system, limit, [one for one in limits if one is not limit])) for limit in limits]
    ways = [sentence.partition(";")[0] for _, sentence in together if sentence]
    involved = " and ".join(str(limit) for limit, sentence in together if sentence or not ways)
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
        quantity = replace(quantity, upper=below)
    if isinstance(quantity, Shortfall) and quantity.given is not ONE:
        return None
    try:
        found = solve_statement(system.with_statement(Statement(quantity, below, tuple(others))))
    except ModelError:  # a ratio whose denominator may be zero
        return None
    if not found.plan.feasible:
        return None
    return -found.value if below else found.value
