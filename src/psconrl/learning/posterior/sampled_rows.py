r"""Drawing rows of transitions from Dirichlet distributions, all entries or only those that matter.

Dense: a gamma variate for every entry. They are drawn as logarithms: with a parameter of 0.001 most are below the
smallest double, and whole rows would be 0/0.

Sparse: the parameters of a row are a few that are stored (transitions seen or known to be possible) and a mass M that
is spread evenly over all S states, M/S each. By the aggregation of gamma variates the row is

.. math:: (p_1, \dots, p_k, p_{rest}) \sim \mathrm{Dirichlet}(\alpha_1, \dots, \alpha_k, M), \qquad
          \text{the rest spread by } \mathrm{Dirichlet}(M/S, \dots, M/S),

exactly, also where the rest falls on stored transitions. The rest is spread as a Dirichlet process, whose atoms are
drawn by stick-breaking (Sethuraman 1994): the mass remaining after k atoms is :math:`p_{rest} e^{-x_k/M}`, where the
:math:`x_k` are arrivals of a Poisson process of rate one, and every atom lies at a state drawn uniformly. The process
stops when less than ``NEGLECTED`` remains, which goes to one more state. So a row follows the full distribution up to
1e-12 in total variation, after about :math:`1 + 28 M` atoms. Stored transitions below ``NEGLECTED`` are not drawn
either.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.base.sizes import SMALL_SAMPLE_STATES
from psconrl.kernels.arithmetic import special
from psconrl.kernels.draws import dirichlet
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.learning.posterior.sparse_counts import Tally
from psconrl.model.transition import SparseTransition, Transition

# A possible transition has a positive probability; those below 1e-100 are raised to it. So the sampled model
# communicates, as it does almost surely, and the planner's numbers stay within the range of doubles.
LOG_FLOOR = -230.0
# Smaller probabilities are dropped from a sparse row.
NEGLECTED = 1e-12
# Approximate number of atoms of a process of mass 1 that are not neglected.
ATOMS = -special.log(NEGLECTED)


class Parameters(NamedTuple):
    """Parameters of one Dirichlet distribution per pair: stored transitions, and a mass spread over all states."""

    indptr: Places  # (S*A + 1,)
    indices: Places  # increasing in every row
    alpha: Floats
    rest: Floats  # (S*A,)


class Prior(NamedTuple):
    """Prior parameters, with the transitions numbered as in a ``Tally``."""

    numbers: Ints
    values: Floats
    rest: Floats  # (S*A,)

    def after(self, tally: Tally, scale: Floats) -> Parameters:
        """Return the posterior parameters: the prior ones, scaled by pair, plus the counts."""
        indptr, indices, alpha = dirichlet.posterior(
            self.numbers, self.values, scale, tally.numbers, tally.times, tally.shape[1]
        )
        return Parameters(indptr, indices, alpha, np.asarray(scale * self.rest))

    def toarray(self, n_states: int) -> Floats:
        """Return the parameters of all transitions, (S*A, S)."""
        table = np.repeat(self.rest[:, None] / n_states, n_states, axis=1)
        table.ravel()[self.numbers] += self.values
        return table

    def entries(self) -> float:
        """Return the approximate number of transitions in a sample."""
        return float(self.numbers.size + (1.0 + ATOMS * self.rest).sum())


def numbered_entries(matrix: csr_array) -> tuple[Ints, Floats]:
    """Return the nonzero entries of a matrix (S*A, S): their numbers as in a ``Tally``, and their values."""
    kept = csr_array(matrix, dtype=np.float64, copy=True)
    kept.sum_duplicates()
    kept.eliminate_zeros()
    pairs = np.repeat(np.arange(kept.shape[0]), np.diff(kept.indptr))
    return pairs * kept.shape[1] + kept.indices, np.asarray(kept.data)


def is_drawn_sparse(n_states: int, mass: float) -> bool:
    """Return True if rows whose rest has this mass should be drawn sparse."""
    return n_states > SMALL_SAMPLE_STATES and ATOMS * mass < n_states / 2


def sparse_rows(parameters: Parameters, n_states: int, rng: np.random.Generator) -> Transition:
    """Draw sparse transitions, one row from the distribution of every pair."""
    indptr, indices, alpha, rest = parameters
    logs = log_gamma_variates(dirichlet.with_rest(indptr, alpha, rest), rng)
    p, p_rest, ends, expected = dirichlet.split(indptr, logs, rest, LOG_FLOOR, NEGLECTED)
    rows = dirichlet.assemble(indptr, indices, p, p_rest, rest, ends, expected, n_states, rng)
    drawn = SparseTransition(csr_array(rows, shape=(len(rest), n_states)))
    drawn.repeats = not rest.any()
    return drawn


def dirichlet_rows(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draw one Dirichlet variate for every row of parameters, zeros allowed.

    >>> dirichlet_rows(np.array([[1e-9, 0.0], [1e9, 1e9]]), np.random.default_rng(0)).round(3).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    rows = log_gamma_variates(alpha.ravel(), rng).reshape(alpha.shape)
    dirichlet.normalise_logs(rows, LOG_FLOOR)
    return rows
