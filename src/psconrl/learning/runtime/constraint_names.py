"""Thresholds by name, as ``CMDP`` takes them, for agents that know the names of their constraints."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, unknown_name

Thresholds = ArrayLike | Mapping[str, float]  # in the order of the constraints, or by name


class ConstraintNames(NamedTuple):
    """Names of the constraints, in order, and which of them are lower bounds."""

    names: tuple[str, ...]
    at_least: frozenset[str] = frozenset()  # their costs are the negative of the named quantity

    @classmethod
    def of(cls, names: Iterable[Any], at_least: Iterable[str] = ()) -> "ConstraintNames":
        """Return the names after checking that all are text and distinct."""
        given = tuple(names)
        wrong = [name for name in given if not isinstance(name, str)]
        if wrong or len(set(given)) < len(given):
            raise AgentError(f"the names of thresholds must be text, all different; got {list(given)}")
        return cls(given, frozenset(at_least) & frozenset(given))

    def values(self, thresholds: Mapping[str, float], in_force: Floats) -> list[Any]:
        """Return all thresholds in order, as upper limits of costs; those not named keep their present value."""
        unknown = [name for name in thresholds if name not in self.names]
        if unknown:
            raise AgentError(unknown_name("constraint", unknown[0], self.names))
        result: list[Any] = in_force.tolist()
        for name, value in thresholds.items():
            negative = name in self.at_least and isinstance(value, Real) and not isinstance(value, bool)
            result[self.names.index(name)] = -value if negative else value
        return result


def by_name(names: ConstraintNames | None, thresholds: Mapping[str, float], in_force: Floats) -> list[Any]:
    """Return thresholds given by name, in order; raise an error if the agent knows no names."""
    if names is None:
        raise AgentError(
            f"this agent does not know the names of its constraints; give {in_force.size} thresholds in their order, "
            "such as model.with_thresholds({...}).thresholds, or make it with thresholds={name: number, ...}; "
            f"got {dict(thresholds)!r}"
        )
    return names.values(thresholds, in_force)
