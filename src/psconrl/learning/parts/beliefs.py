r"""Beliefs about the transitions: independent Dirichlet laws, one a pair.

.. math:: p(\cdot|s,a) \sim \mathrm{Dirichlet}(\alpha(s,a,\cdot) + N(s,a,\cdot))

A prior entry of 0 says that a transition is impossible, and is honoured. Rows are drawn as logarithms of gamma
variates: with :math:`\alpha = 0.001` most of them are below the smallest double, and whole rows would be 0/0.
"""

import copy
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError
from psconrl.learning import _kernels
from psconrl.learning.checks import as_numbers
from psconrl.learning.counts import Counts
from psconrl.learning.parts.part import Part
from psconrl.model.transition import DenseTransition, Transition
from psconrl.model.validation import frozen

# A transition that is possible has a positive probability; those below 1e-100 are kept at that, so that the sampled
# model communicates as it does almost surely, and its planner's figures stay within the range of doubles.
LOG_FLOOR = -230.0

# Of a parameter: its inverse, and the sum of all, stay within the range of doubles.
SMALLEST, LARGEST = 1e-100, 1e100


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


class Dirichlet(Belief):
    """The posterior under a Dirichlet prior.

    ``prior``: a number for all transitions, or an array (S, A, S) in which 0 means impossible. By default 1/S, so that
    all next states together weigh as much as one observation (docs/prior.md has the study).
    """

    name: ClassVar[str] = "dirichlet"

    def __init__(self, prior: ArrayLike | None = None) -> None:
        self.prior = None if prior is None else _as_prior(prior)
        self._alpha: Floats = np.empty((0, 0))

    def _prepare(self, n_states: int, n_actions: int, n_limits: int) -> None:
        given = np.asarray(1.0 / n_states if self.prior is None else self.prior)
        shape = (n_states, n_actions, n_states)
        if given.ndim == 3 and given.shape != shape:
            raise AgentError(f"prior must be a number or have shape (S, A, S) = {shape}; got {given.shape}")
        full = np.broadcast_to(given, shape)
        if not (full.sum(axis=2) > 0).all():
            s, a = np.argwhere(~(full.sum(axis=2) > 0))[0]
            raise AgentError(f"prior[{s}, {a}] must allow at least one next state; all entries are 0")
        self._alpha = np.ascontiguousarray(full.reshape(-1, n_states))

    def __deepcopy__(self, memo: object) -> Self:
        kept = {id(array): array for array in (self.prior, self._alpha)}  # never changed, and they may be large
        new = copy.copy(self)
        vars(new).update(copy.deepcopy(vars(self), kept))
        return new

    def parameters(self, counts: Counts) -> Floats:
        """The parameters of the posterior, (S*A, S)."""
        parameters: Floats = _kernels.posterior_parameters(self._alpha, counts.transitions)
        return parameters

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Transitions drawn from the posterior."""
        return DenseTransition(dirichlet_rows(self.parameters(counts), rng))

    def mean(self, counts: Counts) -> Floats:
        """The posterior mean (S*A, S)."""
        alpha = self.parameters(counts)
        return np.asarray(alpha / alpha.sum(axis=1, keepdims=True))


class FlooredCounts(Dirichlet):
    """The rule of the published code: parameters ``max(N, prior)`` in place of ``prior + N``."""

    name: ClassVar[str] = "floored"

    def parameters(self, counts: Counts) -> Floats:
        """The parameters of the posterior, (S*A, S)."""
        return np.maximum(self._alpha, counts.transitions)


def _as_prior(prior: ArrayLike) -> float | Floats:
    """A number or an array (S, A, S) of numbers that can be parameters."""
    try:
        given = as_numbers(prior, "prior").copy()
    except AgentError:
        given = np.empty(0)
    if given.size == 0 or isinstance(prior, bool):
        raise AgentError(f"prior must be a number or an array of numbers; got {prior!r}")
    if given.ndim not in (0, 3):
        raise AgentError(f"prior must be a number or have shape (S, A, S); got {given.shape}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise AgentError("prior must be finite and not negative; 0 means impossible")
    if ((given > 0) & ((given < SMALLEST) | (given > LARGEST))).any():
        raise AgentError(f"prior must lie between {SMALLEST:g} and {LARGEST:g}, or be 0 for what is impossible")
    return frozen(given) if given.ndim else float(given)


def dirichlet_rows(alpha: Floats, rng: np.random.Generator) -> Floats:
    """One Dirichlet variate for every row of parameters, zeros allowed.

    >>> dirichlet_rows(np.array([[1e-9, 0.0], [1e9, 1e9]]), np.random.default_rng(0)).round(3).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    logs = log_gamma_variates(alpha.ravel(), rng).reshape(alpha.shape)
    _kernels.lower_by_row_maximum(logs, LOG_FLOOR)
    rows = np.exp(logs, out=logs)
    _kernels.normalise_rows(rows)
    return rows


def log_gamma_variates(shape: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of gamma variates; -inf where the shape is 0."""
    logs = np.empty(shape.size)
    first = 0
    while first < shape.size:
        positive, large = _kernels.tally(shape[first:])
        tries, normals = positive * 9 // 8 + 32, large * 9 // 8 + 8  # with a margin for what is rejected
        first = _kernels.log_gamma(
            shape, first, rng.standard_exponential(tries), rng.random(tries), rng.standard_normal(normals), logs
        )
    return logs
