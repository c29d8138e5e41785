"""Policies for deployment: look up actions by name or number, and export the policy as a table."""

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import csv_cell, quoted
from psconrl.base.files import as_path, write_atomically
from psconrl.errors import PolicyError
from psconrl.model.names import Names

COLUMNS = ("state", "action", "probability", "long_run_share")


class Deployable:
    """Base class of policies with long-run frequencies and names of states and actions."""

    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action in a state: a name if the state is given by name, a number if by number.

        If the name of a state was a tuple, you may pass the tuple, as with ``LabelledAgent``. An action that was named
        by a tuple is returned as that tuple.

        Randomised actions are drawn from ``rng``; the same generator state gives the same actions.

        >>> import psconrl
        >>> plan = psconrl.plan(psconrl.load("queue"))
        >>> plan.act("0 waiting"), plan.act(0)
        ('speed 0 open', 0)
        """
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise PolicyError(f"rng must be a NumPy generator, as numpy.random.default_rng(0); got {quoted(rng)}")
        row = self._row(state)
        action = int(row.argmax())
        if row[action] < 1.0:
            rng = np.random.default_rng() if rng is None else rng
            reached = np.cumsum(row)
            action = int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))
        return self.names.answer(action, state)

    def probabilities(self, state: Any) -> Floats:
        """Return the probabilities (A,) of the actions in a state, given by name or number.

        >>> import psconrl
        >>> psconrl.plan(psconrl.load("queue")).probabilities("0 waiting").tolist()
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        return self._row(state).copy()

    def _row(self, state: Any) -> Floats:
        row: Floats = self.policy[self.names.state_number(state, len(self.policy))]
        return row

    def rows(self) -> Iterator[tuple[str | float, ...]]:
        """Yield state, action, probability of the action there and long-run share of both, in state order."""
        for s, a in np.argwhere(self.policy > 0):
            yield self.names.state(s), self.names.action(a), float(self.policy[s, a]), float(self.occupancy[s, a])

    @property
    def columns_of_table(self) -> tuple[str, ...]:
        """The header of the table."""
        return COLUMNS

    @property
    def shown_policy(self) -> Floats:
        """Action probabilities in every state, (S, A), as shown to the user."""
        return self.policy

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the policy as a table: state, action, probability, long_run_share."""
        write_table(path, self.columns_of_table, self.rows())


@dataclass(frozen=True, eq=False)
class DrawnPolicy(Deployable):
    """The policy of one run, drawn from a plan."""

    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names


def write_table(path: str | os.PathLike[str], header: tuple[str, ...], rows: Iterable[tuple[str | float, ...]]) -> None:
    """Write a CSV file atomically."""

    def write(f: Any) -> None:
        text = io.TextIOWrapper(f, "utf-8", newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(header)
        table.writerows(tuple(csv_cell(cell) for cell in row) for row in rows)
        text.flush()
        text.detach()

    write_atomically(as_path(path, PolicyError), write, PolicyError)
