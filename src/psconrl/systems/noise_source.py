"""Noise as the randomness of a system: drawn in every round, with a step that depends on it."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.categorical import Joint
from psconrl.systems.dependent_noise import (
    Cluster,
    Clusters,
    checked_arguments,
    clusters_of,
    own_contexts,
    parents_of,
    prior_distribution,
    read_arguments,
)
from psconrl.systems.functions import Rule
from psconrl.systems.joint_outcomes import JointOutcomes, next_values
from psconrl.systems.noise_base import Arguments, Noise, full_name, variables_of
from psconrl.systems.noise_graph import Graph
from psconrl.systems.outcome_rows import Columns, Distribution, Factor
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.randomness import RoundNoise
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
    """Noise, drawn in every round, and a step that depends on it."""

    def __init__(self, states: Space, actions: Space, noise: Mapping[str, Noise], step: Any) -> None:
        self.states, self.actions, self.noise = states, actions, noise
        _need_names(noise)
        self.names = tuple(variable for name in noise for variable in variables_of(name))
        pair_names = frozenset((*states.names, *actions.names))
        self._step = read_step(step, states, pair_names | frozenset(self.names), "step")
        self._arguments = read_arguments(noise, pair_names)
        self._parents = parents_of(noise, self._arguments)
        self.given_step = step
        self._keys = parameter_keys(self.unknown())  # an error if the priors of a shared parameter differ
        clusters = clusters_of(list(noise), self._parents)
        self._cluster_of = {name: names for names in clusters for name in names}

    def with_known(self, known: Mapping[str, Any]) -> "NoiseSource":
        """Return the source with other noise: a distribution, or a number for an unknown parameter."""
        noise = dict(self.noise)
        for name, given in known_by_name(known, self.unknown(), (Noise, ParameterPrior)).items():
            own = full_name(name)
            old = named("noise", own, noise)
            noise[own] = given if isinstance(given, Noise) else old.with_parameter(given)
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
        used |= {name for rules in self._arguments.values() for rule in rules.values() for name in rule.names}
        for name in self.names:
            if name not in used:
                raise ModelError(
                    f"the noise {quoted(name)} is never used, neither by the step nor by a cost nor by other noise"
                )

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
        """Return the factor of every random variable: its noise, or the first one of its cluster."""
        return {v: self._cluster_of.get(name, (name,))[0] for name in self.noise for v in variables_of(name)}

    def factors_at(self, pairs: Ints, columns: Columns) -> dict[str, Factor]:
        """Return the distribution of every noise, in its own contexts, and of every cluster in its cases."""
        found = {}
        for name in self.noise:
            if name in self._alone:
                distribution, contexts = self._alone[name]
                of_pairs = np.zeros(pairs.size, dtype=np.int64) if contexts is None else contexts[pairs]
                found[name] = Factor(distribution, of_pairs)
            elif name == self._cluster_of[name][0]:
                cluster = self._clusters[name]
                found[name] = Factor(cluster.distribution, cluster.cases(pairs))
        return found

    @cached_property
    def _alone(self) -> dict[str, tuple[Distribution, Ints | None]]:
        """The distribution of every noise in no cluster at the prior means, and its contexts, if they differ."""
        found: dict[str, tuple[Distribution, Ints | None]] = {}
        for name, everywhere in self._everywhere.items():
            varies = any(v.size > 1 for v in everywhere.values())
            arguments, contexts = own_contexts(everywhere, self._pairs if varies else 1)
            distribution = prior_distribution(name, self.noise[name], arguments, int(contexts.max()) + 1)
            found[name] = distribution, contexts if varies else None
        return found

    @cached_property
    def _clusters(self) -> dict[str, Cluster]:
        """Every cluster, by the name of its first noise."""

        def columns() -> Columns:
            return self.pair_columns(self._all_states())

        parts = Clusters(self.noise, self._arguments, self._parents, columns, self._pairs)
        return {names[0]: parts.cluster(names, self._keys) for names in dict.fromkeys(self._cluster_of.values())}

    @property
    def _pairs(self) -> int:
        return self.states.size * self.actions.size

    @cached_property
    def _everywhere(self) -> dict[str, Arguments]:
        """The arguments of every noise in no cluster in all pairs, or one value if they depend on nothing."""
        alone = [name for name in self.noise if name not in self._cluster_of]
        depends = any(rule.names for name in alone for rule in self._arguments[name].values())
        columns = self.pair_columns(self._all_states()) if depends else {}
        found = {}
        for name in alone:
            own = {key: values_of_rule(rule, columns, self._pairs) for key, rule in self._arguments[name].items()}
            found[name] = checked_arguments(name, self.noise[name], own, columns)
        return found

    def _values(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the values of the variables of a noise in all of its outcomes."""
        first = self._cluster_of.get(name, (name,))[0]
        arguments = (
            self._everywhere[name]
            if name == first and name in self._everywhere
            else (self._clusters[first].noise.arguments[name])
        )
        return self.noise[name].columns(variables_of(name), arguments)

    @cached_property
    def outcomes(self) -> JointOutcomes:
        """All combinations of the outcomes of the noises."""
        return JointOutcomes.of([self._values(name) for name in self.noise])

    def need_probabilities(self, states: Ints) -> None:
        """Accept all states: the probabilities of every noise add up to 1."""

    @property
    def n_outcomes(self) -> int:
        """Product of the numbers of outcomes of the noises."""
        return prod(len(next(iter(self._values(name).values()))) for name in self.noise)

    def randomness_at(self, states: Ints) -> tuple[RoundNoise, Ints]:
        """Return the noise in the contexts of some states, and the context of each of their pairs."""
        pairs = (states[:, None] * self.actions.size + np.arange(self.actions.size)).ravel()
        arguments: dict[str, Arguments] = {}
        own: dict[str, Ints] = {}  # of a noise in no cluster, and of a cluster: its context, or case, in every pair
        for name in self.noise:
            if name in self._everywhere:
                values = {key: v[pairs] if v.size > 1 else v for key, v in self._everywhere[name].items()}
                arguments[name], own[name] = own_contexts(values, pairs.size)
            elif name in self._clusters:
                own[name] = self._clusters[name].cases(pairs)
        varying = {name: c for name, c in own.items() if c.any()}
        rows, joint = distinct_rows(list(varying.values()), pairs.size)
        zero = np.zeros(len(rows), dtype=np.int64)
        places = {name: k for k, name in enumerate(varying)}
        of_joint = {name: rows[:, places[name]].astype(np.int64) if name in places else zero for name in own}
        contexts: dict[str, Ints] = {}
        for name, cases in of_joint.items():
            if name in self._clusters:
                those, inside = self._clusters[name].taken(cases)
                arguments |= those
                contexts |= inside
            else:
                contexts[name] = cases
        found = {name: arguments[name] for name in self.noise}, {name: contexts[name] for name in self.noise}
        return RoundNoise(self.noise, *found, self._keys, self._parents), joint


def read_noise(noise: Any) -> dict[str, Noise]:
    """Return the noises of a system by name, those of a joint table with commas and blanks between its variables."""
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        raise ModelError(f"noise must be a table of distributions by name; got {quoted(noise)}")
    found: dict[str, Noise] = {}
    for name, given in noise.items():
        parts = variables_of(name) if isinstance(name, str) else ()
        if not parts or not all(part.isidentifier() for part in parts):
            raise ModelError(f"a noise needs a name such as 'demand', a joint one 'demand, sky'; got {quoted(name)}")
        if not isinstance(given, Noise):
            raise ModelError(
                f"the noise {quoted(name)} must be a distribution such as Poisson(2.3, most=10); got {quoted(given)}"
            )
        found[full_name(name)] = given
    if len(found) < len(noise):
        raise ModelError(f"two noises have the same name; got {quoted(list(noise))}")
    return found


def _need_names(noise: Mapping[str, Noise]) -> None:
    """Raise an error if a noise does not have a name for each of its variables."""
    for name, given in noise.items():
        parts, wanted = variables_of(name), len(given.tables) if isinstance(given, Joint) else 1
        if len(parts) != wanted:
            raise ModelError(
                f"the noise {quoted(name)} needs {wanted} name{'s, separated by commas' * (wanted > 1)}, "
                f"one for each variable of {type(given).__name__}; got {len(parts)}"
            )
