"""The words of a system's owner, for live use: variables and their values in place of numbers of states and actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import AgentError, ModelError, unknown_name
from psconrl.systems.functions import shown_values
from psconrl.systems.variables import Space


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Names and values of everything that is observed in a system, with their numbers in its model."""

    states: Space
    reachable: Ints  # (S,) numbers in the space, increasing
    actions: Space
    available: Bools  # (S, A)
    outcomes: Mapping[str, NDArray[Any]]  # of every noise, its value in each joint outcome
    most: Mapping[str, int]  # of every noise that counts, the value that stands for itself and all above
    costs: tuple[str, ...]  # the objective and the limits
    signs: tuple[float, ...]  # -1 if the planned cost is the negative quantity

    def state(self, given: Any, what: str = "state") -> int:
        """Return the number of a state, given by the values of its variables, or by its number."""
        if not isinstance(given, Mapping):
            return given
        number = _number(self.states, given, what)
        place = int(np.searchsorted(self.reachable, number))
        if place == self.reachable.size or self.reachable[place] != number:
            raise AgentError(
                f"{what}: {shown_values(given)} is never reached from the start, by the system's own rules"
            )
        return place

    def action(self, given: Any) -> int:
        """Return the number of an action, given by the values of its variables, or by its number."""
        return _number(self.actions, given, "action") if isinstance(given, Mapping) else given

    def action_taken(self, state: int, action: int) -> int:
        """Return the number of the action that is played: the given one, or the first available."""
        mask = self.available[state]
        return action if mask[action] else int(mask.argmax())

    def need_available(self, state: int, action: int) -> None:
        """Raise an error if an action is not available in a state."""
        if not self.available[state, action]:
            here = shown_values(self.states.label(int(self.reachable[state])))
            raise AgentError(f"action: {shown_values(self.actions.label(action))} is not available at {here}")

    def agreeing(self, noise: Any) -> Ints:
        """Return the joint outcomes that agree with what was seen of the noise."""
        if not isinstance(noise, Mapping):
            raise AgentError(f"noise must be a table of values by name, such as {{'demand': 3}}; got {noise!r}")
        agree = np.ones(len(next(iter(self.outcomes.values()), (0,))), dtype=bool)
        for name, value in noise.items():
            if name not in self.outcomes:
                raise AgentError(unknown_name("noise", name, self.outcomes))
            values = self.outcomes[name]
            if np.ndim(value) or isinstance(value, str) != (values.dtype.kind == "U"):
                raise AgentError(f"noise: {name!r} must be one of its values; got {value!r}")
            same = values == (min(value, self.most[name]) if name in self.most else value)
            if not same.any():
                some = ", ".join(str(x) for x in np.unique(values)[:6])
                raise AgentError(
                    f"noise: {name!r} has the values {some}{', ...' * (np.unique(values).size > 6)}; got {value!r}"
                )
            agree &= same
        return np.flatnonzero(agree)

    def planned_costs(self, given: Mapping[str, Any]) -> Floats:
        """Return costs (m+1,) given by name; a quantity that is maximised, or at least something, is negated."""
        for name in given:
            if name not in self.costs:
                raise AgentError(f"costs: {unknown_name('objective or limit', name, self.costs)}")
        for name in self.costs:
            if name not in given:
                raise AgentError(f"costs: {name!r} is missing; leave out costs to have all of them calculated")
        try:
            return np.array([sign * float(given[name]) for name, sign in zip(self.costs, self.signs, strict=True)])
        except (TypeError, ValueError):
            raise AgentError(f"costs must be numbers; got {dict(given)!r}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "states": {v.name: v.values for v in self.states.variables},
            "reachable": self.reachable,
            "actions": {v.name: v.values for v in self.actions.variables},
            "available": self.available,
            "outcomes": dict(self.outcomes),
            "most": dict(self.most),
            "costs": list(self.costs),
            "signs": list(self.signs),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Vocabulary":
        """Return what ``to_dict`` described."""
        return cls(
            Space(data["states"], "states"),
            np.asarray(data["reachable"], dtype=np.int64),
            Space(data["actions"], "actions"),
            np.asarray(data["available"], dtype=bool),
            {name: np.asarray(values) for name, values in data["outcomes"].items()},
            {name: int(most) for name, most in data["most"].items()},
            tuple(data["costs"]),
            tuple(float(sign) for sign in data["signs"]),
        )


def _number(space: Space, given: Mapping[str, Any], what: str) -> int:
    try:
        return space.number(given, what)
    except ModelError as error:
        raise AgentError(str(error)) from None
