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
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.base.saved_fields import need_that, read_fields, real, reals, table_of, text
from psconrl.errors import ModelError
from psconrl.kernels.draws.rates import SLICE_UNIFORMS, draw_rates
from psconrl.systems.priors import Gamma, ParameterPrior, prior_from_dict
from psconrl.systems.randomness import Parameters, Randomness, Timed

EVENT_SUM_TOL = 1e-12  # rounding error of probabilities that should sum to one


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

    factors: Floats  # (G, E) of the rates
    clock: float  # rate of the clock
    rates: Floats  # (E,) those that are known; nan for others
    keys: Mapping[int, str]  # of events with an unknown rate, its name
    rate_priors: Mapping[str, Gamma]

    @property
    def priors(self) -> Mapping[str, ParameterPrior]:
        """Priors of the unknown rates, by name."""
        return self.rate_priors

    @property
    def n_contexts(self) -> int:
        """Number of contexts G."""
        return len(self.factors)

    @property
    def n_outcomes(self) -> int:
        """Number of events, and none."""
        return self.factors.shape[1] + 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of events, and none: one noise."""
        return (self.n_outcomes,)

    @property
    def is_conjugate(self) -> bool:
        """False: every rate is drawn given the others."""
        return False

    def _rates(self, parameters: Parameters) -> Floats:
        rates = self.rates.copy()
        for event, key in self.keys.items():
            rates[event] = parameters[key][0]
        return rates

    def intensities(self, parameters: Parameters) -> Floats:
        """Return the rates (G, E) of all events."""
        return self.factors * self._rates(parameters)

    def table(self, parameters: Parameters) -> Floats:
        """Return the probabilities (G, E + 1)."""
        found = self.unchecked_table(parameters)
        total = float(sum(found[:, :-1].T, np.zeros(len(found))).max())
        if 1.0 - total < -EVENT_SUM_TOL:
            raise ModelError(f"the rates add up to {total:.4g} times the rate of the clock; give a faster clock")
        return found

    def unchecked_table(self, parameters: Parameters) -> Floats:
        """Return the same; where the rates add up to more than the rate of the clock, no probabilities."""
        probabilities = self.intensities(parameters) / self.clock
        none: Floats = np.asarray(1.0 - sum(probabilities.T))  # in the order of the events
        return np.column_stack([probabilities, np.where(none > EVENT_SUM_TOL, none, 0.0)])

    def largest(self, key: str, parameters: Parameters) -> float:
        """Return the largest rate of a parameter for which all rates add up to no more than the clock's."""
        others = self.intensities(parameters | {key: np.zeros(1)}).sum(axis=1)
        own = self.intensities({name: np.zeros(1) for name in parameters} | {key: np.ones(1)})
        own = own[:, [event for event, other in self.keys.items() if other == key]].sum(axis=1)
        return float(((self.clock - others[own > 0.0]) / own[own > 0.0]).min(initial=np.inf))

    def initial(self) -> Parameters:
        """Return the prior means, all divided by a number if they exceed the clock together."""
        means = super().initial()
        total = float(self.intensities(means).sum(axis=1).max() / self.clock)
        return means if total < 1.0 else {key: value * 0.5 / total for key, value in means.items()}

    def read_parameters(self, saved: Any) -> Parameters:
        """Return rates from a file after a check: they must not exceed the clock together."""
        rates = super().read_parameters(saved)
        self.table(rates)
        return rates

    def possible(self) -> Bools:
        """Return which events are possible: those with a positive factor; that none happens always is."""
        return np.column_stack([self.factors > 0.0, np.ones(self.n_contexts, dtype=bool)])

    def draw(
        self, counts: Floats, parameters: Parameters, rng: np.random.Generator, timed: Timed | None = None
    ) -> Parameters:
        """Draw the rates one after the other, each by slice sampling."""
        counts, names = counts[0], list(self.rate_priors)
        of_event = np.array([names.index(self.keys[e]) if e in self.keys else -1 for e in range(self.rates.size)])
        known = of_event < 0
        happened = np.bincount(of_event[~known], weights=counts[:, :-1].sum(axis=0)[~known], minlength=len(names))
        priors = np.array([(prior.shape, prior.rate) for prior in self.rate_priors.values()])
        rates = self._rates(parameters)
        uniforms = rng.random((len(names), SLICE_UNIFORMS))
        shapes, exposures = priors[:, 0] + happened, priors[:, 1].copy()
        if timed is not None:
            shapes += np.bincount(of_event[~known], weights=timed.happened[~known], minlength=len(names))
            exposures += np.bincount(of_event[~known], weights=timed.exposure[~known], minlength=len(names))
        draw_rates(self._scaled, counts[:, -1].copy(), rates, of_event, shapes, exposures, uniforms)
        return {name: rates[[event]] for event, name in self.keys.items()}

    @cached_property
    def _scaled(self) -> Floats:
        """Factors (G, E) that make probabilities of rates."""
        return np.ascontiguousarray(self.factors / self.clock)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "factors": self.factors,
            "clock": self.clock,
            "rates": self.rates,
            "keys": {str(event): key for event, key in self.keys.items()},
            "priors": {key: prior.to_dict() for key, prior in self.priors.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EventClock":
        """Return what ``to_dict`` described."""
        factors: Floats = read_fields(data, {"factors": reals((None, None), 0.0)})["factors"]
        n_events = factors.shape[1]
        saved = read_fields(
            data,
            {
                "clock": real(0.0),
                "rates": reals((n_events,), 0.0, unknown=True),
                "keys": table_of(text()),
                "priors": table_of(prior_from_dict),
            },
        )
        names = {str(event): event for event in range(n_events)}
        rates, keys, priors = saved["rates"], saved["keys"], saved["priors"]
        need_that(
            keys.keys() == {name for name, event in names.items() if np.isnan(rates[event])},
            "keys must be those of unknown rates",
        )
        need_that({*keys.values()} == priors.keys(), "priors must be those of the keys")
        need_that(all(isinstance(prior, Gamma) for prior in priors.values()), "priors must be gamma distributions")
        need_that(saved["clock"] > 0.0, "clock must be above 0")
        found = cls(factors, saved["clock"], rates, {names[name]: key for name, key in keys.items()}, priors)
        found.table(found.initial())
        return found
