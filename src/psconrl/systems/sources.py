"""Where the randomness of a system comes from: ``noise_source`` in rounds, ``event_source`` in continuous time.

A source knows its joint outcomes, the contexts of pairs, and what an outcome does to the state.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints
from psconrl.caps import need
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.exploration import JointOutcomes
from psconrl.systems.functions import Rule, rule_numbers
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.randomness import Randomness
from psconrl.systems.variables import Space

Columns = Mapping[str, NDArray[Any]]
Steps = Mapping[str, Rule] | Rule


class RandomSource(ABC):
    """The randomness of a system with these states and actions."""

    states: Space
    actions: Space
    names: tuple[str, ...]  # variables that costs may use
    cost_names: frozenset[str] = frozenset()  # of costs that events have of their own

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
    def need_used(self, used: frozenset[str], costs: Iterable[str]) -> None:
        """Raise an error if some noise, or a cost of an event, has no effect."""

    @abstractmethod
    def rules(self) -> list[Rule]:
        """Return all rules of the step, for trials."""

    @abstractmethod
    def unknown(self) -> Mapping[str, ParameterPrior]:
        """Return the names of noise or events with an unknown parameter, with their priors."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """Names of all noise or events, whose parameter may be given by ``with_known``."""

    @abstractmethod
    def with_known(self, known: Mapping[str, Any]) -> Self:
        """Return the source with some parameters known, or noise replaced."""

    def cost_of_events(self, name: str, states: Ints) -> Floats:
        """Return what a cost adds in rounds with an event, so that averages are per unit of time, (len * A * W,)."""
        return np.zeros(states.size * self.actions.size * self.outcomes.size)

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


def named(what: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return what a name stands for; raise an error if it stands for nothing."""
    if name not in known:
        raise ModelError(unknown_name(what, name, known))
    return known[name]


def values_of_rule(rule: Rule, columns: Columns, size: int) -> Floats:
    """Return a rule's values as numbers; one value if it depends on nothing."""
    if rule.names:
        rule.try_arrays(columns)
    return rule_numbers(rule(columns, size if rule.names else 1), rule.what)


def distinct_rows(columns: list[Any], size: int) -> tuple[Floats, Ints]:
    """Return the distinct rows of some columns, and the number of the row of every point."""
    if not columns:
        return np.zeros((1, 0)), np.zeros(size, dtype=np.int64)
    found: Ints = np.zeros(size, dtype=np.int64)
    for column in columns:  # one after the other: sorting rows at once is slow
        values, places = np.unique(column, return_inverse=True)
        found = np.unique(found * values.size + places.ravel(), return_inverse=True)[1].ravel()
    first = np.unique(found, return_index=True)[1]
    return np.column_stack([column[first] for column in columns]).astype(np.float64), found


def parameter_keys(unknown: Mapping[str, ParameterPrior]) -> dict[str, str]:
    """Return the name of every unknown parameter; those with the same prior object share one."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(prior), name) for name, prior in unknown.items()}
