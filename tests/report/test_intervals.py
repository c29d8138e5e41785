"""Intervals of means, ranks and growth exponents: closed forms, and coverage by simulation."""

import numpy as np
import pytest
from scipy.stats import t as student

from psconrl.report.growth import growth_exponent
from psconrl.report.statistics import (
    INTERVAL_RUNS,
    MEAN_DRAWS,
    interval,
    mean_interval,
    mean_weights,
    standard_error,
    without_reason,
)


def test_the_interval_of_a_mean_is_students():
    found = mean_interval(np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]]))
    half = 4.302652729911275 * np.sqrt(7.0) / np.sqrt(3.0)  # t with two degrees of freedom; the variance is 7
    np.testing.assert_allclose([found.low, found.mean, found.high], [[3 - half, 5.0], [3, 5.0], [3 + half, 5.0]])


def test_fewer_than_three_runs_have_no_interval():
    for runs in (1, 2):
        found = mean_interval(np.arange(float(runs)))
        assert np.isnan([found.low, found.high]).all()
        assert not found.has_interval
        assert str(found) == ("0" if runs == 1 else "0.5")
    assert mean_interval(np.arange(3.0)).has_interval
    assert without_reason([2, INTERVAL_RUNS]) == "2 runs: no interval."


def test_a_standard_error_is_relative_and_does_not_overflow():
    assert float(standard_error(np.array([-1e300, 1e300]))) == pytest.approx(1e300)
    assert float(standard_error(np.array([7.0, 7.0]))) == 0.0


@pytest.mark.statistical
@pytest.mark.parametrize("runs", [3, 5, 10, 30])
def test_intervals_of_normal_values_cover_95_percent(runs):
    """20,000 samples: the share that covers is within 4.5 deviations of 95%; a false alarm once in 150,000 seeds."""
    samples = 20_000
    found = mean_interval(np.random.default_rng(runs).normal(3.0, 2.0, size=(runs, samples)))
    covered = np.mean((found.low <= 3.0) & (found.high >= 3.0))
    assert abs(covered - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / samples)


@pytest.mark.statistical
def test_intervals_of_skewed_values_cover_more_than_a_bootstrap_of_ten():
    """Exponential values, ten runs: 90.4% by the simulation of benchmarks/coverage.py, against 86.7% for the percentile
    bootstrap; within 4.5 deviations and its own error of .2%; a false alarm once in 100,000 seeds."""
    samples = 20_000
    found = mean_interval(np.random.default_rng(0).exponential(size=(10, samples)))
    covered = np.mean((found.low <= 1.0) & (found.high >= 1.0))
    assert abs(covered - 0.904) < 4.5 * np.hypot(np.sqrt(0.904 * 0.096 / samples), 0.002)


def test_weighted_means_are_students_t_and_vary_together():
    """The weights sum to 1, and the scaled deviations have the quantiles of t: a fixed seed, without false alarms."""
    values = np.array([1.0, 2.0, 4.0, 9.0, 11.0])
    weights = mean_weights(5)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    drawn = weights @ values
    scaled = np.sort((drawn - values.mean()) / float(standard_error(values)))
    shares = student.cdf(scaled, 4)
    assert np.abs(shares - np.arange(1, MEAN_DRAWS + 1) / MEAN_DRAWS).max() < 1.63 / np.sqrt(
        MEAN_DRAWS
    )  # Kolmogorov, 1%
    np.testing.assert_allclose(weights @ (2.0 * values + 3.0), 2.0 * drawn + 3.0)  # the same runs
    low, high = interval(drawn)
    assert (low, high) == pytest.approx((mean_interval(values).low, mean_interval(values).high), rel=0.2, abs=0.5)


@pytest.mark.statistical
def test_intervals_of_growth_exponents_cover():
    """300 samples of ten runs with exponents of their own: at least 95% - 4.5 deviations cover; a false alarm once in
    300,000 seeds."""
    rng = np.random.default_rng(0)
    t = np.unique(np.geomspace(10, 1000, 40).astype(int))
    covered = 0
    for _ in range(300):
        slopes = 0.5 + 0.02 * rng.normal(size=(10, 1))
        found = growth_exponent(t, (t / 100.0) ** slopes)
        covered += bool(found.low <= 0.5 <= found.high)
    assert covered / 300 > 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / 300)


def test_growth_exponents_of_two_runs_have_no_interval():
    t = np.arange(100, 10_001, 100)
    found = growth_exponent(t, np.sqrt(t) * np.array([[1.0], [2.0]]))
    assert float(found.mean) == pytest.approx(0.5)
    assert not found.has_interval
