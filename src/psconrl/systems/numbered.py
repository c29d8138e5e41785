"""The numbers of states and actions in the model of a system, and the values of their variables."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.dynamics import Dynamics
from psconrl.systems.functions import shown_values
from psconrl.systems.variables import place_among

Choices = list[tuple[float, Any]]  # probabilities, and actions as tables of values


class Numbered:
    """What a system says of its states and actions."""

    dynamics: Dynamics

    @property
    def state_names(self) -> list[str]:
        """Names of the reachable states, by default such as "shelf=4, coming=0"."""
        return self.dynamics.state_names

    @property
    def action_names(self) -> list[str]:
        """Names of the actions, by default such as "order=2"."""
        return self.dynamics.action_names

    @property
    def state_table(self) -> Mapping[str, Any]:
        """The values (S,) of every variable in the reachable states."""
        return self.dynamics.states.values(self.dynamics.reachable.states)

    @property
    def action_table(self) -> Mapping[str, Any]:
        """The values (A,) of every variable of the actions."""
        return self.dynamics.actions.values(np.arange(self.dynamics.actions.size))

    def state_number(self, state: Mapping[str, Any]) -> int:
        """Return the number of a state in the model, given the values of its variables."""
        place = place_among(self.dynamics.reachable.states, self.dynamics.states.number(state, "a state"))
        if place is None:
            raise ModelError(f"the state {shown_values(state)} is never reached from the start")
        return place

    def state_values(self, number: int) -> dict[str, Any]:
        """Return the values of the variables in a state, given its number in the model.

        >>> from psconrl.systems import System
        >>> shop = System(state={"shelf": range(3)}, action={"order": 2}, step={"shelf": "min(shelf + order, 2)"},
        ...     costs={}, minimise="shelf", start={"shelf": 1})
        >>> shop.state_values(0), shop.state_number({"shelf": 1})
        ({'shelf': 1}, 0)
        """
        reached = self.dynamics.reachable.states
        return self.dynamics.states.label(int(reached[_checked(number, reached.size, "a state")]))

    def action_number(self, action: Mapping[str, Any]) -> int:
        """Return the number of an action, given the values of its variables."""
        return self.dynamics.actions.number(action, "an action")

    def action_values(self, number: int) -> dict[str, Any]:
        """Return the values of the variables of an action, given its number."""
        return self.dynamics.actions.label(_checked(number, self.dynamics.actions.size, "an action"))


def choices(label: Callable[[int], Any], row: Floats) -> Choices:
    """Return what is done with which probability, the likeliest first, given the probabilities (A,) of all actions.

    ``label``: gives an action by its number.

    >>> from psconrl.systems.variables import Space
    >>> choices(Space({"order": range(3)}, "actions").label, np.array([0.25, 0.0, 0.75]))
    [(0.75, {'order': 2}), (0.25, {'order': 0})]
    """
    likeliest = np.argsort(-row, kind="stable")
    return [(float(row[a]), label(int(a))) for a in likeliest if row[a] > 0.0]


def _checked(number: Any, size: int, what: str) -> int:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not 0 <= number < size:
        raise ModelError(f"the number of {what} must be a whole number from 0 to {size - 1}; got {quoted(number)}")
    return int(number)
