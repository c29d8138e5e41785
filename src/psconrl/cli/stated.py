"""What is printed of a system: values, limits, reasons and trade-offs, in the terms in which they were stated."""

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from psconrl.answers.answer import Answer, TradeOff
from psconrl.answers.infeasible import ranges_of
from psconrl.answers.reasons import NO_CHANGE, Reasons
from psconrl.cli.render import number, numbers_table, signed
from psconrl.model.units import Units
from psconrl.systems.functions import shown_values
from psconrl.systems.limits import Requirement
from psconrl.systems.quantity_units import is_percentage, quantity_unit
from psconrl.systems.stated import Stated


def stated_table(answer: Answer, averages: Mapping[str, float]) -> Table:
    """Return a table of the objective, the limits and the other costs."""
    system, units, goal = answer.asked, answer.asked.units, answer.asked.statement.goal
    table = numbers_table("", "value", "limit", "price")
    table.columns[3].justify = "left"
    verb = "maximise" if system.maximises else "minimise"
    table.add_row(Text(f"{goal.text} ({verb})"), f"{number(averages[goal.text])} {quantity_unit(goal, units)}".rstrip())
    shown = {goal.text}
    for limit in system.requirements:
        priced = limit.name in answer.prices and limit.name not in answer.undefined
        value = averages[limit.name]
        known = f"{_value(limit, value, units)} {quantity_unit(limit.quantity, units)}".rstrip()
        table.add_row(
            Text(limit.name),
            known if math.isfinite(value) else "not defined",
            limit_numbers(limit, units),
            Text(str(answer.prices[limit.name]).removeprefix(f"{limit.name} is ") if priced else ""),
        )
        shown |= {limit.name, limit.quantity.text}
    for name in system.cost_names:
        if name not in shown:
            table.add_row(Text(name), f"{number(averages[name])} {units.average(name)}".rstrip())
    return table


def _value(limit: Requirement, value: float, units: Units) -> str:
    return f"{number(100 * value)}%" if is_percentage(limit.quantity, [value], units) else number(value)


def limit_numbers(limit: Requirement, units: Units) -> str:
    """Return the numbers of a limit: "<= 2%", ">= 1 and <= 3", "== 2"."""
    if limit.low is not None and limit.low == limit.high:
        return f"== {_value(limit, limit.low, units)}"
    sides = [f"{'>=' if below else '<='} {_value(limit, x, units)}" for x, below in limit.sides]
    return " and ".join(reversed(sides))


def reasons_table(reasons: Reasons) -> Table:
    """Return a table of what every action would change: a column for each cost, limit and the objective."""
    counted = [
        one
        for name, one in reasons.counted.items()
        if one.price or any(other.changes[name] for other in reasons.alternatives)
    ]
    unit = reasons.counted[reasons.objective].unit
    heads = [" ".join(filter(None, (one.name, one.unit and f"({one.unit})", one.beyond))) for one in counted]
    table = numbers_table("action", "played", *heads, f"loses ({unit})" if unit else "loses")
    for other in reasons.alternatives:
        changes = (signed(other.changes[one.name]) for one in counted)
        loss = number(other.loss if abs(other.loss) > NO_CHANGE else 0.0) if math.isfinite(other.loss) else "for good"
        table.add_row(Text(shown_values(other.action)), f"{100 * other.probability:.4g}%", *changes, loss)
    return table


def curve_table(curve: TradeOff, limit: Requirement) -> Table:
    """Return a table of the best value and the price for every number of a limit."""
    system = curve.answers[0].asked
    relation = "==" if limit.low == limit.high else ">=" if limit.high is None else "<="
    goal, unit = system.statement.goal.text, quantity_unit(system.statement.goal, system.units)
    table = numbers_table(f"{limit.name} {relation}", f"{goal} ({unit})" if unit else goal, "price of one", "status")
    table.columns[0].justify, table.columns[3].justify = "right", "left"
    for at, value, price, one in zip(curve.numbers, curve.values, curve.prices, curve.answers, strict=True):
        shown = [number(x) if math.isfinite(x) else "" for x in (value, price)]
        table.add_row(_value(limit, float(at), system.units), *shown, one.status.value)
    return table


def ranges_table(system: Stated) -> Table:
    """Return a table of the least and the largest value of the objective, of limited quantities and of costs."""
    limits = {limit.name: limit for limit in system.requirements}
    goal, units = system.statement.goal, system.units
    table = numbers_table("", "least", "largest", "limit")
    for row in ranges_of(system):
        limit = limits.get(row.name)
        quantity = limit.quantity if limit else goal if row.name == goal.text else None
        unit = quantity_unit(quantity, units) if quantity else units.average(row.name)
        ends = ["?" if x is None else _value(limit, x, units) if limit else number(x) for x in (row.least, row.largest)]
        table.add_row(
            Text(f"{row.name} ({unit})" if unit else row.name), *ends, limit_numbers(limit, units) if limit else ""
        )
    return table


def state_of(answer: Answer, given: str) -> dict[str, Any]:
    """Return a state, given by name or number, as a table of values."""
    named = answer.model.state_names is not None and given in answer.model.state_names
    asked = given if named or not given.isdecimal() else int(given)
    number_of = answer.model.names.state_number(asked, answer.model.n_states)
    return {name: values[number_of].item() for name, values in answer.asked.state_table.items()}
