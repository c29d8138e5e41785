"""A goal for a model that comes without an objective: one quantity optimised, others constrained."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.base.limit_text import read_limit_text
from psconrl.errors import ConfigError, unknown_name


@dataclass(frozen=True)
class Limit:
    """A quantity whose average is kept at or below a value, or at or above it."""

    name: str
    at_least: bool
    value: float


@dataclass(frozen=True)
class Goal:
    """The quantity to minimise or maximise, and the constraints."""

    objective: str
    maximise: bool
    limits: tuple[Limit, ...] = ()

    def check(self, known: Iterable[str]) -> None:
        """Check that all names are quantities of the model."""
        names = list(known)
        for name in (self.objective, *(limit.name for limit in self.limits)):
            if name not in names:
                raise ConfigError(unknown_name("reward or label", name, names))

    def cost_names(self) -> list[str]:
        """Return a name for every cost; a quantity constrained on both sides gets the side as a suffix."""
        names, sides = [self.objective], set()
        for limit in self.limits:
            side = limit.name, limit.at_least
            if side in sides:
                raise ConfigError(f"limits: {quoted(limit.name)} is limited twice on the same side")
            sides.add(side)
            name = limit.name
            if name in names:
                name = f"{name} (at {'least' if limit.at_least else 'most'})"
            names.append(name)
        return names


def read_goal(minimise: Any = None, maximise: Any = None, limits: Any = ()) -> Goal | None:
    """Return a goal from options; None if no option is given.

    >>> read_goal(minimise="hungry", limits="eat >= 0.5")
    Goal(objective='hungry', maximise=False, limits=(Limit(name='eat', at_least=True, value=0.5),))
    """
    wanted = [limits] if isinstance(limits, str) else limits
    if not isinstance(wanted, Iterable):
        raise ConfigError(f"limits must be text such as 'eat >= 0.5', or a list of such; got {quoted(limits)}")
    found = tuple(limit for text in wanted for limit in read_limits(text))
    if minimise is None and maximise is None:
        if found:
            raise ConfigError("limits go with an objective; say what to minimise or to maximise")
        return None
    if minimise is not None and maximise is not None:
        raise ConfigError("there is one objective: minimise or maximise, not both")
    objective = maximise if minimise is None else minimise
    if not isinstance(objective, str):
        raise ConfigError(f"the objective must be the name of a reward or label; got {quoted(objective)}")
    return Goal(objective, minimise is None, found)


def read_limits(text: Any) -> list[Limit]:
    """Parse a limit such as ``"eat >= 0.5"`` or ``"0.01 <= attacks <= 0.1"``, which has two sides."""
    found = read_limit_text(text, _number) if isinstance(text, str) else None
    if found is None:
        raise ConfigError(f"a limit must be 'NAME <= NUMBER' or 'NAME >= NUMBER'; got {quoted(text)}")
    sides = (found.low, True), (found.high, False)
    return [Limit(found.quantity, at_least, value) for value, at_least in sides if value is not None]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
