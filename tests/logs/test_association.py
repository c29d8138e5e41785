"""Tests of conditional independence: moments by enumeration, other statistics of SciPy, and rates of false alarms."""

import itertools

import numpy as np
import pytest
from scipy import stats

from psconrl.data.checks import association as tests
from psconrl.data.checks.association import holm, mean_score, mid_ranks, pearson, trend


def statistic(labels, outcomes):
    table = np.zeros((labels.max() + 1, outcomes.max() + 1))
    np.add.at(table, (labels, outcomes), 1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def test_moments_are_those_of_all_permutations():
    labels, outcomes = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 0, 0, 1, 2])
    values = [statistic(np.array(order), outcomes) for order in set(itertools.permutations(labels.tolist()))]
    n, r, c = 7.0, 3.0, 3.0
    inverse = [np.array([(n / np.bincount(own)).sum()]) for own in (labels, outcomes)]
    size = np.array([n])
    (v1, w1), (v2, w2) = (tests._moments(size, np.array([k]), part) for k, part in zip((r, c), inverse, strict=True))
    variance = 2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2
    assert np.mean(values) == pytest.approx(n * (r - 1) * (c - 1) / (n - 1), rel=1e-12)
    assert np.var(values) == pytest.approx(variance[0], rel=1e-12)


def test_one_large_stratum_is_pearsons_test():
    rng = np.random.default_rng(1)
    labels, outcomes = rng.integers(0, 3, 4000), rng.integers(0, 4, 4000)
    table = np.zeros((3, 4))
    np.add.at(table, (labels, outcomes), 1)
    expected = stats.chi2_contingency(table, correction=False).pvalue
    assert pearson(np.zeros(4000, int), labels, outcomes).p_value == pytest.approx(expected, rel=0.01)


def test_one_stratum_with_ranks_is_the_test_of_kruskal_and_wallis():
    rng = np.random.default_rng(2)
    labels, values = rng.integers(0, 3, 200), rng.integers(0, 9, 200)
    ranks = stats.rankdata(values)
    expected = stats.kruskal(*(values[labels == k] for k in range(3))).pvalue
    assert mean_score(np.zeros(200, int), labels, ranks).p_value == pytest.approx(expected, rel=1e-9)


def test_one_stratum_with_a_trend_is_pearsons_correlation():
    """Its square times N - 1 is chi-squared with one degree of freedom (Mantel 1963)."""
    rng = np.random.default_rng(5)
    labels, values = rng.integers(0, 5, 300), rng.integers(0, 9, 300).astype(float)
    expected = stats.chi2.sf(299 * np.corrcoef(labels, values)[0, 1] ** 2, 1)
    assert trend(np.zeros(300, int), labels, values).p_value == pytest.approx(expected, rel=1e-9)


def test_the_variance_of_a_trend_is_that_of_all_permutations():
    strata, labels = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 5, 0, 0, 3])
    values = np.array([1.0, 3.0, 0.0, 2.0, 1.0, 0.0, 0.0])
    sums = [
        float(np.array([*one, *two]) @ labels)
        for one in itertools.permutations(values[:4])
        for two in itertools.permutations(values[4:])
    ]
    deviation = abs(float(values @ labels) - np.mean(sums)) / np.std(sums)
    assert trend(strata, labels, values).p_value == pytest.approx(2 * stats.norm.sf(deviation), rel=1e-9)


def test_two_labels_in_many_strata_are_the_test_of_mantel():
    """Mantel 1963: the sum of scores of one label, minus its mean, divided by its standard deviation."""
    rng = np.random.default_rng(3)
    strata, labels, scores = rng.integers(0, 30, 900), rng.integers(0, 2, 900), rng.integers(0, 5, 900).astype(float)
    excess = variance = 0.0
    for p in range(30):
        own, x = labels[strata == p], scores[strata == p]
        n, k = own.size, own.sum()
        excess += x[own == 1].sum() - k * x.mean()
        variance += k * (n - k) / n * x.var(ddof=1)
    expected = stats.chi2.sf(excess**2 / variance, 1)
    assert mean_score(strata, labels, scores).p_value == pytest.approx(expected, rel=1e-9)


def test_what_is_constant_is_not_tested():
    strata, labels = np.repeat([0, 1], 50), np.tile([0, 1], 50)
    price = np.where(strata == 0, 0.1, 0.7) * 3.0  # with rounding residue in its variance
    assert mean_score(strata, labels, price).rounds == 0
    assert pearson(strata, labels, strata).rounds == 0
    assert pearson(strata, strata, labels).rounds == 0  # the label follows from the stratum


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
def test_p_values_are_uniform_in_small_strata(seed):
    """600 tables of 60 strata with 25 rounds each: a Kolmogorov-Smirnov test at level 1e-4 for each statistic."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(600):
        strata = rng.integers(0, 60, 1500)
        labels = np.minimum(rng.geometric(0.5, 1500), 4)
        outcomes = np.minimum(rng.geometric(0.2 + strata / 100.0, 1500), 8)
        scores = 1.0 * outcomes
        tests_made = pearson(strata, labels, outcomes), *(f(strata, labels, scores) for f in (mean_score, trend))
        found.append([test.p_value for test in tests_made])
    for values in np.array(found).T:
        assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_mid_ranks_are_those_of_a_slow_loop():
    rng = np.random.default_rng(4)
    strata, outcomes = rng.integers(0, 5, 80), rng.integers(0, 6, 80)
    expected = [
        np.mean(outcomes[strata == p] < y) + np.mean(outcomes[strata == p] == y) / 2 - 0.5
        for p, y in zip(strata, outcomes, strict=True)
    ]
    assert mid_ranks(strata, outcomes) == pytest.approx(expected, abs=1e-12)


def test_holm_by_its_definition():
    p = np.array([0.04, 0.001, 0.03, 0.5])
    order = sorted(range(4), key=lambda k: p[k])
    expected, largest = [0.0] * 4, 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (4 - rank) * p[k]))
        expected[k] = largest
    assert holm(p).tolist() == expected
