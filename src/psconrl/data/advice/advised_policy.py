"""A policy to be used: actions by the values of the columns of a log, and a table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.data.rounds.recorded import Recorded
from psconrl.data.tables.columns import canonical
from psconrl.errors import LogError
from psconrl.model.names import Names
from psconrl.planning.deployable import Deployable
from psconrl.systems.system import System


@dataclass(frozen=True, eq=False)
class AdvisedPolicy(Deployable):
    """A policy with the names of a log. ``act`` takes and gives the values of columns, in the form that it is given.

    With a system, or with several columns of the state, a state is a table of names and values; otherwise it is the
    value of the column, or such a table.
    """

    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names
    system: System | None
    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]

    @classmethod
    def of(
        cls, log: Recorded, system: System | None, policy: Floats, occupancy: Floats, names: Names
    ) -> "AdvisedPolicy":
        """Return a policy (S, A) with the names of a log."""
        return cls(policy, occupancy, names, system, log.state_columns, log.action_columns)

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action in a state; a randomised one is drawn from ``rng``."""
        if self.system is not None and isinstance(state, Mapping):
            return self.system.action_values(super().act(self.system.state_number(state), rng))
        action = super().act(self._label(state), rng)
        return self._values(action) if isinstance(state, Mapping) else _value(action)

    def _label(self, state: Any) -> str:
        """Return the label of a state."""
        columns = self.state_columns
        if isinstance(state, Mapping):
            if set(state) != set(columns):
                raise LogError(f"a state must give {', '.join(columns) or 'its label'}; got {quoted(dict(state))}")
            values = [canonical([state[name]])[0] for name in columns]
            if len(values) == 1:
                return str(values[0])
            return ", ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))
        return str(canonical([state])[0])

    def _values(self, action: str) -> dict[str, Any]:
        """Return the value of every column of an action, given its label."""
        columns = self.action_columns
        if len(columns) == 1:
            return {columns[0]: _value(action)}
        found = re.fullmatch(", ".join(f"{re.escape(name)}=(.*)" for name in columns), action, re.DOTALL)
        return dict(zip(columns, map(_value, found.groups()), strict=True)) if found else {"action": action}


def _value(label: str) -> Any:
    """Return the number that a label is, or the label."""
    return canonical([label])[0]
