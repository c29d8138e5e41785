r"""What is known of the unknown parameters of a system: posterior means and 90% intervals.

Given the outcomes of the noise, the posterior of a parameter is a gamma or beta distribution. Where what was seen
leaves outcomes open, these are drawn in turn with the parameters, and the posterior is the mean of its conditionals
(Gelfand and Smith 1990):

.. math:: P(\theta \le x \mid \text{seen}) \approx \frac1K \sum_{k \le K} P(\theta \le x \mid \text{outcomes}_k).

If nothing is open, this is exact. Where draws depend on each other for long, there are more of them. Rates of events
have no such form, and are summarised by the draws themselves. The draws have random numbers of their own, so that
looking at estimates changes no run.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, gammainc, gammaincinv

from psconrl.base.arrays import Floats
from psconrl.learning.posterior.gibbs import Gibbs
from psconrl.systems.categorical import Categorical
from psconrl.systems.priors import Beta, Gamma, ParameterPrior, Weights
from psconrl.systems.randomness import Parameters, Randomness, RoundNoise

SHARE = 0.9  # probability of an interval
TAILS = ((1.0 - SHARE) / 2.0, (1.0 + SHARE) / 2.0)
DRAWS, BURN_IN = 400, 20  # of an estimate
MOST_DRAWS = 8 * DRAWS  # where draws depend on each other for long
PRECISION = 0.1  # of a mean: its standard error, in standard deviations of the posterior
BATCHES = 20
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
    for name, (key, summary) in _summaries(randomness, gibbs, parameters, BURN_IN, DRAWS, MOST_DRAWS).items():
        if isinstance(summary, _Components):
            low, high = (summary.quantile(tail) for tail in TAILS)
            found[name] = Estimate(summary.mean(), low, high, observations[key])
        else:
            low, high = np.quantile(summary, TAILS).tolist()
            found[name] = Estimate(float(summary.mean()), low, high, observations[key])
    return found


def quick_means(randomness: Randomness, gibbs: Gibbs, parameters: Parameters) -> dict[str, float]:
    """Return approximate posterior means of all unknown parameters, from a few draws."""
    found = _summaries(randomness, gibbs, parameters, 0, QUICK_DRAWS, QUICK_DRAWS)
    return {name: float(summary.mean()) for name, (_, summary) in found.items()}


def _summaries(
    randomness: Randomness, gibbs: Gibbs, parameters: Parameters, burn_in: int, draws: int, most: int
) -> dict[str, tuple[str, _Components | Floats]]:
    """Return the name of every number that is unknown, with its parameter, and its mixture or its draws.

    More than ``draws`` are made, up to ``most``, as long as their means are not precise.
    """
    priors = randomness.priors
    if not priors:
        return {}
    chain = _draws(randomness, gibbs, dict(parameters))
    kept = [next(chain) for _ in range(1 if gibbs.is_exact else burn_in + draws)][0 if gibbs.is_exact else burn_in :]
    while not gibbs.is_exact and len(kept) < most and not _are_precise([drawn for drawn, _ in kept]):
        kept += [next(chain) for _ in range(len(kept))]
    by_draw = {key: [own.get(key, drawn[key]) for drawn, own in kept] for key in priors}
    found: dict[str, tuple[str, _Components | Floats]] = {}
    for key, drawn in by_draw.items():
        rows = np.array(drawn)
        if not isinstance(randomness, RoundNoise):
            found[key] = key, rows[:, 0]
            continue
        for name, components in _posteriors(key, priors[key], rows, _values(randomness, key)):
            found[name] = key, components
    return found


def _draws(
    randomness: Randomness, gibbs: Gibbs, parameters: Parameters
) -> Iterator[tuple[Parameters, Mapping[str, Floats]]]:
    """Yield parameters that were drawn, and the sufficient statistics that they were drawn from, if there are any."""
    rng = np.random.Generator(np.random.PCG64(0))
    while True:
        own: Mapping[str, Floats] = {}
        if isinstance(randomness, RoundNoise):
            outcomes = gibbs.outcomes(parameters, rng)
            own = randomness.statistics(outcomes, parameters, rng)
            parameters = gibbs.moved(randomness.draw(outcomes, parameters, rng), rng)
        else:
            parameters = gibbs.sweep(parameters, rng)
        yield parameters, own


def _are_precise(drawn: list[Parameters]) -> bool:
    """Return whether the means of draws have a small standard error, by the means of batches (Geyer 1992)."""
    for key in drawn[0]:
        rows = np.array([each[key] for each in drawn])
        size = len(rows) // BATCHES
        if size == 0:
            return True
        means = rows[: size * BATCHES].reshape(BATCHES, size, -1).mean(axis=1)
        if (means.std(axis=0, ddof=1) > PRECISION * BATCHES**0.5 * rows.std(axis=0)).any():
            return False
    return True


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


def _values(randomness: RoundNoise, key: str) -> list[str]:
    """Return the values of a parameter that is a table of probabilities."""
    for name, noise in randomness.noises.items():
        if randomness.keys.get(name) == key and isinstance(noise, Categorical):
            return [str(value) for value in noise.outcomes({})]
    return []
