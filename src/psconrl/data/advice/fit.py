"""What a log says of the unknown parameters of a system."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.rounds.recorded import Recorded
from psconrl.learning.posterior.estimates import Estimates
from psconrl.systems.system import System

FIT_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Fit:
    """The posterior of a system's unknown parameters.

    ``parameters``: by name, means with intervals of 90% and the number of rounds that informed about them; printed, one
    line each. ``system``: the same system with the posterior means as known parameters, to be planned. ``means``: these
    by name of the noise.
    """

    parameters: Estimates
    system: System
    means: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {name: estimate._asdict() for name, estimate in self.parameters.items()}

    def __str__(self) -> str:
        return str(self.parameters) or "nothing is unknown in this system"


def fitted(log: Recorded, system: System, seed: int = 0) -> Fit:
    """Return the posterior of a system's parameters given a log."""
    posterior = NoisePosterior(log, system)
    unknown = system.source.unknown()
    if not unknown:
        return Fit(Estimates(), system, {})
    drawn = posterior.parameters(FIT_DRAWS, np.random.default_rng(seed))
    means = {name: _as_argument(np.mean([own[name] for own in drawn], axis=0)) for name in unknown}
    return Fit(posterior.belief.estimates(posterior.counts), system.with_noise(**means), means)


def _as_argument(value: Floats) -> Any:
    """Return a number, or a list of probabilities."""
    flat = np.ravel(value).tolist()
    return flat[0] if len(flat) == 1 else flat
