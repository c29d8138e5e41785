"""A system in its owner's words: variables, actions, noise, a step and costs, of which a model is made."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Matrix
from psconrl.base.escaping import quoted
from psconrl.base.files import reading
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.simulation_tables import Tables
from psconrl.model.transition import Transition
from psconrl.model.units import Units, read_units
from psconrl.systems.dynamics import Dynamics
from psconrl.systems.event_source import EventSource
from psconrl.systems.events import Event
from psconrl.systems.expectations import Expectations
from psconrl.systems.functions import Rule
from psconrl.systems.limits import Statement, read_statement
from psconrl.systems.noise_base import Noise, as_argument
from psconrl.systems.noise_source import NoiseSource, read_noise
from psconrl.systems.numbered import Numbered
from psconrl.systems.quantities import Combination, Mean
from psconrl.systems.ratios import Ratios, ratio_limits
from psconrl.systems.reading import system_arguments
from psconrl.systems.reports import Report, Reports
from psconrl.systems.shown_names import read_cost_names, row_names, row_units
from psconrl.systems.sources import NEXT, RandomSource
from psconrl.systems.structure import Structure, outcome_tables
from psconrl.systems.system_files import read_data, write_data
from psconrl.systems.variables import Space
from psconrl.systems.vocabulary import Vocabulary
from psconrl.systems.writing import system_data


class System(Numbered):
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
    >>> import psconrl
    >>> print(psconrl.plan(queue))
    minimise power: 0.196898 (optimal)
      delay <= 1 holds with 1; one unit more of delay is worth 0.503
    """

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
        states, actions = Space(state, "state", state_names), Space(action, "action", action_names)
        source = _read_source(states, actions, step, noise, events, clock)
        _need_different([*states.names, *actions.names, *source.names])
        pair_names = frozenset((*states.names, *actions.names))
        rule = None if available is None else Rule(available, "available", pair_names)
        known = pair_names | frozenset(source.names) | {NEXT + name for name in states.names}
        rules = _read_costs(costs, known)
        statement = read_statement(minimise, maximise, limits, known | frozenset(rules))
        given_start = {v.name: v.values[0].item() for v in states.variables} if start is None else start
        first = states.number(given_start, "start")
        self._shown = read_cost_names(cost_names, statement.texts)
        self.units = read_units(units, (*rules, *known, *statement.texts, *(cost_names or {}).values()))
        self._given = {
            "costs": dict(costs), "available": available, "start": dict(given_start), "units": units,
            "state_names": state_names, "action_names": action_names, "cost_names": cost_names,
        }  # fmt: skip
        self._state(Dynamics(states, actions, source, rule, rules, first), statement)
        self._need_all_used()

    def _state(self, dynamics: Dynamics, statement: Statement) -> None:
        self.dynamics, self.statement = dynamics, statement
        self.states, self.actions, self.source = dynamics.states, dynamics.actions, dynamics.source
        self.start, self.cost_names = self._given["start"], tuple(dynamics.costs)

    def _with(self, dynamics: Dynamics, statement: Statement) -> "System":
        """Return the system with other dynamics, or another statement."""
        other = object.__new__(System)
        other.units, other._shown, other._given = self.units, self._shown, self._given
        other._state(dynamics, statement)
        return other

    def _need_all_used(self) -> None:
        """Raise an error if a part of the description has no effect."""
        used = frozenset().union(*(rule.names for rule in [*self.source.rules(), *self.dynamics.costs.values()]))
        self.source.need_used(used | self.statement.names, self.dynamics.costs)

    def with_noise(self, **known: Any) -> "System":
        """Return the system with other noise: a distribution, or a number for an unknown parameter or rate.

        >>> from psconrl.systems.noise import Bernoulli
        >>> from psconrl.systems.priors import Beta
        >>> lamp = System(state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(Beta())},
        ...     step={"on": "switch"}, costs={"heat": "on"}, minimise="heat")
        >>> lamp.with_noise(switch=0.3).source.noise["switch"]
        Bernoulli(p=0.3)
        """
        return self._with(self.dynamics.with_source(self.source.with_known(known)), self.statement)

    def with_unknown(self, *names: str) -> "System":
        """Return the system with unknown parameters of some noise or events, by default of all, under flat priors."""
        return self.with_noise(**self.source.flat_priors(names))

    def cost_quantity(self, name: str) -> Mean:
        """Return the average of a cost, by its name."""
        return Mean(name, Combination.of(name))

    def with_limits(self, limits: Any) -> "System":
        """Return the system with other limits.

        ``limits``: a list of texts, each of which replaces the limit on the same quantity or adds one, or a table by
        the name of a limit, with a text, another number, or None to leave the limit out.

        >>> queue = System(state={"waiting": 3}, action={"fast": 2}, step={}, costs={"power": "fast"},
        ...     minimise="power", limits=["waiting <= 1"])
        >>> other = queue.with_limits({"waiting": 2}).with_limits(["P(fast) <= 10%"])
        >>> [str(limit) for limit in other.statement.requirements]
        ['waiting <= 2', 'P(fast) <= 0.1']
        """
        variables = (*self.states.names, *(NEXT + name for name in self.states.names), *self.actions.names)
        known = frozenset((*variables, *self.source.names, *self.cost_names))
        return self._with(self.dynamics, self.statement.with_requirements(limits, known))

    def with_statement(self, statement: Statement) -> "System":
        """Return the system with another objective and other limits."""
        return self._with(self.dynamics, statement)

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
        system = self.with_known(**known)
        with system.report.to(progress):
            return system.expected_model()

    def with_known(self, **known: Any) -> "System":
        """Return the system with given parameters of noise; raise an error if others are unknown."""
        system = self.with_noise(**known) if known else self
        missing = list(system.source.unknown())
        if missing:
            raise ModelError(
                f"{quoted(missing[0])} has an unknown parameter; give it, as in with_noise({as_argument(missing[0])}), "
                "or learn it, as in PSConRL.of(system)"
            )
        return system

    @property
    def expectations(self) -> Expectations:
        """Transitions and means, which do not depend on objective and limits."""
        return self.dynamics.expectations

    @property
    def report(self) -> Reports:
        """Where long work reports how far it is; silent by default."""
        return self.dynamics.report

    def prepare(self, progress: Report | None = None) -> None:
        """Compute what agents and simulations need, which may take long. ``progress``: as of ``model``."""
        with self.report.to(progress) as report:
            structure = self.structure
            report(f"transitions of {structure.successors.size:,} outcomes")
            _ = structure.patterns

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
        return outcome_tables(self.with_known().structure)

    def expected_model(self, *, sparse: bool | None = None) -> CMDP:
        """Return the model at the prior means of unknown parameters.

        ``sparse``: whether its transitions are a sparse matrix; by default if it has many states.
        """
        known = self.expectations
        transition = known.transition if sparse is None else known.transition_stored(sparse)
        rows = zip(self.statement.signs.tolist(), self.statement.rows, strict=True)
        costs = [sign * known.cost(row) for sign, row in rows]
        return self.cmdp(transition, np.array(costs))

    def cmdp(self, transition: Transition | Matrix, costs: Floats, *, all_actions: bool = False) -> CMDP:
        """Return a model with some transitions and costs (m+1, S, A), and the names and thresholds of this system."""
        names = self.shown_names
        return CMDP(
            transition,
            costs,
            self.thresholds,
            initial=self.dynamics.initial,
            available=None if all_actions else self.dynamics.reachable.available,
            state_names=self.state_names,
            action_names=self.action_names,
            cost_names=names,
            maximise=self.statement.maximises,
            units=row_units(self.statement, self.units, self._shown).of(names),
            at_least=[name for name, limit in zip(names[1:], self.statement.rows[1:], strict=True) if limit.at_least],
        )

    @property
    def shown_names(self) -> list[str]:
        """Names of the objective and of the limits in models."""
        names = self._shown | row_names(self.statement, self.units, self._shown)
        return [names.get(limit.name, limit.name) for limit in self.statement.rows]

    @property
    def thresholds(self) -> Floats:
        """Thresholds of the costs of its model, which are negative quantities where a limit is a minimum."""
        return self.statement.thresholds

    def vocabulary(self) -> Vocabulary:
        """Return the names and values of variables with their numbers in the model, for an agent in live use."""
        reachable = self.dynamics.reachable
        return Vocabulary(
            self.states,
            reachable.states,
            self.actions,
            reachable.available,
            self.source.outcomes.values,
            self.source.most(),
            tuple(self.shown_names),
            tuple(self.statement.signs.tolist()),
            {name: rule for name, rule in self._given["costs"].items() if name not in self.source.cost_names},
        )

    @cached_property
    def structure(self) -> Structure:
        """What every outcome of the noise does in every reachable state."""
        reachable, successors = self.dynamics.reachable, self.dynamics.successors
        taken = reachable.taken
        S, A, W = successors.shape
        randomness, contexts = self.source.randomness_at(reachable.states)
        costs = self.dynamics.tables(self.statement.rows, self.statement.maximises)
        return Structure(S, A, successors.reshape(S * A, W)[taken], contexts[taken], randomness, *costs)

    @cached_property
    def ratios(self) -> Ratios | None:
        """The limits on ratios with their denominators; None if there are none."""
        stated = list(ratio_limits(self.statement, self.units))
        return Ratios.of(stated, self.dynamics.tables([per for _, per in stated], False)) if stated else None

    def __repr__(self) -> str:
        unknown = ", ".join(self.source.unknown())
        variables = f"{', '.join(self.states.names)}; {', '.join(self.actions.names)}"
        return f"System({variables}{'; unknown: ' + unknown if unknown else ''})"


def _read_source(
    states: Space, actions: Space, step: Any, noise: Any, events: Any, clock: float | None
) -> RandomSource:
    if events is None:
        if step is None or clock is not None:
            raise ModelError("a system needs a step, or events, which may have a clock")
        return NoiseSource(states, actions, read_noise(noise), step)
    if step is not None or noise is not None:
        raise ModelError("a system has noise and a step, or events with steps of their own, not both")
    return EventSource(states, actions, events, clock)


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
