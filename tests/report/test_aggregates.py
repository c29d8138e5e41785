"""Aggregates over environments against the formulas of rliable, and paired differences from a base."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean, ttest_rel

from psconrl.errors import ConfigError
from psconrl.report.aggregate_table import aggregate_table
from psconrl.report.aggregates import (
    RELATIVE_LOSS,
    interquartile_mean,
    loss_table,
    middle_mean,
    performance_profile,
    probability_of_improvement,
)
from psconrl.report.base_differences import differences_from
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import measures
from psconrl.report.panels import panel_figure
from psconrl.report.print_table import print_table
from psconrl.report.profile_panel import profile_panel


def curves(label, regrets, replicates=None):
    """Runs of 100 rounds with optimum .5 and threshold .2, that meet the constraint: the score is the regret."""
    regrets = np.asarray(regrets, dtype=float)
    n = regrets.size
    totals = np.zeros((n, 1, 2))
    totals[:, 0, 0], totals[:, 0, 1] = 50.0 + regrets, 20.0
    return Curves(
        label=label,
        agent=label,
        rounds=np.array([100]),
        cumulative=totals,
        thresholds=np.full((n, 1), 0.2),
        optimum=np.full(n, 0.5),
        replicates=np.arange(n) if replicates is None else np.asarray(replicates),
        seconds=np.ones(n),
        planning_seconds=np.zeros(n),
        probe=np.empty((n, 0)),
        strong=np.full((n, 1, 2), np.nan),
        largest_excess=np.zeros((n, 1, 2)),
        summaries=({},) * n,
        title=label.upper(),
    )


def environment(name, *agents):
    facts = {"prices": [2.0], "range_prices": [0.5], "cost_names": ["loss", "risk"]}
    return Experiment(name, facts, None, {c.label: c for c in agents}, title=name)


def random_losses(seed, sizes=(7, 10, 5)):
    rng = np.random.default_rng(seed)
    return [np.round(rng.lognormal(size=n), 1) for n in sizes]  # rounded, so that some are equal


def test_the_interquartile_mean_is_the_trimmed_mean_of_all_runs():
    for n in range(1, 12):
        values = np.random.default_rng(n).normal(size=n)
        assert float(middle_mean(values)) == pytest.approx(trim_mean(values, 0.25))
    losses = random_losses(0)
    found = interquartile_mean(losses)
    assert float(found.mean) == pytest.approx(trim_mean(np.concatenate(losses), 0.25))
    assert found.low < found.mean < found.high


def test_the_probability_of_improvement_is_that_of_mann_and_whitney():
    first, second = random_losses(1), random_losses(2, (6, 10, 9))
    wins = [1 - mannwhitneyu(x, y).statistic / (x.size * y.size) for x, y in zip(first, second, strict=True)]
    found = probability_of_improvement(first, second)
    assert float(found.mean) == pytest.approx(np.mean(wins))
    assert found.low < found.mean < found.high
    assert float(probability_of_improvement(second, first).mean) == pytest.approx(1 - np.mean(wins))
    ones = [np.array([1.0, 1.0, 3.0])]
    assert float(probability_of_improvement(ones, [np.array([1.0, 2.0])]).mean) == pytest.approx((0.5 * 2 + 2) / 6)
    sure = probability_of_improvement([np.zeros(5)], [np.ones(5)])
    assert (float(sure.low), float(sure.mean), float(sure.high)) == (1.0, 1.0, 1.0)


def test_the_profile_is_the_share_of_runs_above():
    losses = random_losses(3)
    taus = np.array([0.0, 0.5, 1.0, 5.0])
    expected = [np.mean([np.mean([x > tau for x in each]) for each in losses]) for tau in taus]
    found = performance_profile(losses, taus)
    np.testing.assert_allclose(found.mean, expected)
    assert (found.low <= found.mean).all()
    assert (found.mean <= found.high).all()


def test_resamples_have_the_variance_of_means_over_runs():
    """Of n runs, n - 1 are drawn: the variance is that of a mean, not (n - 1) / n of it, which is 11% narrower.

    The mean length of nine intervals, of 40 environments each, is known to a few percent with 2,000 draws.
    """
    rng = np.random.default_rng(4)
    taus = np.linspace(-1.0, 1.0, 9)
    losses = [rng.normal(size=5) for _ in range(40)]
    shares = np.array([(x[:, None] > taus).mean(axis=0) for x in losses])
    errors = np.sqrt((shares * (1 - shares) / 4).mean(axis=0) / 40)  # unbiased: p (1 - p) n / (n - 1) / n
    found = performance_profile(losses, taus)
    assert (found.high - found.low).mean() == pytest.approx(2 * 1.96 * errors.mean(), rel=0.05)


def test_fewer_than_five_runs_have_no_aggregate_interval():
    few = [np.arange(5.0), np.arange(4.0)]
    assert not interquartile_mean(few).has_interval
    assert not probability_of_improvement([np.arange(5.0)], [np.arange(4.0)]).has_interval
    assert np.isnan(performance_profile(few, np.zeros(2)).low).all()
    assert interquartile_mean([np.arange(5.0)]).has_interval


def two_environments():
    rng = np.random.default_rng(5)
    a, b = 10 + rng.normal(size=10), 20 + rng.normal(size=10)
    one = environment("one", curves("a", a), curves("b", b), curves("uniform", np.full(10, 200.0)))
    two = environment("two", curves("a", 3 * a), curves("b", b), curves("uniform", np.full(10, 100.0)), curves("c", a))
    return [one, two]


def test_losses_are_in_percent_of_uniform_play_also_if_it_is_not_shown():
    experiments = two_environments()
    shown = [replace(e, curves={x: c for x, c in e.curves.items() if x != "uniform"}) for e in experiments]
    table = loss_table(experiments, shown)
    assert (table.what, table.environments, table.left_out) == (RELATIVE_LOSS, ("one", "two"), ("C",))
    a = experiments[0].curves["a"].regret[:, -1]
    np.testing.assert_allclose(table.losses["a"], [a / 2, 3 * a])
    alone = loss_table(shown[:1], shown[:1])
    assert alone.what == "score"
    np.testing.assert_allclose(alone.losses["a"], [a])
    with pytest.raises(ConfigError, match="no agent has runs in every experiment"):
        loss_table(shown, [shown[0], replace(shown[1], curves={"c": shown[1].curves["c"]})])
    with pytest.raises(ConfigError, match="'one' has no score as the others have"):
        loss_table(shown, [replace(shown[0], facts={}), shown[1]])


def test_the_table_of_aggregates():
    experiments = two_environments()
    table = loss_table(experiments, experiments)
    rows = list(csv.DictReader(io.StringIO(aggregate_table(table, "csv", "b"))))
    assert [(row["agent"], row["aggregate"]) for row in rows] == [
        ("A", "interquartile mean of the loss in % of uniform play"), ("A", "P(less than B)"),
        ("B", "interquartile mean of the loss in % of uniform play"),
        ("UNIFORM", "interquartile mean of the loss in % of uniform play"), ("UNIFORM", "P(less than B)"),
    ]  # fmt: skip
    assert float(rows[1]["value"]) == pytest.approx(0.5)  # always in one environment, never in the other
    assert float(rows[-1]["value"]) == 0.0
    assert {row["spread"] for row in rows} == {"interval"}
    markdown = aggregate_table(table, "markdown").splitlines()
    assert markdown[0] == "| agent | runs | interquartile mean of the loss in % of uniform play |"
    assert markdown[-1].endswith("left out: C.")
    assert r"interquartile mean of the loss in \% of uniform play & P(less than B) \\" in aggregate_table(
        table, "latex", "b"
    )
    with pytest.raises(ConfigError, match="--compare: unknown agent that plays all environments 'c'"):
        aggregate_table(table, "csv", "c")


def test_profiles_are_drawn_for_every_agent():
    experiments = two_environments()
    table = loss_table(experiments, experiments)
    figure = panel_figure(*([x] for x in profile_panel(table, experiments)))
    (axes,) = figure.axes
    assert axes.get_xlabel() == RELATIVE_LOSS
    lines = {line.get_label(): line for line in axes.lines}
    assert set(lines) >= {"A", "B", "UNIFORM"}
    assert lines["A"].get_ydata()[[0, -1]].tolist() == [1.0, 0.0]
    x, y = lines["UNIFORM"].get_data()
    np.testing.assert_array_equal(y, [1.0 if tau < 100 else 0.0 for tau in x])  # all runs at 100: an upright step
    _, row = profile_panel(table, experiments, "x")
    assert row.curves(experiments[0])[0].x.min() > 0


@pytest.mark.parametrize("log", ["", "x"])
def test_a_drawn_profile_is_the_step_function_with_many_runs_and_agents(log):
    rng = np.random.default_rng(2)
    agents = [curves(f"agent {k}", rng.lognormal(0.3 * k, 1.0, 40)) for k in range(8)]
    shown = [environment("one", *agents, curves("uniform", np.full(40, 1000.0)))]
    table = loss_table(shown, shown)
    _, row = profile_panel(table, shown, log)
    everywhere = rng.uniform(0.01, 12.0, 500)
    for drawn, (losses,) in zip(row.curves(shown[0]), table.losses.values(), strict=True):
        assert drawn.x[0] == pytest.approx(min(each.min() for (each,) in table.losses.values()))
        assert (drawn.x[-1], drawn.estimate.mean[-1]) == (100.0, 0.0)
        inside = everywhere[everywhere > drawn.x[0]]
        above = (losses[:, None] > inside).mean(axis=0)
        np.testing.assert_allclose(np.interp(inside, drawn.x, drawn.estimate.mean), above, atol=1e-9)
    assert drawn.estimate.mean[0] == 1.0


def test_differences_are_paired_and_corrected():
    rng = np.random.default_rng(6)
    noise = rng.normal(size=12)
    base = curves("b", 5.0 + noise)
    first = curves("a", (4.0 + noise + 0.5 * rng.normal(size=12))[::-1], np.arange(12)[::-1] + 1)
    third = curves("c", 5.0 + noise[:4])
    shown = [environment("one", first, base, third)]
    regret = measures(shown, ["regret"])
    found = differences_from("b", shown, regret).found
    assert set(found) == {("one", "a", 0), ("one", "c", 0)}
    one = found["one", "a", 0]
    ours = dict(zip(first.replicates.tolist(), first.regret[:, -1], strict=True))
    pairs = np.array([(ours[k], base.regret[k, -1]) for k in range(1, 12)])
    assert one.found.runs == 11
    assert float(one.found.difference.mean) == pytest.approx((pairs[:, 0] - pairs[:, 1]).mean())
    assert one.found.p_value == pytest.approx(ttest_rel(pairs[:, 0], pairs[:, 1]).pvalue)
    assert one.corrected_p == pytest.approx(min(1.0, 2 * one.found.p_value))
    assert np.isnan(found["one", "c", 0].corrected_p)  # four runs have an interval, but no verdict
    assert ", p " not in str(found["one", "c", 0])


def test_tables_with_differences_mark_the_significant_ones():
    experiments = two_environments()
    measured = measures(experiments, ["score"])
    markdown = print_table(experiments, measured, "markdown", "b").splitlines()
    assert markdown[0] == "| experiment | agent | runs | score | difference from B |"
    assert markdown[2].startswith("| one | A | 10 |")
    assert markdown[2].endswith(r", p < 0.001 \* |")
    assert markdown[3].endswith("|  |")  # the base itself
    assert "corrected for the 5 differences of the table (Bonferroni), none below 10 runs" in markdown[-1]
    latex = print_table(experiments, measured, "latex", "b")
    assert "agent & runs & score & difference from B" in latex
    assert r"$p < $ 0.001$^*$ \\" in latex
    rows = list(csv.DictReader(io.StringIO(print_table(experiments, measured, "csv", "b"))))
    assert (rows[0]["base"], rows[0]["common_runs"]) == ("B", "10")
    assert float(rows[0]["p_corrected"]) == pytest.approx(5 * float(rows[0]["p"]))
    assert rows[1]["difference"] == ""
    with pytest.raises(ConfigError, match="--compare: unknown agent in this table 'missing'"):
        print_table(experiments, measured, "csv", "missing")
