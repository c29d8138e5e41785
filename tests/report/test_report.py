"""Statistics, figures and the page's contents, from a small sweep."""

import dataclasses
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student

import psconrl
from psconrl.cli import main
from psconrl.errors import ConfigError
from psconrl.experiment.job import failure
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import GROUP, Store
from psconrl.report import page
from psconrl.report.curves import read_experiments
from psconrl.report.growth import growth_exponent
from psconrl.report.headline import headline
from psconrl.report.metrics import measures, window_of
from psconrl.report.number_format import format_number
from psconrl.report.page_contents import _facts, _panels, build
from psconrl.report.page_tables import spread_table, verdict
from psconrl.report.paper_figures import figure1, figure2, figure3
from psconrl.report.priced_regret import final_score
from psconrl.report.statistics import Comparison, MeanInterval, compare, estimate_of
from psconrl.report.theory import check_theory
from psconrl.report.theory_figure import theory_figure
from psconrl.simulation.regret import paper_regret
from sweeps import AtOnce

SPEC = """
seed = 1
replicates = 3
[agents.every]
agent = "psconrl"
options = { schedule = "every-round", prior = [[[1, 0], [1, 1]], [[1, 0], [1, 0]]] }

[experiments.counterexample]
agents = ["every"]
horizon = 200
checkpoints = 20
probe = [0, 1, 1]

[experiments.marsrover-4x4]
agents = ["psconrl", "c-ucrl", "uniform"]
horizon = 2_000
checkpoints = 20

[experiments.bayes]
env = "dirichlet"
options = { slack = 0.02 }
grid = { states = [4, 6] }
draw = true
evaluate = true
checkpoints = "log"
horizon = 1_000
agents = ["psconrl"]

[experiments.queue]
agents = ["uniform"]
horizon = 500
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.db"
    assert run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce(), title="A <title> & more").failed == 0
    return path


@pytest.fixture(scope="module")
def experiments(results):
    with Store(results) as store:
        return {e.name: e for e in read_experiments(store)}


def test_curves_are_those_of_the_runs(experiments):
    job = next(j for j in parse_spec(SPEC).jobs() if j.experiment == "marsrover-4x4" and j.replicate == 1)
    cmdp = job.environment()
    trace = psconrl.simulate(cmdp, job.make_agent(cmdp), 2_000, job.environment_seed(), checkpoints=20)
    curves = experiments["marsrover-4x4"].curves["psconrl"]
    result = psconrl.regret(trace, psconrl.plan(cmdp))
    np.testing.assert_array_equal(curves.cumulative[1], trace.cumulative)
    np.testing.assert_allclose(curves.regret[1], result.regret, atol=1e-9)
    np.testing.assert_allclose(curves.violation(1)[1], result.violation[:, 0], atol=1e-9)
    np.testing.assert_allclose(curves.average(0)[1], trace.averages[:, 0])
    assert list(experiments["marsrover-4x4"].curves) == ["psconrl", "c-ucrl", "uniform"]


def test_the_papers_metric_is_one_and_the_same(experiments):
    jobs = [j for j in parse_spec(SPEC).jobs() if (j.experiment, j.label) == ("marsrover-4x4", "psconrl")]
    cmdp = jobs[0].environment()
    traces = [psconrl.simulate(cmdp, j.make_agent(cmdp), 2_000, j.environment_seed(), checkpoints=20) for j in jobs]
    _, expected = paper_regret(traces, psconrl.plan(cmdp), window=500)
    curves = experiments["marsrover-4x4"].curves["psconrl"]
    for i in (0, 1):
        np.testing.assert_allclose(curves.paper_curve(i, 500), expected[:, :, i], atol=1e-9)


def test_strong_regret_is_that_of_the_library(experiments):
    job = next(j for j in parse_spec(SPEC).jobs() if j.experiment == "bayes states=6" and j.replicate == 2)
    cmdp = job.environment()
    trace = psconrl.simulate(
        cmdp, job.make_agent(cmdp), 1_000, job.environment_seed(), checkpoints="log", evaluate_policies=True
    )
    strong = psconrl.regret(trace, psconrl.plan(cmdp)).strong
    np.testing.assert_allclose(experiments["bayes states=6"].curves["psconrl"].strong[2, -1], strong, rtol=1e-9)


def test_every_drawn_model_has_its_own_optimum(experiments):
    curves = experiments["bayes states=6"].curves["psconrl"]
    assert len(set(curves.optimum)) == 3
    for check in check_theory([experiments["bayes states=4"], experiments["bayes states=6"]]):
        assert 0 < check.episodes_ratio <= 1
        assert 0 <= check.exploring_ratio <= 1


@pytest.mark.parametrize("exponent", [0.5, 0.67, 1.0])
def test_growth_exponents_are_found(exponent):
    t = np.unique(np.geomspace(1, 100_000, 200).astype(int))
    noise = np.random.default_rng(0).normal(1.0, 0.05, size=(20, 1))
    slope = growth_exponent(t, 3.0 * t**exponent * noise)
    assert slope.mean == pytest.approx(exponent, abs=0.01)
    assert slope.low <= slope.mean <= slope.high
    assert np.isnan(growth_exponent(t, -np.ones((3, t.size))).mean)
    assert np.isnan(growth_exponent(t[:2], np.ones((3, 2))).mean)


def test_comparisons_are_paired_and_few_runs_give_no_verdict(experiments):
    curves = experiments["marsrover-4x4"].curves
    result = compare(curves["psconrl"], curves["uniform"], lambda c: c.regret[:, -1])
    assert result.runs == 3
    assert result.difference.high < 0
    assert verdict(result, 3) == "too few runs"
    expected = [c.regret[:, -1] for c in (curves["psconrl"], curves["uniform"])]
    assert result.difference.mean == pytest.approx((expected[0] - expected[1]).mean())


@pytest.mark.statistical
def test_verdicts_have_the_false_alarm_rate_they_say():
    """2,000 comparisons of equals at 5% (ten runs each): the share of verdicts is within 4.5 deviations of 5%;
    a false alarm once in 150,000 seeds."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(2000):
        difference = rng.normal(size=10)
        t = abs(difference.mean()) / (difference.std(ddof=1) / np.sqrt(10))
        mean = MeanInterval(difference.mean(), np.nan, np.nan)  # its interval, which takes longest, decides nothing
        alarms += verdict(Comparison("a", "b", mean, 10, 2 * student.sf(t, 9)), 1) != "no significant difference"
    assert abs(alarms / 2000 - 0.05) < 4.5 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.usefixtures("no_maps")
def test_figures_are_drawn_in_the_papers_layout(experiments, tmp_path, full):
    grids = [experiments["marsrover-4x4"]]
    drawn = (
        (figure1(experiments["counterexample"]), 4),
        (figure2(grids), 2),
        (figure2(grids, "paper"), 2),
        (figure3(grids), 2),
        (theory_figure([experiments["bayes states=4"], experiments["bayes states=6"]]), 6),
    )
    suffixes = ("png", "svg", "pdf")
    for k, (figure, panels) in enumerate(drawn):
        assert isinstance(figure, Figure)
        assert len(figure.axes) == panels
        for suffix in suffixes if full else suffixes[k % 3 :][:1]:
            figure.savefig(tmp_path / f"f.{suffix}")
            assert (tmp_path / f"f.{suffix}").stat().st_size > 5_000
    with pytest.raises(ConfigError, match="metric must be one of"):
        figure2(grids, "nice")
    with pytest.raises(ConfigError, match="nothing to draw"):
        figure3([])
    odd = dataclasses.replace(
        grids[0],
        curves={
            k: dataclasses.replace(c, title=k) for k, c in zip(("_x", "$x^$"), grids[0].curves.values(), strict=False)
        },
    )
    figure2([odd]).savefig(tmp_path / "odd.png")
    free = psconrl.CMDP([[[1.0]]], [[[1.0]]])
    psconrl.save(free, tmp_path / "free.npz")
    jobs = parse_spec(
        '[experiments.free]\nenv = "free.npz"\nhorizon = 10\nagents = ["psconrl"]', folder=tmp_path
    ).jobs()
    with ThreadPoolExecutor(1) as threads:
        run_sweep(jobs, tmp_path / "free.db", executor=threads)
    with Store(tmp_path / "free.db") as store:
        build(store)
        with pytest.raises(ConfigError, match="has no constraints"):
            figure2(read_experiments(store))
    with pytest.raises(ConfigError, match="recorded no sampled probability"):
        figure1(experiments["marsrover-4x4"])


def test_figure_1_has_the_average_of_the_last_rounds_and_of_all(experiments):
    """The first is drawn from the first full window of 50 rounds on, the second from the first checkpoint on."""
    curves = experiments["counterexample"].curves["every"]
    _, _, recent, so_far = figure1(experiments["counterexample"]).axes
    recent, so_far = recent.lines[0], so_far.lines[0]
    totals = curves.cumulative[:, :, 1].mean(axis=0)  # every 10 rounds
    assert np.isnan(recent.get_ydata()[:4]).all()
    before = np.append(0.0, totals)[:-5]
    np.testing.assert_allclose(recent.get_ydata()[4:], (totals[4:] - before) / 50)
    np.testing.assert_allclose(so_far.get_ydata(), totals / curves.rounds)


def test_figures_have_the_environments_of_the_paper_side_by_side(experiments):
    """Three columns; what does not fit, such as the columns of known costs, continues below."""
    one = experiments["marsrover-4x4"]
    figure = figure2([dataclasses.replace(one, title=f"grid {k}") for k in range(6)], "paper")
    assert {axes.get_subplotspec().num1 for axes in figure.axes} == set(range(4 * 3))
    assert {axes.get_gridspec().ncols for axes in figure.axes} == {3}
    assert [axes.get_title().split("\n")[0] for axes in figure.axes[6:9]] == ["grid 3", "grid 4", "grid 5"]


def test_the_papers_metric_has_the_deviation_over_runs(experiments):
    one = experiments["marsrover-4x4"]
    (measure,) = measures([one], ["paper-regret"])
    curves = one.curves["psconrl"]
    values = curves.paper_curve(0, 500)
    axes = figure2([one], "paper").axes[0]
    band = axes.collections[0].get_paths()[0].vertices
    width = np.sqrt(((values - values.mean(axis=0)) ** 2).mean(axis=0))[-1]
    assert band[band[:, 0] == 2_000][:, 1].max() == pytest.approx(values.mean(axis=0)[-1] + width)
    found = estimate_of(measure, values[:, -1])
    assert str(found) == f"{format_number(float(found.mean))} ± {format_number(width)}"
    assert str(estimate_of(measure, values[:1, -1])) == format_number(float(values[0, -1]))
    assert window_of(one, curves) == 500
    assert window_of(dataclasses.replace(one, name="marsrover-4x4 (costs learned)"), curves) == 500
    assert window_of(dataclasses.replace(one, facts={}), curves) == 100


@pytest.mark.usefixtures("no_maps")
def test_experiments_are_in_groups_with_those_of_the_user_first(results, tmp_path):
    with Store(results) as store:
        names = [e.name for e in read_experiments(store)]
        assert {e["group"] for e in build(store)["experiments"]} == {"Yours"}
    copy = tmp_path / "copy.db"
    shutil.copy(results, copy)
    with Store.writer(copy) as store:
        store.note({f"{GROUP} {name}": "theory" for name in names if name.startswith("bayes")})
        store.note({f"{GROUP} marsrover-4x4": "paper", f"{GROUP} queue": "of a later version"})
    with Store(copy) as store:
        found = build(store)
    assert [(e["group"], e["name"]) for e in found["experiments"]] == [
        ("Yours", "counterexample"), ("Yours", "queue"), ("The paper's", "marsrover-4x4"),
        ("Theory", "bayes states=4"), ("Theory", "bayes states=6"),
    ]  # fmt: skip
    assert found["opens"] == "marsrover-4x4"
    (claims,) = (table for table in found["tables"] if table["title"] == "The paper's claims")
    assert {row[1].partition(":")[0].partition(",")[0] for row in claims["rows"]} == {"marsrover-4x4"}
    with Store(results) as store:  # experiments of one's own are no runs of the paper's
        assert all(table["title"] != "The paper's claims" for table in build(store)["tables"])


def test_the_report_has_all_parts_and_failures_are_shown(results, tmp_path):
    copy = tmp_path / "copy.db"
    copy.write_bytes(results.read_bytes())
    job = parse_spec(SPEC).jobs()[0]
    with Store.writer(copy) as store:
        store.add(failure(job, "Traceback ...\nValueError: <b>no</b>"))
    with Store(copy) as store:
        report = build(store)
    assert report["title"] == "A <title> & more"
    assert report["opens"] == "marsrover-4x4"  # the first on a map
    names = [e["name"] for e in report["experiments"]]
    assert names == ["counterexample", "marsrover-4x4", "bayes states=4", "bayes states=6", "queue"]
    grid = report["experiments"][1]
    assert [p["title"] for p in grid["panels"]] == [
        "Regret", "Violation: risk", "Strong violation: risk", "Largest running excess: risk", "Average steps",
        "Average risk",
    ]  # fmt: skip
    assert [t["title"] for t in grid["tables"]] == [
        "Final regret and violation", "Spread over runs", "Strong regret and violation",
        "Pairwise comparison of final score", "Growth and timing",
    ]  # fmt: skip
    assert grid["maps"][0]["svg"].startswith("<?xml")
    assert len(report["experiments"][4]["panels"]) == 10  # the queue has two limits
    theory, failed = report["tables"]
    bounded = ["counterexample", "marsrover-4x4", "bayes states=4", "bayes states=6"]  # samplers, not C-UCRL
    assert [row[0] for row in theory["rows"]] == bounded
    assert failed["rows"][0][3].endswith("<b>no</b>")
    assert "<b>no</b>" not in page.render_report(report)
    json.dumps(report)


def test_where_all_tie_at_shadow_prices_the_headline_names_who_keeps_the_limit(experiments):
    """On the counterexample a unit of violation is worth a unit of reward, by construction."""
    example = experiments["counterexample"]
    curves = example.curves["every"]
    n, limit = curves.rounds, curves.thresholds[0, 0]
    averages = {"careful": limit - 0.001, "bold": limit + 0.002}
    changed = {
        name: dataclasses.replace(
            curves, label=name, title=name, cumulative=np.repeat(np.stack([-x * n, x * n], axis=1)[None], 3, axis=0)
        )
        for name, x in averages.items()
    }
    said = headline(dataclasses.replace(example, curves=changed))
    assert said.startswith("careful has the least mean score over 3 runs (0.2: regret 0.2, violation of cost -0.2)")
    assert headline(example) == ""  # one agent alone
    rover = experiments["marsrover-4x4"]
    assert headline(rover).startswith("PSConRL has the least mean score over 3 runs (")
    assert headline(rover).endswith("), with fewer than 10 runs too few for a verdict.")
    gap, proven = dict(_facts(rover))["optimality gap"].split(" ", 1)
    assert proven == "(proven)"
    assert 0.0 <= float(gap) <= 1e-12


def test_regret_and_violation_are_cut_off_on_the_page_and_averages_are_not(experiments):
    panels = _panels(experiments["marsrover-4x4"])
    assert {p["title"]: p["clip"] for p in panels} == {
        "Regret": True, "Violation: risk": True, "Strong violation: risk": True, "Largest running excess: risk": True,
        "Average steps": False, "Average risk": False,
    }  # fmt: skip


def test_the_picture_of_the_theory_explains_what_is_tight(experiments):
    bayes = [experiments["bayes states=4"], experiments["bayes states=6"]]
    tight = dataclasses.replace(
        experiments["counterexample"],
        name="tight",
        curves={"psconrl": dataclasses.replace(bayes[0].curves["psconrl"], label="psconrl-paper")},
    )
    figure = theory_figure([*bayes, tight])
    notes = [f.get_supxlabel() for f in figure.subfigs]
    assert "tight: the paper's Example 1, whose threshold, 0.5275, leaves a slack of 0.0012." in notes[1]
    scaling = figure.axes[3]
    assert list(scaling.texts) == []  # nothing is written on lines
    for axes in figure.axes[4:]:
        assert all(text.xy[0] > 1 for text in axes.texts)  # numbers stand beside the axes
        assert len(axes.texts) == 3
    assert theory_figure(bayes).subfigs[1].get_supxlabel() == ""


@pytest.mark.usefixtures("no_maps")
def test_commands(results, tmp_path, capsys):
    for arguments, shown in (
        (["report", str(results), "-o", str(tmp_path / "r.html")], "Page:"),
        (["export", str(results), "--format", "csv", "-o", str(tmp_path / "out")], "checkpoints.csv"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code in (0, None)
        assert shown in capsys.readouterr().out
    for arguments, message in (
        (["report", str(tmp_path / "none.db")], "StoreError"),
        (["report", str(results), "-o", "page.txt"], "must end in .html"),
        (["sweep", str(tmp_path / "none.toml"), "--out", str(tmp_path / "x.db")], "no such file"),
        (["reproduce", "figure9"], "figure9"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1


def test_the_spread_of_runs_by_hand(experiments):
    grid = experiments["marsrover-4x4"]
    table = spread_table(grid)
    (curves,) = (c for c in grid.curves.values() if c.title == table["rows"][0][0])
    ends = sorted(final_score(curves, grid.facts))
    assert table["rows"][0][1] == len(ends)
    assert table["rows"][0][5] == format_number(float(ends[-1]))
    assert table["rows"][0][2] == format_number(float(sum(ends) / len(ends)))
    assert float(table["rows"][0][3].replace(",", "")) <= float(table["rows"][0][4].replace(",", ""))
