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

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints, read_only
from psconrl.learning.counts import Counts

HALVINGS = 50  # of an interval, when its end is looked for


@njit(cache=True)
def odds(k: float, n: float, p: float) -> float:
    """The log of the denominator, of k successes in n when their probability is p."""
    value = 0.0
    if k > 0.0:
        value += k * math.log(p) if p > 0.0 else -np.inf
    if n > k:
        value += (n - k) * math.log1p(-p) if p < 1.0 else -np.inf
    return value


@njit(cache=True)
def end_of_interval(k: float, n: float, log_inverse: float, outer: float) -> float:
    """The end of the interval towards ``outer``, 0 or 1; rounded outwards."""
    least = math.lgamma(k + 1.0) + math.lgamma(n - k + 1.0) - math.lgamma(n + 2.0) - log_inverse
    if odds(k, n, outer) > least:
        return outer
    inner = k / n
    for _ in range(HALVINGS):
        middle = 0.5 * (inner + outer)
        if odds(k, n, middle) > least:
            inner = middle
        else:
            outer = middle
    return outer


@njit(cache=True, nogil=True)
def fill_intervals(
    indptr: Ints, times: Ints, visits: Ints, log_inverse: float, low: Floats, high: Floats, unseen: Floats
) -> None:
    """The bounds of every transition that was seen, and of those that were not."""
    for pair in range(visits.size):
        n = float(visits[pair])
        unseen[pair] = end_of_interval(0.0, n, log_inverse, 1.0)
        for entry in range(indptr[pair], indptr[pair + 1]):
            low[entry] = end_of_interval(float(times[entry]), n, log_inverse, 0.0)
            high[entry] = end_of_interval(float(times[entry]), n, log_inverse, 1.0)


@njit(cache=True, nogil=True)
def fill_ends(sums: Floats, visits: Ints, log_inverse: float, out: Floats) -> None:
    """The upper bound of every mean of observations in [0, 1]."""
    for pair in range(visits.size):
        n = float(visits[pair])
        out[pair] = end_of_interval(min(max(sums[pair], 0.0), n), n, log_inverse, 1.0)


class Intervals(NamedTuple):
    """All laws (S*A, S) within the bounds, by rows as in CSR form."""

    indptr: Ints
    successors: Ints  # (entries,) seen so far
    low: Floats  # (entries,)
    high: Floats  # (entries,)
    unseen: Floats  # (S*A,) the most that any other successor can have

    @classmethod
    def of(cls, counts: Counts, log_inverse: float) -> "Intervals":
        r"""From what was seen, with :math:`\log(1/\delta')`."""
        seen = counts.moves
        low, high, unseen = np.empty(seen.nnz), np.empty(seen.nnz), np.empty(counts.visits.size)
        indptr, successors = seen.indptr.astype(np.int64), seen.indices.astype(np.int64)
        fill_intervals(
            read_only(indptr), read_only(seen.data), read_only(counts.visits), log_inverse, low, high, unseen
        )  # fmt: skip
        return cls(read_only(indptr), read_only(successors), read_only(low), read_only(high), read_only(unseen))

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
        fill_ends(read_only((sums - lowest * counts.visits) / width), read_only(counts.visits), log_inverse, out)
        out *= width
        out += lowest
    return result
