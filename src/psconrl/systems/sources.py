"""Where the randomness of a system comes from: noise in rounds, or events in continuous time.

A source knows its joint outcomes, the contexts of pairs, and what an outcome does to the state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints
from psconrl.caps import need
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.events import Event, EventClock
from psconrl.systems.exploration import JointOutcomes, next_values
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.noise import Noise
from psconrl.systems.priors import Gamma, ParameterPrior
from psconrl.systems.randomness import IndependentNoise, Randomness
from psconrl.systems.variables import Space

EVENT, NONE = "event", "none"  # the variable that says which event happened, and its value if none did
FASTER = 17 / 16  # of the clock, than the fastest total rate

Columns = Mapping[str, NDArray[Any]]
Steps = Mapping[str, Rule] | Rule


class RandomSource(ABC):
    """The randomness of a system with these states and actions."""

    states: Space
    actions: Space
    names: tuple[str, ...]  # variables that costs may use

    @property
    @abstractmethod
    def outcomes(self) -> JointOutcomes:
        """The joint outcomes."""

    @abstractmethod
    def randomness_at(self, states: Ints) -> tuple[Randomness, Ints]:
        """Return the randomness in the contexts of some states, and the context of each of their pairs."""

    @abstractmethod
    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state at some points (s, a, w)."""

    @abstractmethod
    def flat_priors(self, names: Iterable[str]) -> dict[str, ParameterPrior]:
        """Return flat priors of the parameters of some noise or events."""

    def next_numbers(self, states: Ints) -> tuple[Ints, Bools]:
        """Return the numbers of the next states at the points (s, a, w) of some states, and which are in the space."""
        size = states.size * self.actions.size * self.outcomes.size
        return self.states.numbers(self.next_values(self.columns(states), size))

    @abstractmethod
    def rules(self) -> list[Rule]:
        """Return all rules of the step, for trials."""

    @abstractmethod
    def unknown(self) -> dict[str, Any]:
        """Return the names of noise or events with an unknown parameter, with their priors."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of all noise or events, whose parameter may be given by ``with_known``."""

    @abstractmethod
    def with_known(self, known: Mapping[str, Any]) -> Self:
        """Return the source with some parameters known, or noise replaced."""

    def event_costs(self, name: str, states: Ints) -> Floats:
        """Return what a cost adds when each event happens, at all pairs of some states, (len * A, E)."""
        return np.zeros((states.size * self.actions.size, 0))

    def most(self) -> dict[str, int]:
        """Return the largest value of noise that counts, which stands for all larger counts, too."""
        return {}

    def pair_columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of the variables of states and actions, each (len * A,)."""
        A = self.actions.size
        self._need(states.size * A)
        columns = {name: np.repeat(v, A) for name, v in self.states.values(states).items()}
        for name, v in self.actions.values(np.arange(A)).items():
            columns[name] = np.tile(v, states.size)
        return columns

    def _need(self, points: int) -> None:
        """Raise an error if the values of all variables at some points take too much memory."""
        variables = len(self.states.names) + len(self.actions.names) + len(self.names)
        need(8.0 * points * variables, f"a system of {points:,} states, actions and outcomes", ModelError)

    def _all_states(self) -> Ints:
        self._need(self.states.size * self.actions.size)
        return np.arange(self.states.size)

    def columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of all variables at the points (s, a, w) of some states, each (len * A * W,)."""
        W = self.outcomes.size
        self._need(states.size * self.actions.size * W)
        columns = {name: np.repeat(v, W) for name, v in self.pair_columns(states).items()}
        for name, v in self.outcomes.values.items():
            columns[name] = np.tile(v, states.size * self.actions.size)
        return columns


class NoiseSource(RandomSource):
    """Independent noise, drawn in every round, and a step that depends on it."""

    def __init__(self, states: Space, actions: Space, noise: Mapping[str, Noise], step: Any) -> None:
        self.states, self.actions, self.noise = states, actions, noise
        self.names = tuple(noise)
        pair_names = frozenset((*states.names, *actions.names))
        self._step = read_step(step, states, pair_names | frozenset(noise), "step")
        self._arguments = {
            name: {key: Rule(given, f"{key} of {name!r}", pair_names) for key, given in one.arguments.items()}
            for name, one in noise.items()
        }
        self.given_step = step

    def with_known(self, known: Mapping[str, Any]) -> "NoiseSource":
        """Return the source with other noise: a distribution, or a number for an unknown parameter."""
        noise = dict(self.noise)
        for name, given in known.items():
            old = _known("noise", name, noise)
            noise[name] = given if isinstance(given, Noise) else old.with_parameter(given)
        return NoiseSource(self.states, self.actions, noise, self.given_step)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the noise."""
        return tuple(self.noise)

    def unknown(self) -> dict[str, Any]:
        """Return the priors of unknown parameters by name of the noise."""
        return {name: noise.prior for name, noise in self.noise.items() if noise.prior is not None}

    def flat_priors(self, names: Iterable[str]) -> dict[str, ParameterPrior]:
        """Return flat priors of all noise, or of some, by name."""
        return {name: _known("noise", name, self.noise).flat_prior() for name in names or self.noise}

    def most(self) -> dict[str, int]:
        """Return the largest value of noise that counts, which stands for all larger counts, too."""
        return {name: noise.options()["most"] for name, noise in self.noise.items() if "most" in noise.options()}

    def rules(self) -> list[Rule]:
        """Return the rules of the step."""
        return [self._step] if isinstance(self._step, Rule) else list(self._step.values())

    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state."""
        return next_values(self._step, self.states, columns, size, "step")

    @cached_property
    def _everywhere(self) -> dict[str, dict[str, Floats]]:
        """The arguments of every noise in all pairs, or one value if they depend on nothing."""
        depends = any(rule.names for rules in self._arguments.values() for rule in rules.values())
        columns = self.pair_columns(self._all_states()) if depends else {}
        size = self.states.size * self.actions.size
        found = {}
        for name, noise in self.noise.items():
            own = {key: _numbers(rule, columns, size) for key, rule in self._arguments[name].items()}
            found[name] = dict(self._checked(name, noise, own, columns))
        return found

    def _checked(self, name: str, noise: Noise, own: dict[str, Floats], columns: Columns) -> Mapping[str, Floats]:
        """Return the arguments of a noise after a check; an error names the first pair that shows it."""
        try:
            return noise.checked_arguments(own)
        except ModelError as error:
            if all(values.size == 1 for values in own.values()):
                raise ModelError(f"the noise {name!r}: {error}") from None
        at = first_wrong(own, noise.checked_arguments)
        try:
            return noise.checked_arguments({key: v[at : at + 1] if v.size > 1 else v for key, v in own.items()})
        except ModelError as error:
            where = shown_values({key: column[at] for key, column in columns.items()})
            raise ModelError(f"the noise {name!r} at {where}: {error}") from None

    @cached_property
    def outcomes(self) -> JointOutcomes:
        """All combinations of the outcomes of the noises."""
        return JointOutcomes.of({name: noise.outcomes(self._everywhere[name]) for name, noise in self.noise.items()})

    def randomness_at(self, states: Ints) -> tuple[IndependentNoise, Ints]:
        """Return the noise in the contexts of some states, and the context of each of their pairs."""
        pairs = (states[:, None] * self.actions.size + np.arange(self.actions.size)).ravel()
        contexts: dict[str, Ints] = {}
        arguments: dict[str, dict[str, Floats]] = {}
        for name, everywhere in self._everywhere.items():
            varying = {key: v[pairs] for key, v in everywhere.items() if v.size > 1}
            rows, contexts[name] = _distinct(list(varying.values()), pairs.size)
            arguments[name] = {
                key: rows[:, list(varying).index(key)] if key in varying else np.full(len(rows), v.ravel()[0])
                for key, v in everywhere.items()
            }
        varying_contexts = {name: c for name, c in contexts.items() if c.any()}
        rows, joint = _distinct(list(varying_contexts.values()), pairs.size)
        by_noise = {
            name: rows[:, list(varying_contexts).index(name)].astype(np.int64)
            if name in varying_contexts
            else np.zeros(len(rows), dtype=np.int64)
            for name in self.noise
        }
        return IndependentNoise(self.noise, arguments, by_noise, _keys(self.unknown())), joint


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
            old = _known("event", name, events)
            events[name] = given if isinstance(given, Event) else Event(given, old.step, old.times, old.when, old.costs)
        return EventSource(self.states, self.actions, events, self.given_clock)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the events."""
        return tuple(self.events)

    def unknown(self) -> dict[str, Any]:
        """Return the priors of unknown rates by name of the event."""
        return {name: event.rate for name, event in self.events.items() if isinstance(event.rate, Gamma)}

    def flat_priors(self, names: Iterable[str]) -> dict[str, ParameterPrior]:
        """Return priors of the rates of all events, or of some: exponential, with the rate of the clock as mean."""
        return {
            name: Gamma(1.0, 1.0 / self.clock) for name in names or self.events if _known("event", name, self.events)
        }

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
            when = np.broadcast_to(_numbers(self._when[name], columns, size), (size,)) != 0.0
            factor = np.broadcast_to(_numbers(self._factors[name], columns, size), (size,))
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
        rates = np.array([float(e.rate) for e in self.events.values()])  # type: ignore[arg-type]
        everywhere = self.pair_columns(np.arange(self.states.size))
        return FASTER * float((self._factors_at(everywhere, self.states.size * self.actions.size) @ rates).max())

    def randomness_at(self, states: Ints) -> tuple[EventClock, Ints]:
        """Return the events in the contexts of some states, and the context of each of their pairs."""
        size = states.size * self.actions.size
        rows, contexts = _distinct(list(self._factors_at(self.pair_columns(states), size).T), size)
        names, keys = list(self.events), _keys(self.unknown())
        rates = np.array([np.nan if isinstance(e.rate, Gamma) else float(e.rate) for e in self.events.values()])
        priors = {key: self.events[key].rate for key in dict.fromkeys(keys.values())}
        by_place = {names.index(name): key for name, key in keys.items()}
        return EventClock(rows, self.clock, rates, by_place, priors), contexts  # type: ignore[arg-type]

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

    def event_costs(self, name: str, states: Ints) -> Floats:
        """Return what a cost adds when each event happens, at all pairs of some states, (len * A, E)."""
        columns, size = self.pair_columns(states), states.size * self.actions.size
        factors = self._factors_at(columns, size)
        found = np.zeros(factors.shape)
        for k, (event, costs) in enumerate(self._costs.items()):
            if name in costs:
                here = np.flatnonzero(factors[:, k])
                some = {key: column[here] for key, column in columns.items()}
                found[here, k] = _numbers(costs[name], some, here.size)
                if not np.isfinite(found[:, k]).all():
                    raise ModelError(f"the cost {name!r} of {event!r} must be finite")
        return found


def read_step(step: Any, states: Space, names: frozenset[str], what: str) -> Steps:
    """Return a step as rules: one for each variable, or one function that returns all of them."""
    if isinstance(step, Mapping):
        for name in step:
            if name not in states.names:
                raise ModelError(f"{what}: {unknown_name('variable of the state', name, states.names)}")
        return {name: Rule(given, f"the {what} of {name!r}", names) for name, given in step.items()}
    if not callable(step):
        raise ModelError(f"{what} must be a function, or a table of expressions by variable; got {step!r}")
    return Rule(step, what, names)


def _known(what: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return what a name stands for; raise an error if it stands for nothing."""
    if name not in known:
        raise ModelError(unknown_name(what, name, known))
    return known[name]


def _numbers(rule: Rule, columns: Columns, size: int) -> Floats:
    """Return a rule's values as numbers; one value if it depends on nothing."""
    if rule.names:
        rule.try_arrays(columns)
    values = np.asarray(rule(columns, size if rule.names else 1))
    if values.dtype.kind not in "biuf":
        raise ModelError(f"{rule.what} must be a number; got {values.ravel()[0].item()!r}")
    return values.astype(np.float64)


def first_wrong(own: Mapping[str, Floats], check: Callable[[dict[str, Floats]], object]) -> int:
    """Return the first point at which a check of arguments fails, by bisection; it fails for all points together."""

    def fails(n: int) -> bool:
        try:
            check({key: values[:n] for key, values in own.items()})
        except ModelError:
            return True
        return False

    low, high = 0, max(values.size for values in own.values())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return low


def _distinct(columns: list[Any], size: int) -> tuple[Floats, Ints]:
    """Return the distinct rows of some columns, and the number of the row of every point."""
    if not columns:
        return np.zeros((1, 0)), np.zeros(size, dtype=np.int64)
    found: Ints = np.zeros(size, dtype=np.int64)
    for column in columns:  # one after the other: sorting rows at once is slow
        values, places = np.unique(column, return_inverse=True)
        found = np.unique(found * values.size + places.ravel(), return_inverse=True)[1].ravel()
    first = np.unique(found, return_index=True)[1]
    return np.column_stack([column[first] for column in columns]).astype(np.float64), found


def _keys(unknown: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of every unknown parameter; those with the same prior object share one."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(prior), name) for name, prior in unknown.items()}
