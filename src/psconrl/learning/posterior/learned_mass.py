r"""A belief that learns how random transitions are: a Dirichlet prior whose mass is unknown, on a grid.

An environment with nearly deterministic actions needs a prior of small mass, one whose actions have many outcomes a
prior of larger mass, and it is not known in advance which it is. So every action has a mass, uniform over K values on
a grid:

.. math:: M_a \sim \mathrm{Uniform}(M_1, \dots, M_K), \qquad
          p(\cdot|s,a) \sim \mathrm{Dirichlet}(M_a/S, \dots, M_a/S).

Given the counts n of a row, the mass k has the Dirichlet-multinomial likelihood

.. math:: L_k = \ln\Gamma(M_k) - \ln\Gamma(M_k + n) +
          \sum_{j:\,n_j > 0} \big[\ln\Gamma(M_k/S + n_j) - \ln\Gamma(M_k/S)\big],

and the likelihoods of all rows of an action multiply: the rows share information. A draw of (M, p) given the counts is
a draw from the posterior of this hierarchy, so that posterior sampling keeps its Bayesian identity.

Rows may be exceptions. In an environment where every other row is deterministic, one door may open at one try in seven,
and an agent that is certain of the contrary gives up what is behind it. So each row is an exception with probability
:math:`\epsilon \sim \mathrm{Beta}(1, SA)`, about one in the model. An exception has its own mass, uniform on the grid.
The set of exceptions, the masses and :math:`\epsilon` are drawn in turn (Gibbs), one sweep per episode.

The grid ends at 1, the weight of one observation. A prior of mass M adds M imaginary observations that are spread over
*all* states, while the outcomes of a random action are spread over a few: above 1 the bias does more harm than the
spread does good. The grid begins far below. At mass M, one row in 1/M is believed to lead eventually to a state that
was never visited. If that state seems better than all that can be reached, the agent heads for it again and again
(benchmarks/RESULTS.md).

Knowledge of where a row leads goes into its base measure, by default uniform over all states; M_a times the base
measure gives the parameters. Given a ``support``, the base measure is spread over it. Given the transitions of a rough
model as weights, it is proportional to them, and the mass learned is the model's worth in observations.

``exact=False`` gives every row its own mass, :math:`M_{sa} \sim w_a`, with weights
:math:`w_a \sim \mathrm{Dirichlet}(1/K, \dots, 1/K)`. Masses and weights are then drawn in turn (Gibbs), without the
rows never tried, which is exact only in the limit of many sweeps.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import distributions, flags, read_fields
from psconrl.errors import AgentError, ConfigError, unknown_name
from psconrl.kernels.arithmetic import special
from psconrl.kernels.draws import counts as kernels
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.learning.argument_checks import as_flag, as_number, as_numbers
from psconrl.learning.posterior.counts import Counts, need_table
from psconrl.learning.posterior.given_weights import SMALLEST_WEIGHT, as_guess, as_weights, stored_weights
from psconrl.learning.posterior.sampled_rows import Prior, dirichlet_rows, is_drawn_sparse, sparse_rows
from psconrl.learning.posterior.transition_beliefs import Belief, Doubted
from psconrl.model.transition import DenseTransition, Transition

DEFAULT_MASSES = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)
WORTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # masses of a model in observations, if its worth is learned
HEAVIEST = 1e6  # beyond, the difference of two log-gamma values has no correct digits
POOLS = ("action", "all")
WEIGHT_SWEEPS = 2  # per episode, since the weights mix slowly


class LearnedMass(Belief):
    """Posterior under Dirichlet priors of unknown mass.

    ``grid``: the masses. ``pool``: which rows share information, those of an ``"action"`` or ``"all"``. ``exact``: one
    mass for all rows of a pool; otherwise one for every row, by Gibbs sampling. ``exceptions``: whether a row of a pool
    may still have its own mass; without exceptions, draws are exact. ``support``: the possible transitions, if known:
    an array (S, A, S) of 0 and 1, or a sparse matrix (S*A, S); other weights than 1 express what is more likely.
    ``surprise``: the share of a mass that is spread over all states regardless of the support.
    """

    name: ClassVar[str] = "learned-mass"
    can_doubt: ClassVar[bool] = True

    def __init__(
        self,
        grid: ArrayLike = DEFAULT_MASSES,
        pool: str = "action",
        exact: bool = True,
        exceptions: bool = True,
        support: ArrayLike | csr_array | None = None,
        surprise: float = 0.0,
    ) -> None:
        self._masses = _as_grid(grid)
        self.grid = tuple(self._masses.tolist())
        if pool not in POOLS:
            raise ConfigError(unknown_name("pool", pool, POOLS))
        self.pool, self.exact, self.exceptions = pool, as_flag(exact, "exact"), as_flag(exceptions, "exceptions")
        self.support = None if support is None else as_weights(support, "support")
        if isinstance(self.support, float):
            raise AgentError(f"support must have shape (S, A, S), or be sparse, (S*A, S); got {quoted(support)}")
        self.surprise = as_number(surprise, "surprise", "a share from 0 to below 1", lambda x: 0 <= x < 1)
        self._prior = Prior(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))  # weights of the base measure
        self._total: Floats = np.zeros(0)  # (S*A,) their sums
        self._table: Floats | None = None  # (S*A, S) the weights, if all entries are drawn
        self._n_states = 0
        self._group: Ints = np.zeros(0, dtype=np.int64)  # (S*A,) the pool of every row
        self.weights: Floats = np.zeros((0, 0))  # (pools, K)
        self._likelihood: Floats = np.zeros((0, 0))  # (S*A, K), given the visits below
        self._seen: Ints = np.zeros(0, dtype=np.int64)
        self._exceptional: Bools = np.zeros(0, dtype=bool)  # (S*A,) the exceptions in the last draw

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        pairs, K = np.arange(n_states * n_actions), self._masses.size
        self._n_states = n_states
        self._prior, self._total = self._base(n_states, n_actions)
        heaviest = self._masses[-1] * (self._prior.rest / self._total).max()
        sparse = is_drawn_sparse(n_states, heaviest)
        if not sparse:
            need_table(n_states, n_actions)
        self._table = None if sparse else self._prior.toarray(n_states)
        self._group = pairs % n_actions if self.pool == "action" else np.zeros_like(pairs)
        self.weights = np.full((int(self._group.max()) + 1, K), 1.0 / K)
        self._likelihood = np.zeros((pairs.size, K))
        self._seen = np.zeros(pairs.size, dtype=np.int64)
        self._exceptional = np.zeros(pairs.size, dtype=bool)

    def prior_weight(self) -> float:
        """Return the largest mass on the grid if a support is given; 0 otherwise."""
        return 0.0 if self.support is None else float(self._masses[-1])

    def guess(self) -> csr_array | None:
        """Return the probabilities of a support with different weights; None for other supports."""
        return as_guess(self.support)

    def _base(self, n_states: int, n_actions: int) -> tuple[Prior, Floats]:
        """Return the weights of the base measure and their sums; all weights are 1 without a support."""
        pairs = n_states * n_actions
        if self.support is None:
            each = np.full(pairs, float(n_states))
            return Prior(np.zeros(0, dtype=np.int64), np.zeros(0), each), each
        stored: tuple[Ints, Floats] = stored_weights(self.support, n_states, n_actions, "support", anything=False)
        sums = np.bincount(stored[0] // n_states, stored[1], minlength=pairs)
        rest = sums * self.surprise / (1.0 - self.surprise)
        return Prior(*stored, np.asarray(rest)), np.asarray(sums + rest)

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the approximate number of transitions in a sample."""
        if self._table is not None:
            return super().entries(n_states, n_actions)
        heaviest = self._prior._replace(rest=self._masses[-1] * self._prior.rest / self._total)
        return heaviest.entries()

    def likelihood(self, counts: Counts) -> Floats:
        """Return the log-likelihoods (S*A, K) of every row's counts under every mass."""
        seen = (counts.visits, counts.tally.numbers, counts.tally.times)
        kernels.update_likelihood(
            self._likelihood, self._seen, *seen, *self._prior, self._total, self._masses, counts.n_states
        )
        return self._likelihood

    def masses(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Draw a mass (S*A,) for every row from the posterior."""
        if self.exact:
            return np.asarray(self._masses[self._drawn_by_pool(counts, rng)])
        L = self.likelihood(counts)
        K, tried = self._masses.size, np.flatnonzero(self._seen)
        index = np.empty(self._group.size, dtype=np.int64)
        for _ in range(WEIGHT_SWEEPS):
            logs = special.log_array(self.weights)[self._group[tried]] + L[tried]
            index[tried] = kernels.draw_indices(logs, rng.random(tried.size))
            tally = np.zeros_like(self.weights)
            np.add.at(tally, (self._group[tried], index[tried]), 1.0)
            self.weights = dirichlet_rows(1.0 / K + tally, rng)
        rest = np.flatnonzero(self._seen == 0)
        logs = special.log_array(self.weights)[self._group[rest]]
        index[rest] = kernels.draw_indices(logs, rng.random(rest.size))
        return np.asarray(self._masses[index])

    def _drawn_by_pool(self, counts: Counts, rng: np.random.Generator) -> Ints:
        """Draw the index of a mass for every row: that of its pool unless it is an exception."""
        L = self._pooled(counts)
        chosen = kernels.draw_indices(L, rng.random(len(L)))
        if not self.exceptions:
            return np.asarray(chosen[self._group])
        tried, n = np.count_nonzero(self._seen), self._seen.size
        found = np.count_nonzero(self._exceptional & (self._seen > 0))
        rare, usual = log_gamma_variates(np.array([1.0 + found, n + tried - found]), rng)  # odds of a beta variate
        odds = special.exp(float(rare - usual))
        return np.asarray(
            kernels.draw_masses(
                self._likelihood, self._group, chosen, odds, rng.random((n, 2)), self._exceptional.view(np.uint8)
            )
        )

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw masses, and then rows given the masses."""
        return self._rows(self.masses(counts, rng), counts, rng)

    def sample_in_doubt(self, counts: Counts, doubted: Doubted, rng: np.random.Generator) -> Transition:
        """Draw rows as if some had once more led to a target, or the untried ones back to their own states.

        Without either, draw rows of the mass of one observation.
        """
        if doubted.untried_stay:
            own = np.arange(counts.visits.size) // counts.n_actions
            untried = np.flatnonzero(self._may_lead_to(own) & (counts.visits == 0))
            return self._rows(self.masses(counts, rng), counts.imagining(untried, own[untried]), rng)
        if doubted.target is None:
            one = self._masses[np.abs(special.log_array(self._masses)).argmin()]
            return self._rows(np.full(self._group.size, one), counts, rng)
        may, most = self._may_lead_to(doubted.target), doubted.most_visits
        if most and (may & (counts.visits > 0)).any():
            most = max(most, int(counts.visits[may & (counts.visits > 0)].min()))
        imagined = may & (counts.visits <= most)
        masses = self.masses(counts, rng)
        return self._rows(masses, counts.imagining(np.flatnonzero(imagined), doubted.target), rng)

    def expected_within(self, P: Transition, counts: Counts, state: int, steps: int) -> Transition:
        """Return a sample in which no row of exceptions leads out of reach less than once in an episode."""
        if not self.exceptions or self.support is not None:
            return P
        met = counts.reached_from(state)
        return P if met.all() else P.without(1.0 / steps, ((counts.pairs > 0) & met[:, None]).ravel(), ~met)

    def _rows(self, masses: Floats, counts: Counts, rng: np.random.Generator) -> Transition:
        if self._table is None:
            return sparse_rows(self._prior.after(counts.tally, masses / self._total), counts.n_states, rng)
        return DenseTransition(dirichlet_rows(self._parameters(masses, self._table, counts), rng))

    def _may_lead_to(self, target: int | Ints) -> Bools:
        """Return a mask (S*A,) of the rows whose base measure includes a state, the same or another for every row."""
        pairs, states = np.divmod(self._prior.numbers, self._n_states)
        mask: Bools = self._prior.rest > 0.0
        mask[pairs[states == np.broadcast_to(target, mask.shape)[pairs]]] = True
        return mask

    def mean(self, counts: Counts) -> Floats:
        """Return the expected transitions (S*A, S), given the present weights and exceptions."""
        L = self.likelihood(counts)
        if self.exact:
            L = np.where(self._exceptional[:, None], L, self._pooled(counts)[self._group])
        table = self._prior.toarray(counts.n_states) if self._table is None else self._table
        expected = np.zeros(table.shape)
        probability = self.weights[self._group] * special.exp_array(L - L.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        for k, mass in enumerate(self._masses):
            alpha = self._parameters(np.full(self._group.size, mass), table, counts)
            expected += probability[:, [k]] * alpha / alpha.sum(axis=1, keepdims=True)
        return expected

    def _pooled(self, counts: Counts) -> Floats:
        """Return the log-likelihoods (pools, K) of a pool's rows other than exceptions, under one mass for all."""
        L = self.likelihood(counts)
        if self._exceptional.any():
            L = np.where(self._exceptional[:, None], 0.0, L)
        return kernels.add_rows(self._group, L, len(self.weights))

    def _parameters(self, masses: Floats, table: Floats, counts: Counts) -> Floats:
        parameters: Floats = kernels.spread_mass(masses / self._total, table, counts.transitions)
        return parameters

    def state(self) -> dict[str, Any]:
        """Return the weights and the exceptions; the likelihood follows from the counts."""
        return {"weights": self.weights, "exceptional": self._exceptional}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        described = {"weights": distributions(self.weights.shape), "exceptional": flags(self._exceptional.shape)}
        self.weights, self._exceptional = read_fields(state, described).values()
        self._likelihood.fill(0.0)
        self._seen.fill(0)


def _as_grid(grid: ArrayLike) -> Floats:
    masses = np.array(as_numbers(grid, "grid"))
    if masses.ndim != 1 or not masses.size:
        raise AgentError(f"grid must be a list of masses; got {quoted(grid)}")
    if not ((masses >= SMALLEST_WEIGHT) & (masses <= HEAVIEST)).all() or not (np.diff(masses) > 0).all():
        raise AgentError(
            f"grid must be rising, of numbers between {SMALLEST_WEIGHT:g} and {HEAVIEST:g}; got {quoted(grid)}"
        )
    return masses
