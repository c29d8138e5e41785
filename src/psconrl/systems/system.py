"""A system in its owner's words: variables, actions, noise, a step and costs, of which a model is made."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psconrl.base.arrays import Floats, Matrix, Places
from psconrl.base.escaping import quoted
from psconrl.base.files import reading
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.simulation_tables import Tables
from psconrl.model.transition import Transition
from psconrl.model.units import Units, read_units
from psconrl.systems.cost_tables import CostTables
from psconrl.systems.event_source import EventSource
from psconrl.systems.events import Event
from psconrl.systems.expectations import Expectations
from psconrl.systems.functions import Rule
from psconrl.systems.limits import read_statement
from psconrl.systems.noise_base import Noise, as_argument
from psconrl.systems.noise_source import NoiseSource, read_noise
from psconrl.systems.outcome_successors import all_successors
from psconrl.systems.quantities import LinearLimit
from psconrl.systems.ratios import Ratios, ratio_limits
from psconrl.systems.reachable_states import Explored, explore_states
from psconrl.systems.reading import system_arguments
from psconrl.systems.reports import Report, Reports
from psconrl.systems.shown_names import read_cost_names, row_names, row_units
from psconrl.systems.sources import NEXT, RandomSource
from psconrl.systems.stated import SHARED, Stated
from psconrl.systems.structure import Structure, outcome_tables
from psconrl.systems.system_files import read_data, write_data
from psconrl.systems.variables import Space
from psconrl.systems.vocabulary import Vocabulary
from psconrl.systems.writing import system_data

if TYPE_CHECKING:
    from psconrl.answers.answer import Answer, TradeOff


class System(Stated):
    """A system with finitely many states, described by variables.

    ``state``, ``action``: variables and their values, ``{"shelf": range(9)}``. ``noise``: random variables, drawn
    in every round, such as ``Poisson(2.3, most=10)``, or ``Poisson(Gamma(2, 1), most=10)`` if the rate is unknown.
    ``step``: a function of some of these variables that returns all variables of the next state, or a table of
    expressions; variables that are not in the table keep their values. ``costs``: functions or expressions by name,
    which may use the noise and, as ``next_shelf``, the next state. ``available``: a condition for the actions that
    exist. ``start``: the values of the first state. ``minimise`` or ``maximise``: the objective, a cost or an
    expression. ``limits``: texts such as ``"lost <= 0.1"`` or ``"lost / demand <= 2%"``, see ``systems.limits``, in a
    list, or in a table by name. ``state_names`` and ``action_names``: how to show them, ``"{shelf} in stock"``;
    ``cost_names``: how to show some costs and limits.

    >>> from psconrl.systems.noise import Bernoulli
    >>> queue = System(
    ...     state={"waiting": range(5)}, action={"fast": [0, 1]},
    ...     noise={"arrival": Bernoulli(0.3), "done": Bernoulli("0.6 if fast else 0.4")},
    ...     step={"waiting": "min(max(waiting - done, 0) + arrival, 4)"},
    ...     costs={"power": "fast", "delay": "waiting"}, minimise="power", limits=["delay <= 1"])
    >>> queue.model()
    CMDP(5 states, 2 actions, 1 constraint, dense)
    >>> print(queue.plan())
    minimise power: 0.196898 (optimal)
      delay <= 1 holds with 1; one unit more of delay is worth 0.503
    """

    _report = Reports()  # silent

    def __init__(
        self,
        *,
        state: Mapping[str, Any],
        action: Mapping[str, Any],
        step: Any = None,
        costs: Mapping[str, Any],
        noise: Mapping[str, Noise] | None = None,
        events: Mapping[str, Event] | None = None,
        clock: float | None = None,
        available: Any = None,
        start: Mapping[str, Any] | None = None,
        minimise: str | None = None,
        maximise: str | None = None,
        limits: Sequence[str] | Mapping[str, str] = (),
        units: Units | Mapping[str, Any] | None = None,
        state_names: str | None = None,
        action_names: str | None = None,
        cost_names: Mapping[str, str] | None = None,
    ) -> None:
        self.states, self.actions = Space(state, "state", state_names), Space(action, "action", action_names)
        self.source = self._read_source(step, noise, events, clock)
        _need_different([*self.states.names, *self.actions.names, *self.source.names])
        pair_names = frozenset((*self.states.names, *self.actions.names))
        self._available = None if available is None else Rule(available, "available", pair_names)
        known = pair_names | frozenset(self.source.names) | {NEXT + name for name in self.states.names}
        self._costs = _read_costs(costs, known)
        self.statement = read_statement(minimise, maximise, limits, known | frozenset(self._costs))
        given_start = {v.name: v.values[0].item() for v in self.states.variables} if start is None else start
        self._first = self.states.number(given_start, "start")
        self.start = dict(given_start)
        self.cost_names = tuple(self._costs)
        self._shown = read_cost_names(cost_names, self.statement.texts)
        self.units = read_units(units, (*self.cost_names, *known, *self.statement.texts, *(cost_names or {}).values()))
        self._given = {
            "costs": dict(costs), "available": available, "start": self.start, "units": units,
            "state_names": state_names, "action_names": action_names, "cost_names": cost_names,
        }  # fmt: skip
        self._need_all_used()

    def _read_source(self, step: Any, noise: Any, events: Any, clock: float | None) -> RandomSource:
        if events is None:
            if step is None or clock is not None:
                raise ModelError("a system needs a step, or events, which may have a clock")
            return NoiseSource(self.states, self.actions, read_noise(noise), step)
        if step is not None or noise is not None:
            raise ModelError("a system has noise and a step, or events with steps of their own, not both")
        return EventSource(self.states, self.actions, events, clock)

    def _need_all_used(self) -> None:
        """Raise an error if a part of the description has no effect."""
        used = frozenset().union(*(rule.names for rule in [*self.source.rules(), *self._costs.values()]))
        self.source.need_used(used | self.statement.names, self._costs)

    def with_noise(self, **known: Any) -> "System":
        """Return the system with other noise: a distribution, or a number for an unknown parameter or rate.

        >>> from psconrl.systems.noise import Bernoulli
        >>> from psconrl.systems.priors import Beta
        >>> lamp = System(state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(Beta())},
        ...     step={"on": "switch"}, costs={"heat": "on"}, minimise="heat")
        >>> lamp.with_noise(switch=0.3).source.noise["switch"]
        Bernoulli(p=0.3)
        """
        return self._changed((), source=self.source.with_known(known))

    def _changed(self, kept: tuple[str, ...], **changes: Any) -> "System":
        other = object.__new__(System)
        computed = {name for name in dir(System) if isinstance(getattr(System, name), cached_property)} - set(kept)
        vars(other).update({name: value for name, value in vars(self).items() if name not in computed} | changes)
        return other

    def with_unknown(self, *names: str) -> "System":
        """Return the system with unknown parameters of some noise or events, by default of all, under flat priors."""
        return self.with_noise(**self.source.flat_priors(names))

    def with_thresholds(self, limits: Mapping[str, float]) -> "System":
        """Return the system with other numbers of some limits, by name, or by the name that is shown."""
        if not isinstance(limits, Mapping):
            raise ModelError(f"limits must be a table of numbers by name; got {quoted(limits)}")
        names = {shown: name for name, shown in self._shown.items()}
        return self.with_limits({names.get(name, name): number for name, number in limits.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the system as plain data, which ``from_dict`` reads; all rules must be expressions."""
        return system_data(type(self), self.states, self.actions, self.source, self._given | self.statement.record())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "System":
        """Return the system that plain data describes. Expressions are parsed, and nothing is run as code."""
        return cls(**system_arguments(data, cls))

    def save(self, path: Any) -> None:
        """Write the system to a ``.toml`` or ``.json`` file; all rules must be expressions."""
        write_data(self.to_dict(), path)

    @classmethod
    def load(cls, path: Any) -> "System":
        """Read a system from a ``.toml`` or ``.json`` file."""
        data = read_data(path)
        with reading(Path(path)):
            return cls.from_dict(data)

    def model(self, *, progress: Report | None = None, **known: Any) -> CMDP:
        """Return the model of the reachable states. Unknown parameters of noise must be given, by name of the noise.

        ``progress``: called with a line of text from time to time if it takes long, for example ``print``.
        """
        with self._with_known(known, Reports(progress)) as system:
            return system.expected_model()

    def plan(self, *, progress: Report | None = None, **known: Any) -> "Answer":
        """Return the best policy for the objective within the limits, with a certificate, in the terms of the system.

        Unknown parameters of noise must be given, by name of the noise. ``progress``: as of ``model``; Ctrl-C then
        ends the planning of a linear statement with the best policy so far.
        """
        report = Reports(progress)
        with self._with_known(known, report) as system:
            from psconrl.answers.answer import answer

            return answer(system, None if report.is_silent else report)

    def linear(self, **guess: Any) -> "System":
        """Return the system with linear objective and limits, for agents that learn its noise.

        Levels of expected shortfalls, and the ratio of the objective, are those of the best policy for guessed
        parameters, by default the prior means. Limits with such levels are sufficient, whatever the parameters are.
        """
        if self.statement.is_linear:
            return self
        means = {name: prior.mean() for name, prior in self.source.unknown().items()}
        return self.with_statement(self.plan(**(means | guess)).required().system.statement)

    def pareto(
        self, limit: str, numbers: Any = None, *, points: int = 11, progress: Report | None = None, **known: Any
    ) -> "TradeOff":
        """Return the best value as a function of the number of one limit, given by name.

        Without ``numbers``, ``points`` of them run from the best value that the other limits allow to where the limit
        no longer binds. ``progress``: as of ``model``.
        """
        with self._with_known(known, Reports(progress)) as system:
            from psconrl.answers.answer import trade_off

            return trade_off(system, limit, numbers, points)

    @contextmanager
    def _with_known(self, known: Mapping[str, Any], report: Reports) -> "Iterator[System]":
        """Provide the system with given parameters; long work in this context is reported."""
        system = self.with_noise(**known) if known else self
        system._need_known()
        if "_explored" not in vars(system):
            vars(system)["_explored"] = explore_states(system.source, system._available, system._first, report)
        for name in SHARED:  # once, for all systems with other limits that are made of this one
            getattr(system, name)
        system.expectations.report = report
        try:
            yield system
        finally:
            system.expectations.report = Reports()

    def prepare(self, progress: Report | None = None) -> None:
        """Compute what agents and simulations need, which may take long. ``progress``: as of ``model``."""
        self._report = Reports(progress)
        try:
            structure = self.structure
            self._report(f"transitions of {structure.successors.size:,} outcomes")
            _ = structure.patterns
        finally:
            del self._report

    def model_for_learning(self) -> CMDP:
        """Return the model with all actions in all states: one that is not available acts as the first that is."""
        return self._learning_model

    @cached_property
    def _learning_model(self) -> CMDP:
        structure = self.structure
        values = structure.randomness.initial()
        transition = structure.expected_transition(structure.table(values))
        is_sparse = structure.n_states > PLANNED_DENSE_STATES
        return self.cmdp(transition if is_sparse else transition.toarray(), structure.costs(values), all_actions=True)

    def tables(self) -> Tables:
        """Return the system laid out for simulation: every round draws the noise and incurs the realised costs."""
        self._need_known()
        return outcome_tables(self.structure)

    def _need_known(self) -> None:
        missing = list(self.source.unknown())
        if missing:
            raise ModelError(
                f"{quoted(missing[0])} has an unknown parameter; give it, as in with_noise({as_argument(missing[0])}), "
                "or learn it, as in PSConRL.of(system)"
            )

    def expected_model(self, *, sparse: bool | None = None) -> CMDP:
        """Return the model at the prior means of unknown parameters.

        ``sparse``: whether its transitions are a sparse matrix; by default if it has many states.
        """
        known = self.expectations
        transition = known.transition if sparse is None else known.transition_stored(sparse)
        signs = [-1.0 if self.maximises else 1.0, *(-1.0 if limit.at_least else 1.0 for limit in self.limits)]
        costs = [sign * known.cost(one) for sign, one in zip(signs, (self.objective, *self.limits), strict=True)]
        return self.cmdp(transition, np.array(costs))

    def cmdp(self, transition: Transition | Matrix, costs: Floats, *, all_actions: bool = False) -> CMDP:
        """Return a model with some transitions and costs (m+1, S, A), and the names and thresholds of this system."""
        explored = self._explored
        names = self.shown_names
        return CMDP(
            transition,
            costs,
            self.thresholds,
            initial=int(np.searchsorted(explored.states, self._first)),
            available=None if all_actions else explored.available,
            state_names=self.state_names,
            action_names=self.action_names,
            cost_names=names,
            maximise=self.maximises,
            units=row_units(self.statement, self.units, self._shown).of(names),
            at_least=[name for name, limit in zip(names[1:], self.limits, strict=True) if limit.at_least],
        )

    @property
    def shown_names(self) -> list[str]:
        """Names of the objective and of the limits in models."""
        names = self._shown | row_names(self.statement, self.units, self._shown)
        return [names.get(limit.name, limit.name) for limit in (self.objective, *self.limits)]

    @property
    def thresholds(self) -> Floats:
        """Thresholds of the costs as planned, which are negative quantities where a limit is a minimum."""
        return np.array([-limit.threshold if limit.at_least else limit.threshold for limit in self.limits])

    def vocabulary(self) -> Vocabulary:
        """Return the names and values of variables with their numbers in the model, for an agent in live use."""
        explored = self._explored
        negative = [self.maximises, *(limit.at_least for limit in self.limits)]
        return Vocabulary(
            self.states,
            explored.states,
            self.actions,
            explored.available,
            self.source.outcomes.values,
            self.source.most(),
            tuple(self.shown_names),
            tuple(-1.0 if is_negative else 1.0 for is_negative in negative),
            {name: rule for name, rule in self._given["costs"].items() if name not in self.source.cost_names},
        )

    @cached_property
    def _explored(self) -> Explored:
        return explore_states(self.source, self._available, self._first, self._report)

    @cached_property
    def expectations(self) -> Expectations:
        """Transitions and means, which do not depend on objective and limits."""
        return Expectations(self.source, self._explored, self._costs)

    @cached_property
    def _successors(self) -> Places:
        """The next state of every joint outcome in every pair (S, A, W)."""
        return all_successors(self.source, self._explored, self._report)

    @cached_property
    def structure(self) -> Structure:
        """What every outcome of the noise does in every reachable state."""
        explored, successors, taken = self._explored, self._successors, self._explored.taken
        S, A, W = successors.shape
        randomness, contexts = self.source.randomness_at(explored.states)
        costs = self._tables_of((self.objective, *self.limits), self.maximises)
        return Structure(S, A, successors.reshape(S * A, W)[taken], contexts[taken], randomness, *costs)

    @cached_property
    def ratios(self) -> Ratios | None:
        """The limits on ratios with their denominators; None if there are none."""
        stated = list(ratio_limits(self.statement, self.units))
        return Ratios.of(stated, self._tables_of([per for _, per in stated], False)) if stated else None

    def _tables_of(self, shown: Sequence[LinearLimit], maximises: bool) -> CostTables:
        own = self.source, self._explored, self._successors, self._costs
        return CostTables.of(*own, shown, maximises, self._report).taken(self._explored.taken)

    def __repr__(self) -> str:
        unknown = ", ".join(self.source.unknown())
        variables = f"{', '.join(self.states.names)}; {', '.join(self.actions.names)}"
        return f"System({variables}{'; unknown: ' + unknown if unknown else ''})"


def _need_different(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"{quoted(name)} is the name of two variables")


def _read_costs(costs: Any, known: frozenset[str]) -> dict[str, Rule]:
    if not isinstance(costs, Mapping):
        raise ModelError(f"costs must be a table of functions or expressions by name; got {quoted(costs)}")
    for name in costs:
        if not isinstance(name, str) or not name.isidentifier() or name in known:
            raise ModelError(f"a cost needs a name of its own, such as 'holding'; got {quoted(name)}")
    return {name: Rule(given, f"the cost {quoted(name)}", known) for name, given in costs.items()}
