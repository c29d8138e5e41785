"""Independent noise as the randomness of a system: drawn in every round, with a step that depends on it."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Floats, Ints
from psconrl.errors import ModelError
from psconrl.systems.exploration import JointOutcomes, next_values
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.noise import Noise
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.randomness import IndependentNoise
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
        return {name: named("noise", name, self.noise).flat_prior() for name in names or self.noise}

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

    @cached_property
    def _everywhere(self) -> dict[str, dict[str, Floats]]:
        """The arguments of every noise in all pairs, or one value if they depend on nothing."""
        depends = any(rule.names for rules in self._arguments.values() for rule in rules.values())
        columns = self.pair_columns(self._all_states()) if depends else {}
        size = self.states.size * self.actions.size
        found = {}
        for name, noise in self.noise.items():
            own = {key: values_of_rule(rule, columns, size) for key, rule in self._arguments[name].items()}
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
