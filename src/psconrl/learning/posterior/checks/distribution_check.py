r"""A test of a system's structure: do its noises have distributions of the families that its owner gave them?

A transition reveals for every noise a set of values in which its value was. In a pair the sets form a partition, and
given the pair their probabilities follow from the distribution of the noise, whose parameter :math:`\theta` is known or
not. A free distribution over the same sets, with Jeffreys' prior, predicts the sets observed in turn with a probability
q, a product of Dirichlet-multinomial terms. Universal inference (Wasserman, Ramdas and Balakrishnan 2020) compares the
two:

.. math:: E_n = \frac{q(x_1, \dots, x_n)}{\sup_\theta \prod_{i \le n} p_\theta(x_i)}.

Such an E is taken of all pairs together and of every group of pairs with the same sets, and their mean is the test: a
free distribution of each group is slow to learn, and the most visited group alone may show what is wrong. If the
structure is right, :math:`E_n` is at most a nonnegative martingale that begins with 1, so that it ever reaches
:math:`K / \alpha` with probability :math:`\alpha / K` at most (Ville), for each of K noises, however often one looks,
and whichever actions the agent chooses. A noise whose values have free probabilities, Categorical with a prior, is not
tested.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from psconrl.base.arrays import Floats
from psconrl.errors import ModelError
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.checks.structure_advice import family_text
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_views import NoiseViews, Observed, noise_names
from psconrl.systems.priors import Beta, Weights
from psconrl.systems.randomness import Parameters, RoundNoise
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

FALSE_ALARMS = 1e-3  # largest probability that a system that is right is ever doubted
SEARCH_REACH = 20.0  # distance of a search from where it begins, in logarithms of rates or of odds
SCANNED = np.arange(-8.0, 8.25, 0.5)  # odds, or rates compared with the best so far, near which a search begins again
ROUNDS_OF_SEARCH = 20  # over all parameters
IMPROVEMENT = 1e-6  # of the log-likelihood, below which the search ends


class DistributionCheck:
    """A test for every noise of a structure, or for its events together. ``words``: as of ``NoiseViews``."""

    def __init__(self, structure: Structure, words: Vocabulary | None = None) -> None:
        self._structure = structure
        self.tested = [name for name in noise_names(structure.randomness) if self._is_tested(name)]
        self._views = NoiseViews(structure, self.tested, words)

    def _is_tested(self, name: str) -> bool:
        randomness = self._structure.randomness
        return not isinstance(randomness, RoundNoise) or not isinstance(randomness.noises[name].prior, Weights)

    def log_evidence(self, counts: Counts, near: Parameters) -> dict[str, float]:
        """Return the logarithm of E for every noise that is tested; the search for parameters begins at ``near``."""
        return {
            name: self._evidence(name, views, near) for name, views in self._views.observed(counts).items() if views
        }

    def findings(self, counts: Counts, near: Parameters, bound: float) -> dict[str, tuple[float, str]]:
        """Return log E and what is wrong, for each noise whose log E has reached a bound."""
        found = {}
        for name, views in self._views.observed(counts).items():
            # Any parameters give an upper bound of E, which needs no search.
            if not views or self._evidence(name, views, near, search=False) < bound:
                continue
            evidence = self._evidence(name, views, near)
            if evidence >= bound:
                found[name] = evidence, self._text(name, evidence)
        return found

    def _evidence(self, name: str, views: Observed, near: Parameters, search: bool = True) -> float:
        """Return the logarithm of the mean of E over all pairs together and over every view; E is 1 of one not seen."""
        free = {view: _log_jeffreys(times) for view, times in views.items()}
        logs = [sum(free.values()) - self._largest(name, views, near, search)]
        logs += [free[view] - self._largest(name, {view: times}, near, search) for view, times in views.items()]
        logs += [0.0] * (self._views.number[name] - len(views))
        top = max(logs)
        return top + float(np.log(np.mean(np.exp(np.array(logs) - top)))) if np.isfinite(top) else top

    def _text(self, name: str, evidence: float) -> str:
        """Say what is wrong with a noise, what to write instead, and how certain that is."""
        randomness = self._structure.randomness
        if isinstance(randomness, RoundNoise):
            noise, size = randomness.noises[name], randomness.sizes[list(randomness.noises).index(name)]
            text = family_text(f"{name} does not follow {noise!r}", noise, size)
        else:
            text = family_text("the events do not happen at the rates given", None, 0)
        return (
            f"{text}. The transitions observed are 10^{evidence / np.log(10):.1f} times as probable if its "
            f"distribution is free; right systems are doubted in one run of {1 / FALSE_ALARMS:,.0f} at most"
        )

    def _largest(self, name: str, views: Observed, near: Parameters, search: bool) -> float:
        """Return the logarithm of the largest likelihood of what was observed, over the unknown parameters."""
        randomness = self._structure.randomness
        priors = dict(randomness.priors)
        if isinstance(randomness, RoundNoise):
            priors = {randomness.keys[name]: priors[randomness.keys[name]]} if name in randomness.keys else {}

        def log_likelihood(parameters: Parameters) -> float:
            try:
                if isinstance(randomness, RoundNoise):
                    table = randomness.own_table(name, parameters)
                else:
                    table = randomness.table(parameters)
            except ModelError:  # the rates exceed the clock
                return -np.inf
            return sum(_log_probability(table[context], blocks, times) for (context, blocks), times in views.items())

        best = {key: value.copy() for key, value in near.items()}
        largest = log_likelihood(best)
        if not priors or not search:
            return largest
        for _ in range(ROUNDS_OF_SEARCH if len(priors) > 1 else 1):
            before = largest
            for key, prior in priors.items():
                is_probability = isinstance(prior, Beta)
                best[key], largest = search_parameter(log_likelihood, best, key, is_probability, largest)
                for start in local_maxima(log_likelihood, best, key, is_probability):
                    there = {**best, key: start}
                    found = search_parameter(log_likelihood, there, key, is_probability, log_likelihood(there))
                    best[key], largest = max((best[key], largest), found, key=lambda each: each[1])
            if largest - before < IMPROVEMENT:
                break
        return largest


def _log_jeffreys(times: Floats) -> float:
    """Return the logarithm of the probability of a sequence with these counts, under Jeffreys' prior."""
    k, n = times.size, float(times.sum())
    each = sum(special.lgamma(float(t) + 0.5) for t in times) - k * special.lgamma(0.5)
    return special.lgamma(0.5 * k) - special.lgamma(n + 0.5 * k) + each


def _log_probability(row: Floats, blocks: tuple[int, ...], times: Floats) -> float:
    marks = np.array(blocks)
    kept = marks >= 0
    names, places = np.unique(marks[kept], return_inverse=True)
    shares = np.bincount(places, weights=row[kept], minlength=names.size)
    some = times > 0.0
    if (shares[some] <= 0.0).any():
        return -np.inf
    return float(times[some] @ special.log_array(np.ascontiguousarray(shares[some])))


def local_maxima(
    log_likelihood: Callable[[Parameters], float], at: Parameters, key: str, is_probability: bool
) -> list[Floats]:
    """Return values of one parameter near which the likelihood may have a local maximum, given the others.

    Likelihoods of sets of values may have several: whether one of two trials succeeds is as probable under 1 - p.
    """
    middle = 0.0 if is_probability else special.log(float(np.clip(at[key][0], 1e-9, 1e9)))
    values = special.exp_array(middle + SCANNED)
    values = values / (1.0 + values) if is_probability else values
    logs = np.array([log_likelihood({**at, key: np.array([value])}) for value in values.tolist()])
    padded = np.concatenate([[-np.inf], logs, [-np.inf]])
    found = np.flatnonzero((logs > padded[:-2]) & (logs >= padded[2:]))
    return [values[[place]] for place in found.tolist()]


def search_parameter(
    log_likelihood: Callable[[Parameters], float], at: Parameters, key: str, is_probability: bool, here: float
) -> tuple[Floats, float]:
    """Return the value of one parameter with the largest likelihood, given the others, and that likelihood."""

    def parameter(x: float) -> float:
        return 1.0 / (1.0 + special.exp(-x)) if is_probability else special.exp(x)

    def loss(x: float) -> float:
        found = log_likelihood({**at, key: np.array([parameter(x)])})
        return -found if np.isfinite(found) else 1e300

    value = float(np.clip(at[key][0], 1e-9, 1.0 - 1e-9 if is_probability else 1e9))
    middle = float(np.log(value / (1.0 - value)) if is_probability else np.log(value))
    losses = {step: loss(middle + step) for step in (-1.0, 0.0, 1.0)}
    while abs(step := min(losses, key=lambda each: losses[each])) == max(map(abs, losses)) and abs(step) < SEARCH_REACH:
        following = step + np.sign(step)
        losses[following] = loss(middle + following)
    low, high = middle + step - 1.0, middle + step + 1.0
    result = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    x, least = min((float(result.x), float(result.fun)), (middle + step, losses[step]), key=lambda each: each[1])
    return (at[key], here) if -least <= here else (np.array([parameter(x)]), -least)
