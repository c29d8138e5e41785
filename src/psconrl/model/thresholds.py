"""Thresholds by name, in the order of the constraints."""

from collections.abc import Container, Mapping, Sequence
from numbers import Real
from typing import Any

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, PsconrlError, unknown_name


def in_order(
    given: Mapping[str, Any],
    names: Sequence[str],
    at_least: Container[str],
    in_force: Floats | None = None,
    error: type[PsconrlError] = ModelError,
) -> list[Any]:
    """Return thresholds (m,) in the order of the names of the constraints, as upper limits of costs.

    ``at_least``: costs that are negated quantities, whose thresholds have the sign of the quantity. ``in_force``: for
    those that are not given; by default all must be.

    >>> in_order({"delay": 2.0, "profit": 3.0}, ("profit", "delay"), {"profit"})
    [-3.0, 2.0]
    """
    for name in given:
        if name not in names:
            raise error(unknown_name("constrained cost", name, names))
    result: list[Any] = [None] * len(names) if in_force is None else in_force.tolist()
    for k, name in enumerate(names):
        if name in given:
            value = given[name]
            negative = name in at_least and isinstance(value, Real) and not isinstance(value, bool)
            result[k] = -value if negative else value
        elif in_force is None:
            raise error(f"thresholds must cover every constrained cost; {quoted(name)} is missing")
    return result
