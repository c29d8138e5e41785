"""The figure of a run: one unit per axis, running averages over windows that depend on its length."""

import itertools

import numpy as np
import pytest

import psconrl
from psconrl import PSConRL, Status
from psconrl.report.figure_files import write_figure
from psconrl.report.monitor.log_file import LogFile
from psconrl.report.run_figure import trace_figure
from psconrl.report.running_averages import recent_mean, window_for
from psconrl.simulation.trace import EpisodeLog, Trace
from test_cli_learn import shell


def run_on(name, horizon=2000, **options):
    model = psconrl.load(name, **options)
    agent = psconrl.agents.make("psconrl", model.n_states, model.n_actions, model.thresholds, model.costs, seed=0)
    return psconrl.simulate(model, agent, horizon, seed=0), psconrl.plan(model)


def axes_of(figure):
    """Axes by their titles, which contain the unit."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes}


def test_every_axis_has_one_unit_and_the_average_is_that_of_the_last_rounds():
    trace, best = run_on("queue", 4000)
    shown = list(axes_of(trace_figure(trace, best, "a title with $ in it")).items())
    assert [title for title, _ in shown] == [
        "throughput (customers a step)", "regret in throughput so far (customers)",
        "delay (customers)", "violation of delay so far (customers x step)",
        "power, a round", "violation of power so far",
    ]  # fmt: skip
    assert window_for(4000) == 500
    steps = 500 // 20  # checkpoints are 20 rounds apart
    for i in range(3):
        average, aim = shown[2 * i][1].lines
        sign = -1.0 if i == 0 else 1.0  # a throughput is a reward
        late = (trace.cumulative[steps:, i] - trace.cumulative[:-steps, i]) / 500
        np.testing.assert_allclose(average.get_ydata()[steps:], sign * late)
        np.testing.assert_allclose(average.get_ydata()[:10], sign * trace.averages[:10, i])
        expected = best.value if i == 0 else trace.thresholds[i - 1]
        assert aim.get_ydata()[0] == pytest.approx(expected)
        added = shown[2 * i + 1][1].lines[0].get_ydata()
        due = best.costs[0] if i == 0 else trace.thresholds[i - 1]
        np.testing.assert_allclose(added, trace.cumulative[:, i] - trace.rounds * due)
    assert "last 500 rounds" in shown[2][1].get_legend().get_texts()[0].get_text()


def test_units_are_on_the_axes_and_in_the_log(tmp_path):
    model = psconrl.CMDP(
        [[[1.0], [1.0]]],
        [[[1.0, 3.0]], [[2.0, 1.0]]],
        [1.5],
        cost_names=("cost", "delay"),
        units={"round": "hour", "counted": {"cost": "euro"}, "levels": {"delay": "patients"}},
    )
    trace = psconrl.simulate(model, PSConRL(1, 2, model.thresholds, model.costs, seed=0), 200, seed=0)
    assert list(axes_of(trace_figure(trace, psconrl.plan(model)))) == [
        "cost (euro an hour)", "regret in cost so far (euro)",
        "delay (patients)", "violation of delay so far (patients x hour)",
    ]  # fmt: skip
    psconrl.save(model, tmp_path / "model.npz")
    shell("learn", str(tmp_path / "model.npz"), "--horizon", "200", "--log", str(tmp_path / "run.csv"))
    log = LogFile(tmp_path / "run.csv")
    log.refresh()
    assert log.cost_names == ["cost (euro an hour)", "delay (patients)"]


def test_without_an_optimum_the_objective_adds_up_with_its_own_sign(tmp_path):
    trace, best = run_on("counterexample", 300)
    for plan in (None, psconrl.plan(psconrl.load("counterexample").with_thresholds({"cost": 0.4}))):
        assert plan is None or plan.status is Status.INFEASIBLE
        figure = trace_figure(trace, plan)
        shown = axes_of(figure)
        np.testing.assert_allclose(shown["reward, in all"].lines[0].get_ydata(), -trace.cumulative[:, 0])
        assert len(shown["reward, a round"].lines) == 1  # there is no optimum to show
        write_figure(figure, tmp_path / "run.svg")
    assert best.status is Status.OPTIMAL


def test_a_run_without_a_round_is_an_empty_picture(tmp_path):
    nothing = Trace(
        np.empty(0, np.int64),
        np.empty((0, 2)),
        np.empty((0, 1)),
        EpisodeLog(),
        np.array([0.5]),
        ("steps", "risk"),
        {},
        True,
    )
    figure = trace_figure(nothing, None)
    write_figure(figure, tmp_path / "run.png")
    assert len(figure.axes) == 4
    assert all(len(axes.lines[0].get_xdata()) == 0 for axes in figure.axes)


def test_windows_are_round_numbers_of_about_a_tenth():
    windows = [window_for(n) for n in range(1, 100_000, 7)]
    assert all(a <= b for a, b in itertools.pairwise(windows))
    for rounds in (1_500, 8_000, 123_456, 9_999_999):
        assert rounds / 17 < window_for(rounds) < rounds / 6
        assert str(window_for(rounds)).rstrip("0") in ("1", "2", "5")
    assert [window_for(n) for n in (0, 1, 99, 100, 999, 1000, 14_000, 15_000)] == [1, 1, 100, 100, 100, 100, 1000, 2000]


def test_a_recent_mean_is_that_of_a_slow_loop():
    rng = np.random.default_rng(0)
    length = rng.integers(1, 30, 200)
    ends = np.cumsum(length) + 1000
    values = np.where(rng.random(200) < 0.3, np.nan, rng.normal(size=200))
    at = np.arange(200)
    assert np.isin(ends - 100, ends).any()  # one that ended just before a window does not count
    found = recent_mean(values, length.astype(float), ends, at, 100)
    for k, mean in zip(at, found, strict=True):
        inside = [j for j in range(k + 1) if ends[j] > ends[k] - 100 and np.isfinite(values[j])]
        slow = sum(values[j] * length[j] for j in inside) / sum(length[j] for j in inside) if inside else np.nan
        np.testing.assert_allclose(mean, slow)
