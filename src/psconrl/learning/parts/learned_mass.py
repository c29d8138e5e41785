r"""A belief that learns how scattered the world is: the mass of a Dirichlet prior, unknown, on a grid.

A world whose actions lead to one place each wants a prior of small mass, one that scatters a prior of larger mass, and
nobody knows beforehand which it is. So let every action have a mass, each of K on a grid being as likely as the others:

.. math:: M_a \sim \mathrm{Uniform}(M_1, \dots, M_K), \qquad
          p(\cdot|s,a) \sim \mathrm{Dirichlet}(M_a/S, \dots, M_a/S).

Given the counts n of a row, the mass k has the Dirichlet-multinomial likelihood

.. math:: L_k = \ln\Gamma(M_k) - \ln\Gamma(M_k + n) +
          \sum_{j:\,n_j > 0} \big[\ln\Gamma(M_k/S + n_j) - \ln\Gamma(M_k/S)\big],

and those of all rows of an action multiply: the rows tell of each other. A draw of (M, p) given the counts is a draw
from the posterior of this hierarchy, so that posterior sampling keeps its Bayesian identity.

The grid ends at 1, the weight of one observation. A prior of mass M adds M imaginary observations that are spread over
*all* states, and where a world scatters it scatters over a few: above 1 the bias does more harm than the spread does
good. It begins far below: at mass M one row in 1/M is believed to lead, some day, to a state where nobody has been, and
if that is better than all that can be reached, the agent sets out for it again and again (benchmarks/RESULTS.md).

``exact=False`` gives every row a mass of its own, :math:`M_{sa} \sim w_a`, with weights
:math:`w_a \sim \mathrm{Dirichlet}(1/K, \dots, 1/K)`. Masses and weights are then drawn in turn (Gibbs), rows never
tried being left out of the turns, which is exact only in the limit of many turns.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import AgentError, ConfigError, unknown_name
from psconrl.learning import _kernels
from psconrl.learning.checks import as_numbers, saved_floats
from psconrl.learning.counts import Counts
from psconrl.learning.parts.beliefs import SMALLEST, Belief, dirichlet_rows
from psconrl.model.transition import DenseTransition, Transition

GRID = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)
HEAVIEST = 1e6  # beyond, the difference of two logarithms of gamma functions has no digits left
POOLS = ("action", "world")
SWEEPS = 2  # turns an episode: the weights move slowly from one to the next


class LearnedMass(Belief):
    """The posterior under Dirichlet priors of unknown mass.

    ``grid``: the masses. ``pool``: which rows tell of each other, those of an ``"action"`` or all of the ``"world"``.
    ``exact``: one mass for all rows of a pool, drawn exactly; else one for every row, by Gibbs. ``support``: (S, A, S),
    what is possible, if known.
    """

    name: ClassVar[str] = "learned-mass"

    def __init__(
        self, grid: ArrayLike = GRID, pool: str = "action", exact: bool = True, support: ArrayLike | None = None
    ) -> None:
        self._masses = _as_grid(grid)
        self.grid = tuple(self._masses.tolist())
        if pool not in POOLS:
            raise ConfigError(unknown_name("pool", pool, POOLS))
        if not isinstance(exact, bool | np.bool_):
            raise AgentError(f"exact must be True or False; got {exact!r}")
        self.pool, self.exact = pool, bool(exact)
        self.support = None if support is None else _as_support(support)
        self._possible: Bools = np.ones((0, 0), dtype=bool)  # (S*A, S)
        self._width: Ints = np.zeros(0, dtype=np.int64)  # (S*A,) how many states are possible
        self._group: Ints = np.zeros(0, dtype=np.int64)  # (S*A,) the pool of every row
        self.weights: Floats = np.zeros((0, 0))  # (pools, K)
        self._likelihood: Floats = np.zeros((0, 0))  # (S*A, K), as of the visits below
        self._seen: Ints = np.zeros(0, dtype=np.int64)

    def _prepare(self, n_states: int, n_actions: int, n_limits: int) -> None:
        shape, K = (n_states, n_actions, n_states), self._masses.size
        if self.support is not None and self.support.shape != shape:
            raise AgentError(f"support must have shape (S, A, S) = {shape}; got {self.support.shape}")
        full = np.ones(shape, dtype=bool) if self.support is None else self.support
        self._possible = np.ascontiguousarray(full.reshape(-1, n_states))
        self._width = self._possible.sum(axis=1)
        pairs = np.arange(n_states * n_actions)
        self._group = pairs % n_actions if self.pool == "action" else np.zeros_like(pairs)
        self.weights = np.full((int(self._group.max()) + 1, K), 1.0 / K)
        self._likelihood = np.zeros((pairs.size, K))
        self._seen = np.zeros(pairs.size, dtype=np.int64)

    def likelihood(self, counts: Counts) -> Floats:
        """The logarithms (S*A, K) of the likelihood of every row's counts under every mass."""
        _kernels.update_likelihood(
            self._likelihood, self._seen, counts.visits, counts.transitions, self._width, self._masses
        )
        return self._likelihood

    def masses(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """A mass (S*A,) for every row, drawn from the posterior."""
        if self.exact:
            L = self._pooled(counts)
            return np.asarray(self._masses[_kernels.draw_indices(L, rng.random(len(L)))[self._group]])
        L = self.likelihood(counts)
        K, tried = self._masses.size, np.flatnonzero(self._seen)
        index = np.empty(self._group.size, dtype=np.int64)
        for _ in range(SWEEPS):
            with np.errstate(divide="ignore"):
                logs = np.log(self.weights)[self._group[tried]] + L[tried]
            index[tried] = _kernels.draw_indices(logs, rng.random(tried.size))
            tally = np.zeros_like(self.weights)
            np.add.at(tally, (self._group[tried], index[tried]), 1.0)
            self.weights = dirichlet_rows(1.0 / K + tally, rng)
        rest = np.flatnonzero(self._seen == 0)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)[self._group[rest]]
        index[rest] = _kernels.draw_indices(logs, rng.random(rest.size))
        return np.asarray(self._masses[index])

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Masses, and then rows given them."""
        return DenseTransition(dirichlet_rows(self._parameters(self.masses(counts, rng), counts), rng))

    def mean(self, counts: Counts) -> Floats:
        """The expected transitions (S*A, S), at the present weights."""
        L = self._pooled(counts)[self._group] if self.exact else self.likelihood(counts)
        expected = np.zeros(self._possible.shape)
        chance = self.weights[self._group] * np.exp(L - L.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        for k, mass in enumerate(self._masses):
            alpha = self._parameters(np.full(self._group.size, mass), counts)
            expected += chance[:, [k]] * alpha / alpha.sum(axis=1, keepdims=True)
        return expected

    def _pooled(self, counts: Counts) -> Floats:
        """The logarithms (pools, K) of the likelihood of all counts of a pool, under one mass for all its rows."""
        return _kernels.add_rows(self._group, self.likelihood(counts), len(self.weights))

    def _parameters(self, masses: Floats, counts: Counts) -> Floats:
        return _kernels.spread_mass(masses / self._width, self._possible, counts.transitions)

    def state(self) -> dict[str, Any]:
        """The weights; the likelihood follows from the counts."""
        return {"weights": self.weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        weights = saved_floats(state["weights"], self.weights.shape, "weights")
        if (weights < 0).any() or not np.allclose(weights.sum(axis=1), 1.0):
            raise AgentError("weights must be distributions")
        self.weights = weights
        self._likelihood.fill(0.0)
        self._seen.fill(0)


def _as_grid(grid: ArrayLike) -> Floats:
    masses = np.array(as_numbers(grid, "grid"))
    if masses.ndim != 1 or not masses.size:
        raise AgentError(f"grid must be a list of masses; got {grid!r}")
    if not ((masses >= SMALLEST) & (masses <= HEAVIEST)).all() or not (np.diff(masses) > 0).all():
        raise AgentError(f"grid must be rising, of numbers between {SMALLEST:g} and {HEAVIEST:g}; got {grid!r}")
    return masses


def _as_support(support: ArrayLike) -> Bools:
    given = as_numbers(support, "support")
    if given.ndim != 3 or not np.isin(given, (0.0, 1.0)).all():
        raise AgentError("support must hold 0 or 1 (or False and True) for every (S, A, S)")
    if not given.any(axis=2).all():
        s, a = np.argwhere(~given.any(axis=2))[0]
        raise AgentError(f"support[{s}, {a}] must allow at least one next state")
    return np.asarray(given > 0)
