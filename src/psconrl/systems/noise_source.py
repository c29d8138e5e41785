"""Independent noise as the randomness of a system: drawn in every round, with a step that depends on it."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Floats, Ints
from psconrl.errors import ModelError
from psconrl.systems.distributions import Columns, Distribution, Factor
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.joint_outcomes import JointOutcomes, next_values
from psconrl.systems.noise_base import Noise
from psconrl.systems.noise_graph import Graph
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.randomness import IndependentNoise
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
        parameter_keys(self.unknown())  # an error if the priors of a shared parameter differ

    def with_known(self, known: Mapping[str, Any]) -> "NoiseSource":
        """Return the source with other noise: a distribution, or a number for an unknown parameter."""
        noise = dict(self.noise)
        for name, given in known_by_name(known, self.unknown(), (Noise, ParameterPrior)).items():
            old = named("noise", name, noise)
            noise[name] = given if isinstance(given, Noise) else old.with_parameter(given)
        return NoiseSource(self.states, self.actions, noise, self.given_step)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the noise."""
        return tuple(self.noise)

    def unknown(self) -> dict[str, ParameterPrior]:
        """Return the priors of unknown parameters by name of the noise."""
        return {name: noise.prior for name, noise in self.noise.items() if noise.prior is not None}

    def flat_priors(self, names: Iterable[str]) -> dict[str, ParameterPrior]:
        """Return flat priors of all noise, or of some, by name."""
        unknown = self.unknown()
        wanted = [other for name in names or self.noise for other in sharing(name, unknown)]
        return with_shared({name: named("noise", name, self.noise).flat_prior() for name in wanted}, unknown)

    def most(self) -> dict[str, int]:
        """Return the largest value of noise that counts, which stands for all larger counts, too."""
        return {name: noise.options()["most"] for name, noise in self.noise.items() if "most" in noise.options()}

    def need_used(self, used: frozenset[str], costs: Iterable[str]) -> None:
        """Raise an error if a noise is used nowhere."""
        for name in self.names:
            if name not in used:
                raise ModelError(f"the noise {name!r} is never used, neither by the step nor by a cost")

    def rules(self) -> list[Rule]:
        """Return the rules of the step."""
        return [self._step] if isinstance(self._step, Rule) else list(self._step.values())

    def next_values(self, columns: Columns, size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state."""
        return next_values(self._step, self.states, columns, size, "step")

    def add_step(self, graph: Graph) -> None:
        """Add the variables of the next state to a graph."""
        step, names = self._step, self.states.names
        if isinstance(step, Rule):

            def values(columns: Columns, size: int) -> Columns:
                step.try_arrays(columns)
                return {TO + name: v for name, v in next_values(step, self.states, columns, size, "step").items()}

            graph.add(tuple(TO + name for name in names), step.names, values)
            return
        for name in names:
            graph.define(TO + name, step.get(name) or Rule(name, name, frozenset(names)))

    def factor_of(self) -> dict[str, str]:
        """Return the name of every noise: each is a factor."""
        return {name: name for name in self.noise}

    def factors_at(self, pairs: Ints, columns: Columns) -> dict[str, Factor]:
        """Return the distribution of every noise, in its own contexts."""
        return {
            name: Factor(found, np.zeros(pairs.size, dtype=np.int64) if contexts is None else contexts[pairs])
            for name, (found, contexts) in self._factors.items()
        }

    @cached_property
    def _factors(self) -> dict[str, tuple[Distribution, Ints | None]]:
        """The distribution of every noise at the prior means, and its contexts in all pairs, if they differ."""
        found: dict[str, tuple[Distribution, Ints | None]] = {}
        for name, noise in self.noise.items():
            everywhere = self._everywhere[name]
            varying = [key for key, v in everywhere.items() if v.size > 1]
            rows, contexts = distinct_rows([everywhere[key] for key in varying], self._pairs if varying else 1)
            arguments = {
                key: rows[:, varying.index(key)] if key in varying else np.full(len(rows), v.ravel()[0])
                for key, v in everywhere.items()
            }
            known = np.zeros(1) if noise.known is None else noise.known
            parameter = known if noise.prior is None else noise.prior.mean()
            table = noise.table(parameter, arguments, len(rows))
            values = {name: noise.outcomes(arguments)}
            possible = noise.possible(known, arguments, len(rows))
            found[name] = Distribution.of_table(values, table, possible), contexts if varying else None
        return found

    @property
    def _pairs(self) -> int:
        return self.states.size * self.actions.size

    @cached_property
    def _everywhere(self) -> dict[str, dict[str, Floats]]:
        """The arguments of every noise in all pairs, or one value if they depend on nothing."""
        depends = any(rule.names for rules in self._arguments.values() for rule in rules.values())
        columns = self.pair_columns(self._all_states()) if depends else {}
        found = {}
        for name, noise in self.noise.items():
            own = {key: values_of_rule(rule, columns, self._pairs) for key, rule in self._arguments[name].items()}
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

    def need_probabilities(self, states: Ints) -> None:
        """Accept all states: the probabilities of every noise add up to 1."""

    @property
    def n_outcomes(self) -> int:
        """Product of the numbers of outcomes of the noises."""
        return prod(len(noise.outcomes(self._everywhere[name])) for name, noise in self.noise.items())

    def randomness_at(self, states: Ints) -> tuple[IndependentNoise, Ints]:
        """Return the noise in the contexts of some states, and the context of each of their pairs."""
        pairs = (states[:, None] * self.actions.size + np.arange(self.actions.size)).ravel()
        contexts: dict[str, Ints] = {}
        arguments: dict[str, dict[str, Floats]] = {}
        for name, everywhere in self._everywhere.items():
            varying = {key: v[pairs] for key, v in everywhere.items() if v.size > 1}
            rows, contexts[name] = distinct_rows(list(varying.values()), pairs.size)
            arguments[name] = {
                key: rows[:, list(varying).index(key)] if key in varying else np.full(len(rows), v.ravel()[0])
                for key, v in everywhere.items()
            }
        varying_contexts = {name: c for name, c in contexts.items() if c.any()}
        rows, joint = distinct_rows(list(varying_contexts.values()), pairs.size)
        by_noise = {
            name: rows[:, list(varying_contexts).index(name)].astype(np.int64)
            if name in varying_contexts
            else np.zeros(len(rows), dtype=np.int64)
            for name in self.noise
        }
        return IndependentNoise(self.noise, arguments, by_noise, parameter_keys(self.unknown())), joint


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
