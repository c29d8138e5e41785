r"""What is known of the unknown parameters of a system: posterior means and 90% intervals.

Given the outcomes of the noise, the posterior of a parameter is a gamma or beta distribution. Where what was seen
leaves outcomes open, these are drawn in turn with the parameters, and the posterior is the mean of its conditionals
(Gelfand and Smith 1990):

.. math:: P(\theta \le x \mid \text{seen}) \approx \frac1K \sum_{k \le K} P(\theta \le x \mid \text{outcomes}_k).

If nothing is open, this is exact. Rates of events have no such form, and are summarised by the draws themselves. The
draws have random numbers of their own, so that looking at estimates changes no run.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, gammainc, gammaincinv

from psconrl.arrays import Floats
from psconrl.learning.posterior.gibbs import Gibbs
from psconrl.systems.categorical import Categorical
from psconrl.systems.priors import Beta, Gamma, ParameterPrior, Weights
from psconrl.systems.randomness import IndependentNoise, Parameters, Randomness

SHARE = 0.9  # probability of an interval
TAILS = ((1.0 - SHARE) / 2.0, (1.0 + SHARE) / 2.0)
DRAWS, BURN_IN = 400, 20  # of an estimate
QUICK_DRAWS = 20  # of the means in a log, which has one row per episode


class Estimate(NamedTuple):
    """The posterior of one parameter: its mean, a 90% interval, and the number of rounds that informed about it.

    >>> print(Estimate(2.31, 2.2, 2.42, 1000))
    2.31 (90%: 2.2 to 2.42; 1,000 observations)
    """

    mean: float
    low: float
    high: float
    observations: int

    def __str__(self) -> str:
        n = f"{self.observations:,} observation{'' if self.observations == 1 else 's'}"
        return f"{self.mean:.4g} ({SHARE:.0%}: {self.low:.4g} to {self.high:.4g}; {n})"


class Estimates(dict[str, Estimate]):
    """Estimates by name of the parameter; printed, one line each."""

    def __str__(self) -> str:
        return "\n".join(f"{name}: {estimate}" for name, estimate in self.items())


class _Components(NamedTuple):
    """A mixture of gamma distributions (shape, rate) or beta distributions (a, b), with equal weights."""

    is_gamma: bool
    a: Floats
    b: Floats

    def mean(self) -> float:
        return float(np.mean(self.a / (self.b if self.is_gamma else self.a + self.b)))

    def _cdf(self, x: float) -> float:
        return float(np.mean(gammainc(self.a, self.b * x) if self.is_gamma else betainc(self.a, self.b, x)))

    def quantile(self, share: float) -> float:
        """Return the value that is exceeded with probability 1 - share."""
        own = gammaincinv(self.a, share) / self.b if self.is_gamma else betaincinv(self.a, self.b, share)
        low, high = float(own.min()), float(own.max())
        if low == high or self._cdf(low) >= share or self._cdf(high) <= share:  # equal but for rounding
            return low
        return float(brentq(lambda x: self._cdf(x) - share, low, high, xtol=1e-12 * high, rtol=1e-12))


def estimates(randomness: Randomness, gibbs: Gibbs, parameters: Parameters) -> Estimates:
    """Return the estimates of all unknown parameters; ``parameters``: where the draws begin."""
    observations = gibbs.observations
    found = Estimates()
    for name, (key, summary) in _summaries(randomness, gibbs, parameters, DRAWS, BURN_IN).items():
        if isinstance(summary, _Components):
            low, high = (summary.quantile(tail) for tail in TAILS)
            found[name] = Estimate(summary.mean(), low, high, observations[key])
        else:
            low, high = np.quantile(summary, TAILS).tolist()
            found[name] = Estimate(float(summary.mean()), low, high, observations[key])
    return found


def quick_means(randomness: Randomness, gibbs: Gibbs, parameters: Parameters) -> dict[str, float]:
    """Return approximate posterior means of all unknown parameters, from a few draws."""
    found = _summaries(randomness, gibbs, parameters, QUICK_DRAWS, 0)
    return {name: float(summary.mean()) for name, (_, summary) in found.items()}


def _summaries(
    randomness: Randomness, gibbs: Gibbs, parameters: Parameters, draws: int, burn_in: int
) -> dict[str, tuple[str, _Components | Floats]]:
    """Return the name of every number that is unknown, with its parameter, and its mixture or its draws."""
    rng = np.random.Generator(np.random.PCG64(0))
    priors, parameters = randomness.priors, dict(parameters)
    if not priors:
        return {}
    by_draw: dict[str, list[Floats]] = {key: [] for key in priors}
    for k in range(1 if gibbs.is_exact else burn_in + draws):
        own: Mapping[str, Floats] = {}
        if isinstance(randomness, IndependentNoise):
            outcomes = gibbs.outcomes(parameters, rng)
            own = randomness.statistics(outcomes, parameters, rng)
            parameters = gibbs.moved(randomness.draw(outcomes, parameters, rng), rng)
        else:
            parameters = gibbs.sweep(parameters, rng)
        if k >= burn_in or gibbs.is_exact:
            for key, drawn in by_draw.items():
                drawn.append(own.get(key, parameters[key]))
    found: dict[str, tuple[str, _Components | Floats]] = {}
    for key, drawn in by_draw.items():
        rows = np.array(drawn)
        if not isinstance(randomness, IndependentNoise):
            found[key] = key, rows[:, 0]
            continue
        for name, components in _posteriors(key, priors[key], rows, _values(randomness, key)):
            found[name] = key, components
    return found


def _posteriors(
    key: str, prior: ParameterPrior, statistics: Floats, values: list[str]
) -> list[tuple[str, _Components]]:
    """Return the posteriors given sufficient statistics, one row per draw."""
    if isinstance(prior, Gamma):
        return [(key, _Components(True, prior.shape + statistics[:, 0], prior.rate + statistics[:, 1]))]
    if isinstance(prior, Beta):
        return [(key, _Components(False, prior.yes + statistics[:, 0], prior.no + statistics[:, 1]))]
    assert isinstance(prior, Weights)
    weights = prior.weights + statistics
    rest = weights.sum(axis=1, keepdims=True) - weights
    return [
        (f"{key}={value}", _Components(False, own, other))
        for value, own, other in zip(values, weights.T, rest.T, strict=True)
    ]


def _values(randomness: IndependentNoise, key: str) -> list[str]:
    """Return the values of a parameter that is a table of probabilities."""
    for name, noise in randomness.noises.items():
        if randomness.keys.get(name) == key and isinstance(noise, Categorical):
            return [str(value) for value in noise.outcomes({})]
    return []
