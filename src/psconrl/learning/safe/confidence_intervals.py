r"""Confidence intervals that hold uniformly over time, for transition probabilities and mean costs.

After n observations in [0, 1] with sum k, a mean p lies in the interval as long as

.. math:: \int_0^1 \frac{q^k (1-q)^{n-k}}{p^k (1-p)^{n-k}}\, dq = \frac{B(k+1,\, n-k+1)}{p^k (1-p)^{n-k}}
          < \frac1{\delta'}.

The left-hand side is a martingale for 0/1 observations. Since :math:`x \mapsto (q/p)^x ((1-q)/(1-p))^{1-x}` is convex,
it is a supermartingale for any observations in [0, 1]. It starts at 1, so by Ville's inequality it ever reaches
:math:`1/\delta'` with probability at most :math:`\delta'`, at any stopping time (Robbins 1970; the mixture is
Laplace's). The sum over all intervals of :math:`\delta'` is :math:`\delta`.

Only observed successors are stored; all other successors of a pair share one bound.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.kernels.sets.intervals import fill_ends, fill_intervals
from psconrl.learning.posterior.counts import Counts


class Intervals(NamedTuple):
    """Bounds on transition probabilities (S*A, S), by rows as in CSR form."""

    indptr: Places
    successors: Places  # (entries,) seen so far
    low: Floats  # (entries,)
    high: Floats  # (entries,)
    unseen: Floats  # (S*A,) upper bound for any other successor

    @classmethod
    def of(cls, counts: Counts, log_inverse: float) -> "Intervals":
        r"""Return the intervals given the counts, with :math:`\log(1/\delta')`."""
        return cls.of_moves(counts.moves, counts.visits, log_inverse)

    @classmethod
    def of_moves(cls, seen: csr_array, visits: Ints, log_inverse: float) -> "Intervals":
        """Return the same, given the visits (S*A, S) of transitions and those (S*A,) of pairs."""
        low, high, unseen = np.empty(seen.nnz), np.empty(seen.nnz), np.empty(visits.size)
        fill_intervals(seen.indptr, seen.data, visits, log_inverse, low, high, unseen)
        return cls(seen.indptr, seen.indices, low, high, unseen)

    @property
    def doubtful(self) -> Floats:
        """Probability mass of every row that the lower bounds leave free, (S*A,)."""
        held = np.zeros(self.unseen.size)
        np.add.at(held, np.repeat(np.arange(held.size), np.diff(self.indptr)), self.low)
        return 1.0 - held


def highest_means(counts: Counts, ranges: Floats, log_inverse: float) -> Floats:
    """Return upper bounds (k, S*A) of the means of the last k costs, whose ranges (k, 2) are known."""
    result = np.empty((len(ranges), counts.visits.size))
    for out, sums, (lowest, highest) in zip(
        result, counts.cost_sums[len(counts.cost_sums) - len(ranges) :], ranges, strict=True
    ):
        width = highest - lowest
        fill_ends((sums - lowest * counts.visits) / width, counts.visits, log_inverse, out)
        out *= width
        out += lowest
    return result
