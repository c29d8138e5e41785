"""Growth over runs of several lengths: exponents, tables and figures, against numbers by hand."""

import itertools

import numpy as np
import pytest

from psconrl.experiment.spec_file import shipped_spec
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import growth_over_horizons
from psconrl.report.theory_growth import FAMILIES, TITLES, families, growth_tables, is_of_several_lengths
from psconrl.report.theory_growth_figures import LOOKS_OF_LABELS, growth_figures

HORIZONS = (1_000, 10_000, 100_000)


def runs_after(T, label, regret, violation):
    """Runs of T rounds with a checkpoint in the middle; the optimum is 0.25 and the threshold 0.5."""
    finals = np.stack([regret, violation], axis=1) + T * np.array([0.25, 0.5])
    n, empty = len(regret), np.empty((len(regret), 0))
    cumulative = np.stack([np.zeros_like(finals), finals], axis=1)
    none = np.full((n, 2, 2), np.nan)
    return Curves(
        label, "any", np.array([T // 2, T]), cumulative, np.full((n, 1), 0.5), np.full(n, 0.25), np.arange(n),
        np.zeros(n), np.zeros(n), empty, none, none, (),
    )  # fmt: skip


def experiment(name, *curves):
    return Experiment(name, {}, None, {each.label: each for each in curves})


def ferries(power, runs=4):
    """Ferries of three lengths, whose regret is T^power, times 1 to ``runs``; violations of both signs."""
    factors, signs = np.arange(1.0, runs + 1), np.where(np.arange(runs) % 2, -1.0, 1.0)
    return [
        experiment(f"ferry-1e{k}", runs_after(T, "theorem-1", factors * T**power, signs * T**0.5))
        for k, T in enumerate(HORIZONS, start=3)
    ]


@pytest.mark.parametrize("power", [0.5, 2 / 3, 1.0])
def test_the_exponent_of_exact_powers_is_found(power):
    found = growth_over_horizons(HORIZONS, np.power(HORIZONS, power) * np.arange(1.0, 6)[:, None])
    assert (found.low, found.mean, found.high) == pytest.approx((power,) * 3)  # runs differ by factors alone


def test_the_exponent_is_the_slope_of_least_squares_of_the_logarithms_of_the_means():
    finals = np.random.default_rng(0).uniform(1, 2, size=(4, 3))
    slope = np.polyfit(np.log(HORIZONS), np.log(finals.mean(axis=0)), 1)[0]
    assert float(growth_over_horizons(HORIZONS, finals).mean) == pytest.approx(slope)
    two = growth_over_horizons(HORIZONS[1:], finals[:, 1:])
    assert float(two.mean) == pytest.approx(np.log10(finals[:, 2].mean() / finals[:, 1].mean()))
    assert two.low < two.mean < two.high


def test_no_exponent_without_positive_means_and_no_interval_with_two_runs():
    up = np.array([[1.0, 10.0]] * 3)
    assert np.isnan(growth_over_horizons([10, 100], up * [1, -1]).mean)
    assert np.isnan(growth_over_horizons([10, 100], up * [[5, 1], [-9, 1], [1, 1]]).mean)
    few = growth_over_horizons([10, 100], up[:2])
    assert float(few.mean) == pytest.approx(1.0)
    assert not few.has_interval
    unsure = growth_over_horizons([10, 100], up * [[40, 1], [-30, 1], [1, 1]])  # the mean may well be negative
    assert np.isfinite(unsure.mean)
    assert not unsure.has_interval


@pytest.mark.statistical
def test_intervals_of_exponents_over_lengths_cover():
    """300 samples of 20 runs: at least 95% - 4.5 deviations cover; a false alarm once in 300,000 seeds."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        found = growth_over_horizons(HORIZONS, np.sqrt(HORIZONS) * rng.normal(1.0, 0.2, size=(20, 3)))
        covered += bool(found.low <= 0.5 <= found.high)
    assert covered / 300 > 0.95 - 4.5 * np.sqrt(0.95 * 0.05 / 300)


def test_exponents_are_of_the_runs_that_both_lengths_have():
    """Runs 0 to 5 at first, then 0 to 2, of which run k has (k + 1) T^(1/2); a mean over all runs would differ."""
    some = [*ferries(0.5, runs=6)[:1], *ferries(0.5, runs=3)[1:]]
    (line,) = families(some)[0].settings[0].lines.values()
    assert line.exponents(line.regret) == "0.50 [0.50, 0.50]; 0.50 [0.50, 0.50]"
    assert line.exponents(line.regret[:1]) == "-"


def test_lengths_come_in_order_and_violations_are_positive_parts():
    (family,) = families([*reversed(ferries(0.5)), experiment("riverswim length=4"), experiment("ferry-1e9")])
    assert (family.name, family.title, len(family.settings)) == ("ferry", FAMILIES["ferry"], 1)
    (line,) = family.settings[0].lines.values()
    assert line.horizons == list(HORIZONS)
    np.testing.assert_allclose(line.regret[1], 100.0 * np.arange(1, 5))
    np.testing.assert_allclose(line.violation[1], [100.0, 0.0, 100.0, 0.0], atol=1e-9)


def test_leaks_are_told_apart_by_their_power_of_the_length():
    some = [
        experiment(f"leaks-1e{k} leak={round(T**-power, 6 + k)}", runs_after(T, "psconrl", np.ones(3), np.ones(3)))
        for k, T in enumerate(HORIZONS, start=3)
        for power in (1.0, 0.5, 0.25)
    ]
    (family,) = families(some)
    assert [each.title for each in family.settings] == ["leak T^(-1)", "leak T^(-1/2)", "leak T^(-1/4)"]
    assert all(each.lines["psconrl"].horizons == list(HORIZONS) for each in family.settings)


def test_the_table_has_means_and_exponents():
    (table,) = growth_tables(ferries(2 / 3))
    (row,) = table["rows"]
    assert row[:3] == ["Theorem 1", "1,000, 10,000, 100,000", "4, 4, 4"]
    assert row[3].startswith("250 ± ")  # 2.5 times 1000^(2/3)
    assert row[4] == "0.67 [0.67, 0.67]; 0.67 [0.67, 0.67]"
    assert row[6] == "0.50; 0.50"  # the mean of two zeros and two ones may well be negative: no interval
    (single,) = growth_tables(ferries(2 / 3, runs=1)[:1])
    assert single["rows"][0][3:] == ["100", "-", "31.6", "-"]


def test_a_figure_has_regret_and_violation_side_by_side_or_a_column_for_every_setting():
    pairs = [(f"leaks-1e3 leak={leak}", 1_000) for leak in (0.001, 0.0316228)]
    leaks = [experiment(name, runs_after(T, "tilted", np.ones(3), -np.ones(3))) for name, T in pairs]
    drawn = growth_figures([*ferries(0.5), *leaks])
    assert {name: len(figure.axes) for name, figure in drawn.items()} == {"ferry": 2, "leaks": 4}
    regret, violation = drawn["ferry"].axes
    assert (regret.get_ylabel(), violation.get_ylabel()) == ("regret", "violation")
    assert [text.get_text() for text in drawn["ferry"].legends[0].get_texts()] == ["Theorem 1"]
    curve = next(line for line in regret.lines if line.get_marker() == LOOKS_OF_LABELS["theorem-1"].marker)
    np.testing.assert_allclose(curve.get_ydata(), 2.5 * np.sqrt(HORIZONS))
    assert [axes.get_title() for axes in drawn["leaks"].axes] == ["leak $T^{-1}$", "leak $T^{-1/2}$"] * 2


def test_the_spec_has_the_families_and_agents_in_a_figure_differ_in_dash_or_marker():
    jobs = shipped_spec("theory").jobs()
    shown = {family: {job.label for job in jobs if job.experiment.startswith(f"{family}-")} for family in FAMILIES}
    for labels in shown.values():
        looks = [LOOKS_OF_LABELS[label] for label in labels]
        assert len({TITLES.get(label, title_of(label)) for label in labels}) == len(labels)
        assert all(a.dash != b.dash or a.marker != b.marker for a, b in itertools.combinations(looks, 2))
    for job in jobs:
        known = is_of_several_lengths(experiment(job.experiment))
        assert known == job.experiment.startswith(tuple(f"{family}-" for family in FAMILIES))
        assert not known or float(job.experiment.split()[0].split("-")[1]) == job.horizon
