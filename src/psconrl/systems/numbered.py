"""The numbers of states and actions in the model of a system, and the values of their variables."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.functions import shown_values
from psconrl.systems.reachable_states import Explored
from psconrl.systems.variables import Space

Choices = list[tuple[float, dict[str, Any]]]  # probabilities, and actions as tables of values


class Numbered(ABC):
    """Base class of systems: goes between values of variables and numbers."""

    states: Space
    actions: Space

    @property
    @abstractmethod
    def _explored(self) -> Explored:
        """The states that can be reached."""

    @cached_property
    def state_names(self) -> list[str]:
        """Names of the reachable states, by default such as "shelf=4, coming=0"."""
        return self.states.labels(self._explored.states)

    @cached_property
    def action_names(self) -> list[str]:
        """Names of the actions, by default such as "order=2"."""
        return self.actions.labels(np.arange(self.actions.size))

    @property
    def state_table(self) -> Mapping[str, Any]:
        """The values (S,) of every variable in the reachable states."""
        return self.states.values(self._explored.states)

    def state_number(self, state: Mapping[str, Any]) -> int:
        """Return the number of a state in the model, given the values of its variables."""
        number = self.states.number(state, "a state")
        place = int(np.searchsorted(self._explored.states, number))
        if place == self._explored.states.size or self._explored.states[place] != number:
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
        reached = self._explored.states
        return self.states.label(int(reached[_checked(number, reached.size, "a state")]))

    def action_number(self, action: Mapping[str, Any]) -> int:
        """Return the number of an action, given the values of its variables."""
        return self.actions.number(action, "an action")

    def action_values(self, number: int) -> dict[str, Any]:
        """Return the values of the variables of an action, given its number."""
        return self.actions.label(_checked(number, self.actions.size, "an action"))


def choices(actions: Space, row: Floats) -> Choices:
    """Return what is done with which probability, the likeliest first, given the probabilities (A,) of all actions.

    >>> choices(Space({"order": range(3)}, "actions"), np.array([0.25, 0.0, 0.75]))
    [(0.75, {'order': 2}), (0.25, {'order': 0})]
    """
    likeliest = np.argsort(-row, kind="stable")
    return [(float(row[a]), actions.label(int(a))) for a in likeliest if row[a] > 0.0]


def _checked(number: Any, size: int, what: str) -> int:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not 0 <= number < size:
        raise ModelError(f"the number of {what} must be a whole number from 0 to {size - 1}; got {quoted(number)}")
    return int(number)
