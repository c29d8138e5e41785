"""What is printed of a system: values, limits, reasons and trade-offs, in the terms in which they were stated."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from psconrl.answers.answer import Answer
from psconrl.answers.explanation import NO_CHANGE, Explanation, shown_label
from psconrl.answers.pareto import Pareto, ParetoSurface
from psconrl.answers.stated_infeasibility import ranges_of
from psconrl.answers.stated_model import Asked, StatedModel
from psconrl.cli.render import number, numbers_table, signed
from psconrl.model.units import Units
from psconrl.systems.limits import Requirement
from psconrl.systems.quantities import Quantity
from psconrl.systems.quantity_units import is_percentage, quantity_unit

MOST_COLUMNS = 12  # of a surface shown as a table


def stated_table(answer: Answer, averages: Mapping[str, float]) -> Table:
    """Return a table of the objective, the limits and the other costs."""
    system, units, goal = answer.asked, answer.asked.units, answer.asked.statement.goal
    table = numbers_table("", "value", "limit", "price")
    table.columns[3].justify = "left"
    verb = "maximise" if system.statement.maximises else "minimise"
    table.add_row(Text(f"{goal.text} ({verb})"), f"{number(averages[goal.text])} {quantity_unit(goal, units)}".rstrip())
    shown = {goal.text}
    for limit in system.statement.requirements:
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


def explanation_table(why: Explanation) -> Table:
    """Return a table of what every action would change: a column for each cost, limit and the objective."""
    counted = [
        one for name, one in why.counted.items() if one.price or any(other.changes[name] for other in why.alternatives)
    ]
    heads = [" ".join(filter(None, (one.name, one.unit and f"({one.unit})", one.beyond))) for one in counted]
    table = numbers_table("action", "played", *heads, f"loses ({why.unit})" if why.unit else "loses")
    for other in why.alternatives:
        changes = (signed(other.changes[one.name]) for one in counted)
        loss = f"{other.loss if abs(other.loss) > NO_CHANGE else 0.0:.5g}" if math.isfinite(other.loss) else "for good"
        table.add_row(Text(shown_label(other.action)), f"{100 * other.probability:.4g}%", *changes, loss)
    return table


def curve_table(curve: Pareto) -> Table:
    """Return a table of the best value and the price for every threshold of a limit."""
    asked, limit = curve.answers[0].asked, curve.limit
    table = numbers_table(
        f"{_named(limit.quantity, limit.name, asked.units)} {_relation(limit)}",
        _named(asked.statement.goal, curve.objective, asked.units),
        "shadow price",
        "status",
    )
    table.columns[0].justify, table.columns[3].justify = "right", "left"
    for at, value, price, one in zip(curve.thresholds, curve.values, curve.prices, curve.answers, strict=True):
        shown = [number(x) if math.isfinite(x) else "" for x in (value, price)]
        table.add_row(_value(limit, float(at), asked.units), *shown, one.status.value)
    return table


def surface_table(surface: ParetoSurface) -> Table:
    """Return a table of the best value for every pair of thresholds of two limits."""
    asked = surface.answers[0][0].asked
    units, (rows, columns), (first, second) = asked.units, surface.thresholds, surface.limits
    chosen = np.unique(np.linspace(0, columns.size - 1, MOST_COLUMNS).round().astype(int))
    heads = [f"{_relation(second)} {_value(second, float(columns[k]), units)}" for k in chosen]
    table = numbers_table(f"{_named(first.quantity, first.name, units)} {_relation(first)}", *heads)
    table.columns[0].justify = "right"
    objective = _named(asked.statement.goal, surface.objective, units)
    table.title = f"{objective}, a column for each limit on {_named(second.quantity, second.name, units)}"
    for level, row in zip(rows, surface.values, strict=True):
        values = ("-" if np.isnan(row[k]) else number(float(row[k])) for k in chosen)
        table.add_row(_value(first, float(level), units), *values)
    if np.isnan(surface.values).any():
        table.caption = "-: no policy keeps both limits"
    return table


def _named(quantity: Quantity, name: str, units: Units) -> str:
    unit = quantity_unit(quantity, units)
    return f"{name} ({unit})" if unit and unit != name else name


def _relation(limit: Requirement) -> str:
    return "==" if limit.low == limit.high else ">=" if limit.high is None else "<="


def ranges_table(system: Asked) -> Table:
    """Return a table of the least and the largest value of the objective, of limited quantities and of costs."""
    limits = {limit.name: limit for limit in system.statement.requirements}
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


def state_of(answer: Answer, given: str) -> Any:
    """Return a state, given by name or number, as the answer is asked for it."""
    names, n_states = answer.model.names, answer.model.n_states
    is_name = names.states is not None and given in names.states
    number_of = names.state_number(given if is_name or not given.isdecimal() else int(given), n_states)
    return number_of if isinstance(answer.asked, StatedModel) else answer.asked.state_values(number_of)
