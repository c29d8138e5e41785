r"""All noise of a system together: contexts, joint outcomes, their probabilities, and what is unknown about them.

A pair of state and action has a *context*: the values of everything on which the distribution of the noise depends. A
joint outcome is one outcome of every noise. Given the unknown parameters :math:`\theta`, ``table`` returns the
probabilities of the joint outcomes in every context, :math:`p_\theta(w \mid g)`. Given the numbers of joint outcomes
observed in every context, ``draw`` draws the parameters from their posterior.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.saved_fields import in_field, integers, listed, need_that, read_fields, reals, table_of, text
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

    def read_parameters(self, saved: Any) -> Parameters:
        """Return parameters from a file after a check."""
        return read_fields(saved, {name: prior.parameter_kind() for name, prior in self.priors.items()})

    def initial(self) -> Parameters:
        """Return the prior means."""
        return {name: prior.mean() for name, prior in self.priors.items()}


@dataclass(frozen=True, eq=False)
class RoundNoise(Randomness):
    """Several noises. The joint outcomes are numbered with the last noise running fastest.

    Noises are independent, but for those that have ``parents``: the context of such a noise depends on the values of
    its parents, too. They are numbered with the last parent running fastest.
    """

    noises: Mapping[str, Noise]
    arguments: Mapping[str, Arguments]  # of every noise, one value for each of its own contexts
    contexts: Mapping[str, Ints]  # the number of its own context: (G,), with parents (G, C), by their values
    keys: Mapping[str, str]  # of every noise with an unknown parameter, the name of the parameter
    parents: Mapping[str, tuple[str, ...]]  # of every noise that has any

    @property
    def is_conjugate(self) -> bool:
        """True unless the counts of a noise have to be drawn as well."""
        return all(self.noises[name].is_conjugate(self.arguments[name]) for name in self.keys)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "noises": {name: noise.to_dict() for name, noise in self.noises.items()},
            "arguments": {name: dict(values) for name, values in self.arguments.items()},
            "contexts": dict(self.contexts),
            "keys": dict(self.keys),
            "parents": {name: list(those) for name, those in self.parents.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "RoundNoise":
        """Return what ``to_dict`` described."""
        found = cls(
            **read_fields(
                data,
                {
                    "noises": table_of(noise_from_dict),
                    "arguments": table_of(table_of(reals((None,), infinite=True))),
                    "contexts": table_of(lambda given: integers((None,) * np.ndim(given))(given)),
                    "keys": table_of(text()),
                    "parents": table_of(lambda names: tuple(listed(text())(names))),
                },
            )
        )
        found._check()
        return found

    def _check(self) -> None:
        """Raise an error if the parts, which were read from a file, do not fit together."""
        names = list(self.noises)
        for part in ("arguments", "contexts"):
            need_that(getattr(self, part).keys() == self.noises.keys(), f"{part} must be those of {', '.join(names)}")
        unknown = {name for name, noise in self.noises.items() if noise.prior is not None}
        need_that(self.keys.keys() == unknown, "keys must be those of noises with a prior")
        ready: set[str] = set()  # noises that do not depend on themselves
        for _ in names:
            ready |= {name for name in names if {*self.parents.get(name, ())} <= ready}
        need_that(ready == {*names} and self.parents.keys() <= ready, "parents must be noises, not in a cycle")
        need_that(all(self.parents.values()), "parents must not be empty")
        for name, noise in self.noises.items():
            with in_field("arguments"), in_field(name):
                noise.need_arguments(self.arguments[name], self.own_number(name))
        shape = dict(zip(names, self.sizes, strict=True))
        for name in names:
            of_parents = [math.prod(shape[one] for one in self.parents[name])] if name in self.parents else []
            with in_field("contexts"), in_field(name):
                integers((self.n_contexts, *of_parents))(self.contexts[name])

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
        return math.prod(self.sizes)

    @cached_property
    def priors(self) -> Mapping[str, ParameterPrior]:
        """The priors of the unknown parameters."""
        named = ((key, self.noises[name].prior) for name, key in self.keys.items())
        return {key: prior for key, prior in named if prior is not None}

    @cached_property
    def values(self) -> dict[str, Ints]:
        """Of every noise the place (W,) of its value in each joint outcome."""
        places = np.unravel_index(np.arange(self.n_outcomes), self.sizes) if self.noises else ()
        return dict(zip(self.noises, places, strict=True))

    @cached_property
    def parent_codes(self) -> dict[str, Ints]:
        """Of every noise with parents the number (W,) of their values in each joint outcome."""
        shape = dict(zip(self.noises, self.sizes, strict=True))
        return {
            name: np.ravel_multi_index([self.values[one] for one in those], [shape[one] for one in those])
            for name, those in self.parents.items()
        }

    @cached_property
    def parents_first(self) -> tuple[str, ...]:
        """The names of all noises, parents before the noises that depend on them."""
        found: dict[str, None] = {}
        while len(found) < len(self.noises):
            found |= {name: None for name in self.noises if all(one in found for one in self.parents.get(name, ()))}
        return tuple(found)

    def own_contexts(self, name: str, joint: Ints, outcomes: Ints) -> Ints:
        """Return the contexts of a noise itself in some joint contexts, with some joint outcomes."""
        if name in self.parents:
            return np.asarray(self.contexts[name][joint, self.parent_codes[name][outcomes]])
        return np.broadcast_to(self.contexts[name][joint], np.broadcast_shapes(joint.shape, outcomes.shape))

    def own_number(self, name: str) -> int:
        """Return the number of contexts that a noise itself has."""
        return int(self.contexts[name].max()) + 1

    def own_table(self, name: str, parameters: Parameters) -> Floats:
        """Return the probabilities of the values of one noise, in each of its own contexts."""
        noise, arguments = self.noises[name], self.arguments[name]
        known = np.zeros(1) if noise.known is None else noise.known
        value = parameters[self.keys[name]] if name in self.keys else known
        return noise.table(value, arguments, self.own_number(name))

    def own_possible(self, name: str) -> Bools:
        """Return which values of one noise are possible for some parameters, in each of its own contexts."""
        noise = self.noises[name]
        known = np.zeros(1) if noise.known is None else noise.known
        return noise.possible(known, self.arguments[name], self.own_number(name))

    def _jointly(self, own: Callable[[str], NDArray[Any]], start: Any) -> NDArray[Any]:
        """Return the products (G, W) of what each noise has for its values in its own contexts."""
        joint = np.full((self.n_contexts, 1), start)
        if not self.parents:
            for name in self.noises:
                part = own(name)[self.contexts[name]]
                joint = (joint[:, :, None] * part[:, None, :]).reshape(len(joint), -1)
            return joint
        contexts, outcomes = np.ogrid[: self.n_contexts, : self.n_outcomes]
        for name in self.noises:
            joint = joint * own(name)[self.own_contexts(name, contexts, outcomes), self.values[name]]
        return joint

    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, W): products of those of the noises."""
        return self._jointly(lambda name: self.own_table(name, parameters), 1.0)

    def possible(self) -> Bools:
        """Return which joint outcomes are possible for some parameters, whatever the prior means are."""
        if not self.keys:
            return np.asarray(self.table({}) > 0.0)
        return self._jointly(self.own_possible, True)

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
            own = self._own_counts(name, place, by_noise[place])
            key = self.keys[name]
            found = self.noises[name].statistics(own, parameters[key], self.arguments[name], rng)
            statistics[key] = statistics[key] + found if key in statistics else found
        return statistics

    def _own_counts(self, name: str, place: int, counts: Floats) -> Floats:
        """Return the numbers of the values of a noise in its own contexts, given those (G, ...) of joint outcomes."""
        if name in self.parents:
            joint = counts.reshape(len(counts), -1)
            contexts, outcomes = np.nonzero(joint)
            own = np.zeros((self.own_number(name), self.sizes[place]))
            cells = self.own_contexts(name, contexts, outcomes), self.values[name][outcomes]
            np.add.at(own, cells, joint[contexts, outcomes])
            return own
        others = tuple(k + 1 for k in range(len(self.noises)) if k != place)
        marginal = counts.sum(axis=others) if others else counts
        own = marginal.sum(axis=0, keepdims=True)
        if self.contexts[name].any():
            own = np.zeros((self.own_number(name), marginal.shape[1]))
            np.add.at(own, self.contexts[name], marginal)
        return own
