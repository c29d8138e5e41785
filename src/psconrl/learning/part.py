"""The parts of agents, each with a name and options, such as ``Doubling()`` or ``Dirichlet(prior=0.1)``.

A kind of part (belief, schedule, fallback, radius, ledger, planning horizon, commitment, doubt) is a direct subclass
of ``Part``; an agent has a slot of that name for it. The parts of a kind register themselves by name, so that a spec or
a file can choose among them. A file holds names and numbers, never code: your own part is known once its module is
imported.

>>> from psconrl.learning.parts.schedules import Schedule
>>> Schedule.from_dict("doubling")
Doubling()
"""

import copy
import inspect
from abc import ABC
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse

from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import read_fields
from psconrl.errors import AgentError, ConfigError, unknown_name


class Part(ABC):
    """Base class of all kinds of parts. The arguments of ``__init__`` are kept as attributes of the same names."""

    kinds: ClassVar[dict[str, type["Part"]]] = {}
    kind: ClassVar[str]  # the name of the slot
    example: ClassVar[str]  # for errors: "a schedule such as Doubling()"
    known: ClassVar[dict[str, type["Part"]]]  # the parts of this kind
    name: ClassVar[str]
    stands_alone: ClassVar[bool] = True  # whether words and numbers can describe it, as in a spec
    may_be_missing: ClassVar[bool] = False  # whether None leaves the slot empty, or means the default part

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if Part in cls.__bases__:
            cls.known = {}
            Part.kinds[cls.kind] = cls
            return
        if not isinstance(cls.__dict__.get("name"), str):
            raise AgentError(f"{cls.__name__} needs a name of its own, such as name = {quoted(cls.__name__.lower())}")
        argument_names(cls)
        other = cls.known.get(cls.name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise AgentError(f"{cls.__name__}: {other.__name__} is a {cls.kind} called {quoted(cls.name)} already")
        cls.known[cls.name] = cls

    def made_for(self, n_states: int, n_actions: int, n_constraints: int) -> Self:
        """Return a copy for an agent of these sizes, so that two agents never share the state of a part."""
        own = copy.deepcopy(self)
        own._prepare(n_states, n_actions, n_constraints)
        return own

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:  # noqa: B027
        """Check the options against the sizes, and reset the state."""

    def state(self) -> dict[str, Any]:
        """Return the state of the part, for saving: numbers and arrays."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        read_fields(state, {})

    def to_dict(self) -> dict[str, Any]:
        """Return name and options as plain data."""
        return {"name": self.name} | arguments(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Build a part of this kind from its name, or from a table of name and options."""
        table = {"name": data} if isinstance(data, str) else data
        if not isinstance(table, dict) or "name" not in table:
            raise ConfigError(
                f"{cls.kind} must be a name or a table with one ({', '.join(cls.known)}); got {quoted(data)}"
            )
        options = {key: value for key, value in table.items() if key != "name"}
        if not isinstance(table["name"], str) or table["name"] not in cls.known:
            raise ConfigError(unknown_name(cls.kind, table["name"], cls.known))
        part: Any = cls.known[table["name"]]
        for option in options:
            if option not in argument_names(part):
                raise ConfigError(
                    f"{cls.kind} {quoted(part.name)}: {unknown_name('option', option, argument_names(part))}"
                )
        for argument in inspect.signature(part).parameters.values():
            if argument.default is argument.empty and argument.name not in options:
                raise ConfigError(
                    f"{cls.kind} {quoted(part.name)} needs {argument.name}; make it in Python, {part.__name__}(...)"
                )
        made: Self = part(**options)
        return made

    @classmethod
    def checked(cls, given: Any) -> Self:
        """Return the given part, or raise an error with an example of one."""
        if not isinstance(given, cls):
            hint = ""
            if isinstance(given, str) and given in cls.known:
                hint = f"; write {cls.known[given].__name__}(...), or make the agent by psconrl.agents.make"
            raise AgentError(f"{cls.kind} must be one such as {cls.example}; got {quoted(given)}{hint}")
        return given

    def __repr__(self) -> str:
        # Options that are 0.0 have no effect and are not shown.
        shown = {
            key: value for key, value in arguments(self).items() if not (isinstance(value, float) and value == 0.0)
        }
        return f"{type(self).__name__}({', '.join(f'{key}={shown_value(value)}' for key, value in shown.items())})"


def shown_value(value: Any) -> str:
    """Return the text of an option's value; a matrix is shown by its shape."""
    if issparse(value):
        return f"sparse{value.shape}"
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)


@cache
def argument_names(cls: Any) -> tuple[str, ...]:
    """Return the names of a constructor's arguments, except the seed."""
    constructor = cls.__init__
    if constructor is object.__init__:
        return ()
    names = []
    for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise AgentError(f"{cls.__name__}.__init__ must name its arguments, or override config(); it has *{name}")
        if name != "seed":
            names.append(name)
    return tuple(names)


def arguments(thing: Any) -> dict[str, Any]:
    """Return the constructor arguments of an agent or a part as plain data, from the attributes of the same names."""
    values = {}
    cls: Any = type(thing)
    for name in argument_names(cls):
        if not hasattr(thing, name):
            raise AgentError(f"{type(thing).__name__} takes {quoted(name)} and must keep it as self.{name}")
        value = getattr(thing, name)
        values[name] = value.to_dict() if isinstance(value, Part) else value
    return values


def same_data(one: Any, two: Any) -> bool:
    """True if two pieces of plain data are equal: tables, arrays, sparse matrices, numbers."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same_data(one[key], two[key]) for key in one)
    if issparse(one) and issparse(two):
        return bool(one.shape == two.shape and (one != two).nnz == 0)
    return one is two or (one is not None and two is not None and np.array_equal(one, two))
