"""The words of a system's owner, for live use: variables and their values in place of numbers of states and actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import (
    brief,
    flags,
    integer,
    integers,
    listed,
    listing,
    maybe,
    need_that,
    read_fields,
    real,
    table_of,
    text,
)
from psconrl.errors import AgentError, ModelError, unknown_name
from psconrl.systems.event_source import EVENT
from psconrl.systems.functions import Rule, rule_numbers, shown_values
from psconrl.systems.noise_base import variables_of
from psconrl.systems.randomness import RoundNoise
from psconrl.systems.sources import NEXT
from psconrl.systems.structure import Structure
from psconrl.systems.variables import Space, place_among


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
    stated: Mapping[str, Any]  # costs of the system as it states them; None for a function that was not saved

    @cached_property
    def state_labels(self) -> "Labelled":
        """Names of the states, such as "shelf=4, coming=0"."""
        return Labelled(self.states, self.reachable)

    @cached_property
    def action_labels(self) -> "Labelled":
        """Names of the actions."""
        return Labelled(self.actions, np.arange(self.actions.size))

    @property
    def at_least(self) -> tuple[str, ...]:
        """Limits that are lower ones."""
        return tuple(name for name, sign in zip(self.costs[1:], self.signs[1:], strict=True) if sign < 0)

    def state(self, given: Any, what: str = "state") -> int:
        """Return the number of a state, given by the values of its variables, or by its number."""
        if not isinstance(given, Mapping):
            return given
        place = place_among(self.reachable, _number(self.states, given, what))
        if place is None:
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

    def agreeing(self, noise: Any) -> Bools:
        """Return which joint outcomes (W,) agree with what was seen of the noise; None stands for "not seen"."""
        if not isinstance(noise, Mapping):
            raise AgentError(f"noise must be a table of values by name, such as {{'demand': 3}}; got {quoted(noise)}")
        agree = np.ones(len(next(iter(self.outcomes.values()), (0,))), dtype=bool)
        for name, value in noise.items():
            if name not in self.outcomes:
                raise AgentError(unknown_name("noise", name, self.outcomes))
            if value is None:
                continue
            values = self.outcomes[name]
            if not _is_like(value, values):
                raise AgentError(f"noise: {quoted(name)} must be one of its values; got {quoted(value)}")
            same = values == (min(value, self.most[name]) if name in self.most else value)
            if not same.any():
                some = ", ".join(str(x) for x in np.unique(values)[:6])
                raise AgentError(
                    f"noise: {quoted(name)} has the values {some}{', ...' * (np.unique(values).size > 6)}; got "
                    f"{quoted(value)}"
                )
            agree &= same
        return agree

    def reported(self, noise: Any) -> int:
        """Return which noises were seen, as bits in the order of ``outcomes``."""
        return sum(1 << k for k, name in enumerate(self.outcomes) if noise is not None and noise.get(name) is not None)

    @property
    def cost_names(self) -> tuple[str, ...]:
        """All names of costs: of the objective and the limits, and as the system states them."""
        return tuple(dict.fromkeys((*self.costs, *self.stated)))

    def named(self, costs: Mapping[str, float]) -> int:
        """Return which costs were named, as bits in the order of ``cost_names``."""
        return sum(1 << k for k, name in enumerate(self.cost_names) if name in costs)

    def checked_costs(self, given: Mapping[str, Any]) -> dict[str, float]:
        """Return costs that were given by name: of the objective, of limits, or as the system states them."""
        for name, value in given.items():
            if name not in self.costs and name not in self.stated:
                raise AgentError(f"costs: {unknown_name('cost', name, self.cost_names)}")
            if name not in self.costs and self.stated[name] is None:
                raise AgentError(
                    f"costs: {quoted(name)} is a Python function, which was not saved with the agent; state it as an "
                    f"expression, or give {', '.join(self.costs)}"
                )
            real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not real or not abs(value) <= LARGEST_COST:
                raise AgentError(f"costs must be finite numbers; got {quoted(dict(given))}")
        return {name: float(value) for name, value in given.items()}

    def planned_costs(self, given: Mapping[str, float], others: Floats) -> Floats:
        """Return the costs (m+1,), some given by name; what is maximised, or at least something, is negated."""
        named = zip(self.costs, self.signs, others.tolist(), strict=True)
        return np.array([sign * given[name] if name in given else other for name, sign, other in named])

    def stated_cost(self, name: str, state: int, action: int, following: Ints) -> Floats:
        """Return a cost (W,) of the system, by the name in which it was stated, of all outcomes in a pair.

        ``following``: the next states (W,).
        """
        W = following.size
        columns = {key: np.repeat(v, W) for key, v in self.states.values(self.reachable[[state]]).items()}
        columns |= {key: np.repeat(v, W) for key, v in self.actions.values(np.array([action])).items()}
        columns |= {NEXT + key: v for key, v in self.states.values(self.reachable[following]).items()}
        columns |= dict(self.outcomes)
        rule = Rule(self.stated[name], f"the cost {quoted(name)}", frozenset(columns))
        return np.broadcast_to(rule_numbers(rule(columns, W), rule.what), (W,))

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
            "stated": {name: None if callable(rule) else rule for name, rule in self.stated.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Vocabulary":
        """Return what ``to_dict`` described."""
        spaces = {
            what: lambda given, what=what: Space(table_of(listing())(given), what) for what in ("states", "actions")
        }
        found = read_fields(data, spaces)
        size, A = found["states"].size, found["actions"].size
        found |= read_fields(
            data,
            {
                "reachable": integers((None,), 0, size - 1),
                "available": flags((None, A)),
                "outcomes": table_of(listing()),
                "most": table_of(integer()),
                "costs": listed(text()),
                "signs": listed(real(-1.0, 1.0)),
                "stated": table_of(maybe(stated_rule)),
            },
        )
        found |= {"costs": tuple(found["costs"]), "signs": tuple(found["signs"])}
        return cls(**found)

    def need_fits(self, structure: Structure) -> None:
        """Raise an error unless words from a file are those of a structure."""
        sizes = (structure.n_states, structure.n_actions)
        need_that(self.available.shape == sizes, "available must be of all states and actions")
        need_that(self.available.any(axis=1).all(), "available must have an action in every state")
        need_that(self.reachable.shape == sizes[:1], "reachable must have all states")
        need_that((np.diff(self.reachable) > 0).all(), "reachable must increase")
        outcomes = {name: values.size for name, values in self.outcomes.items()}
        W, randomness = structure.successors.shape[1], structure.randomness
        variables = [EVENT]
        if isinstance(randomness, RoundNoise):
            variables = [variable for name in randomness.noises for variable in variables_of(name)]
        need_that(outcomes == dict.fromkeys(variables, W), f"outcomes must have {W:,} values of {', '.join(variables)}")
        need_that(self.most.keys() <= outcomes.keys(), "most must be of noises")
        number = len(structure.fixed_costs)
        need_that(len({*self.costs}) == len(self.costs) == number, f"costs must be {number} names")
        need_that(len(self.signs) == number and {*self.signs} <= {-1.0, 1.0}, f"signs must be {number} times 1 or -1")
        known = frozenset(self._names_of_outcomes)
        for name, rule in self.stated.items():
            if rule is not None:
                Rule(rule, f"the cost {name!r}", known)

    @property
    def _names_of_outcomes(self) -> tuple[str, ...]:
        """The names of variables that a stated cost may use."""
        following = (NEXT + name for name in self.states.names)
        return (*self.states.names, *self.actions.names, *following, *self.outcomes)


def stated_rule(given: Any) -> str | float:
    """Read an expression, or a number."""
    need_that(isinstance(given, str | int | float), f"must be an expression or a number; is {brief(given)}")
    return given


@dataclass(frozen=True, eq=False)
class Labelled:
    """The names of some combinations of values, each made when it is asked for."""

    space: Space
    numbers: Ints

    @property
    def room(self) -> int:
        """How many there are."""
        return int(self.numbers.size)

    def label(self, number: int) -> str:
        """Return the name with a number."""
        return self.space.labels(self.numbers[[number]])[0]


def _number(space: Space, given: Mapping[str, Any], what: str) -> int:
    try:
        return space.number(given, what)
    except ModelError as error:
        raise AgentError(str(error)) from None


def _is_like(value: Any, values: NDArray[Any]) -> bool:
    """Whether a value is a text if others are, and else one number."""
    if values.dtype.kind == "U":
        return isinstance(value, str)
    return isinstance(value, int | float | np.bool_ | np.integer | np.floating)
