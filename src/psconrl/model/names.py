"""Names of the states, actions and costs of a model: all that is needed to read and deploy a plan."""

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import PolicyError, unknown_name
from psconrl.model.units import Units

SHOWN_SHARE = 1e-9  # actions of smaller probability are not shown


@dataclass(frozen=True)
class Names:
    """Names of states and actions, or None if they only have numbers; names and units of the costs."""

    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    costs: tuple[str, ...]
    maximise: bool
    units: Units
    at_least: frozenset[str] = frozenset()  # costs that are negated quantities, kept at or above a threshold

    def state(self, number: int) -> str:
        """Return the name of a state, or its number."""
        return self.states[number] if self.states else str(number)

    def action(self, number: int) -> str:
        """Return the name of an action, or its number."""
        return self.actions[number] if self.actions else str(number)

    @property
    def sense(self) -> str:
        """Direction in which the objective is optimised."""
        return "maximise" if self.maximise else "minimise"

    @cached_property
    def signs(self) -> Floats:
        """Signs (m+1,) with which costs are shown: -1 for a reward, and for a quantity kept at or above a threshold."""
        return np.array([-1.0 if self.is_negated(i) else 1.0 for i in range(len(self.costs))])

    def is_negated(self, i: int) -> bool:
        """True if a cost is the negative of the quantity it is named after."""
        return self.maximise if i == 0 else self.costs[i] in self.at_least

    def relation(self, i: int) -> str:
        """Return the relation of a constraint as shown to users: "<=" or ">="."""
        return ">=" if self.is_negated(i) else "<="

    def shares(self, row: Floats) -> str:
        """Describe the actions played in a state, likeliest first, given their probabilities (A,)."""
        played = [int(a) for a in np.argsort(-row, kind="stable") if row[a] > SHOWN_SHARE]
        if len(played) == 1:
            return self.action(played[0])
        return ", ".join(f"{self.action(a)} {100 * row[a]:.4g}%" for a in played)

    def answer(self, action: int, state: Any) -> Any:
        """Return an action in the form in which the caller gave the state: by name, by label or by number.

        A label that is a tuple has its text as name. If the state is given by such a label, the action is returned as a
        tuple, too, provided that its name is the text of a tuple.
        """
        if isinstance(state, str):
            return self.action(action)
        return _label(self.actions[action]) if isinstance(state, tuple) and self.actions else action

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: s for s, name in enumerate(self.states or ())}

    def state_number(self, state: Any, n_states: int) -> int:
        """Return the number of a state given by name, by number, or by the tuple whose text is its name."""
        if isinstance(state, str | tuple) and str(state) in self._numbers:
            return self._numbers[str(state)]
        if isinstance(state, int | np.integer) and not isinstance(state, bool) and 0 <= state < n_states:
            return int(state)
        if isinstance(state, str | tuple) and self.states:
            raise PolicyError(unknown_name("state", state, self.states))
        or_name = " or a name" if self.states else ""
        raise PolicyError(f"a state must be a number from 0 to {n_states - 1}{or_name}; got {quoted(state)}")


def _label(name: str) -> Any:
    """Return the tuple whose text is the given name, or the name itself if there is none.

    >>> _label("('go', 1)"), _label("go"), _label("(go)")
    (('go', 1), 'go', '(go)')
    """
    try:
        label = ast.literal_eval(name) if name.startswith("(") else name
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        return name
    return label if isinstance(label, tuple) and str(label) == name else name
