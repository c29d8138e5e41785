"""What a user calls the states, actions and costs of a model: all that a plan needs of it to be read and deployed."""

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import PolicyError, unknown_name
from psconrl.model.units import Units

LEAST_SHARE = 1e-9  # probability below which an action does not show


@dataclass(frozen=True)
class Names:
    """Names of states and actions, or None where they only have numbers; names and units of the costs."""

    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    costs: tuple[str, ...]
    maximise: bool
    units: Units
    at_least: frozenset[str] = frozenset()  # costs that are the negative of what is kept at or above a limit

    def state(self, number: int) -> str:
        """The name of a state, or its number."""
        return self.states[number] if self.states else str(number)

    def action(self, number: int) -> str:
        """The name of an action, or its number."""
        return self.actions[number] if self.actions else str(number)

    @property
    def sense(self) -> str:
        """What is done with the objective."""
        return "maximise" if self.maximise else "minimise"

    @cached_property
    def signs(self) -> Floats:
        """(m+1,) of what every cost is shown as: -1 for a reward, and for what is kept at or above a limit."""
        return np.array([-1.0 if self.is_negated(i) else 1.0 for i in range(len(self.costs))])

    def is_negated(self, i: int) -> bool:
        """Is a cost the negative of what it is called?"""
        return self.maximise if i == 0 else self.costs[i] in self.at_least

    def relation(self, i: int) -> str:
        """How a limited cost is kept: "<=", or ">=" as it is shown."""
        return ">=" if self.is_negated(i) else "<="

    def shares(self, row: Floats) -> str:
        """What is played in a state, the likeliest first, from the probabilities (A,) there."""
        played = [int(a) for a in np.argsort(-row, kind="stable") if row[a] > LEAST_SHARE]
        if len(played) == 1:
            return self.action(played[0])
        return ", ".join(f"{self.action(a)} {100 * row[a]:.4g}%" for a in played)

    def answer(self, action: int, state: Any) -> Any:
        """An action as the user who asks about a state calls it: by name, by label or by number.

        A label that is a tuple has its text as name. Asked by such a label, the answer is one too, as far as the name
        of the action is the text of a tuple.
        """
        if isinstance(state, str):
            return self.action(action)
        return _label(self.actions[action]) if isinstance(state, tuple) and self.actions else action

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: s for s, name in enumerate(self.states or ())}

    def state_number(self, state: Any, n_states: int) -> int:
        """The number of a state given by name or number, or by the tuple that the name is the text of."""
        if isinstance(state, str | tuple) and str(state) in self._numbers:
            return self._numbers[str(state)]
        if isinstance(state, int | np.integer) and not isinstance(state, bool) and 0 <= state < n_states:
            return int(state)
        if isinstance(state, str | tuple) and self.states:
            raise PolicyError(unknown_name("state", state, self.states))
        or_name = " or a name" if self.states else ""
        raise PolicyError(f"a state must be a number from 0 to {n_states - 1}{or_name}; got {state!r}")


def _label(name: str) -> Any:
    """The tuple that a name is the text of, else the name.

    >>> _label("('go', 1)"), _label("go"), _label("(go)")
    (('go', 1), 'go', '(go)')
    """
    try:
        label = ast.literal_eval(name) if name.startswith("(") else name
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        return name
    return label if isinstance(label, tuple) and str(label) == name else name
