r"""Beliefs about the transitions: independent Dirichlet laws, one a pair.

.. math:: p(\cdot|s,a) \sim \mathrm{Dirichlet}(\alpha(s,a,\cdot) + N(s,a,\cdot))

A prior entry of 0 says that a transition is impossible, and is honoured until it is seen. How rows are drawn, all
entries or only those that matter, is said in ``rows``.
"""

import copy
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.arrays import Floats
from psconrl.learning.checks import as_number
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.prior_weights import LARGEST, all_weights, as_guess, as_weights, stored_weights
from psconrl.learning.posterior.sampled_rows import Prior, dirichlet_rows, is_sparse, sparse_rows
from psconrl.model.transition import DenseTransition, Transition


class Belief(Part):
    """What is believed of the transitions, given the counts."""

    kind: ClassVar[str] = "belief"
    example: ClassVar[str] = "Dirichlet(0.1)"

    @abstractmethod
    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Transitions drawn from the belief."""

    @abstractmethod
    def mean(self, counts: Counts) -> Floats:
        """The expected transitions (S*A, S)."""

    def entries(self, n_states: int, n_actions: int) -> float:
        """About how many transitions a sample has, for the memory and the time that it takes."""
        return float(n_states**2 * n_actions)

    def told(self) -> float:
        """How many observations of a pair, of the median one, it was told in advance; 0 if nothing."""
        return 0.0

    def guess(self) -> csr_array | None:
        """The transition probabilities (S*A, S) it was given in advance; None if it was given none."""
        return None


class Dirichlet(Belief):
    """The posterior under a Dirichlet prior.

    ``prior``: a number for all transitions; an array (S, A, S) in which 0 means impossible; or a sparse matrix (S*A, S)
    in which what is not stored is impossible. By default 1/S, so that all next states together weigh as much as one
    observation (docs/prior.md has the study). ``surprise``: a mass besides, spread over all states.
    """

    name: ClassVar[str] = "dirichlet"

    def __init__(self, prior: ArrayLike | csr_array | None = None, surprise: float = 0.0) -> None:
        self.prior = None if prior is None else as_weights(prior, "prior")
        self.surprise = as_number(surprise, "surprise", "a mass from 0 on", lambda x: 0 <= x <= LARGEST)
        self._alpha: Floats = np.empty((0, 0))  # dense, (S*A, S)
        self._prior: Prior | None = None  # or as a few that are stored and a rest

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        pairs = n_states * n_actions
        given = 1.0 / n_states if self.prior is None else self.prior
        rest = self.surprise + (given * n_states if isinstance(given, float) else 0.0)
        self._alpha, self._prior = np.empty((0, 0)), None
        if self._may_be_sparse() and is_sparse(n_states, rest):
            stored = stored_weights(given, n_states, n_actions, "prior", anything=rest > 0)
            self._prior = Prior(*stored, np.full(pairs, rest))
        else:
            full = all_weights(given, n_states, n_actions, "prior", anything=rest > 0)
            self._alpha = np.ascontiguousarray(full + self.surprise / n_states if self.surprise else full)

    def _may_be_sparse(self) -> bool:
        """One whose parameters are other ones wants them all."""
        return type(self).parameters is Dirichlet.parameters

    def entries(self, n_states: int, n_actions: int) -> float:
        """About how many transitions a sample has."""
        return super().entries(n_states, n_actions) if self._prior is None else self._prior.entries()

    def told(self) -> float:
        """The mass of a prior that is a table: a number for all transitions tells nothing of any."""
        if self.prior is None or isinstance(self.prior, float):
            return 0.0
        return float(np.median(np.asarray(self.prior.sum(axis=-1))))

    def guess(self) -> csr_array | None:
        """A prior that is a table of different weights."""
        return as_guess(self.prior) if self.told() >= 1.0 else None

    def __deepcopy__(self, memo: object) -> Self:
        kept = {id(array): array for array in (self.prior, self._alpha)}  # never changed, and they may be large
        new = copy.copy(self)
        vars(new).update(copy.deepcopy(vars(self), kept))
        return new

    def parameters(self, counts: Counts) -> Floats:
        """The parameters of the posterior, (S*A, S)."""
        prior = self._alpha if self._prior is None else self._prior.toarray(counts.n_states)
        return np.asarray(prior + counts.transitions)

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Transitions drawn from the posterior."""
        if self._prior is None:
            return DenseTransition(dirichlet_rows(self.parameters(counts), rng))
        parameters = self._prior.after(counts.tally, np.ones(counts.visits.size))
        return sparse_rows(parameters, counts.n_states, rng)

    def mean(self, counts: Counts) -> Floats:
        """The posterior mean (S*A, S)."""
        alpha = self.parameters(counts)
        return np.asarray(alpha / alpha.sum(axis=1, keepdims=True))


class FlooredCounts(Dirichlet):
    """The rule of the published code: parameters ``max(N, prior)`` in place of ``prior + N``."""

    name: ClassVar[str] = "floored"

    def __init__(self, prior: ArrayLike | csr_array | None = None) -> None:
        super().__init__(prior)

    def parameters(self, counts: Counts) -> Floats:
        """The parameters of the posterior, (S*A, S)."""
        return np.maximum(self._alpha, counts.transitions)
