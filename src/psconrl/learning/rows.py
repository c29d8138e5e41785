r"""Drawing rows of transitions from Dirichlet laws, all entries of them or only those that matter.

Dense: a gamma variate for every entry. They are drawn as logarithms: with a parameter of 0.001 most are below the
smallest double, and whole rows would be 0/0.

Sparse: the parameters of a row are a few that are stored (what was seen, what is known to be possible) and a mass M
that is spread over all S states alike, M/S each. By the aggregation of gamma variates the row is

.. math:: (p_1, \dots, p_k, p_{rest}) \sim \mathrm{Dirichlet}(\alpha_1, \dots, \alpha_k, M), \qquad
          \text{the rest spread by } \mathrm{Dirichlet}(M/S, \dots, M/S),

exactly, also where the rest falls on what is stored. Its spread is that of a Dirichlet process, whose atoms are found
by stick-breaking (Sethuraman 1994): what remains after k atoms is :math:`p_{rest} e^{-x_k/M}`, the :math:`x_k` being
arrivals of a Poisson process of rate one, and every atom lies at a state drawn uniformly. It ends when less than
``NEGLECTED`` remains, which goes to one more state: so a row is that of the full law up to 1e-12 in total variation,
after about :math:`1 + 28 M` atoms. Of what is stored, too, nothing below that is drawn.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints
from psconrl.learning import _kernels
from psconrl.learning.tally import Tally
from psconrl.model.transition import SparseTransition, Transition

# A transition that is possible has a positive probability; those below 1e-100 are kept at that, so that the sampled
# model communicates as it does almost surely, and its planner's figures stay within the range of doubles.
LOG_FLOOR = -230.0
# In a sparse row, what happens less often than this does not happen at all.
NEGLECTED = 1e-12
# Up to this size all entries are drawn: a compiled planner for dense models wins.
DENSE_STATES = 64


class Parameters(NamedTuple):
    """Of Dirichlet laws, one a pair: those of the transitions that are stored, and a mass spread over all states."""

    indptr: Ints  # (S*A + 1,)
    indices: Ints  # in every row rising
    alpha: Floats
    rest: Floats  # (S*A,)


class Prior(NamedTuple):
    """Parameters before anything was seen, with the transitions numbered as in a ``Tally``."""

    numbers: Ints
    values: Floats
    rest: Floats  # (S*A,)

    def after(self, tally: Tally, scale: Floats) -> Parameters:
        """The parameters, each pair's scaled, plus the counts."""
        stored = _posterior(self.numbers, self.values, scale, tally.numbers, tally.times, tally.shape[1])
        return Parameters(*stored, np.asarray(scale * self.rest))

    def toarray(self, n_states: int) -> Floats:
        """The parameters of all transitions, (S*A, S)."""
        table = np.repeat(self.rest[:, None] / n_states, n_states, axis=1)
        table.ravel()[self.numbers] += self.values
        return table

    def entries(self) -> float:
        """About how many transitions a sample has."""
        return float(self.numbers.size + (1.0 - np.log(NEGLECTED) * self.rest).sum())


def numbered(matrix: csr_array) -> tuple[Ints, Floats]:
    """The entries of a matrix (S*A, S) that are not 0: their numbers as in a ``Tally``, and their values."""
    kept = csr_array(matrix, dtype=np.float64, copy=True)
    kept.sum_duplicates()
    kept.eliminate_zeros()
    pairs = np.repeat(np.arange(kept.shape[0]), np.diff(kept.indptr))
    return pairs * kept.shape[1] + kept.indices, np.asarray(kept.data)


def is_sparse(n_states: int, mass: float) -> bool:
    """Are rows whose rest has this mass better drawn sparse?"""
    return n_states > DENSE_STATES and -mass * np.log(NEGLECTED) < n_states / 2


def sparse_rows(parameters: Parameters, n_states: int, rng: np.random.Generator) -> Transition:
    """Transitions, a row from the law of every pair."""
    indptr, indices, alpha, rest = parameters
    p, p_rest = _split(indptr, log_gamma_variates(_with_rest(indptr, alpha, rest), rng), rest)
    some = p_rest >= NEGLECTED
    ends = np.full(rest.size, -1.0)  # where each process is cut off
    ends[some] = rest[some] * np.log(p_rest[some] / NEGLECTED)
    expected = float((ends[some] + 1.0).sum())
    more = int(expected + 4.0 * np.sqrt(expected)) + 8
    gaps, rows = np.empty(0), None
    while rows is None:
        gaps = np.append(gaps, rng.standard_exponential(more))
        rows = _assemble(indptr, indices, p, p_rest, rest, ends, gaps, rng.random(gaps.size), n_states)
    drawn = SparseTransition(csr_array(rows, shape=(len(rest), n_states)))
    drawn.repeats = not rest.any()
    return drawn


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


@njit(cache=True, nogil=True)
def _posterior(
    prior: Ints, values: Floats, scale: Floats, numbers: Ints, times: Ints, n_states: int
) -> tuple[Ints, Ints, Floats]:
    """The parameters of all transitions that the prior stores or that were seen, as rows."""
    pairs = scale.size
    indptr = np.zeros(pairs + 1, np.int64)
    indices = np.empty(prior.size + numbers.size, np.int64)
    alpha = np.empty(prior.size + numbers.size)
    i = j = k = 0
    for pair in range(pairs):
        first, end = pair * n_states, (pair + 1) * n_states
        while True:
            known = prior[i] if i < prior.size else end
            seen = numbers[j] if j < numbers.size else end
            number = min(known, seen)
            if number >= end:
                break
            indices[k], alpha[k] = number - first, 0.0
            if known == number:
                alpha[k] += scale[pair] * values[i]
                i += 1
            if seen == number:
                alpha[k] += times[j]
                j += 1
            k += 1
        indptr[pair + 1] = k
    return indptr, indices[:k].copy(), alpha[:k].copy()


@njit(cache=True, nogil=True)
def _with_rest(indptr: Ints, alpha: Floats, rest: Floats) -> Floats:
    """The shapes of the gamma variates: the parameters of every row, and after them its rest."""
    shapes = np.empty(alpha.size + rest.size)
    for pair in range(rest.size):
        low, high = indptr[pair], indptr[pair + 1]
        shapes[low + pair : high + pair] = alpha[low:high]
        shapes[high + pair] = rest[pair]
    return shapes


@njit(cache=True, nogil=True)
def _split(indptr: Ints, logs: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Probabilities of what is stored, and of the rest; those below ``NEGLECTED`` are 0."""
    p, p_rest = np.empty(indptr[-1]), np.empty(rest.size)
    for pair in range(rest.size):
        low, high = indptr[pair], indptr[pair + 1]
        row = logs[low + pair : high + pair + 1]
        top = -np.inf
        for j in range(row.size):
            top = max(top, row[j])
        total = 0.0
        for j in range(row.size):
            row[j] = np.exp(row[j] - top) if row[j] - top > LOG_FLOOR else 0.0
            total += row[j]
        kept = 0.0
        for j in range(row.size):
            row[j] = row[j] / total if row[j] >= NEGLECTED * total else 0.0
            kept += row[j]
        for j in range(high - low):
            p[low + j] = row[j] / kept
        p_rest[pair] = row[high - low] / kept
    return p, p_rest


@njit(cache=True, nogil=True)
def _assemble(
    indptr: Ints, indices: Ints, p: Floats, p_rest: Floats, rest: Floats, ends: Floats, gaps: Floats, places: Floats,
    n_states: int,
) -> tuple[Floats, Any, Any] | None:  # fmt: skip
    """Rows in CSR form: what is stored, and the atoms of the rest, in no order. Two of them may lie at the same state:
    then their probabilities add up. None if there are not enough gaps from one arrival to the next.
    """
    pairs = rest.size
    new_indptr = np.zeros(pairs + 1, np.int32)  # as SciPy has them
    new_indices = np.empty(indices.size + gaps.size, np.int32)
    data = np.empty(indices.size + gaps.size)
    k = used = 0
    for pair in range(pairs):
        for e in range(indptr[pair], indptr[pair + 1]):
            new_indices[k], data[k] = indices[e], p[e]
            k += 1
        arrival, left = 0.0, p_rest[pair]
        while ends[pair] >= arrival:
            if used == gaps.size:
                return None
            arrival += gaps[used]
            remains = p_rest[pair] * np.exp(-arrival / rest[pair]) if arrival <= ends[pair] else 0.0
            new_indices[k], data[k] = min(int(places[used] * n_states), n_states - 1), left - remains
            left = remains
            used += 1
            k += 1
        new_indptr[pair + 1] = k
    return data[:k].copy(), new_indices[:k].copy(), new_indptr
