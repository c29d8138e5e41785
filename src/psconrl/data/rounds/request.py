"""Which columns of a table a log is made of, as the caller or a system names them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import LogError, unknown_name
from psconrl.systems.sources import NEXT
from psconrl.systems.system import System


@dataclass(frozen=True)
class Request:
    """Names of columns. ``costs``: of every cost, by its name, the column; ``declared``: given values by column."""

    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...]
    costs: Mapping[str, str]
    run: str | None
    time: str | None
    step: float | None  # the usual time between rows
    declared_states: Mapping[str, Any] | None
    declared_actions: Mapping[str, Any] | None

    @classmethod
    def of(
        cls, columns: Sequence[str], state: Any, action: Any, costs: Any, run: Any, time: Any, step: Any,
        next_state: Any, system: System | None,
    ) -> "Request":  # fmt: skip
        """Return what is asked for; raise an error if a column is not there."""
        states = system.states.names if state is None and system is not None else names_of("state", state)
        actions = system.actions.names if action is None and system is not None else names_of("action", action)
        following: tuple[str, ...] = ()
        if next_state is not None:
            following = names_of("next_state", next_state)
        elif system is not None and state is None and all(NEXT + name in columns for name in states):
            following = tuple(NEXT + name for name in states)
        if following and len(following) != len(states):
            raise LogError(f"next_state needs {len(states)} columns, as the state has; got {', '.join(following)}")
        found = cls(
            states,
            actions,
            following,
            _costs(columns, costs, system),
            _one("run", run),
            _one("time", time),
            _step(step, time),
            state if isinstance(state, Mapping) else None,
            action if isinstance(action, Mapping) else None,
        )
        for name in found.needed:
            if name not in columns:
                raise LogError(unknown_name("column", name, columns))
        if both := [name for name in states if name in actions]:
            raise LogError(f"the column {quoted(both[0])} cannot be a part of the state and of the action")
        if found.time is not None and found.time in (*states, *actions, *following, found.run):
            raise LogError(f"the column {quoted(found.time)} cannot be the time and a label, too; add a column for one")
        return found

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns, each once."""
        single = (name for name in (self.run, self.time) if name is not None)
        return tuple(dict.fromkeys((*self.state, *self.action, *self.next_state, *self.costs.values(), *single)))


def names_of(what: str, given: Any) -> tuple[str, ...]:
    """Return the names of one or several columns."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise LogError(
            f"{what} must be the name of a column, a list of names, or a table of names and values; got {quoted(given)}"
        )
    return names


def _one(what: str, given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise LogError(f"{what} must be the name of a column; got {quoted(given)}")
    return given


def _step(given: Any, time: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0.0:
        raise LogError(f"step must be a positive number, in seconds if times are dates; got {quoted(given)}")
    if time is None:
        raise LogError("step is the usual time from row to row; name the column of times, too, time=...")
    return float(given)


def _costs(columns: Sequence[str], given: Any, system: System | None) -> Mapping[str, str]:
    """Return the column of every cost, by name: of those given, or of those of the system that are in the table."""
    if given is not None:
        if isinstance(given, Mapping):
            return {str(name): str(column) for name, column in given.items()}
        return {name: name for name in names_of("costs", given)}
    if system is None:
        return {}
    known = (*system.cost_names, *system.shown_names)
    taken = {*system.states.names, *system.actions.names, *system.source.names}
    return {name: name for name in dict.fromkeys(known) if name in columns and name not in taken}
