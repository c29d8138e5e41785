"""Events as the randomness of a system in continuous time: at most one in a round, which is a tick of the clock."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import ModelError
from psconrl.model.rates import FASTER
from psconrl.systems.events import Event, EventClock
from psconrl.systems.exploration import JointOutcomes, next_values
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.priors import Gamma, ParameterPrior
from psconrl.systems.sources import (
    Columns,
    RandomSource,
    distinct_rows,
    named,
    parameter_keys,
    read_step,
    values_of_rule,
)
from psconrl.systems.variables import Space

EVENT, NONE = "event", "none"  # the variable that says which event happened, and its value if none did


class EventSource(RandomSource):
    """Events in continuous time, at most one in a round, which is a tick of the clock."""

    names: tuple[str, ...] = (EVENT,)

    def __init__(self, states: Space, actions: Space, events: Mapping[str, Event], clock: float | None) -> None:
        if not events or not all(isinstance(e, Event) for e in events.values()) or NONE in events:
            raise ModelError("events must be a table of names and Event(rate, ...), and none may be called 'none'")
        self.states, self.actions, self.events, self.given_clock = states, actions, events, clock
        if clock is not None and not (isinstance(clock, int | float) and 0 < clock < np.inf):
            raise ModelError(f"clock must be a positive rate; got {clock!r}")
        known = frozenset((*states.names, *actions.names))
        self._steps = {n: read_step(e.step, states, known, f"step of {n!r}") for n, e in events.items()}
        self._factors = {n: Rule(e.times, f"times of {n!r}", known) for n, e in events.items()}
        self._when = {n: Rule(e.when, f"when of {n!r}", known) for n, e in events.items()}
        self._costs = {
            n: {cost: Rule(given, f"{cost!r} of {n!r}", known) for cost, given in e.costs.items()}
            for n, e in events.items()
        }
        self.cost_names = frozenset(cost for e in events.values() for cost in e.costs)
        for n, e in events.items():
            if not isinstance(e.rate, Gamma) and not (isinstance(e.rate, int | float) and 0 <= e.rate < np.inf):
                raise ModelError(f"the rate of {n!r} must be a number from 0 on, or a Gamma; got {e.rate!r}")

    def with_known(self, known: Mapping[str, Any]) -> "EventSource":
        """Return the source with other rates."""
        events = dict(self.events)
        for name, given in known.items():
            old = named("event", name, events)
            events[name] = given if isinstance(given, Event) else Event(given, old.step, old.times, old.when, old.costs)
        return EventSource(self.states, self.actions, events, self.given_clock)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the events."""
        return tuple(self.events)

    def unknown(self) -> dict[str, Gamma]:
        """Return the priors of unknown rates by name of the event."""
        return {name: event.rate for name, event in self.events.items() if isinstance(event.rate, Gamma)}

    def flat_priors(self, names: Iterable[str]) -> dict[str, ParameterPrior]:
        """Return priors of the rates of all events, or of some: exponential, with the rate of the clock as mean."""
        return {
            name: Gamma(1.0, 1.0 / self.clock) for name in names or self.events if named("event", name, self.events)
        }

    def need_used(self, used: frozenset[str], costs: Iterable[str]) -> None:
        """Raise an error if an event has a cost that the system does not know."""
        for name in self.cost_names:
            if name not in costs:
                raise ModelError(f"an event has a cost {name!r}; give it in costs, too, as 0 if it has no rate")

    def rules(self) -> list[Rule]:
        """Return the rules of all steps."""
        return [r for step in self._steps.values() for r in ([step] if isinstance(step, Rule) else step.values())]

    @cached_property
    def outcomes(self) -> JointOutcomes:
        """The events, and none."""
        return JointOutcomes.of({EVENT: np.array([*self.events, NONE])})

    def _factors_at(self, columns: Columns, size: int) -> Floats:
        """Return the factors (size, E) of the rates at some pairs."""
        found = np.empty((size, len(self.events)))
        for k, name in enumerate(self.events):
            when = np.broadcast_to(values_of_rule(self._when[name], columns, size), (size,)) != 0.0
            factor = np.broadcast_to(values_of_rule(self._factors[name], columns, size), (size,))
            found[:, k] = np.where(when, factor, 0.0)
            if not ((found[:, k] >= 0.0) & np.isfinite(found[:, k])).all():
                at = int(np.flatnonzero(~((found[:, k] >= 0.0) & np.isfinite(found[:, k])))[0])
                where = shown_values({key: column[at] for key, column in columns.items()})
                raise ModelError(f"times of {name!r} must be finite and at least 0; at {where} it is {found[at, k]:g}")
        return found

    @cached_property
    def clock(self) -> float:
        """The rate of the clock, whose ticks are the rounds."""
        if self.given_clock is not None:
            return float(self.given_clock)
        if self.unknown():
            raise ModelError("give the rate of a clock, clock=..., which all rates together never exceed")
        everywhere = self.pair_columns(np.arange(self.states.size))
        factors = self._factors_at(everywhere, self.states.size * self.actions.size)
        return FASTER * float((factors @ self._known_rates()).max())

    def _known_rates(self) -> Floats:
        """Return the rates (E,) of the events; nan for those that are unknown."""
        return np.array([np.nan if isinstance(e.rate, Gamma) else float(e.rate) for e in self.events.values()])

    def randomness_at(self, states: Ints) -> tuple[EventClock, Ints]:
        """Return the events in the contexts of some states, and the context of each of their pairs."""
        size = states.size * self.actions.size
        rows, contexts = distinct_rows(list(self._factors_at(self.pair_columns(states), size).T), size)
        names, unknown = list(self.events), self.unknown()
        keys = parameter_keys(unknown)
        priors = {key: unknown[key] for key in keys.values()}
        by_place = {names.index(name): key for name, key in keys.items()}
        return EventClock(rows, self.clock, self._known_rates(), by_place, priors), contexts

    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state, after the event of each point."""
        following = {name: columns[name].copy() for name in self.states.names}
        for name, step in self._steps.items():
            here = np.flatnonzero(columns[EVENT] == name)
            some = {key: column[here] for key, column in columns.items()}
            for variable, values in next_values(step, self.states, some, here.size, f"step of {name!r}").items():
                if following[variable].dtype.kind == "i" and values.dtype.kind == "f":
                    following[variable] = following[variable].astype(np.float64)
                following[variable][here] = values
        return following

    def next_numbers(self, states: Ints) -> tuple[Ints, Bools]:
        """Return the numbers of the next states; steps are evaluated only where their event can happen."""
        columns, size = self.pair_columns(states), states.size * self.actions.size
        factors = self._factors_at(columns, size)
        numbers = np.repeat(states, self.actions.size * self.outcomes.size).reshape(size, -1)
        inside = np.ones(numbers.shape, dtype=bool)
        for k, (name, step) in enumerate(self._steps.items()):
            here = np.flatnonzero(factors[:, k])
            some = {key: column[here] for key, column in columns.items()}
            following = next_values(step, self.states, some, here.size, f"step of {name!r}")
            numbers[here, k], inside[here, k] = self.states.numbers(following)
        return numbers.ravel(), inside.ravel()

    def cost_of_events(self, name: str, states: Ints) -> Floats:
        """Return what a cost adds in rounds with an event, so that averages are per unit of time, (len * A * W,)."""
        of_event = self.clock * self.event_costs(name, states)
        return np.column_stack([of_event, np.zeros(len(of_event))]).ravel()

    def event_costs(self, name: str, states: Ints) -> Floats:
        """Return what a cost adds when each event happens, at all pairs of some states, (len * A, E)."""
        columns, size = self.pair_columns(states), states.size * self.actions.size
        factors = self._factors_at(columns, size)
        found = np.zeros(factors.shape)
        for k, (event, costs) in enumerate(self._costs.items()):
            if name in costs:
                here = np.flatnonzero(factors[:, k])
                some = {key: column[here] for key, column in columns.items()}
                found[here, k] = values_of_rule(costs[name], some, here.size)
                if not np.isfinite(found[:, k]).all():
                    raise ModelError(f"the cost {name!r} of {event!r} must be finite")
        return found
