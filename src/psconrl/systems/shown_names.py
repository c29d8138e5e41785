"""Names and units of the linear limits of a system, in the words in which the limits were stated."""

from collections.abc import Iterator, Mapping, Sequence

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name
from psconrl.model.units import Units
from psconrl.systems.limits import Requirement, Statement
from psconrl.systems.quantity_units import counted_unit, shown_number


def read_cost_names(given: Mapping[str, str] | None, names: Sequence[str]) -> dict[str, str]:
    """Return how some costs and limits are shown, by name."""
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(
            f"cost_names must be a table of costs and texts, such as {{'lost': 'Lost sales'}}; got {quoted(given)}"
        )
    for name, shown in (given or {}).items():
        if not isinstance(shown, str):
            raise ModelError(f"cost_names: {quoted(name)} must be shown as a text; got {quoted(shown)}")
        if name not in names:
            raise ModelError(f"cost_names: {unknown_name('cost', name, names)}")
    return dict(given or {})


def row_names(statement: Statement, units: Units, given: Mapping[str, str]) -> dict[str, str]:
    """Return how the linear limits of a statement are shown, by their own names.

    The limit on E[a - 0.02 b] to which "a / b <= 2%" is equivalent is shown as "a / b over 2%". ``given``: other names,
    by name of the linear limit, or of the limit as stated.

    >>> from psconrl.systems.limits import read_statement
    >>> statement = read_statement("c", None, ["a / b <= 2%"], frozenset("abc"))
    >>> row_names(statement, Units(), {})
    {'a - 0.02 * b': 'a / b over 2%'}
    """
    names = {}
    for limit, number, name in _rows(statement):
        shown = name
        if limit.quantity.denominator is not None:
            shown = f"{limit.name} over {shown_number(limit.quantity, number, units)}"
        names[name] = given.get(name, given.get(limit.name, shown))
    return names


def row_units(statement: Statement, units: Units, given: Mapping[str, str]) -> Units:
    """Return the units with those of the numerators of ratios, by the names that are shown."""
    names, counted = row_names(statement, units, given), dict(units.counted)
    for limit, _, name in _rows(statement):
        shown, unit = names[name], counted_unit(limit.quantity, units)
        if limit.quantity.denominator is not None and unit and shown not in (*counted, *units.levels):
            counted[shown] = unit
    return Units(units.round, counted, units.levels)


def _rows(statement: Statement) -> Iterator[tuple[Requirement, float, str]]:
    """Yield every side of the limits, with its number and the name of its linear limit."""
    sides = [(limit, number) for limit in statement.requirements for number, _ in limit.sides]
    for (limit, number), row in zip(sides, statement.rows[1:], strict=True):
        yield limit, number, row.name
