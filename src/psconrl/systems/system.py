"""A system in its owner's words: variables, actions, noise, a step and costs, of which a model is made."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import ModelError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.systems.exploration import Explored, Outcomes, Step, explore
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.limits import Limit, read_limits
from psconrl.systems.noise import Noise
from psconrl.systems.randomness import IndependentNoise, Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.variables import Space

NEXT = "next_"  # before the name of a variable of the next state, in costs


class System:
    """A system with finitely many states, described by variables.

    ``state``, ``action``: variables and their values, ``{"shelf": range(9)}``. ``noise``: random variables, drawn
    anew in every round, such as ``Poisson(2.3, most=10)``, or ``Poisson(Gamma(2, 1), most=10)`` if the rate is unknown.
    ``step``: a function of some of these variables that returns all variables of the next state, or a table of
    expressions; variables that are not in the table keep their values. ``costs``: functions or expressions by name,
    which may use the noise and, as ``next_shelf``, the next state. ``available``: a condition for the actions that
    exist. ``start``: the values of the first state. ``minimise`` or ``maximise``: the objective, a cost or an
    expression. ``limits``: texts such as ``"lost <= 0.1"`` or ``"lost / demand <= 0.02"``.

    >>> from psconrl.systems.noise import Bernoulli
    >>> queue = System(
    ...     state={"waiting": range(5)}, action={"fast": [0, 1]},
    ...     noise={"arrival": Bernoulli(0.3), "done": Bernoulli("0.6 if fast else 0.4")},
    ...     step={"waiting": "min(max(waiting - done, 0) + arrival, 4)"},
    ...     costs={"power": "fast", "delay": "waiting"}, minimise="power", limits=["delay <= 1"])
    >>> queue.model()
    CMDP(5 states, 2 actions, 1 constraint, dense)
    """

    def __init__(
        self,
        *,
        state: Mapping[str, Any],
        action: Mapping[str, Any],
        step: Any,
        costs: Mapping[str, Any],
        noise: Mapping[str, Noise] | None = None,
        available: Any = None,
        start: Mapping[str, Any] | None = None,
        minimise: str | None = None,
        maximise: str | None = None,
        limits: Sequence[str] = (),
        units: Units | Mapping[str, Any] | None = None,
    ) -> None:
        self.states, self.actions = Space(state, "state"), Space(action, "action")
        self.noise = _read_noise(noise)
        twice = [n for n in (*self.actions.names, *self.noise) if n in self.states.names] + [
            n for n in self.noise if n in self.actions.names
        ]
        if twice:
            raise ModelError(f"{twice[0]!r} is the name of two variables")
        pair_names = frozenset((*self.states.names, *self.actions.names))
        names = pair_names | frozenset(self.noise)
        self._available = None if available is None else Rule(available, "available", pair_names)
        self._step = _read_step(step, self.states, names)
        known = names | {NEXT + name for name in self.states.names}
        if not isinstance(costs, Mapping):
            raise ModelError(f"costs must be a table of functions or expressions by name; got {costs!r}")
        for name in costs:
            if not isinstance(name, str) or not name.isidentifier() or name in known:
                raise ModelError(f"a cost needs a name of its own, such as 'holding'; got {name!r}")
        self._costs = {name: Rule(given, f"the cost {name!r}", known) for name, given in costs.items()}
        self._arguments = {
            name: {key: Rule(given, f"{key} of {name!r}", pair_names) for key, given in noise.arguments.items()}
            for name, noise in self.noise.items()
        }
        self.maximises = maximise is not None
        self.objective, self.limits = read_limits(minimise, maximise, limits, known, self._costs)
        self.start = {v.name: v.values[0].item() for v in self.states.variables} if start is None else dict(start)
        self._first = self.states.number(self.start, "start")
        self.units = units
        self._need_all_used(noise or {})

    def _need_all_used(self, noise: Mapping[str, Any]) -> None:
        """Raise an error if a noise is used nowhere."""
        rules = [self._step] if isinstance(self._step, Rule) else [*self._step.values()]
        used = frozenset().union(*(rule.names for rule in [*rules, *self._costs.values()]))
        used |= frozenset().union(*(limit.names for limit in (self.objective, *self.limits)))
        for name in noise:
            if name not in used:
                raise ModelError(f"the noise {name!r} is never used, neither by the step nor by a cost")

    def with_noise(self, **known: Any) -> "System":
        """Return the system with other noise: a distribution, or a number for an unknown parameter.

        >>> from psconrl.systems.noise import Bernoulli
        >>> from psconrl.systems.priors import Beta
        >>> coin = System(state={"on": 2}, action={"wait": 1}, noise={"flip": Bernoulli(Beta())},
        ...     step={"on": "flip"}, costs={"heat": "on"}, minimise="heat")
        >>> coin.with_noise(flip=0.3).noise["flip"]
        Bernoulli(p=0.3, n=1)
        """
        noise = dict(self.noise)
        for name, given in known.items():
            if name not in noise:
                raise ModelError(unknown_name("noise", name, noise))
            noise[name] = given if isinstance(given, Noise) else noise[name].with_parameter(given)
        other = object.__new__(System)
        vars(other).update({k: v for k, v in vars(self).items() if k not in ("_explored", "structure")})
        other.noise = noise
        pair_names = frozenset((*self.states.names, *self.actions.names))
        other._arguments = {
            name: {key: Rule(rule, f"{key} of {name!r}", pair_names) for key, rule in one.arguments.items()}
            for name, one in noise.items()
        }
        return other

    def model(self, **known: Any) -> CMDP:
        """Return the model of the reachable states. Unknown parameters of noise must be given, by name of the noise."""
        system = self.with_noise(**known) if known else self
        missing = [name for name, noise in system.noise.items() if noise.prior is not None]
        if missing:
            raise ModelError(
                f"the noise {missing[0]!r} has an unknown parameter; give it, as in model({missing[0]}=...), "
                "or learn it, as in PSConRL.of(system)"
            )
        return system.expected_model({})

    def expected_model(self, parameters: Parameters) -> CMDP:
        """Return the model for some values of the unknown parameters; by default their prior means."""
        structure = self.structure
        values = structure.randomness.initial() | parameters
        table = structure.table(values)
        explored = self._explored
        return CMDP(
            structure.transition(table),
            structure.costs(table),
            [limit.threshold for limit in self.limits],
            initial=int(np.searchsorted(explored.states, self._first)),
            available=explored.available,
            state_names=self.state_names,
            action_names=self.action_names,
            cost_names=[self.objective.name, *(limit.name for limit in self.limits)],
            maximise=self.maximises,
            units=self.units,
            at_least=[limit.name for limit in self.limits if limit.at_least],
        )

    @property
    def thresholds(self) -> Floats:
        """Thresholds of the costs as planned, which are negative quantities where a limit is a minimum."""
        return np.array([-limit.threshold if limit.at_least else limit.threshold for limit in self.limits])

    @property
    def state_names(self) -> list[str]:
        """Names of the reachable states, such as "shelf=4, coming=0"."""
        return [shown_values(self.states.label(int(n))) for n in self._explored.states]

    @property
    def action_names(self) -> list[str]:
        """Names of the actions, such as "order=2"."""
        return [shown_values(self.actions.label(n)) for n in range(self.actions.size)]

    def state_number(self, state: Mapping[str, Any]) -> int:
        """Return the number of a state in the model."""
        number = self.states.number(state, "a state")
        place = int(np.searchsorted(self._explored.states, number))
        if place == self._explored.states.size or self._explored.states[place] != number:
            raise ModelError(f"the state {shown_values(state)} is never reached from the start")
        return place

    @cached_property
    def _outcomes(self) -> tuple[Outcomes, dict[str, dict[str, Floats]]]:
        """The joint outcomes, and the arguments of every noise in all states."""
        everywhere = self._pair_values(np.arange(self.states.size)) if self._depends else {}
        size = self.states.size * self.actions.size
        values, arguments = {}, {}
        for name, noise in self.noise.items():
            own = {key: self._number(rule, everywhere, size) for key, rule in self._arguments[name].items()}
            arguments[name] = dict(noise.checked_arguments(own))
            values[name] = noise.outcomes(arguments[name])
        return Outcomes.of(values), arguments

    @property
    def _depends(self) -> bool:
        return any(rule.names for rules in self._arguments.values() for rule in rules.values())

    def _number(self, rule: Rule, columns: Mapping[str, NDArray[Any]], size: int) -> Floats:
        """Return a rule's values as numbers; one value if it is a constant."""
        if not rule.names:
            return np.asarray(rule({}, 1), dtype=np.float64)
        rule.try_arrays(columns)
        return _as_numbers(rule(columns, size), rule.what)

    def _pair_values(self, states: Ints) -> dict[str, NDArray[Any]]:
        A = self.actions.size
        columns = {name: np.repeat(v, A) for name, v in self.states.values(states).items()}
        for name, v in self.actions.values(np.arange(A)).items():
            columns[name] = np.tile(v, states.size)
        return columns

    @cached_property
    def _explored(self) -> Explored:
        outcomes, _ = self._outcomes
        step = Step(self.states, self.actions, outcomes, self._step, self._available)
        return explore(step, np.array([self._first]), self._possible)

    def _randomness_at(self, states: Ints) -> tuple[IndependentNoise, Ints]:
        """Return the noise in the contexts of some states, and the context of each of their pairs."""
        _, everywhere = self._outcomes
        pairs = (states[:, None] * self.actions.size + np.arange(self.actions.size)).ravel()
        own_contexts, arguments = {}, {}
        for name in self.noise:
            values = [np.broadcast_to(v if v.size == 1 else v[pairs], pairs.shape) for v in everywhere[name].values()]
            if not values:
                arguments[name], own_contexts[name] = {}, np.zeros(pairs.size, dtype=np.int64)
                continue
            rows, of_pair = np.unique(np.column_stack(values), axis=0, return_inverse=True)
            arguments[name] = dict(zip(everywhere[name], rows.T, strict=True))
            own_contexts[name] = of_pair.ravel()
        if not own_contexts:
            return IndependentNoise({}, {}, {}, {}), np.zeros(pairs.size, dtype=np.int64)
        joint, contexts = np.unique(np.column_stack(list(own_contexts.values())), axis=0, return_inverse=True)
        by_noise = dict(zip(own_contexts, joint.T, strict=True))
        return IndependentNoise(self.noise, arguments, by_noise, _keys(self.noise)), contexts.ravel()

    def _possible(self, states: Ints) -> Bools:
        """Return which joint outcomes are possible in some states, (len, A, W)."""
        randomness, contexts = self._randomness_at(states)
        return randomness.possible()[contexts].reshape(states.size, self.actions.size, -1)

    @cached_property
    def structure(self) -> Structure:
        """What every outcome of the noise does in every reachable state."""
        explored = self._explored
        S, A = explored.available.shape
        outcomes, _ = self._outcomes
        randomness, contexts = self._randomness_at(explored.states)
        successors = explored.successors.reshape(S * A, -1)
        taken = self._taken
        fixed, by_outcome = self._cost_tables(explored, outcomes)
        return Structure(
            S, A, successors[taken].astype(np.int32), contexts[taken], randomness, fixed[:, taken],
            tuple(None if c is None else c[taken] for c in by_outcome),
        )  # fmt: skip

    @cached_property
    def _taken(self) -> Ints:
        """The pair (S*A,) that is played for each: itself, or the first available action of the state."""
        available = self._explored.available
        S, A = available.shape
        actions = np.where(available, np.arange(A), available.argmax(axis=1)[:, None])
        return np.asarray((np.arange(S)[:, None] * A + actions).ravel())

    def _cost_tables(self, explored: Explored, outcomes: Outcomes) -> tuple[Floats, list[Floats | None]]:
        """Return costs that do not depend on the outcome (m+1, S*A), and those that do, (S*A, W) or None."""
        S, A = explored.available.shape
        step = Step(self.states, self.actions, outcomes, self._step, self._available)
        signs = [-1.0 if self.maximises else 1.0, *(-1.0 if limit.at_least else 1.0 for limit in self.limits)]
        shown = (self.objective, *self.limits)
        fixed = np.zeros((len(shown), S * A))
        tables: list[Floats | None] = []
        wanted = frozenset().union(*(limit.names for limit in shown))
        used = frozenset().union(*(self._costs[name].names for name in wanted if name in self._costs)) | wanted
        random = bool(used & (frozenset(self.noise) | {NEXT + name for name in self.states.names}))
        columns = step.columns(explored.states) if random else step.pair_columns(explored.states)
        size = explored.successors.size if random else S * A
        if any(name.startswith(NEXT) for name in used):
            following = self.states.values(explored.states[explored.successors.ravel()])
            columns |= {NEXT + name: v for name, v in following.items()}
        possible = self._possible(explored.states).ravel() & np.repeat(explored.available.ravel(), outcomes.size)
        relevant = possible if random else explored.available.ravel()
        for name in wanted:
            if name in self._costs:
                rule = self._costs[name]
                rule.try_arrays(columns)
                columns[name] = _as_numbers(rule(columns, size), rule.what)
        for i, (limit, sign) in enumerate(zip(shown, signs, strict=True)):
            values = sign * np.broadcast_to(_as_numbers(limit.cost(columns, size), limit.name), (size,))
            self._need_finite(values, relevant, columns, limit)
            values = np.where(relevant, values, 0.0)
            if not random:
                fixed[i] = values
                tables.append(None)
                continue
            table = values.reshape(S * A, outcomes.size)
            same = (table == table[:, :1]) | ~possible.reshape(table.shape)
            if same.all():
                fixed[i] = table[:, 0]
                tables.append(None)
            else:
                tables.append(table)
        return fixed, tables

    def _need_finite(
        self, values: Floats, relevant: Bools, columns: Mapping[str, NDArray[Any]], limit: Limit
    ) -> None:
        wrong = np.flatnonzero(~np.isfinite(values) & relevant)
        if wrong.size:
            point = {name: columns[name][wrong[0]] for name in (*self.states.names, *self.actions.names)}
            raise ModelError(f"{limit.name!r} is not a number at {shown_values(point)}: {values[wrong[0]]}")

    def __repr__(self) -> str:
        unknown = [name for name, noise in self.noise.items() if noise.prior is not None]
        return (
            f"System({', '.join(self.states.names)}; {', '.join(self.actions.names)}"
            f"{'; unknown: ' + ', '.join(unknown) if unknown else ''})"
        )


def _read_noise(noise: Any) -> dict[str, Noise]:
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        raise ModelError(f"noise must be a table of distributions by name; got {noise!r}")
    for name, given in noise.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(f"a noise needs a name such as 'demand'; got {name!r}")
        if not isinstance(given, Noise):
            raise ModelError(f"the noise {name!r} must be a distribution such as Poisson(2.3, most=10); got {given!r}")
    return dict(noise)


def _read_step(step: Any, states: Space, names: frozenset[str]) -> Mapping[str, Rule] | Rule:
    if isinstance(step, Mapping):
        for name in step:
            if name not in states.names:
                raise ModelError(f"step: {unknown_name('variable of the state', name, states.names)}")
        return {name: Rule(given, f"the step of {name!r}", names) for name, given in step.items()}
    if not callable(step):
        raise ModelError(f"step must be a function, or a table of expressions by variable; got {step!r}")
    return Rule(step, "step", names)


def _keys(noise: Mapping[str, Noise]) -> dict[str, str]:
    """Return the name of the unknown parameter of every noise; noises with the same prior object share one."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(one.prior), name) for name, one in noise.items() if one.prior is not None}


def _as_numbers(values: Any, what: str) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{what} must be a number; got {array.ravel()[0]!r}")
    return array.astype(np.float64)
