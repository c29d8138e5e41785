"""The likelihood of the results of rounds under the description, and the largest over its unknown parameters."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ModelError
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.checks.distribution_check import local_maxima
from psconrl.learning.posterior.checks.round_results import Cells, RoundResults
from psconrl.learning.posterior.noise_families import raised_logs
from psconrl.model.matrix_product import product
from psconrl.systems.priors import Beta, Weights
from psconrl.systems.randomness import Parameters, RoundNoise
from psconrl.systems.structure import Structure

SWEEPS_OF_SEARCH = 40  # over all parameters
ENDS_BELOW = 1e-3  # of the log-likelihood: a sweep that gains less is the last
STEPS_OF_NEWTON, DIFFERENCE = 12, 0.05  # of Newton's method in one parameter, and the width of its differences
LONGEST_STEP = 2.0  # step in the logarithm of a rate, or of odds
FARTHEST_STEP = 1e6  # multiple of a sweep's step that is tried
SPREAD_STARTS = 8  # of searches
MOST_ODDS = 30.0  # logarithm of odds, or of rates


class ResultLikelihood:
    """Likelihoods of numbers of results."""

    def __init__(self, structure: Structure, results: RoundResults) -> None:
        self._structure, self._results = structure, results
        self._cells = results.cells([])

    @property
    def _all(self) -> Cells:
        """The cells of all results that were seen."""
        if self._cells.number != len(self._results.results):
            self._cells = self._results.cells(range(len(self._results.results)))
        return self._cells

    def log(self, counts: Floats, parameters: Parameters) -> float:
        """Return the log-likelihood of numbers (R,) of results."""
        cells = self._all
        try:
            table = self._structure.table(parameters)
        except ModelError:  # the rates exceed the clock
            return -np.inf
        shares = np.bincount(cells.result, weights=table[cells.contexts, cells.outcomes], minlength=cells.number)
        return float(product(counts, raised_logs(shares.astype(np.float64))))

    def largest(self, counts: Floats, near: Parameters) -> tuple[float, Parameters]:
        """Return the largest log-likelihood over the unknown parameters, and where; the search begins ``near``."""
        best = {key: value.copy() for key, value in near.items()}
        largest = self.log(counts, best)
        for _ in range(SWEEPS_OF_SEARCH):
            before, start = largest, dict(best)
            for key, prior in self._structure.randomness.priors.items():
                if isinstance(prior, Weights):
                    best[key] = self._expected_shares(counts, best, key)
                    largest = self.log(counts, best)
                else:
                    best[key], largest = climbed(
                        lambda given: self.log(counts, given), best, key, isinstance(prior, Beta), largest
                    )
            largest, best = self._further(counts, start, best, largest)
            if largest - before < ENDS_BELOW:
                break
        return largest, best

    def largest_of(self, counts: Floats, starts: Iterable[Parameters]) -> float:
        """Return the largest log-likelihood that searches from several places find.

        A likelihood of joint results may have several local maxima. So searches also begin near those that one
        parameter has, given the others, where the probabilities of the values of a noise are reversed, and at some
        places that are spread over all parameters.
        """
        largest, best = max((self.largest(counts, start) for start in starts), key=lambda each: each[0])
        for key, prior in self._structure.randomness.priors.items():
            if isinstance(prior, Weights):
                values = [best[key][::-1].copy(), np.full(best[key].size, 1.0 / best[key].size)]
            else:
                values = local_maxima(lambda at: self.log(counts, at), best, key, isinstance(prior, Beta))
            for value in values:
                found, there = self.largest(counts, {**best, key: value})
                if found > largest:
                    largest, best = found, there
        return max([largest, *(self.largest(counts, start)[0] for start in self._spread(best))])

    def _spread(self, best: Parameters) -> Iterator[Parameters]:
        """Yield the best parameters with others of all probabilities and rates, in a sequence that spreads evenly."""
        priors = self._structure.randomness.priors
        scalars = [key for key, prior in priors.items() if not isinstance(prior, Weights)]
        steps = np.sqrt(np.arange(len(scalars)) + 1.5)  # no multiples of each other
        for k in range(SPREAD_STARTS if len(scalars) > 1 else 0):
            odds = 6.0 * ((0.5 + k * steps) % 1.0) - 3.0
            yield best | {
                key: _value(
                    x if isinstance(priors[key], Beta) else x + _coordinate(best[key], False),
                    isinstance(priors[key], Beta),
                )
                for key, x in zip(scalars, odds.tolist(), strict=True)
            }

    def _further(self, counts: Floats, start: Parameters, end: Parameters, largest: float) -> tuple[float, Parameters]:
        """Go on from where a sweep ended in the direction in which it led, twice as far each time, while that gains.

        Where only a product of parameters is well known, sweeps alone take ever smaller steps.
        """
        priors = self._structure.randomness.priors
        scalars = {key: prior for key, prior in priors.items() if not isinstance(prior, Weights)}
        if len(scalars) < 2:
            return largest, end
        ends, starts = (
            {key: _coordinate(at[key], isinstance(prior, Beta)) for key, prior in scalars.items()}
            for at in (end, start)
        )
        best, step = end, 1.0
        while True:
            there = {
                key: _value(ends[key] + step * (ends[key] - starts[key]), isinstance(prior, Beta))
                for key, prior in scalars.items()
            }
            found = self.log(counts, end | there)
            if not found > largest or step > FARTHEST_STEP:
                return largest, best
            largest, best, step = found, end | there, 2.0 * step

    def _expected_shares(self, counts: Floats, at: Parameters, key: str) -> Floats:
        """Return free probabilities after a step of expectation maximisation, which increases the likelihood."""
        randomness, cells = self._structure.randomness, self._all
        assert isinstance(randomness, RoundNoise)
        shares = self._structure.table(at)[cells.contexts, cells.outcomes]
        totals = np.bincount(cells.result, weights=shares, minlength=cells.number)
        weights = shares * (counts / np.where(totals > 0.0, totals, 1.0))[cells.result]
        places = np.unravel_index(cells.outcomes, randomness.sizes)
        expected = np.zeros(at[key].size)
        for k, name in enumerate(randomness.noises):
            if randomness.keys.get(name) == key:
                expected += np.bincount(places[k], weights=weights, minlength=expected.size)
        return np.asarray(expected / expected.sum()) if expected.sum() > 0.0 else at[key]


def climbed(
    log: Callable[[Parameters], float], at: Parameters, key: str, is_probability: bool, here: float
) -> tuple[Floats, float]:
    """Return the value of one parameter with the largest likelihood, given the others, and that likelihood.

    Newton's method in the logarithm of a rate or of odds, from where it is; a step that loses is halved.
    """

    def value(x: float) -> Floats:
        return _value(x, is_probability)

    x = _coordinate(at[key], is_probability)
    best, largest = at[key], here
    for _ in range(STEPS_OF_NEWTON):
        below, above = (log({**at, key: value(x + side)}) for side in (-DIFFERENCE, DIFFERENCE))
        slope, bend = (above - below) / (2.0 * DIFFERENCE), (above + below - 2.0 * largest) / DIFFERENCE**2
        step = -slope / bend if bend < 0.0 else np.sign(slope) * LONGEST_STEP
        step = float(np.clip(step, -LONGEST_STEP, LONGEST_STEP)) if np.isfinite(step) else 0.0
        found = log({**at, key: value(x + step)})
        while found < largest and abs(step) > 1e-4:
            step /= 2.0
            found = log({**at, key: value(x + step)})
        if found <= largest:
            break
        gained, x, best, largest = found - largest, x + step, value(x + step), found
        if gained < ENDS_BELOW / 10.0:
            break
    return best, largest


def _coordinate(value: Floats, is_probability: bool) -> float:
    """Return the logarithm of a rate, or of the odds of a probability."""
    now = float(np.clip(value[0], 1e-9, 1.0 - 1e-9 if is_probability else 1e9))
    return special.log(now / (1.0 - now)) if is_probability else special.log(now)


def _value(x: float, is_probability: bool) -> Floats:
    """Return the parameter of which ``_coordinate`` is x."""
    x = float(np.clip(x, -MOST_ODDS, MOST_ODDS))
    return np.array([1.0 / (1.0 + special.exp(-x)) if is_probability else special.exp(x)])
