r"""All noise of a system together: contexts, joint outcomes, their probabilities, and what is unknown about them.

A pair of state and action has a *context*: the values of everything on which the distribution of the noise depends. A
joint outcome is one outcome of every noise. Given the unknown parameters :math:`\theta`, ``table`` returns the
probabilities of the joint outcomes in every context, :math:`p_\theta(w \mid g)`. Given the numbers of joint outcomes
observed in every context, ``draw`` draws the parameters from their posterior.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.systems.noise import noise_from_dict
from psconrl.systems.noise_base import Arguments, Noise
from psconrl.systems.priors import ParameterPrior

Parameters = dict[str, Floats]  # by name, the values of what is unknown


class Timed(NamedTuple):
    """Of every event, how often it happened in sojourns that were measured, and its exposure: factors times time."""

    happened: Floats
    exposure: Floats


class Randomness(ABC):
    """What is random in a system, in all contexts."""

    @property
    @abstractmethod
    def n_contexts(self) -> int:
        """Number of contexts G."""

    @property
    @abstractmethod
    def n_outcomes(self) -> int:
        """Number of joint outcomes W."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Numbers of outcomes of the noises (K of them), whose product is ``n_outcomes``."""

    @property
    @abstractmethod
    def priors(self) -> Mapping[str, ParameterPrior]:
        """Priors of the unknown parameters, by name."""

    @property
    @abstractmethod
    def is_conjugate(self) -> bool:
        """True if a draw, given all outcomes, does not depend on the parameters drawn before."""

    @abstractmethod
    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, W) of the joint outcomes."""

    @abstractmethod
    def possible(self) -> Bools:
        """Return which joint outcomes (G, W) have a positive probability for some parameters."""

    @abstractmethod
    def draw(
        self, counts: Floats, parameters: Parameters, rng: np.random.Generator, timed: Timed | None = None
    ) -> Parameters:
        """Draw the parameters, given the parameters drawn before, and the numbers (K, G, W) of joint outcomes.

        The numbers for each noise are of the rounds that revealed something of it. ``timed``: what was seen in
        sojourns that were measured, of events.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""

    def initial(self) -> Parameters:
        """Return the prior means."""
        return {name: prior.mean() for name, prior in self.priors.items()}


@dataclass(frozen=True, eq=False)
class IndependentNoise(Randomness):
    """Several independent noises. The joint outcomes are numbered with the last noise running fastest."""

    noises: Mapping[str, Noise]
    arguments: Mapping[str, Arguments]  # of every noise, one value for each of its own contexts
    contexts: Mapping[str, Ints]  # of every noise, the number of its own context in each joint context
    keys: Mapping[str, str]  # of every noise with an unknown parameter, the name of the parameter

    @property
    def is_conjugate(self) -> bool:
        """True unless the counts of a noise have to be drawn as well."""
        return all(self.noises[name].is_conjugate for name in self.keys)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "noises": {name: noise.to_dict() for name, noise in self.noises.items()},
            "arguments": {name: dict(values) for name, values in self.arguments.items()},
            "contexts": dict(self.contexts),
            "keys": dict(self.keys),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "IndependentNoise":
        """Return what ``to_dict`` described."""
        noises = {name: noise_from_dict(noise) for name, noise in data["noises"].items()}
        return cls(noises, data["arguments"], data["contexts"], data["keys"])

    @cached_property
    def n_contexts(self) -> int:
        """Number of joint contexts G."""
        return len(next(iter(self.contexts.values()))) if self.contexts else 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of outcomes of the noises."""
        return tuple(len(noise.outcomes(self.arguments[name])) for name, noise in self.noises.items())

    @cached_property
    def n_outcomes(self) -> int:
        """Number of joint outcomes W."""
        return int(np.prod(self.sizes)) if self.noises else 1

    @cached_property
    def priors(self) -> Mapping[str, ParameterPrior]:
        """The priors of the unknown parameters."""
        named = ((key, self.noises[name].prior) for name, key in self.keys.items())
        return {key: prior for key, prior in named if prior is not None}

    def own_table(self, name: str, parameters: Parameters) -> Floats:
        """Return the probabilities of the values of one noise, in each of its own contexts."""
        noise, arguments = self.noises[name], self.arguments[name]
        known = np.zeros(1) if noise.known is None else noise.known
        value = parameters[self.keys[name]] if name in self.keys else known
        return noise.table(value, arguments, int(self.contexts[name].max()) + 1)

    def own_possible(self, name: str) -> Bools:
        """Return which values of one noise are possible for some parameters, in each of its own contexts."""
        noise = self.noises[name]
        known = np.zeros(1) if noise.known is None else noise.known
        return noise.possible(known, self.arguments[name], int(self.contexts[name].max()) + 1)

    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, W): products of those of the noises."""
        joint = np.ones((self.n_contexts, 1))
        for name in self.noises:
            own = self.own_table(name, parameters)[self.contexts[name]]
            joint = (joint[:, :, None] * own[:, None, :]).reshape(len(joint), -1)
        return joint

    def possible(self) -> Bools:
        """Return which joint outcomes are possible for some parameters, whatever the prior means are."""
        if not self.keys:
            return np.asarray(self.table({}) > 0.0)
        joint = np.ones((self.n_contexts, 1), dtype=bool)
        for name in self.noises:
            own = self.own_possible(name)[self.contexts[name]]
            joint = (joint[:, :, None] & own[:, None, :]).reshape(len(joint), -1)
        return joint

    def draw(
        self, counts: Floats, parameters: Parameters, rng: np.random.Generator, timed: Timed | None = None
    ) -> Parameters:
        """Draw the parameters from their posteriors, which are conjugate."""
        statistics = self.statistics(counts, parameters, rng)
        return {key: prior.draw(statistics[key], rng) for key, prior in self.priors.items()}

    def statistics(self, counts: Floats, parameters: Parameters, rng: np.random.Generator) -> dict[str, Floats]:
        """Return the sufficient statistics of the unknown parameters, given the numbers (K, G, W) of outcomes."""
        statistics: dict[str, Floats] = {}
        by_noise = counts.reshape(len(counts), -1, *self.sizes)
        for place, name in enumerate(self.noises):
            if name not in self.keys:
                continue
            others = tuple(k + 1 for k in range(len(self.noises)) if k != place)
            marginal = by_noise[place].sum(axis=others) if others else by_noise[place]
            own = marginal.sum(axis=0, keepdims=True)
            if self.contexts[name].any():
                own = np.zeros((int(self.contexts[name].max()) + 1, marginal.shape[1]))
                np.add.at(own, self.contexts[name], marginal)
            key = self.keys[name]
            found = self.noises[name].statistics(own, parameters[key], self.arguments[name], rng)
            statistics[key] = statistics[key] + found if key in statistics else found
        return statistics
