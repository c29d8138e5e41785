r"""Continuous time: events that happen at rates, in a system that is observed whenever a common clock ticks.

An event e happens at the rate :math:`k_e(s,a)\,\theta_e`: a known factor times a rate, which is known or has a prior.
Rounds are the ticks of a clock of rate :math:`\Lambda` (uniformisation), and in a round

.. math:: P(e \mid s,a) = \frac{k_e(s,a)\,\theta_e}{\Lambda}, \qquad
          P(\text{none} \mid s,a) = 1 - \sum_e P(e \mid s,a).

The likelihood of n events in the rounds observed, of which :math:`n_g` rounds in context g had no event, is

.. math:: \prod_e \theta_e^{n_e} \prod_g \Big(1 - \sum_e k_{ge}\,\theta_e / \Lambda\Big)^{n_g},

which has no conjugate prior. Rates are drawn one after the other by slice sampling of their logarithms (Neal 2003).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psconrl.arrays import Bools, Floats
from psconrl.errors import ModelError
from psconrl.kernels import special
from psconrl.systems.priors import Gamma, ParameterPrior, prior_from_dict
from psconrl.systems.randomness import Parameters, Randomness

STEPS_OUT = 30  # of the width of a slice, at most
SHRINKS = 100  # of a slice; it then holds hardly more than the point itself


@dataclass(frozen=True, eq=False)
class Event:
    """An event of a system in continuous time.

    ``rate``: a number, or a prior such as ``Gamma(2, 1)`` if it is unknown. ``times``: a factor of the rate, a number
    or an expression such as ``"patients"``. ``when``: a condition; the event does not happen elsewhere. ``step``: how
    it changes the variables of the state, expressions by variable or a function. ``costs``: what it costs when it
    happens, by name of the cost.
    """

    rate: float | Gamma
    step: Any = field(default_factory=dict)
    times: Any = 1
    when: Any = True
    costs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EventClock(Randomness):
    """Events at the ticks of a clock. The outcomes are the events in their order, and last none of them."""

    factors: Floats  # (G, E) of the rates, divided by the rate of the clock
    rates: Floats  # (E,) those that are known; nan for others
    keys: Mapping[int, str]  # of events with an unknown rate, its name
    priors: Mapping[str, ParameterPrior]

    @property
    def n_contexts(self) -> int:  # type: ignore[override]
        """Number of contexts G."""
        return len(self.factors)

    @property
    def n_outcomes(self) -> int:  # type: ignore[override]
        """Number of events, and none."""
        return self.factors.shape[1] + 1

    @property
    def is_conjugate(self) -> bool:
        """False: every rate is drawn given the others."""
        return False

    def _rates(self, parameters: Parameters) -> Floats:
        rates = self.rates.copy()
        for event, key in self.keys.items():
            rates[event] = parameters[key][0]
        return rates

    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, E + 1)."""
        probabilities = self.factors * self._rates(parameters)
        none = 1.0 - probabilities.sum(axis=1)
        if none.min() < -1e-12:
            raise ModelError(
                f"the rates add up to {1.0 - none.min():.4g} times the rate of the clock; give a faster clock"
            )
        return np.column_stack([probabilities, np.maximum(none, 0.0)])

    def initial(self) -> Parameters:
        """Return the prior means, all divided by a number if they exceed the clock together."""
        means = super().initial()
        total = float((self.factors * self._rates(means)).sum(axis=1).max())
        return means if total < 1.0 else {key: value * 0.5 / total for key, value in means.items()}

    def possible(self) -> Bools:
        """Return which events are possible: those with a positive factor; that none happens always is."""
        return np.column_stack([self.factors > 0.0, np.ones(self.n_contexts, dtype=bool)])

    def draw(self, counts: Floats, parameters: Parameters, rng: np.random.Generator) -> Parameters:
        """Draw the rates one after the other, each by slice sampling."""
        drawn = {key: value.copy() for key, value in parameters.items()}
        idle = np.flatnonzero(counts[:, -1])
        times, factors = counts[idle, -1], self.factors[idle]
        happened = counts[:, :-1].sum(axis=0)
        for key, prior in self.priors.items():
            own = [event for event, name in self.keys.items() if name == key]
            rates = self._rates(drawn)
            rates[own] = 0.0
            rest = 1.0 - factors @ rates
            limit = self._largest(key, drawn)
            assert isinstance(prior, Gamma)
            target = _LogRate(prior, float(happened[own].sum()), factors[:, own].sum(axis=1), rest, times, limit)
            drawn[key] = np.array([target.slice(float(drawn[key][0]), rng)])
        return drawn

    def _largest(self, key: str, parameters: Parameters) -> float:
        """Return the largest rate that the clock allows, given the others."""
        own = [event for event, name in self.keys.items() if name == key]
        rates = self._rates(parameters)
        rates[own] = 0.0
        factor = self.factors[:, own].sum(axis=1)
        some = factor > 0.0
        if not some.any():
            return np.inf
        return float(((1.0 - self.factors[some] @ rates) / factor[some]).min())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "factors": self.factors,
            "rates": self.rates,
            "keys": {str(event): key for event, key in self.keys.items()},
            "priors": {key: prior.to_dict() for key, prior in self.priors.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EventClock":
        """Return what ``to_dict`` described."""
        keys = {int(event): key for event, key in data["keys"].items()}
        priors = {key: prior_from_dict(prior) for key, prior in data["priors"].items()}
        return cls(np.asarray(data["factors"]), np.asarray(data["rates"]), keys, priors)


@dataclass(frozen=True, eq=False)
class _LogRate:
    """The density of the logarithm of one rate, given the others."""

    prior: Gamma
    events: float
    factors: Floats  # in the contexts in which rounds without an event were observed
    rest: Floats  # the probability there that no other event happens
    times: Floats  # the number of such rounds
    largest: float  # rate that the clock allows

    def __call__(self, log_rate: float) -> float:
        rate = special.exp(log_rate) if log_rate < 700.0 else np.inf
        if not rate < self.largest:
            return -np.inf
        none = self.rest - self.factors * rate
        if none.size and none.min() <= 0.0:
            return -np.inf
        idle = float(self.times @ special.log_array(none)) if none.size else 0.0
        return (self.prior.shape + self.events) * log_rate - self.prior.rate * rate + idle

    def slice(self, rate: float, rng: np.random.Generator) -> float:
        """Draw the rate by slice sampling, by stepping out and shrinking."""
        here = special.log(rate)
        height = self(here) + special.log(1.0 - rng.random())
        width = 2.0 / np.sqrt(self.prior.shape + self.events)
        low = here - width * rng.random()
        high = low + width
        for _ in range(STEPS_OUT):
            if self(low) <= height:
                break
            low -= width
        for _ in range(STEPS_OUT):
            if self(high) <= height:
                break
            high += width
        for _ in range(SHRINKS):
            drawn = low + (high - low) * rng.random()
            if self(drawn) > height:
                return special.exp(drawn)
            if drawn < here:
                low = drawn
            else:
                high = drawn
        return rate
