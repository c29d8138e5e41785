"""Thresholds by name, as ``CMDP`` takes them, for agents that know what their constraints are called."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, unknown_name

Thresholds = ArrayLike | Mapping[str, float]  # in the order of the constraints, or by name


class ConstraintNames(NamedTuple):
    """The names of the constraints, in their order, and which of them are kept from below."""

    names: tuple[str, ...]
    at_least: frozenset[str] = frozenset()  # costs that are the negative of what their name says

    @classmethod
    def of(cls, names: Iterable[Any], at_least: Iterable[str] = ()) -> "ConstraintNames":
        """Checked: all of them are text, and there is no name twice."""
        given = tuple(names)
        wrong = [name for name in given if not isinstance(name, str)]
        if wrong or len(set(given)) < len(given):
            raise AgentError(f"the names of thresholds must be text, all different; got {list(given)}")
        return cls(given, frozenset(at_least) & frozenset(given))

    def values(self, thresholds: Mapping[str, float], in_force: Floats) -> list[Any]:
        """All thresholds in their order, as upper limits of costs; those that are not named stay in force."""
        unknown = [name for name in thresholds if name not in self.names]
        if unknown:
            raise AgentError(unknown_name("constraint", unknown[0], self.names))
        result: list[Any] = in_force.tolist()
        for name, value in thresholds.items():
            negative = name in self.at_least and isinstance(value, Real) and not isinstance(value, bool)
            result[self.names.index(name)] = -value if negative else value
        return result


def by_name(names: ConstraintNames | None, thresholds: Mapping[str, float], in_force: Floats) -> list[Any]:
    """Thresholds that were given by name, in their order; an error if the agent knows no names."""
    if names is None:
        raise AgentError(
            f"this agent does not know the names of its constraints; give {in_force.size} thresholds in their order, "
            "such as model.with_thresholds({...}).thresholds, or make it with thresholds={name: number, ...}; "
            f"got {dict(thresholds)!r}"
        )
    return names.values(thresholds, in_force)
