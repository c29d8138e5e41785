"""Unknown parameters of which no next state reveals anything, although costs depend on them.

A newsvendor who notes every evening only that a new day begins learns nothing of the demand. Such a parameter is found
by trial: its prior mean is replaced by other values, and no transition probability changes, but an expected cost does.
"""

from collections.abc import Iterator

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ModelError
from psconrl.systems.priors import Beta, Gamma, ParameterPrior
from psconrl.systems.randomness import Randomness, RoundNoise
from psconrl.systems.structure import Structure

SAME = 1e-12  # probabilities, and relative costs, that differ by less are the same
EVENT = "event"  # the name by which events are seen


def hidden_parameters(structure: Structure) -> dict[str, str]:
    """Return the hidden parameters, and for each the noise by which it can be seen."""
    usual = structure.randomness.initial()
    found = {}
    for name, prior in structure.randomness.priors.items():
        tables = [usual]
        for value in _others(prior):
            try:
                structure.table(usual | {name: value})
            except ModelError:  # the rates exceed the clock
                continue
            tables.append(usual | {name: value})
        patterns = [structure.patterns.probabilities(structure.table(parameters)) for parameters in tables]
        if any((np.abs(other - patterns[0]) > SAME).any() for other in patterns):
            continue
        costs = [structure.costs(parameters) for parameters in tables]
        if any((np.abs(other - costs[0]) > SAME * np.abs(costs[0]).max()).any() for other in costs):
            found[name] = _seen_by(structure.randomness, name)
    return found


def _seen_by(randomness: Randomness, parameter: str) -> str:
    """Return the name of a noise with a parameter."""
    keys = randomness.keys if isinstance(randomness, RoundNoise) else {}
    return next((noise for noise, key in keys.items() if key == parameter), EVENT)


def _others(prior: ParameterPrior) -> Iterator[Floats]:
    """Return values that differ from the prior mean."""
    mean = prior.mean()
    if isinstance(prior, Gamma):
        yield from (np.array([value]) for value in (0.5 * mean[0], 0.1, 1.0, 3.0))
    elif isinstance(prior, Beta):
        yield from (np.array([value]) for value in (0.5 * mean[0], 0.1, 0.5, 0.9))
    else:
        for weights in (mean * np.arange(1, mean.size + 1), mean * np.arange(mean.size, 0, -1)):
            yield weights / weights.sum()
