r"""Tests of conditional independence: does a label tell more about an outcome, given the stratum of a round?

The strata are pairs of state and action. Given the numbers of labels and of outcomes in every stratum, all ways to pair
them are equally probable if they are independent there. Three statistics are used, whose moments under that hypothesis
are known in closed form, so that nothing is drawn.

*Any association*: the sum over strata of Pearson's :math:`X^2`, whose mean and variance in a table of r rows, c columns
and N rounds are (Haldane 1940; Lewis, Saunders and Westcott 1984)

.. math:: E = \frac{N (r-1)(c-1)}{N-1}, \qquad
          V = \frac{2N}{N-3} (v_1 - w_1)(v_2 - w_2) + \frac{N^2}{N-1} w_1 w_2,

with :math:`v_1 = (r-1)(N-r)/(N-1)`, :math:`w_1 = (\sum_i N/n_i - r^2)/(N-2)`, and the same of the columns. Its tail is
that of a gamma distribution with this mean and variance.

*A shift*: the mean score test of Mantel and Haenszel for many strata (Landis, Heyman and Koch 1978). With the scores x
of outcomes, the sums over all strata of :math:`x - \bar x_p` by label have a covariance matrix in closed form, and
:math:`u^\top V^{+} u` is chi-squared. It finds a small shift in the same direction in all strata, which the other
statistic does not.

*A trend*: with scores x of outcomes and the labels themselves as scores l, the sum over strata of the products
:math:`(x - \bar x_p)(l - \bar l_p)` has mean 0 and variance
:math:`\sum_p \sum (x - \bar x_p)^2 \sum (l - \bar l_p)^2 / (n_p - 1)`, and is normal (Mantel 1963). It finds what grows
with the label, such as a drift from period to period, with less data.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints

FEWEST = 5  # times that a label, or an outcome, occurs in a stratum; rarer ones are taken together
FEWEST_IN_STRATUM = 10
RANK_TOL = 1e-9  # singular values below this share of the largest are zero
NO_LABEL = -1  # a label that is not known


class Test(NamedTuple):
    """The result of a test: its p-value, and the rounds in strata in which there was something to test."""

    p_value: float
    rounds: int


NO_TEST = Test(1.0, 0)


def association(strata: Ints, labels: Ints, outcomes: Ints, scores: Floats) -> Test:
    """Test all statistics, and return the smallest p-value times their number.

    ``labels``: ``NO_LABEL`` in rounds that are left out. ``scores``: a number for every outcome.
    """
    kept = labels >= 0
    strata, labels, outcomes = strata[kept], labels[kept], outcomes[kept]
    any_kind = pearson(strata, labels, outcomes)
    shift = mean_score(strata, labels, scores[outcomes])
    tests = [test for test in (any_kind, shift, trend(strata, labels, scores[outcomes])) if test.rounds]
    if not tests:
        return NO_TEST
    return Test(min(1.0, len(tests) * min(t.p_value for t in tests)), max(t.rounds for t in tests))


def pearson(strata: Ints, labels: Ints, outcomes: Ints) -> Test:
    """Test whether labels and outcomes are independent in all strata, by the sum of Pearson's statistics."""
    _, strata = np.unique(strata, return_inverse=True)
    kept = np.bincount(strata)[strata] >= FEWEST_IN_STRATUM
    strata, labels, outcomes = strata[kept], labels[kept], outcomes[kept]
    if not strata.size:
        return NO_TEST
    _, strata = np.unique(strata, return_inverse=True)
    rows, row_stratum = _levels(strata, labels)
    columns, column_stratum = _levels(strata, outcomes)
    n = np.bincount(strata).astype(np.float64)
    n_rows, n_columns = np.bincount(rows).astype(np.float64), np.bincount(columns).astype(np.float64)
    r, c = (np.bincount(own, minlength=n.size).astype(np.float64) for own in (row_stratum, column_stratum))
    tested = (r > 1.0) & (c > 1.0)
    if not tested.any():
        return NO_TEST
    cells, times = np.unique(rows * np.int64(n_columns.size) + columns, return_counts=True)
    row, column = np.divmod(cells, n_columns.size)
    parts = np.bincount(row_stratum[row], times**2 / (n_rows[row] * n_columns[column]), minlength=n.size)
    statistic = float((n * (parts - 1.0))[tested].sum())
    mean = n * (r - 1.0) * (c - 1.0) / (n - 1.0)
    (v1, w1), (v2, w2) = (
        _moments(n, size, np.bincount(own, n[own] / counts, minlength=n.size).astype(np.float64))
        for size, own, counts in ((r, row_stratum, n_rows), (c, column_stratum, n_columns))
    )
    variance = 2.0 * n / (n - 3.0) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1.0) * w1 * w2
    total, spread = float(mean[tested].sum()), float(variance[tested].sum())
    if spread <= 0.0:
        return NO_TEST
    return Test(float(stats.gamma.sf(statistic, total**2 / spread, scale=spread / total)), int(n[tested].sum()))


def _moments(n: Floats, size: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    """Return v and w of rows or columns; ``inverse``: the sum of N / n_i."""
    return (size - 1.0) * (n - size) / (n - 1.0), (inverse - size**2) / (n - 2.0)


def _levels(strata: Ints, labels: Ints) -> tuple[Ints, Ints]:
    """Return the level of every round, and the stratum of every level; rare labels of a stratum are one level."""
    size = int(labels.max(initial=0)) + 2
    codes, places, times = np.unique(strata * size + labels + 1, return_inverse=True, return_counts=True)
    codes = np.where(times < FEWEST, codes // size * size, codes)
    levels, again = np.unique(codes, return_inverse=True)
    return again.ravel()[places.ravel()], levels // size


def mean_score(strata: Ints, labels: Ints, scores: Floats) -> Test:
    """Test whether the mean score is the same for all labels, given the stratum."""
    known, labels = np.unique(labels, return_inverse=True)
    _, strata = np.unique(strata, return_inverse=True)
    k, labels, strata = known.size, labels.ravel(), strata.ravel()
    n = np.bincount(strata).astype(np.float64)
    if k < 2:
        return NO_TEST
    low, high = np.full(n.size, np.inf), np.full(n.size, -np.inf)
    np.minimum.at(low, strata, scores)
    np.maximum.at(high, strata, scores)
    varies = high > low  # elsewhere, what is left is rounding residue
    centred = np.where(varies[strata], scores - (np.bincount(strata, scores) / n)[strata], 0.0)
    variance = np.bincount(strata, centred**2) / np.maximum(n - 1.0, 1.0)
    sums = np.bincount(labels, centred, minlength=k)
    cells, times = np.unique(strata * np.int64(k) + labels, return_counts=True)
    stratum, label = np.divmod(cells, k)
    several = np.bincount(stratum, minlength=n.size) > 1
    tested = several & varies
    if not tested.any():
        return NO_TEST
    covariance = np.diag(np.bincount(label, times * variance[stratum], minlength=k))
    share = csr_array((times.astype(np.float64), (stratum, label)), shape=(n.size, k))
    covariance -= (share.T @ (csr_array((variance / n)[:, None]).multiply(share))).toarray()
    values, vectors = np.linalg.eigh(covariance)
    kept = values > RANK_TOL * max(float(values[-1]), 0.0)
    if not kept.any():
        return NO_TEST
    statistic = float(((vectors[:, kept].T @ sums) ** 2 / values[kept]).sum())
    return Test(float(stats.chi2.sf(statistic, int(kept.sum()))), int(n[tested].sum()))


def trend(strata: Ints, labels: Ints, scores: Floats) -> Test:
    """Test whether scores grow, or fall, with labels, given the stratum."""
    _, strata = np.unique(strata, return_inverse=True)
    strata = strata.ravel()
    n = np.bincount(strata).astype(np.float64)

    def centred(values: Floats) -> Floats:
        low, high = np.full(n.size, np.inf), np.full(n.size, -np.inf)
        np.minimum.at(low, strata, values)
        np.maximum.at(high, strata, values)
        return np.where((high > low)[strata], values - (np.bincount(strata, values) / n)[strata], 0.0)

    x, own = centred(scores), centred(labels.astype(np.float64))
    spread = np.bincount(strata, x**2) * np.bincount(strata, own**2) / np.maximum(n - 1.0, 1.0)
    variance = float(spread.sum())
    if variance <= 0.0:
        return NO_TEST
    deviation = abs(float((x * own).sum())) / np.sqrt(variance)
    return Test(float(2.0 * stats.norm.sf(deviation)), int(n[spread > 0.0].sum()))


def holm(p_values: Floats, number: int = 0) -> Floats:
    """Return p-values that are corrected for their number, or for a larger ``number`` of tests (Holm 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = max(number, p_values.size) - np.arange(p_values.size)
    found = np.empty(p_values.size)
    found[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return found


def classes(values: Floats, number: int) -> Ints:
    """Return classes of about the same size, ``NO_LABEL`` where a value is nan; equal values are in the same class."""
    known = ~np.isnan(values)
    bounds = np.unique(np.quantile(values[known], np.arange(1, number) / number)) if known.any() else np.empty(0)
    return np.where(known, np.searchsorted(bounds, values, side="right"), NO_LABEL)


def mid_ranks(strata: Ints, outcomes: Ints) -> Floats:
    """Return where each outcome lies among those of its stratum, from -1/2 to 1/2; ties have the middle."""
    size = int(outcomes.max(initial=0)) + 1
    codes, places, times = np.unique(strata * np.int64(size) + outcomes, return_inverse=True, return_counts=True)
    own = codes // size
    total = np.bincount(strata, minlength=int(strata.max(initial=0)) + 1).astype(np.float64)
    below = np.cumsum(times) - times
    first = np.append(True, own[1:] != own[:-1])
    start = below[np.maximum.accumulate(np.where(first, np.arange(own.size), 0))]
    return np.asarray((((below - start + times / 2.0) / total[own]) - 0.5)[places.ravel()])
