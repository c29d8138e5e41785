"""The posterior of a log with a system: only the unknown parameters of its noise are learned, from every state at once.

What a round reveals of the noise, and where the noise is censored, is that of ``learning.posterior.noise_posterior``:
sales that emptied the shelf say that demand was at least as large.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.data.posterior.limits import system_with
from psconrl.data.posterior.row_posterior import Models, Posterior
from psconrl.data.rounds.recorded import Recorded
from psconrl.learning.posterior.gibbs import SWEEPS
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.systems.randomness import Parameters
from psconrl.systems.system import System

NOISE_BURN_IN = 50  # sweeps that are dropped if draws depend on each other


class NoisePosterior(Posterior):
    """The posterior of the parameters of a system's noise."""

    name = "structured"

    def __init__(self, log: Recorded, system: System, today: Recorded | None = None) -> None:
        super().__init__(log, today=today)
        system = system_with(system, None)
        self.system = system
        self.belief = Structured.of(system)
        self.belief.made_for(self.n_states, self.n_actions, len(system.thresholds))
        self.structure = self.belief.known_structure
        self.gibbs = self.belief._gibbs(self.counts)
        self._parameters: Parameters = self.structure.randomness.initial()
        self._burnt = False

    def entries(self) -> float:
        """Return the approximate number of transitions of one draw."""
        return float(self.structure.patterns.successors.size + self.structure.fixed_costs.size)

    def parameters(self, n: int, rng: np.random.Generator) -> list[Parameters]:
        """Draw parameters."""
        if not self.structure.randomness.priors:
            return [self._parameters] * n
        every = 1 if self.gibbs.is_exact else SWEEPS
        for _ in range(0 if self._burnt or self.gibbs.is_exact else NOISE_BURN_IN):
            self._parameters = self.gibbs.sweep(self._parameters, rng)
        self._burnt = True
        found = []
        for _ in range(n):
            for _ in range(every):
                self._parameters = self.gibbs.sweep(self._parameters, rng)
            found.append(self._parameters)
        return found

    def draw(self, n: int, rng: np.random.Generator) -> Models:
        """Draw models."""
        return self.models(self.parameters(n, rng), rng)

    def models(self, parameters: list[Parameters], rng: np.random.Generator) -> Models:
        """Return the models of some parameters."""
        structure, patterns, n = self.structure, self.structure.patterns, len(parameters)
        size = patterns.successors.size
        if n * size >= 2**31:
            raise ValueError("fewer models must be drawn at a time")
        data = np.empty((n, size))
        costs = np.empty((n, len(structure.fixed_costs), structure.contexts.size))
        for k, own in enumerate(parameters):
            data[k] = patterns.probabilities(structure.table(own))[patterns.of_entry]
            costs[k] = structure.costs(own).reshape(costs[k].shape)
        starts = np.arange(n)[:, None] * size + patterns.indptr[:-1]
        indptr = np.append(starts.ravel(), n * size).astype(np.int32)
        indices = np.tile(patterns.successors.astype(np.int32), n)
        return Models(indptr, indices, data.ravel(), costs, self.behaviour.draw(n, rng), self.start, self.reference)

    def mean(self, models: Models) -> tuple[csr_array, Floats]:
        """Return the mean transitions (S*A, S) and costs (m+1, S*A) of models drawn."""
        patterns = self.structure.patterns
        data = models.data.reshape(models.n_draws, -1).mean(axis=0)
        matrix = csr_array(
            (data, patterns.successors, patterns.indptr), shape=(len(self.structure.contexts), self.n_states)
        )
        return matrix, models.costs.mean(axis=0)
