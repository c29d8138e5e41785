r"""Beliefs about the transitions: independent Dirichlet distributions, one per pair.

.. math:: p(\cdot|s,a) \sim \mathrm{Dirichlet}(\alpha(s,a,\cdot) + N(s,a,\cdot))

A prior entry of 0 means that a transition is impossible; this holds until the transition is seen. ``sampled_rows``
describes how rows are drawn, all entries or only those that matter.
"""

import copy
from abc import abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.learning.argument_checks import as_number
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.given_weights import LARGEST_WEIGHT, all_weights, as_guess, as_weights, stored_weights
from psconrl.learning.posterior.sampled_rows import Prior, dirichlet_rows, is_drawn_sparse, sparse_rows
from psconrl.model.transition import DenseTransition, Transition


class Doubted(NamedTuple):
    """What an episode doubts.

    With a target: that this state is out of reach. Without: that untried pairs lead away from where one would stay, or
    that there are no shortcuts.
    """

    target: int | None
    most_visits: int = 0  # only pairs with at most this number of visits may lead to the target
    untried_stay: bool = False  # plan as if every untried pair led back to its own state


class Belief(Part):
    """Distribution over transitions, given the counts."""

    kind: ClassVar[str] = "belief"
    example: ClassVar[str] = "Dirichlet(0.1)"
    doubts: dict[str, str] | None = None  # what contradicts the prior knowledge; None if it excludes nothing
    can_doubt: ClassVar[bool] = False  # whether ``sample_in_doubt`` differs from ``sample``

    @abstractmethod
    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw transitions from the belief."""

    @abstractmethod
    def mean(self, counts: Counts) -> Floats:
        """Return the expected transitions (S*A, S)."""

    def sample_in_doubt(self, counts: Counts, doubted: Doubted, rng: np.random.Generator) -> Transition:
        """Draw transitions that allow for what is doubted; for beliefs that may become certain too soon.

        See ``parts.doubt``.
        """
        return self.sample(counts, rng)

    def expected_within(self, P: Transition, counts: Counts, state: int, steps: int) -> Transition:
        """Return a sample without what it does not expect within an episode that begins in ``state``.

        For beliefs that never become certain where a row leads.
        """
        return P

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the approximate number of transitions in a sample, to estimate its memory and time."""
        return float(n_states**2 * n_actions)

    def costs(self) -> Floats | None:
        """Return the expected costs (m+1, S, A) in the last sample, if the belief determines them; else None."""
        return None

    @property
    def determines_costs(self) -> bool:
        """True if ``costs`` returns those of the last sample, so that they need not be learned."""
        return False

    def prior_weight(self) -> float:
        """Return the weight of the prior knowledge in observations of the median pair; 0 if there is none."""
        return 0.0

    def guess(self) -> csr_array | None:
        """Return the transition probabilities (S*A, S) given in advance; None if there are none."""
        return None


class Dirichlet(Belief):
    """Posterior under a Dirichlet prior.

    ``prior``: a number for all transitions; an array (S, A, S) in which 0 means impossible; or a sparse matrix (S*A, S)
    in which entries not stored are impossible. By default 1/S, so that all next states together weigh as much as one
    observation (docs/prior.md has the study). ``surprise``: an additional mass, spread over all states.
    """

    name: ClassVar[str] = "dirichlet"

    def __init__(self, prior: ArrayLike | csr_array | None = None, surprise: float = 0.0) -> None:
        self.prior = None if prior is None else as_weights(prior, "prior")
        self.surprise = as_number(surprise, "surprise", "a mass from 0 on", lambda x: 0 <= x <= LARGEST_WEIGHT)
        self._alpha: Floats = np.empty((0, 0))  # dense, (S*A, S)
        self._prior: Prior | None = None  # or sparse: stored parameters and a rest

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        pairs = n_states * n_actions
        given = 1.0 / n_states if self.prior is None else self.prior
        rest = self.surprise + (given * n_states if isinstance(given, float) else 0.0)
        self._alpha, self._prior = np.empty((0, 0)), None
        if self._may_be_sparse() and is_drawn_sparse(n_states, rest):
            stored = stored_weights(given, n_states, n_actions, "prior", anything=rest > 0)
            self._prior = Prior(*stored, np.full(pairs, rest))
        else:
            full = all_weights(given, n_states, n_actions, "prior", anything=rest > 0)
            self._alpha = np.ascontiguousarray(full + self.surprise / n_states if self.surprise else full)

    def _may_be_sparse(self) -> bool:
        """Return False for a subclass with other parameters, which needs all of them."""
        return type(self).parameters is Dirichlet.parameters

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the approximate number of transitions in a sample."""
        return super().entries(n_states, n_actions) if self._prior is None else self._prior.entries()

    def prior_weight(self) -> float:
        """Return the median mass of a prior given as a table; 0 for a single number, which carries no knowledge."""
        if self.prior is None or isinstance(self.prior, float):
            return 0.0
        return float(np.median(np.asarray(self.prior.sum(axis=-1))))

    def guess(self) -> csr_array | None:
        """Return the probabilities of a prior given as a table of different weights; None for other priors."""
        return as_guess(self.prior) if self.prior_weight() >= 1.0 else None

    def __deepcopy__(self, memo: object) -> Self:
        kept = {id(array): array for array in (self.prior, self._alpha)}  # never changed, and they may be large
        new = copy.copy(self)
        vars(new).update(copy.deepcopy(vars(self), kept))
        return new

    def parameters(self, counts: Counts) -> Floats:
        """Return the parameters of the posterior, (S*A, S)."""
        prior = self._alpha if self._prior is None else self._prior.toarray(counts.n_states)
        return np.asarray(prior + counts.transitions)

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw transitions from the posterior."""
        if self._prior is None:
            return DenseTransition(dirichlet_rows(self.parameters(counts), rng))
        parameters = self._prior.after(counts.tally, np.ones(counts.visits.size))
        return sparse_rows(parameters, counts.n_states, rng)

    def mean(self, counts: Counts) -> Floats:
        """Return the posterior mean (S*A, S)."""
        alpha = self.parameters(counts)
        return np.asarray(alpha / alpha.sum(axis=1, keepdims=True))


class FlooredCounts(Dirichlet):
    """Rule of the published code: parameters ``max(N, prior)`` in place of ``prior + N``."""

    name: ClassVar[str] = "floored"

    def __init__(self, prior: ArrayLike | csr_array | None = None) -> None:
        super().__init__(prior)

    def parameters(self, counts: Counts) -> Floats:
        """Return the parameters ``max(N, prior)``, (S*A, S)."""
        return np.maximum(self._alpha, counts.transitions)
