"""Where the randomness of a system comes from: ``noise_source`` in rounds, ``event_source`` in continuous time.

A source knows its joint outcomes, the contexts of pairs, and what an outcome does to the state.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.enumeration import Points
from psconrl.systems.functions import Rule, rule_numbers
from psconrl.systems.joint_outcomes import JointOutcomes
from psconrl.systems.noise_graph import Graph
from psconrl.systems.outcome_rows import Columns, Factor
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.randomness import Randomness
from psconrl.systems.variables import Space, Variable

Steps = Mapping[str, Rule] | Rule
NEXT, TO, PLACE = "next_", "to ", "place of "  # before the name of a variable of the next state, in graphs


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

    @property
    @abstractmethod
    def n_outcomes(self) -> int:
        """Number of joint outcomes."""

    @abstractmethod
    def randomness_at(self, states: Ints) -> tuple[Randomness, Ints]:
        """Return the randomness in the contexts of some states, and the context of each of their pairs."""

    @abstractmethod
    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state at some points (s, a, w)."""

    @abstractmethod
    def factors_at(self, pairs: Ints, columns: Columns) -> dict[str, Factor]:
        """Return the independent parts of the noise, at the prior means, in some pairs and with their variables."""

    @abstractmethod
    def need_probabilities(self, states: Ints) -> None:
        """Raise an error if the probabilities of noise do not add up to 1 in some states."""

    @abstractmethod
    def factor_of(self) -> dict[str, str]:
        """Return the name of the factor of every random variable."""

    @abstractmethod
    def add_step(self, graph: Graph) -> None:
        """Add the variables of the next state to a graph, with ``TO`` before their names."""

    def points(self, pairs: Ints) -> Points:
        """Return the variables and the noise of some pairs, numbered s * A + a in the whole space."""
        A = self.actions.size
        self.need_memory(pairs.size)
        columns = self.states.values(pairs // A) | self.actions.values(pairs % A)
        return Points(pairs.size, columns, self.factors_at(pairs, columns))

    def graph(self) -> Graph:
        """Return the graph of the next state: of its variables, ``NEXT`` before their names, and of their places."""
        graph = Graph((*self.states.names, *self.actions.names), self.factor_of())
        self.add_step(graph)
        for variable in self.states.variables:
            _add_place(graph, variable)
        return graph

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

    def paid(self, name: str, columns: Columns, size: int) -> Floats:
        """Return what a cost adds at some points with an event, so that averages are per unit of time, (size,)."""
        return np.zeros(size)

    def event_means(self, name: str, states: Ints) -> Floats:
        """Return the average per unit of time that a cost adds by events, at all pairs of some states, (len * A,)."""
        return np.zeros(states.size * self.actions.size)

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
        self.need_memory(states.size * A)
        columns = {name: np.repeat(v, A) for name, v in self.states.values(states).items()}
        for name, v in self.actions.values(np.arange(A)).items():
            columns[name] = np.tile(v, states.size)
        return columns

    def need_memory(self, points: int) -> None:
        """Raise an error if the values of all variables at some points take too much memory."""
        variables = len(self.states.names) + len(self.actions.names) + len(self.names)
        need(8.0 * points * variables, f"a system of {points:,} states, actions and outcomes", ModelError)

    def _all_states(self) -> Ints:
        self.need_memory(self.states.size * self.actions.size)
        return np.arange(self.states.size)

    def columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of all variables at the points (s, a, w) of some states, each (len * A * W,)."""
        W = self.outcomes.size
        self.need_memory(states.size * self.actions.size * W)
        columns = {name: np.repeat(v, W) for name, v in self.pair_columns(states).items()}
        for name, v in self.outcomes.values.items():
            columns[name] = np.tile(v, states.size * self.actions.size)
        return columns


def _add_place(graph: Graph, variable: Variable) -> None:
    """Add the place of a variable of the next state among its values, -1 if it has none, and the value there."""
    to, place, following = TO + variable.name, PLACE + variable.name, NEXT + variable.name
    graph.add((place,), frozenset([to]), lambda columns, size: {place: variable.index(columns[to])})
    graph.add(
        (following,), frozenset([place]),
        lambda columns, size: {following: variable.values[np.maximum(columns[place], 0)]},
    )  # fmt: skip


def read_step(step: Any, states: Space, names: frozenset[str], what: str) -> Steps:
    """Return a step as rules: one for each variable, or one function that returns all of them."""
    if isinstance(step, Mapping):
        for name in step:
            if name not in states.names:
                raise ModelError(f"{what}: {unknown_name('variable of the state', name, states.names)}")
        return {name: Rule(given, f"the {what} of {quoted(name)}", names) for name, given in step.items()}
    if not callable(step):
        raise ModelError(f"{what} must be a function, or a table of expressions by variable; got {quoted(step)}")
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
    """Return the name of every unknown parameter: that of the first noise or event that has it.

    Those whose priors name the same shared parameter have one in common, and need the same prior.
    """
    keys = {name: sharing(name, unknown)[0] for name in unknown}
    for name, first in keys.items():
        one, two = unknown[first], unknown[name]
        if type(one) is not type(two) or one.numbers() != two.numbers():
            raise ModelError(
                f"{quoted(first)} and {quoted(name)} share {quoted(two.shared)}, and need the same prior; got {one} "
                f"and {two}"
            )
    return keys


def sharing(name: str, unknown: Mapping[str, ParameterPrior]) -> list[str]:
    """Return the names of all noise or events that have the same unknown parameter as one of them."""
    shared = unknown[name].shared if name in unknown else None
    return [name] if shared is None else [other for other, prior in unknown.items() if prior.shared == shared]


def known_by_name(
    known: Mapping[str, Any], unknown: Mapping[str, ParameterPrior], whole: type | tuple[type, ...]
) -> dict[str, Any]:
    """Return given parameters, also of all noise or events that share them; raise an error if two contradict.

    ``whole``: types of what replaces one noise or event, and is not a parameter.
    """
    found: dict[str, Any] = {}
    for name, value in known.items():
        for other in [name] if isinstance(value, whole) else sharing(name, unknown):
            if other in found and not np.array_equal(found[other], value):
                raise ModelError(
                    f"{quoted(name)} shares the parameter {quoted(unknown[other].shared)}, and cannot have two values; "
                    f"got {quoted(found[other])} and {quoted(value)}"
                )
            found[other] = value
    return found


def with_shared(flat: Mapping[str, ParameterPrior], unknown: Mapping[str, ParameterPrior]) -> dict[str, ParameterPrior]:
    """Return flat priors by name; those that share a parameter have the prior of the first, and still share it."""
    found = dict(flat)
    for name in flat:
        group = sharing(name, unknown)
        if len(group) > 1 and group[0] in flat:
            make: Any = type(flat[group[0]])
            found[name] = make(**flat[group[0]].numbers(), shared=unknown[name].shared)
    return found
