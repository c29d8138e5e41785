"""A policy in one cell of a log: its actions in the most visited states, as JSON.

``[[state, share of the rounds so far, {action: probability}], ...]``. Its size is bounded for any number of states.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError

CELL_ACTIONS = 4  # per state; rarer ones are left out
RARE = 0.0005  # smaller probabilities are left out
LONGEST_CELL_NAME = 60


class Named(Protocol):
    """Names by number, such as ``psconrl.Labels``."""

    @property
    def room(self) -> int:
        """Largest number of names."""

    def label(self, number: int) -> Any:
        """Return the name with a number."""


Names = Sequence[object] | Named | None  # with None, numbers are written


class StatePolicy(NamedTuple):
    """Actions of a policy in one state."""

    state: str
    share: float  # of all rounds so far that were spent in it
    actions: dict[str, float]


def policy_cell(policy: Floats, visits: Ints, states: Names, actions: Names, most: int) -> str:
    """Return the cell for a policy (S, A) or (H, S, A) and the rounds in every state; empty if ``most`` is 0.

    >>> policy_cell(np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([1, 3]), ["idle", "busy"], None, most=10)
    '[["busy",0.75,{"1":0.75,"0":0.25}],["idle",0.25,{"0":1.0}]]'
    """
    state_name = _namer(states, policy.shape[-2], "states")
    action_name = _namer(actions, policy.shape[-1], "actions")
    order = np.argsort(-visits, kind="stable")[:most]
    cell = []
    for s in order[visits[order] > 0].tolist():
        distribution = policy[..., s, :].reshape(-1, policy.shape[-1]).mean(axis=0)
        often = np.argsort(-distribution, kind="stable")[:CELL_ACTIONS]
        taken = {action_name(a): round(float(distribution[a]), 3) for a in often.tolist() if distribution[a] >= RARE}
        cell.append([state_name(s), round(float(visits[s] / visits.sum()), 4), taken])
    return json.dumps(cell, separators=(",", ":")) if cell else ""


def read_policy_cell(cell: str) -> list[StatePolicy]:
    """Parse a cell written by ``policy_cell``; return an empty list if it is something else.

    >>> read_policy_cell('[["idle",0.25,{"0":1.0}]]')[0].actions
    {'0': 1.0}
    """
    try:
        return [
            StatePolicy(str(state), float(share), {str(a): float(p) for a, p in actions.items()})
            for state, share, actions in json.loads(cell)
        ]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []


def _namer(names: Names, size: int, what: str) -> Callable[[int], str]:
    if names is None:
        return str
    room, known = (len(names), names.__getitem__) if isinstance(names, Sequence) else (names.room, names.label)
    if isinstance(names, str) or room != size:
        raise ConfigError(f"{what} must be {size} names, as a list or psconrl.Labels; got {quoted(names)}"[:300])

    def name(number: int) -> str:
        full = str(known(number))
        return full if len(full) <= LONGEST_CELL_NAME else f"{full[: LONGEST_CELL_NAME - 10]}… #{number}"

    return name
