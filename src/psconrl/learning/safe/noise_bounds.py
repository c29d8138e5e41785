r"""Confidence sets for the distributions of a system's noise, which hold uniformly over time.

The sets are boxes: bounds on the probability of every value of every noise. They follow from intervals for what is
unknown, each of which fails with probability :math:`\delta'` at most, however long one looks:

- *Probabilities of values* (``Categorical`` with a prior): the interval of ``confidence_intervals`` for every value,
  from the rounds in which the next state determines whether the noise had that value. Two values share an interval.
- *A probability* (``Bernoulli``, ``Binomial``, ``Geometric``): the same interval, for the successes among all trials of
  the rounds that reveal the value of the noise. Trials with a factor of the probability have an interval of their own
  for each factor, divided by it; the probability lies in all of them.
- *A rate of events*: an event of rate :math:`\theta` happens in a round with probability :math:`a \theta`, with a known
  factor a. If the factor is the same wherever the event is possible, rounds are trials, as above. Otherwise, with k
  events and the sum N of the factors, scaled so that the largest is 1,

  .. math:: \int_0^\infty e^{-r} \frac{r^k e^{-N r}}{\theta^k e^{-N \theta}}\, dr
            = \frac{k!}{(N+1)^{k+1}\, \theta^k e^{-N \theta}} < \frac1{\delta'},

  whose left-hand side is a supermartingale, since :math:`1 + a\theta(x - 1) \le e^{a\theta(x-1)}` for x = r / theta.
- *The rate of a* ``Poisson`` *count*: its largest value stands for all above, and what is on the shelf hides more. So
  there is an interval for the probability of every "j or more", from the rounds that reveal it. It increases with the
  rate, which therefore lies in all intervals of rates.

Only rounds count in which what is counted is revealed **whatever the outcome is**. That depends on state and action,
and not on the outcome, so that conditioning on it does no harm. A round that shows the value of a noise only by luck
does not count. Given an interval for a parameter, the probability of a value is least at one of its ends, and largest
at the parameter of the interval nearest to the one at which the value is likeliest: these distributions are unimodal in
their parameter.
"""

from collections.abc import Iterable
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError
from psconrl.kernels.arithmetic import special
from psconrl.kernels.sets.intervals import end_of_interval
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_views import EVENTS, NoiseViews, Observed, noise_names
from psconrl.systems.events import EventClock
from psconrl.systems.noise import Geometric, Poisson, Trials
from psconrl.systems.noise_base import Noise
from psconrl.systems.priors import Gamma, Weights
from psconrl.systems.randomness import Parameters, RoundNoise
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

HALVINGS_OF_RATES = 60  # bisection steps for a rate; the end outside the interval is used
BEYOND_MOST = 40.0  # standard deviations beyond the largest count at which a rate counts as infinite
SPARE_CLOCK = 0.5  # share of the clock for guessed rates that exceed it together


class NoiseBounds(NamedTuple):
    """Bounds on the probabilities of all values of all noises in every context, one noise after the other."""

    low: Floats  # (G, V)
    high: Floats  # (G, V)
    parameters: Parameters  # estimates

    def certain(self, sizes: Ints) -> Floats:
        """Return the probability mass that the lower bounds give to joint outcomes in every context, (G,).

        ``sizes`` (K,): numbers of values of the noises.
        """
        starts = np.concatenate([[0], np.cumsum(sizes)])
        parts = [self.low[:, i:j].sum(axis=1) for i, j in pairwise(starts)]
        return np.asarray(np.prod(parts, axis=0)) if parts else np.ones(len(self.low))


class NoiseIntervals:
    """Intervals for what is unknown about the noise of a system; ``words`` are needed where costs are seen by name."""

    def __init__(self, structure: Structure, words: Vocabulary | None = None) -> None:
        randomness = structure.randomness
        self._randomness = randomness
        unknown: Iterable[str] = (EVENTS,)
        if isinstance(randomness, RoundNoise):
            for name, parents in randomness.parents.items():
                raise AgentError(
                    f"safe exploration needs noises that do not depend on each other; {quoted(name)} depends on "
                    f"{' and '.join(map(repr, parents))}. Give both as one joint table, or use PSConRL"
                )
            unknown = [name for name in noise_names(randomness) if name in randomness.keys]
        self.views = NoiseViews(structure, unknown, words)

    @cached_property
    def number(self) -> int:
        """Number of intervals."""
        if isinstance(self._randomness, RoundNoise):
            return sum(self._number_of(key) for key in self._randomness.priors)
        return len(self._randomness.priors)

    def _number_of(self, key: str) -> int:
        """Return the number of intervals for one parameter."""
        assert isinstance(self._randomness, RoundNoise)
        prior = self._randomness.priors[key]
        if isinstance(prior, Weights):
            return prior.weights.size if prior.weights.size > 2 else 1
        if isinstance(prior, Gamma):
            return sum(self._size(name) * self._n_contexts(name) for name in self._named(key))
        return len(self._factors(key))

    def _factors(self, key: str) -> list[float]:
        """Return the factors of an unknown probability other than 0."""
        assert isinstance(self._randomness, RoundNoise)
        factors = [self._randomness.arguments[name]["times"] for name in self._named(key)]
        return [factor for factor in np.unique(np.concatenate(factors)).tolist() if factor > 0.0] or [1.0]

    def _named(self, key: str) -> list[str]:
        """Return the names of the noises with one parameter."""
        assert isinstance(self._randomness, RoundNoise)
        return [name for name, its in self._randomness.keys.items() if its == key]

    def _n_contexts(self, name: str) -> int:
        assert isinstance(self._randomness, RoundNoise)
        return int(self._randomness.contexts[name].max()) + 1

    def _size(self, name: str) -> int:
        """Return the largest count of a noise."""
        return self._randomness.sizes[noise_names(self._randomness).index(name)] - 1

    def bounds(self, counts: Counts, log_inverse: float) -> NoiseBounds:
        r"""Return the bounds given the counts, with :math:`\log(1/\delta')`."""
        observed = self.views.observed(counts)
        if isinstance(self._randomness, EventClock):
            return self._of_events(self._randomness, observed[EVENTS], log_inverse)
        assert isinstance(self._randomness, RoundNoise)
        return self._of_noises(self._randomness, observed, log_inverse)

    # Independent noise.

    def _of_noises(self, randomness: RoundNoise, observed: dict[str, Observed], log_inverse: float) -> NoiseBounds:
        ends, parameters = {}, {}
        for key, prior in randomness.priors.items():
            names = self._named(key)
            if isinstance(prior, Weights):
                ends[key], parameters[key] = _values(
                    [observed[name] for name in names], prior.weights.size, log_inverse
                )
            elif isinstance(prior, Gamma):
                ends[key], parameters[key] = self._poisson_rate(randomness, key, observed, log_inverse)
            else:
                ends[key], parameters[key] = self._probability(randomness, key, observed, log_inverse)
        lows, highs = [], []
        for name, noise in randomness.noises.items():
            if name not in randomness.keys:
                low = high = randomness.own_table(name, parameters)
            elif isinstance(noise.prior, Weights):
                low, high = (
                    np.broadcast_to(end, (self._n_contexts(name), end.size)) for end in ends[randomness.keys[name]]
                )
            else:
                low, high = box_of_parameter(
                    noise, ends[randomness.keys[name]], randomness.arguments[name], self._n_contexts(name)
                )
            lows.append(low[randomness.contexts[name]])
            highs.append(high[randomness.contexts[name]])
        empty = np.zeros((randomness.n_contexts, 0))
        return NoiseBounds(np.hstack([empty, *lows]), np.hstack([empty, *highs]), parameters)

    def _probability(
        self, randomness: RoundNoise, key: str, observed: dict[str, Observed], log_inverse: float
    ) -> tuple[tuple[Floats, Floats], Floats]:
        """Return the interval of a probability, from the trials of rounds that reveal the value, and an estimate.

        Trials whose probability has a factor have an interval of their own, divided by the factor.
        """
        factors = self._factors(key)
        sums = np.zeros((len(factors), 2))  # successes and failures
        for name in self._named(key):
            noise, arguments = randomness.noises[name], randomness.arguments[name]
            assert isinstance(noise, Trials)
            numbers = np.zeros((self._n_contexts(name), self._size(name) + 1))
            for (context, blocks), times in observed[name].items():
                values = sorted(set(blocks) - {-1})
                if len(values) == sum(block >= 0 for block in blocks):  # each on its own
                    numbers[context, values] += times
            trials = np.column_stack(noise.trials(numbers, arguments))
            for k, factor in enumerate(factors):
                sums[k] += trials[np.broadcast_to(arguments["times"], (len(trials),)) == factor].sum(axis=0)
        low, high, exposure = 0.0, 1.0, 0.0
        for factor, (yes, no) in zip(factors, sums.tolist(), strict=True):
            ends = [end_of_interval(yes, yes + no, log_inverse, outer) for outer in (0.0, 1.0)]
            low, high = max(low, ends[0] / factor), min(high, ends[1] / factor)
            exposure += (yes + no) * factor
        low, high = min(low, high), max(low, high)  # they are crossed only if the truth is in none
        guess = min((float(sums[:, 0].sum()) + 1.0) / (exposure + 2.0), 1.0)
        return (np.array([low]), np.array([high])), np.array([guess])

    def _poisson_rate(
        self, randomness: RoundNoise, key: str, observed: dict[str, Observed], log_inverse: float
    ) -> tuple[tuple[Floats, Floats], Floats]:
        """Return the interval of the rate of counts, and an estimate."""
        least, most, infinite = 0.0, np.inf, 0.0
        for name in self._named(key):
            noise, times = randomness.noises[name], randomness.arguments[name]["times"]
            assert isinstance(noise, Poisson)
            top = noise.most + BEYOND_MOST * (1.0 + noise.most**0.5)
            infinite = max(infinite, top / float(times[times > 0.0].min(initial=np.inf)))
            found = []
            for j in range(1, noise.most + 1):
                inside = tuple(value >= j for value in range(noise.most + 1))
                for context, (k, n) in _revealed(observed[name], inside).items():
                    if times[context] > 0.0:
                        ends = (end_of_interval(k, n, log_inverse, outer) for outer in (0.0, 1.0))
                        found.append((j, float(times[context]), *ends))
            if found:
                counts, per, low, high = np.array(found).T
                below, above = _means_at(np.array([low, high]), counts, top)
                least, most = max(least, float((below / per).max())), min(most, float((above / per).min()))
        most = most if most < infinite else infinite
        least, most = min(least, most), max(least, most)  # they are crossed only if the truth is in none
        prior = float(randomness.priors[key].mean()[0])
        guess = 0.5 * (least + most) if most < infinite else min(max(prior, least), most)
        return (np.array([least]), np.array([most])), np.array([guess])

    # Events.

    def _of_events(self, clock: EventClock, observed: Observed, log_inverse: float) -> NoiseBounds:
        least, most = clock.rates.copy(), clock.rates.copy()
        parameters = {}
        for key in clock.priors:
            events = [event for event, its in clock.keys.items() if its == key]
            inside = tuple(value in events for value in range(clock.n_outcomes))
            factors = clock.factors[:, events].sum(axis=1)
            unit = float(factors.max())
            k = n = exposure = 0.0
            for context, (times, rounds) in _revealed(observed, inside).items():
                if factors[context] > 0.0:
                    k, n, exposure = k + times, n + rounds, exposure + rounds * factors[context] / unit
            per = clock.clock / unit if unit > 0.0 else 0.0  # the largest rate, which happens in every round
            if np.isin(factors, (0.0, unit)).all():
                ends = [end_of_interval(k, n, log_inverse, outer) for outer in (0.0, 1.0)]
            else:
                ends = [end_of_rate(k, exposure, log_inverse, outer) for outer in (0.0, 1.0)]
            least[events], most[events] = per * ends[0], per * ends[1]
            # As if every event, and none, had been seen once: those never seen take little of the clock.
            parameters[key] = np.array([per * min((k + 1.0) / (exposure + clock.n_outcomes), 1.0)])
        low, high = clock.factors * least / clock.clock, np.minimum(clock.factors * most / clock.clock, 1.0)
        none = np.maximum(1.0 - high.sum(axis=1), 0.0), np.maximum(1.0 - low.sum(axis=1), 0.0)
        total = float(clock.intensities(parameters).sum(axis=1).max() / clock.clock)
        if total >= 1.0:
            parameters = {key: value * SPARE_CLOCK / total for key, value in parameters.items()}
        return NoiseBounds(np.column_stack([low, none[0]]), np.column_stack([high, none[1]]), parameters)


@cache
def _inside(blocks: tuple[int, ...], inside: tuple[bool, ...]) -> tuple[bool, ...] | None:
    """Return which sets of a partition lie in a set of values; None if one does so only in part."""
    found: dict[int, bool] = {}
    for block, value_is in zip(blocks, inside, strict=True):
        if block >= 0 and found.setdefault(block, value_is) != value_is:
            return None
    return tuple(found[block] for block in sorted(found))


def _revealed(observed: Observed, inside: tuple[bool, ...]) -> dict[int, tuple[float, float]]:
    """Return by context how often a noise was seen in a set of values, and in how many rounds that was revealed."""
    found: dict[int, tuple[float, float]] = {}
    for (context, blocks), times in observed.items():
        usable = _inside(blocks, inside)
        if usable is not None:
            k, n = found.get(context, (0.0, 0.0))
            found[context] = k + float(times @ np.array(usable, dtype=np.float64)), n + float(times.sum())
    return found


def _values(observed: list[Observed], size: int, log_inverse: float) -> tuple[tuple[Floats, Floats], Floats]:
    """Return bounds on the probabilities of all values, and estimates."""
    low, high, guess = np.zeros(size), np.ones(size), np.ones(size)
    for value in range(size):
        inside = tuple(other == value for other in range(size))
        found = [pair for views in observed for pair in _revealed(views, inside).values()]
        k, n = sum(k for k, _ in found), sum(n for _, n in found)
        low[value], high[value] = (end_of_interval(k, n, log_inverse, outer) for outer in (0.0, 1.0))
        guess[value] = (k + 1.0) / (n + size)
    if size == 2:
        low[0], high[0] = 1.0 - high[1], 1.0 - low[1]
    return (low, high), guess / guess.sum()


def end_of_rate(k: float, exposure: float, log_inverse: float, outer: float) -> float:
    """Return the end towards ``outer``, 0 or 1, of the interval of a rate, which is at most 1; rounded outwards."""
    least = special.lgamma(k + 1.0) - (k + 1.0) * special.log(exposure + 1.0) - log_inverse

    def is_out(rate: float) -> bool:
        return (k * special.log(rate) if k > 0.0 else 0.0) - exposure * rate <= least

    mean = min(k / exposure, 1.0) if exposure > 0.0 else 0.5
    if (outer == 1.0 and not is_out(1.0)) or (outer == 0.0 and k == 0.0):
        return outer
    inner = mean
    for _ in range(HALVINGS_OF_RATES):
        middle = 0.5 * (inner + outer)
        if is_out(middle):
            outer = middle
        else:
            inner = middle
    return outer


def _means_at(probabilities: Floats, counts: Floats, top: float) -> Floats:
    """Return the means at which Poisson counts are at least ``counts`` (n,) with some probabilities, (2, n).

    Those for the first row are rounded down, and the others up.
    """
    i = np.arange(int(counts.max()))
    fewer, logs = i < counts[:, None], np.array([special.lgamma(float(k) + 1.0) for k in i])
    low, high = np.zeros(probabilities.shape), np.full(probabilities.shape, top)
    for _ in range(HALVINGS_OF_RATES):
        middle = 0.5 * (low + high)
        powers = special.exp_array(i * special.log_array(middle)[:, :, None] - middle[:, :, None] - logs)
        rises = 1.0 - np.cumsum(powers * fewer, axis=2)[:, :, -1] <= probabilities  # in a fixed order
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    found = np.array([low[0], np.where(probabilities[1] >= 1.0, np.inf, high[1])])
    found[0, probabilities[0] >= 1.0] = top
    return np.where(probabilities <= 0.0, 0.0, found)


def box_of_parameter(
    noise: Noise, ends: tuple[Floats, Floats], arguments: Any, n_contexts: int
) -> tuple[Floats, Floats]:
    """Return the least and the largest probabilities (G, V) of all values for parameters in an interval."""
    first, last = (noise.table(end, arguments, n_contexts) for end in ends)
    low, high = np.minimum(first, last), np.maximum(first, last)
    best = _likeliest(noise, arguments, n_contexts)
    between = (best > ends[0]) & (best < ends[1])
    for value in np.flatnonzero(between.any(axis=0)):
        peak = noise.table(np.clip(best[:, value], *ends), arguments, n_contexts)[:, value]
        high[:, value] = np.maximum(high[:, value], peak)
    return low, high


def _likeliest(noise: Noise, arguments: Any, n_contexts: int) -> Floats:
    """Return the parameter at which each value is likeliest, (G, V)."""
    values = np.arange(len(noise.outcomes(arguments)), dtype=np.float64)
    exposures = arguments["times"] * arguments.get(noise.exposure_name, 1.0)
    if isinstance(noise, Geometric):
        values = 1.0 / (values + 1.0)
        values[-1] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.nan_to_num(values / np.broadcast_to(exposures, (n_contexts,))[:, None], nan=0.0, posinf=np.inf)
    if isinstance(noise, Poisson):
        found[:, -1] = np.inf
    return np.asarray(found)
