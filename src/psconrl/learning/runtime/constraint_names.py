"""The thresholds of an agent, also by name, as ``CMDP`` takes them, if it knows the names of its constraints."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import Kind, listed, need_that, read_fields, reals, text
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_costs
from psconrl.model.thresholds import in_order
from psconrl.model.validation import frozen

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
            raise AgentError(f"the names of thresholds must be text, all different; got {quoted(list(given))}")
        return cls(given, frozenset(at_least) & frozenset(given))

    def values(self, thresholds: Mapping[str, float], in_force: Floats) -> list[Any]:
        """Return all thresholds in order, as upper limits of costs; those not named keep their present value."""
        return in_order(thresholds, self.names, self.at_least, in_force, AgentError)


class NamedThresholds:
    """The thresholds in force, in the order of the constraints, and the names of the constraints if known."""

    def __init__(self, given: Thresholds) -> None:
        self.names: ConstraintNames | None = None
        if isinstance(given, Mapping):
            self.names = ConstraintNames.of(given)
            given = list(given.values())
        self.values: Floats = frozen(np.atleast_1d(as_costs(given, "thresholds")).copy())
        if self.values.ndim != 1:
            raise AgentError("thresholds must be a list of finite numbers, one per constrained cost")

    def checked(self, given: Thresholds) -> Floats:
        """Return new thresholds in order, without putting them into force."""
        ordered = self._by_name(given) if isinstance(given, Mapping) else given
        new = np.atleast_1d(as_costs(ordered, "thresholds"))
        if new.shape != self.values.shape:
            raise AgentError(f"thresholds must be {self.values.size} finite numbers; got {quoted(ordered)}")
        return new.copy()

    def _by_name(self, given: Mapping[str, float]) -> list[Any]:
        if self.names is None:
            raise AgentError(
                f"this agent does not know the names of its constraints; give {self.values.size} thresholds in their "
                "order, such as model.with_thresholds({...}).thresholds, or make it with "
                f"thresholds={{name: number, ...}}; got {quoted(dict(given))}"
            )
        return self.names.values(given, self.values)

    def change(self, values: Floats) -> None:
        """Put checked thresholds into force."""
        self.values = frozen(values)

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        if self.names is None:
            return {"thresholds": self.values}
        names, at_least = list(self.names.names), sorted(self.names.at_least)
        return {"thresholds": self.values, "constraint_names": names, "at_least": at_least}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        m = self.values.size
        described: dict[str, Kind] = {"thresholds": reals((m,), -LARGEST_COST, LARGEST_COST)}
        if "constraint_names" in state:
            described |= {"constraint_names": listed(text(), m), "at_least": listed(text())}
        saved = read_fields(state, described)
        self.values = frozen(saved["thresholds"])
        if "constraint_names" in saved:
            need_that(set(saved["at_least"]) <= set(saved["constraint_names"]), "at_least must name constraints")
            self.names = ConstraintNames.of(saved["constraint_names"], saved["at_least"])
