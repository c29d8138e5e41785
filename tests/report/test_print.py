"""Figures and tables for a paper: selection and names of agents, widths, and notes on clipped curves."""

import csv
import io
import re
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest

from psconrl.cli import main
from psconrl.cli.paper import inches
from psconrl.errors import ConfigError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import Curves, Experiment, read_experiments
from psconrl.report.cut_curves import CLIP, MINUS, reach_of
from psconrl.report.metrics import METRICS, available, lacking, measures
from psconrl.report.panel_contents import rows_of
from psconrl.report.panels import Print, panel_figure, runs_of
from psconrl.report.print_table import FORMATS, print_table
from psconrl.report.selection import select
from psconrl.report.statistics import mean_interval
from psconrl.report.style import LOOKS
from sweeps import AtOnce

SPEC = """
seed = 1
replicates = 3
[agents."patient, r=2"]
agent = "psconrl"
options = { schedule = "doubling" }

[experiments.marsrover-4x4]
agents = ["psconrl", "c-ucrl", "uniform", "patient, r=2"]
horizon = 1_000
checkpoints = 20
override.c-ucrl = { replicates = 2 }

[experiments.box]
agents = ["psconrl", "uniform"]
horizon = 1_000
checkpoints = 20

[experiments.queue]
agents = ["uniform"]
horizon = 500
evaluate = true
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("print") / "r.db"
    assert run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce()).failed == 0
    return path


@pytest.fixture(scope="module")
def experiments(results):
    with Store(results) as store:
        return read_experiments(store)


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code or 0


def fails(capsys, *arguments):
    assert run(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_experiments_and_agents_are_shown_in_the_order_they_are_named(experiments):
    shown = select(experiments, ["box,marsrover-4x4"], ["uniform, psconrl"], ["psconrl=Ours = best", "box=The box"])
    assert [e.title for e in shown] == ["The box", "marsrover-4x4"]
    assert [[c.title for c in e.curves.values()] for e in shown] == [["uniform", "Ours = best"]] * 2
    assert [c.label for c in shown[0].curves.values()] == ["uniform", "psconrl"]
    assert shown[0].curves["psconrl"].look == LOOKS["psconrl"]
    assert [e.name for e in select(experiments, [], ["psconrl"])] == ["marsrover-4x4", "box"]  # not the queue


def test_names_with_commas_and_equals_signs_can_be_chosen(experiments):
    shown = select(experiments, ["marsrover-4x4"], ["patient, r=2", "psconrl,uniform"], ["patient, r=2=Patient"])
    assert [c.title for c in shown[0].curves.values()] == ["Patient", "PSConRL", "uniform"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ((["queu"],), "unknown experiment 'queu'; did you mean 'queue'?"),
        (([], ["psconl"]), "unknown agent 'psconl'; did you mean 'psconrl'?"),
        ((["queue"], ["psconrl"]), "unknown agent 'psconrl'; known: uniform"),
        (([], [","]), "at least one agent must be named"),
        (([], [], ["Ours"]), "--rename: must be LABEL=NAME; got 'Ours'"),
        (([], [], ["psconl=Ours"]), "--rename: unknown agent or experiment 'psconl'; did you mean 'psconrl'?"),
        (([], [], ["psconrl= "]), "--rename: psconrl needs a name"),
    ],
)
def test_who_is_not_there_is_named(experiments, choice, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        select(experiments, *choice)
    with pytest.raises(ConfigError, match="no finished runs"):
        select([])


def test_metrics_are_those_of_the_runs(experiments):
    rover = experiments[0]
    curves = rover.curves["psconrl"]
    (price,) = rover.facts["prices"]
    expected = {
        "regret": curves.regret,
        "violation": curves.violation(1),
        "priced": curves.regret + price * curves.violation(1),
        "score": curves.regret + 2 * price * np.maximum(curves.violation(1), 0.0),  # more than its range price
        "objective": curves.average(0),
        "cost": curves.average(1),
        "paper-regret": curves.paper_curve(0, 500),
        "paper-violation": curves.paper_curve(1, 500),
    }
    for name, values in expected.items():
        (measure,) = measures([rover], [name])
        np.testing.assert_allclose(measure.values(rover, curves), values, atol=1e-12)
    queue = experiments[2]  # two limits, a reward, evaluated
    uniform = queue.curves["uniform"]
    for name, title, values in (
        ("objective", "average throughput, customers a step", [-uniform.average(0)]),
        ("strong-regret", "strong regret, customers", [uniform.strong[:, :, 0]]),
        (
            "strong-violation",
            "strong violation (delay), customers x step",
            [uniform.strong[:, :, 1], uniform.strong[:, :, 2]],
        ),
        (
            "largest-excess",
            "largest running excess (delay), customers x step",
            [uniform.largest_excess[:, :, 1], uniform.largest_excess[:, :, 2]],
        ),
    ):
        found = measures([queue], [name])
        assert found[0].title == title
        for measure, value in zip(found, values, strict=True):
            np.testing.assert_array_equal(measure.values(queue, uniform), value)
    assert set(METRICS) == {*expected, "strong-regret", "strong-violation", "largest-excess"}


def test_one_constraint_is_chosen_by_its_name():
    def made(name, *costs):
        cumulative = np.zeros((1, 1, len(costs)))
        cumulative[0, 0] = np.arange(len(costs))
        curves = Curves(
            label="a", agent="a", rounds=np.ones(1, dtype=int), cumulative=cumulative,
            thresholds=np.zeros((1, len(costs) - 1)), optimum=np.zeros(1), replicates=np.zeros(1), seconds=np.ones(1),
            planning_seconds=np.ones(1), probe=np.empty((1, 0)), strong=cumulative, largest_excess=cumulative,
            summaries=({},), title="a",
        )  # fmt: skip
        return Experiment(name, {"cost_names": list(costs)}, None, {"a": curves}, title=name)

    both = [
        made("one", "earned", "waiting", "lost (a, b)"),
        made("two", "earned", "lost (a, b)"),
        made("three", "risk"),
    ]
    lost = measures(both, ["violation (lost (a, b))"])
    assert [(m.cost, m.title, [m.applies_to(e) for e in both]) for m in lost] == [
        (1, "violation (lost (a, b))", [False, True, False]),
        (2, "violation (lost (a, b))", [True, False, False]),
    ]
    assert [m.title for m in measures(both, ["violation (waiting)"])] == ["violation (waiting)"]
    assert lacking("violation (waiting)", both) == [
        "violation (waiting): experiment 'two' has no constraint 'waiting'",
        "violation (waiting): experiment 'three' has no constraints",
    ]
    with pytest.raises(ConfigError, match="violation: unknown constraint 'earned'; known: waiting, lost"):
        measures(both, ["violation (earned)"])


def test_a_metric_that_an_experiment_lacks_is_said(experiments):
    with pytest.raises(ConfigError, match="unknown metric 'regrets'; did you mean 'regret'"):
        measures(experiments, ["regrets"])
    rover = experiments[0]
    unevaluated = {label: replace(c, strong=c.strong * np.nan) for label, c in rover.curves.items()}
    with pytest.raises(ConfigError, match="strong-regret: experiment 'marsrover-4x4' has no exact evaluation"):
        measures([replace(rover, curves=unevaluated)], ["strong-regret"])
    lost = replace(rover, curves={"a": replace(rover.curves["psconrl"], optimum=np.array([np.nan] * 3))}, facts={})
    with pytest.raises(ConfigError, match="has no optimum to compare with"):
        measures([lost], ["regret"])
    with pytest.raises(ConfigError, match="has no shadow prices"):
        measures([lost], ["priced"])
    with pytest.raises(ConfigError, match="has no shadow prices"):
        measures([lost], ["score"])
    old = replace(rover, facts={key: value for key, value in rover.facts.items() if key != "range_prices"})
    with pytest.raises(ConfigError, match="earlier version, without range prices; run the sweep again, which keeps"):
        measures([old], ["score"])
    assert [m.title for m in available(replace(lost, curves=unevaluated), list(METRICS))] == [
        "regret",
        "violation (cost 1)",
        "average objective",
        "average cost 1",
        "largest running excess (cost 1)",
        "regret, paper's metric",
        "violation, paper's metric (cost 1)",
    ]


def one_without(experiment):
    """The experiment with a second agent that was not evaluated."""
    (label, curves), *_ = experiment.curves.items()
    other = replace(curves, label="other", title="Other", strong=np.full_like(curves.strong, np.nan))
    return replace(experiment, curves={label: curves, "other": other})


def test_an_agent_that_lacks_a_metric_has_a_dash_with_a_note(experiments):
    both = [one_without(experiments[0])]
    measured = measures(both, ["violation", "strong-regret", "strong-violation"])
    markdown = print_table(both, measured, "markdown").splitlines()
    assert markdown[3].endswith(" | - | - |")
    assert "| - |" not in markdown[2]
    assert markdown[-1].endswith("A dash: not known for this agent.")
    assert "A dash" not in print_table(both, measured[:1], "markdown")
    latex = print_table(both, measured, "latex").splitlines()
    assert latex[6].endswith(r"& -- & -- \\")
    assert len(print_table(both, measured, "csv").splitlines()) == 1 + 3 + 1


def test_a_figure_names_the_agents_of_which_a_metric_is_not_known(experiments):
    both = [one_without(experiments[0])]
    signed, strong = panel_figure(both, rows_of(measures(both, ["violation", "strong-violation"]))).axes
    assert "not known: Other" in panels_of(strong.figure)[1]
    assert "not known" not in panels_of(strong.figure)[0]
    assert (len(signed.collections), len(strong.collections)) == (2, 1)


def test_axes_reach_four_times_as_far_as_the_middle_curve():
    curves = [np.array([0.0, 1.0]), np.array([0.0, -2.0]), np.array([0.0, 3.0]), np.array([0.0, 100.0])]
    assert reach_of(curves) == (-2.0, CLIP * 2.0)  # of four, the second
    assert reach_of([*curves, np.array([-50.0, 2.5])]) == (-CLIP * 3.0, CLIP * 3.0)  # of five, the third
    assert reach_of(curves[:1]) == (0.0, 1.0)
    bands = [np.array([-3.0, np.nan]), np.array([5.0, np.nan])]
    assert reach_of(curves[:2], bands) == (-3.0, CLIP * 1.0)  # bands within the same limit


def panels_of(figure):
    return ["\n".join(text.get_text() for text in axes.texts if text.get_text()) for axes in figure.axes]


def test_a_curve_that_leaves_the_axes_is_cut_off_and_its_end_is_named(experiments):
    rover = select(experiments, ["marsrover-4x4"], ["psconrl,uniform"])[0]
    near = rover.curves["psconrl"]
    n = near.rounds.size
    far = np.linspace(10.0, 1000.0, n)
    returning = np.concatenate([np.linspace(0.0, 500.0, n - 1), [3.0]])
    shapes = {f"near {k}": np.full(n, k) for k in (7.0, 8.0, 9.0, 10.0)}
    shapes |= {"far": far, "low": -far, "back": returning}
    optimum = near.optimum[0]
    changed = {
        name: replace(
            near,
            title=name,
            label=name,
            cumulative=np.repeat(
                np.stack([near.rounds * optimum + shape, near.cumulative[0, :, 1]], axis=1)[None], 3, axis=0
            ),
        )
        for name, shape in shapes.items()
    }
    figure = panel_figure([replace(rover, curves=changed)], rows_of(measures([rover], ["regret"])))
    (text,) = panels_of(figure)
    lines = " ".join(text.split())
    assert "↑ far ends at 1,000; back up to 500" in lines
    assert f"↓ low ends at {MINUS}1,000" in lines
    assert "near" not in lines
    notes = next(text for text in figure.axes[0].texts if "ends at" in text.get_text())
    figure.draw_without_rendering()
    assert notes.get_window_extent().y0 >= figure.axes[0].get_window_extent().y1  # above the axes, not on a curve
    assert notes.get_window_extent().y1 <= figure.get_window_extent().y1
    low, high = figure.axes[0].get_ylim()
    assert (low, high) == (pytest.approx(-CLIP * 10 * 1.1), pytest.approx(CLIP * 10 * 1.1))  # 5% of both halves


def test_the_runs_of_every_agent_are_stated(experiments):
    rover, box, _ = experiments
    assert runs_of(rover) == "3 runs; 2 of C-UCRL (2 runs: no interval)"
    assert runs_of(box) == "3 runs"
    figure = panel_figure([rover, box], rows_of(measures([rover, box], ["regret"])))
    titles = [" ".join(axes.get_title().split()) for axes in figure.axes]
    assert titles == ["marsrover-4x4 3 runs; 2 of C-UCRL (2 runs: no interval)", "box 3 runs"]


@pytest.mark.parametrize(("width", "shape"), [(3.25, (4, 1)), (2.0, (4, 1)), (7.0, (2, 2)), (None, (2, 2))])
def test_panels_fit_the_width(experiments, width, shape):
    shown = select(experiments, ["marsrover-4x4,box"])
    figure = panel_figure(shown, rows_of(measures(shown, ["regret", "violation"])), Print(width))
    if width == 3.25:
        shape = (2, 2)  # two of 1.6 inches
    assert figure.axes[0].get_gridspec().get_geometry() == shape
    assert width is None or figure.get_size_inches()[0] == width
    letters = [text.get_text() for text in figure.legends[0].get_texts()]
    assert letters == ["PSConRL", "C-UCRL", "uniform", "patient, r=2"]


def test_one_experiment_has_its_measures_side_by_side(experiments):
    shown = select(experiments, ["queue"])
    figure = panel_figure(shown, rows_of(measures(shown, ["violation", "cost"])), Print(7.0))
    assert [" ".join(axes.get_ylabel().split()) for axes in figure.axes] == [
        "violation (delay), customers x step", "violation (power)", "average delay, customers", "average power",
    ]  # fmt: skip
    assert figure.axes[0].get_gridspec().get_geometry() == (1, 4)
    assert [len(axes.texts) for axes in figure.axes[2:]] == [1, 1]  # the limits


@pytest.mark.parametrize(
    ("text", "length"), [("3.25in", 3.25), (" 8.5 CM ", 8.5 / 2.54), ("85mm", 85 / 25.4), ("246pt", 246 / 72.27)]
)
def test_widths_have_units(text, length):
    assert inches(text) == pytest.approx(length, rel=1e-12)


@pytest.mark.parametrize("text", ["3.25", "wide", "3em", "-3in", "0in", "1.4in", "41in", "1e9in", "nanin", ""])
def test_widths_that_make_no_sense_are_one_line(text):
    with pytest.raises(ConfigError, match=r"^--width: must be (a number with its unit|from 1.5in to 40in)"):
        inches(text)


@pytest.mark.full
def test_the_command_draws_as_wide_as_was_asked(results, tmp_path, capsys):
    picture = tmp_path / "f.png"
    chosen = ["--experiments", "box", "--agents", "uniform,psconrl", "--rename", "psconrl=PSConRL ($ours_2$)"]
    assert run("figure", results, *chosen, "--metric", "regret,cost", "--width", "3in", "--out", picture) == 0
    assert "Picture:" in capsys.readouterr().out
    pixels = matplotlib.image.imread(picture)
    assert pixels.shape[1] == 3 * 300
    blue = np.abs(pixels[..., :3] * 255 - (0x00, 0x72, 0xB2)).max(axis=2) < 3
    assert blue.sum() > 500  # psconrl's, though it is drawn second
    for suffix in ("pdf", "svg"):
        assert run("figure", results, "--out", tmp_path / f"f.{suffix}") == 0
    drawn = (tmp_path / "f.svg").read_text()
    assert "marsrover-4x4" in drawn


def test_the_axes_and_the_font_of_a_figure_are_chosen_by_options(results, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("psconrl.report.figure_files.write_figure", lambda figure, *_, **__: drawn.append(figure))
    out = ("--out", tmp_path / "f.pdf", "--experiments", "box")
    ends = ("--ylim", "regret=-5,7", "--ylim", "-1,2")
    assert (
        run("figure", results, *out, "--metric", "regret,violation,cost", *ends, "--log", "x", "--font", "serif") == 0
    )
    figure = drawn.pop()
    assert [axes.get_ylim() for axes in figure.axes[:3]] == [(-5.0, 7.0), (-1.0, 2.0), (-1.0, 2.0)]
    assert {axes.get_xscale() for axes in figure.axes[:3]} == {"log"}
    assert figure.legends[0].get_texts()[0].get_fontfamily()[0] == "STIXGeneral"
    names = ("--metric", "violation, cost (corner)", "--ylim", "violation (corner)=-5,7", "--ylim", "violation=-9,9")
    assert run("figure", results, *out, *names, "--ylim", "cost=0,2", "--height", "12cm") == 0
    figure = drawn.pop()
    assert [axes.get_ylim() for axes in figure.axes[:2]] == [(-5.0, 7.0), (0.0, 2.0)]
    assert figure.get_figheight() == pytest.approx(12 / 2.54)
    assert run("figure", results, *out, "--fontsize", "9", "--width", "3.25in") == 0
    assert drawn.pop().axes[0].xaxis.label.get_fontsize() == 9.0
    capsys.readouterr()
    wrong = {
        ("--ylim", "1"): "--ylim: must be LOW,HIGH or METRIC=LOW,HIGH with LOW below HIGH; got '1'",
        ("--ylim", "2,1"): "--ylim: must be LOW,HIGH",
        ("--ylim", "0,inf"): "--ylim: must be LOW,HIGH",
        ("--ylim", "cost=0,1"): "--ylim: unknown metric in this figure 'cost'; known: regret, violation (corner), viol",
        ("--metric", "violation (corn)"): "violation: unknown constraint 'corn'; did you mean 'corner'?",
        ("--metric", "regret (corner)"): "unknown metric 'regret (corner)'; known: regret",
        ("--height", "0.5in"): "--height: must be from 1in to 40in; got '0.5in'",
        ("--ylim", "0,1", "--ylim", "0,2"): "--ylim: '0,2' is given twice",
        ("--font", "Helvetca"): "--font: unknown font 'Helvetca'",
        ("--fontsize", "99"): "--fontsize: must be from 4 to 24 points; got 99",
        ("--against", "h"): "--against: unknown option of a grid 'h'",
    }
    for options, message in wrong.items():
        assert message in fails(capsys, "figure", results, *out, *options)
    assert drawn == []


@pytest.mark.usefixtures("no_processes")
def test_grids_and_environments_without_an_optimum_are_drawn_by_the_command(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(
        """
replicates = 2
[agents.psconrl]
grid = { share = [0.1, 1.0] }
[experiments.queue]
horizon = 100
[experiments.hopeless]
env = "counterexample"
thresholds = { cost = 0.1 }
horizon = 100
"""
    )
    results = tmp_path / "r.db"
    assert run("sweep", tmp_path / "s.toml", "--out", results) == 0
    capsys.readouterr()
    message = "Left out: regret: experiment 'hopeless' has no optimum to compare with"
    for options in ((), ("--against", "share", "--rename", "psconrl=Ours")):
        assert run("figure", results, "--width", "3.25in", "--out", tmp_path / "f.svg", *options) == 0
        printed = capsys.readouterr()
        assert message in printed.err
        assert "Picture:" in printed.out
        drawn = (tmp_path / "f.svg").read_text()
        assert "no optimum to" in drawn
    assert "Ours" in drawn
    assert "share" in drawn
    assert run("table", results) == 0
    printed = capsys.readouterr()
    assert message in printed.err
    assert "| hopeless | psconrl share=0.1 | 2 | - |" in printed.out
    assert run("table", results, "--experiments", "hopeless") == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("No experiment has an optimum to compare with: shown are objective and cost;")
    assert printed.out.splitlines()[0].startswith("| agent | runs | average ")
    assert run("figure", results, "--experiments", "hopeless", "--out", tmp_path / "f.svg") == 0
    assert "shown are objective and cost" in capsys.readouterr().err
    hopeless = ("--experiments", "hopeless", "--metric", "regret")
    assert "has no optimum" in fails(capsys, "table", results, *hopeless)


def test_bad_input_to_the_commands_is_one_line(results, tmp_path, capsys):
    out = tmp_path / "f.png"
    assert "--width" in fails(capsys, "figure", results, "--out", out, "--width", "3")
    assert "--out: 'f.gif' must end in .png, .svg, .pdf" in fails(capsys, "figure", results, "--out", "f.gif")
    assert "folder" in fails(capsys, "figure", results, "--out", tmp_path / "none" / "f.png")
    assert "unknown metric" in fails(capsys, "figure", results, "--out", out, "--metric", "regrets")
    assert "unknown format 'tex'; did you mean 'latex'?" in fails(capsys, "table", results, "--format", "tex")
    assert "StoreError" in fails(capsys, "table", tmp_path / "none.db")
    assert "cannot be written" in fails(capsys, "table", results, "--out", tmp_path / "none" / "t.tex")
    assert not out.exists()


def test_tables_have_the_numbers_of_the_runs(experiments, results, tmp_path, capsys):
    shown = select(experiments, ["box", "marsrover-4x4"], ["psconrl", "c-ucrl"])
    measured = measures(shown, ["regret", "violation"])
    box = shown[0].curves["psconrl"]
    regret = mean_interval(box.regret[:, -1])
    rows = list(csv.DictReader(io.StringIO(print_table(shown, measured, "csv"))))
    assert [(row["experiment"], row["agent"], row["runs"], row["metric"]) for row in rows] == [
        ("box", "PSConRL", "3", "regret"), ("box", "PSConRL", "3", "violation"),
        ("marsrover-4x4", "PSConRL", "3", "regret"), ("marsrover-4x4", "PSConRL", "3", "violation"),
        ("marsrover-4x4", "C-UCRL", "2", "regret"), ("marsrover-4x4", "C-UCRL", "2", "violation"),
    ]  # fmt: skip
    assert [float(rows[0][key]) for key in ("mean", "low", "high")] == [regret.mean, regret.low, regret.high]
    markdown = print_table(shown, measured, "markdown").splitlines()
    assert markdown[0] == "| experiment | agent | runs | regret | violation |"
    assert markdown[2].startswith(f"| box | PSConRL | 3 | {regret} |")
    assert markdown[-1] == "Mean and 95% interval (Student's t) over runs, after the last round. 2 runs: no interval."
    alone = print_table(shown[:1], measures(shown[:1], ["violation"]), "markdown").splitlines()
    assert alone[0] == "| agent | runs | violation (corner) |"
    assert [row["spread"] for row in rows] == ["interval"] * 4 + ["2 runs: no interval"] * 2
    assert run("table", results, "--experiments", "box", "--format", "latex", "--out", tmp_path / "t.tex") == 0
    capsys.readouterr()
    assert run("table", results, "--experiments", "box", "--format", "latex") == 0
    assert capsys.readouterr().out == (tmp_path / "t.tex").read_text()


def test_every_experiment_of_a_latex_table_has_the_names_of_its_own_costs(experiments):
    shown = select(experiments, ["box", "marsrover-4x4"], ["psconrl"])
    lines = print_table(shown, measures(shown, ["regret", "violation"]), "latex").splitlines()
    assert lines[3] == r"agent & runs & regret & violation \\"
    assert lines[5] == r"\multicolumn{2}{l}{\emph{box}} & regret & violation (corner) \\"
    assert lines[8] == r"\multicolumn{2}{l}{\emph{marsrover-4x4}} & regret & violation (risk) \\"
    alike = print_table(shown, measures(shown, ["regret"]), "latex").splitlines()
    assert alike[5] == r"\multicolumn{3}{l}{\emph{box}} \\"  # one name for all stands at the head of the table


def test_only_numbers_with_intervals_are_said_to_have_them(experiments):
    """The paper's metric has standard deviations over runs, of n values divided by n."""
    box = select(experiments, ["box"], ["psconrl"])
    values = box[0].curves["psconrl"].paper_curve(0, 1_000)[:, -1]
    deviation = values.std()
    both, paper = measures(box, ["regret", "paper-regret"]), measures(box, ["paper-regret"])
    notes = [print_table(box, measured, "markdown").splitlines()[-1] for measured in (both[:1], paper, both)]
    assert notes[0] == "Mean and 95% interval (Student's t) over runs, after the last round."
    assert notes[1] == "In the paper's metric, mean and standard deviation over runs, after the last round."
    assert notes[2] == f"{notes[0]} {notes[1]}"
    rows = list(csv.DictReader(io.StringIO(print_table(box, both, "csv"))))
    assert [row["spread"] for row in rows] == ["interval", "deviation"]
    ends = [float(rows[1][key]) for key in ("low", "high")]
    assert ends == pytest.approx([values.mean() - deviation, values.mean() + deviation])


def compiles_in_principle(latex):
    """Every row has as many cells as the table has columns; braces and environments close; specials are escaped."""
    begin = re.search(r"\\begin\{tabular\}\{(lr+)\}", latex)
    columns = len(begin[1])
    body = latex[begin.end() :].split("\n")[1:-2]
    assert latex.rstrip().endswith(r"\end{tabular}")
    for line in body:
        plain = re.sub(r"\\[&%$#_{}]", "", line)
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        assert "#" not in plain
        assert "^" not in plain
        assert "_" not in plain
        if line.startswith((r"\toprule", r"\midrule", r"\bottomrule", r"\addlinespace")):
            assert "&" not in plain
        elif line.startswith(r"\multicolumn"):
            span = re.match(r"\\multicolumn\{(\d+)\}\{l\}\{", line)
            assert plain.count("&") == columns - int(span[1])
        else:
            assert plain.count("&") == columns - 1
            assert not line.startswith(("[", "*"))
            assert line.endswith(r"\\")
    return True


def test_latex_escapes_names_and_is_balanced(experiments):
    evil = r"[*] 50% of R&D_2 #1 {a} \input{x} $x^2$ ~ <b> |"
    shown = select(experiments, [], [], [f"psconrl={evil}", f"box={evil}"])
    latex = print_table(shown, measures(shown, ["regret", "violation", "cost"]), "latex")
    assert compiles_in_principle(latex)
    assert r"\input" not in latex
    assert r"{}[*] 50\% of R\&D\_2 \#1 \{a\} \textbackslash{}input\{x\} \$x\textasciicircum{}2\$" in latex
    assert r"\usepackage{booktabs}" in latex
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"95\% interval (Student's t) over runs"):
        assert latex.count(rule) == 1
    assert re.search(r" & --", latex)  # a second limit only the queue has
    assert not re.search(r"[ \[]-\d", latex)  # a hyphen is no minus sign
    markdown = print_table(shown, measures(shown, ["regret"]), "markdown")
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in markdown.splitlines()[:-2])
    formula = select(experiments, ["box"], [], ["psconrl==1+1"])
    assert "'=1+1" in print_table(formula, measures(formula, ["regret"]), "csv")
    with pytest.raises(ConfigError, match="unknown format"):
        print_table(shown, [], "html")
    assert FORMATS == ("latex", "markdown", "csv")


def test_a_single_run_has_no_interval(experiments):
    rover = experiments[0]
    c = rover.curves["psconrl"]
    one = replace(
        c, cumulative=c.cumulative[:1], thresholds=c.thresholds[:1], optimum=c.optimum[:1], replicates=c.replicates[:1]
    )
    alone = [replace(rover, curves={"psconrl": one})]
    text = print_table(alone, measures(alone, ["regret"]), "csv").splitlines()[1]
    assert text.endswith(",,,1 run: no interval")
    assert runs_of(alone[0]) == "1 run: no interval"
    both = replace(rover, curves={"psconrl": c, "one": one})
    assert runs_of(both) == f"3 runs; 1 of {one.title} (1 run: no interval)"
