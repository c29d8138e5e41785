r"""Metropolis moves of parameters of noises that depend on each other, given what was seen and no drawn outcomes.

If an arrival comes with probability p and stays with probability q, and only who stays is seen, then only p q is known
after many rounds, and data augmentation takes ever longer to move along the curve on which it is constant. So after
each sweep some moves are proposed in the logarithms of the parameters: of one, or of two in the same or in opposite
directions. They leave the posterior

.. math:: \pi(\theta) \prod_r p_\theta(r)^{n_r}, \qquad p_\theta(r) = \sum_{w \in r} p_\theta(w),

unchanged, where set r of joint outcomes was revealed :math:`n_r` times. Their lengths are drawn over several orders of
magnitude, so that some are about as long as the posterior is wide.
"""

import itertools

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.noise_families import raised_logs
from psconrl.learning.posterior.outcome_sets import OutcomeSets
from psconrl.model.matrix_product import product
from psconrl.systems.priors import Beta, Gamma, ParameterPrior
from psconrl.systems.randomness import Parameters, Randomness, RoundNoise

MOVES = 5  # proposed after each sweep
SHORTEST = 1e-3  # a length, of about 1 at most


class CollapsedMoves:
    """The moves for sets of outcomes that were revealed, and how often each was."""

    def __init__(self, randomness: Randomness, sets: list[tuple[OutcomeSets, Ints]]) -> None:
        self._randomness = randomness
        self._sets = [(group, np.flatnonzero(times), times[times > 0].astype(np.float64)) for group, times in sets]
        names = moved_parameters(randomness)
        self._directions = [(name,) for name in names] + list(itertools.combinations(names, 2))
        self.is_needed = len(names) > 1

    def moved(self, parameters: Parameters, rng: np.random.Generator) -> Parameters:
        """Return the parameters after some moves."""
        if not self.is_needed:
            return parameters
        here, log_here = parameters, self._log_density(parameters)
        for _ in range(MOVES):
            direction = self._directions[int(rng.integers(len(self._directions)))]
            steps = SHORTEST ** rng.random() * rng.standard_normal() * np.array([1.0, rng.choice([-1.0, 1.0])])
            there = {**here}
            for name, step in zip(direction, steps.tolist(), strict=False):
                there[name] = here[name] * special.exp(step)
            log_there = self._log_density(there)
            if rng.random() < special.exp(min(log_there - log_here, 0.0)):
                here, log_here = there, log_there
        return here

    def _log_density(self, parameters: Parameters) -> float:
        """Return the logarithm of the posterior density of the logarithms of the parameters, up to a constant."""
        priors = self._randomness.priors
        names = {name for direction in self._directions for name in direction}
        log = sum(log_prior(priors[name], float(parameters[name][0])) for name in sorted(names))
        if not np.isfinite(log):
            return -np.inf
        table = self._randomness.table(parameters)
        for group, which, times in self._sets:
            log += float(product(times, raised_logs(group.probabilities(table)[which])))
        return log


def moved_parameters(randomness: Randomness) -> list[str]:
    """Return the names of the unknown numbers of noises that depend on others, or on which others depend."""
    if not isinstance(randomness, RoundNoise):
        return []
    connected = {*randomness.parents, *itertools.chain(*randomness.parents.values())}
    keys = dict.fromkeys(key for name, key in randomness.keys.items() if name in connected)
    return [key for key in keys if isinstance(randomness.priors[key], Beta | Gamma)]


def log_prior(prior: ParameterPrior, value: float) -> float:
    """Return the logarithm of the prior density of the logarithm of a parameter, up to a constant.

    >>> log_prior(Gamma(2.0, 3.0), 1.0)
    -3.0
    """
    if not 0.0 < value < np.inf:
        return -np.inf
    if isinstance(prior, Gamma):
        return prior.shape * special.log(value) - prior.rate * value
    assert isinstance(prior, Beta)
    if value >= 1.0:
        return -np.inf
    return prior.yes * special.log(value) + (prior.no - 1.0) * special.log(1.0 - value)
