r"""Confidence intervals that hold at all times at once, for the probabilities of transitions and for mean costs.

After n observations in [0, 1] with sum k, the mean p is in doubt as long as

.. math:: \int_0^1 \frac{q^k (1-q)^{n-k}}{p^k (1-p)^{n-k}}\, dq = \frac{B(k+1,\, n-k+1)}{p^k (1-p)^{n-k}}
          < \frac1{\delta'}.

The left-hand side is a martingale for 0/1 observations, and since :math:`x \mapsto (q/p)^x ((1-q)/(1-p))^{1-x}` is
convex a supermartingale for any in [0, 1]; it begins with 1, so that by Ville's inequality it ever reaches
:math:`1/\delta'` with probability :math:`\delta'` at most, however long one looks and whatever decides when (Robbins
1970; the mixture is Laplace's). The sum over all intervals of :math:`\delta'` is :math:`\delta`.

Only what was seen is stored: all successors that a pair was never seen to have share one bound.
"""

from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats, Places
from psconrl.kernels.intervals import fill_ends, fill_intervals
from psconrl.learning.posterior.counts import Counts


class Intervals(NamedTuple):
    """All laws (S*A, S) within the bounds, by rows as in CSR form."""

    indptr: Places
    successors: Places  # (entries,) seen so far
    low: Floats  # (entries,)
    high: Floats  # (entries,)
    unseen: Floats  # (S*A,) the most that any other successor can have

    @classmethod
    def of(cls, counts: Counts, log_inverse: float) -> "Intervals":
        r"""From what was seen, with :math:`\log(1/\delta')`."""
        seen = counts.moves
        low, high, unseen = np.empty(seen.nnz), np.empty(seen.nnz), np.empty(counts.visits.size)
        fill_intervals(seen.indptr, seen.data, counts.visits, log_inverse, low, high, unseen)
        return cls(seen.indptr, seen.indices, low, high, unseen)

    @property
    def doubtful(self) -> Floats:
        """The mass of every law that may be anywhere, (S*A,)."""
        held = np.zeros(self.unseen.size)
        np.add.at(held, np.repeat(np.arange(held.size), np.diff(self.indptr)), self.low)
        return 1.0 - held


def highest_means(counts: Counts, ranges: Floats, log_inverse: float) -> Floats:
    """The highest that mean costs may be, (k, S*A), of the last k costs, whose ranges (k, 2) are known."""
    result = np.empty((len(ranges), counts.visits.size))
    for out, sums, (lowest, highest) in zip(
        result, counts.cost_sums[len(counts.cost_sums) - len(ranges) :], ranges, strict=True
    ):
        width = highest - lowest
        fill_ends((sums - lowest * counts.visits) / width, counts.visits, log_inverse, out)
        out *= width
        out += lowest
    return result
