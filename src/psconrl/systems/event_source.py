"""Events as the randomness of a system in continuous time: at most one in a round, which is a tick of the clock."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model.rates import FASTER
from psconrl.systems.events import Event, EventClock
from psconrl.systems.functions import Rule, as_condition, shown_values
from psconrl.systems.joint_outcomes import JointOutcomes, next_values
from psconrl.systems.noise_graph import Graph
from psconrl.systems.outcome_rows import Columns, Distribution, Factor
from psconrl.systems.priors import Gamma, ParameterPrior
from psconrl.systems.sources import (
    TO,
    RandomSource,
    distinct_rows,
    known_by_name,
    named,
    parameter_keys,
    read_step,
    sharing,
    values_of_rule,
    with_shared,
)
from psconrl.systems.variables import Space

EVENT, NONE = "event", "none"  # the variable that says which event happened, and its value if none did


class EventSource(RandomSource):
    """Events in continuous time, at most one in a round, which is a tick of the clock."""

    names: tuple[str, ...] = (EVENT,)

    def __init__(self, states: Space, actions: Space, events: Mapping[str, Event], clock: float | None) -> None:
        _need_events(events)
        self.states, self.actions, self.events, self.given_clock = states, actions, events, clock
        if clock is not None and not (isinstance(clock, int | float) and 0 < clock <= sys.float_info.max):
            raise ModelError(f"clock must be a positive rate; got {quoted(clock)}")
        known = frozenset((*states.names, *actions.names))
        self._steps = {n: read_step(e.step, states, known, f"step of {quoted(n)}") for n, e in events.items()}
        self._factors = {n: Rule(e.times, f"times of {quoted(n)}", known) for n, e in events.items()}
        self._when = {n: Rule(e.when, f"when of {quoted(n)}", known) for n, e in events.items()}
        self._costs = {
            n: {cost: Rule(given, f"{quoted(cost)} of {quoted(n)}", known) for cost, given in e.costs.items()}
            for n, e in events.items()
        }
        self.cost_names = frozenset(cost for e in events.values() for cost in e.costs)
        for n, e in events.items():
            if not isinstance(e.rate, Gamma) and not (
                isinstance(e.rate, int | float) and 0 <= e.rate <= sys.float_info.max
            ):
                raise ModelError(
                    f"the rate of {quoted(n)} must be a number from 0 on, or a Gamma; got {quoted(e.rate)}"
                )
        parameter_keys(self.unknown())  # an error if the priors of a shared rate differ

    def with_known(self, known: Mapping[str, Any]) -> "EventSource":
        """Return the source with other rates."""
        events = dict(self.events)
        for name, given in known_by_name(known, self.unknown(), (Event, ParameterPrior)).items():
            old = named("event", name, events)
            given = given.item() if isinstance(given, np.ndarray | np.generic) and given.size == 1 else given
            events[name] = given if isinstance(given, Event) else replace(old, rate=given)
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
        unknown = self.unknown()
        wanted = [other for name in names or self.events for other in sharing(name, unknown)]
        flat = {name: Gamma(1.0, 1.0 / self.clock) for name in wanted if named("event", name, self.events)}
        return with_shared(flat, unknown)

    def need_used(self, used: frozenset[str], costs: Iterable[str]) -> None:
        """Raise an error if an event has a cost that the system does not know."""
        for name in self.cost_names:
            if name not in costs:
                raise ModelError(f"an event has a cost {quoted(name)}; give it in costs, too, as 0 if it has no rate")

    def rules(self) -> list[Rule]:
        """Return the rules of all steps."""
        return [r for step in self._steps.values() for r in ([step] if isinstance(step, Rule) else step.values())]

    @cached_property
    def outcomes(self) -> JointOutcomes:
        """The events, and none."""
        return JointOutcomes.of([{EVENT: np.array([*self.events, NONE])}])

    def add_step(self, graph: Graph) -> None:
        """Add the variables of the next state to a graph."""

        def values(columns: Columns, size: int) -> Columns:
            return {TO + name: v for name, v in self.next_values(columns, size).items()}

        names = self.states.names
        graph.add(tuple(TO + name for name in names), frozenset((*names, *self.actions.names, EVENT)), values)

    def factor_of(self) -> dict[str, str]:
        """Return the one factor, which event happened."""
        return {EVENT: EVENT}

    def factors_at(self, pairs: Ints, columns: Columns) -> dict[str, Factor]:
        """Return the distribution of the event. Where rates exceed the clock its probabilities do not add up to 1."""
        rows, contexts = distinct_rows(list(self._factors_at(columns, pairs.size).T), pairs.size)
        clock = self._clock_of(rows)
        table = clock.unchecked_table(clock.initial())
        return {EVENT: Factor(Distribution.of_table(self.outcomes.values, table, clock.possible()), contexts)}

    def need_probabilities(self, states: Ints) -> None:
        """Raise an error if the rates of all events together exceed that of the clock in some states."""
        clock = self.randomness_at(states)[0]
        clock.table(clock.initial())

    @property
    def n_outcomes(self) -> int:
        """Number of events, and none."""
        return len(self.events) + 1

    def event_means(self, name: str, states: Ints) -> Floats:
        """Return the average per unit of time that a cost adds by events, at all pairs of some states, (len * A,)."""
        clock, contexts = self.randomness_at(states)
        rates = clock.intensities(clock.initial())[contexts]
        return np.asarray(np.cumsum(rates * self.event_costs(name, states), axis=1)[:, -1])

    def paid(self, name: str, columns: Columns, size: int) -> Floats:
        """Return what a cost adds at some points with an event, so that averages are per unit of time, (size,)."""
        found = np.zeros(size)
        for event, costs in self._costs.items():
            if name in costs:
                here = np.flatnonzero(columns[EVENT] == event)
                some = {key: column[here] for key, column in columns.items()}
                found[here] = self.clock * values_of_rule(costs[name], some, here.size)
        return found

    def _factors_at(self, columns: Columns, size: int) -> Floats:
        """Return the factors (size, E) of the rates at some pairs."""
        found = np.empty((size, len(self.events)))
        for k, name in enumerate(self.events):
            given = np.broadcast_to(values_of_rule(self._when[name], columns, size), (size,))
            when = as_condition(given, self._when[name].what, columns)
            factor = np.broadcast_to(values_of_rule(self._factors[name], columns, size), (size,))
            found[:, k] = np.where(when, factor, 0.0)
            if not ((found[:, k] >= 0.0) & np.isfinite(found[:, k])).all():
                at = int(np.flatnonzero(~((found[:, k] >= 0.0) & np.isfinite(found[:, k])))[0])
                where = shown_values({key: column[at] for key, column in columns.items()})
                raise ModelError(
                    f"times of {quoted(name)} must be finite and at least 0; at {where} it is {found[at, k]:g}"
                )
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
        return self._clock_of(rows), contexts

    def _clock_of(self, factors: Floats) -> EventClock:
        """Return the events with some factors (G, E) of their rates."""
        names, unknown = list(self.events), self.unknown()
        keys = parameter_keys(unknown)
        priors = {key: unknown[key] for key in keys.values()}
        by_place = {names.index(name): key for name, key in keys.items()}
        return EventClock(factors, self.clock, self._known_rates(), by_place, priors)

    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state, after the event of each point."""
        following = {name: columns[name].copy() for name in self.states.names}
        for name, step in self._steps.items():
            here = np.flatnonzero(columns[EVENT] == name)
            some = {key: column[here] for key, column in columns.items()}
            for variable, values in next_values(step, self.states, some, here.size, f"step of {quoted(name)}").items():
                if (following[variable].dtype.kind == "U") != (values.dtype.kind == "U"):
                    kinds = ("a number", "a text") if values.dtype.kind == "U" else ("a text", "a number")
                    raise ModelError(
                        f"step of {quoted(name)}: {quoted(variable)} is {kinds[0]}, and cannot become {kinds[1]}"
                    )
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
            following = next_values(step, self.states, some, here.size, f"step of {quoted(name)}")
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
                    raise ModelError(f"the cost {quoted(name)} of {quoted(event)} must be finite")
        return found


def _need_events(events: Any) -> None:
    """Raise an error unless events are given by name, and their costs, too."""
    if not isinstance(events, Mapping) or not events or not all(isinstance(e, Event) for e in events.values()):
        raise ModelError(f"events must be a table of names and Event(rate, ...); got {quoted(events)}")
    for name, event in events.items():
        if not isinstance(name, str) or not name or name == NONE:
            raise ModelError(f"an event needs a name such as 'arrival', other than 'none'; got {quoted(name)}")
        if not isinstance(event.costs, Mapping):
            raise ModelError(
                f"the costs of {quoted(name)} must be a table of expressions by name; got {quoted(event.costs)}"
            )
