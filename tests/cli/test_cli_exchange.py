"""Models of other programs on the command line: goals, display of lower-bound constraints, conversion."""

import json

import pytest

import psconrl
from psconrl.cli import main
from test_exchange import MACHINE, QUEUE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "machine.drn").write_text(MACHINE)
    (tmp_path / "queue.drn").write_text(QUEUE)
    return tmp_path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code or 0, capsys.readouterr()


def row_of(text, name):
    """The cells of a table's row."""
    line = next(line for line in text.splitlines() if line.startswith(f"│ {name} "))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_a_goal_is_solved_and_shown_as_it_was_said(capsys):
    goal = ["--maximise", "profit", "--limit", "broken>=0.5", "--limit", "energy <= 5"]
    code, printed = run(capsys, "solve", "machine.drn", *goal)
    assert code == 0
    plan = psconrl.plan(psconrl.load("machine.drn", maximise="profit", limits=["broken >= 0.5", "energy <= 5"]))
    assert row_of(printed.out, "profit (maximise)")[1] == f"{plan.value:.8g}"
    assert row_of(printed.out, "broken")[1:4] == ["0.5", ">= 0.5", "0"]
    code, printed = run(capsys, "solve", "machine.drn", *goal, "--json")
    record = json.loads(printed.out)
    assert record["costs"]["broken"] == pytest.approx(0.5)
    assert record["thresholds"] == {"broken": 0.5, "energy": 5}
    assert record["at_least"] == ["broken"]


def test_a_threshold_is_changed_in_the_sense_it_is_shown_in(capsys):
    goal = ["--maximise", "profit", "--limit", "broken>=0.3"]
    code, printed = run(capsys, "solve", "machine.drn", *goal, "--threshold", "broken=0.4")
    assert (code, row_of(printed.out, "broken")[2]) == (0, ">= 0.4")
    code, printed = run(capsys, "solve", "machine.drn", *goal, "--threshold", "broken=1.4")
    assert code == 3
    assert "No policy keeps 'broken' >= 1.4; the largest reachable average is 1. Lower the threshold." in printed.out


def test_what_a_file_has_is_listed(capsys):
    code, printed = run(capsys, "inspect", "machine.drn")
    assert code == 0
    assert "no goal yet" in printed.out
    assert row_of(printed.out, "profit") == ["profit", "0", "3.3333333", "reward"]  # 5 in two rounds of three
    assert row_of(printed.out, "broken") == ["broken", "0", "1", "label"]
    assert "span" not in printed.out
    code, printed = run(capsys, "inspect", "machine.drn", "--json")
    assert json.loads(printed.out)["kinds"]["broken"] == "label"
    code, printed = run(capsys, "inspect", "machine.drn", "--minimise", "energy", "--limit", "broken>=0.5")
    assert row_of(printed.out, "broken") == ["broken", "0", "1", ">= 0.5"]


def test_a_large_file_is_only_listed(capsys, monkeypatch):
    monkeypatch.setattr("psconrl.cli.inspect.RANGES_STATES", 2)
    code, printed = run(capsys, "inspect", "machine.drn")
    assert (code, row_of(printed.out, "broken")) == (0, ["broken", "label"])
    assert "average" not in printed.out


def test_a_curve_over_a_limit_from_below(capsys):
    goal = ["--minimise", "energy", "--limit", "profit>=1"]
    code, printed = run(capsys, "pareto", "machine.drn", *goal, "--from", "1", "--to", "3", "--points", "3")
    assert code == 0
    assert "profit >=" in printed.out
    levels = [line.split("│")[1].strip() for line in printed.out.splitlines() if line.startswith("│")]
    assert levels == ["3", "2", "1"]
    assert "In force, profit >= 1: energy" in printed.out
    code, printed = run(capsys, "pareto", "machine.drn", *goal, "--points", "3", "--from", "1", "--to", "3", "--json")
    assert [point["threshold"] for point in json.loads(printed.out)["curve"]] == [3, 2, 1]


def test_pictures_show_limits_as_they_are_meant():
    pytest.importorskip("matplotlib")
    from psconrl.report.policy_figure import policy_figure
    from psconrl.report.trade_off_figures import pareto_figure

    model = psconrl.load("machine.drn", minimise="energy", limits=["profit>=2", "broken<=0.4"])
    top = pareto_figure(psconrl.pareto(model, "profit", points=3)).axes[0]
    assert max(top.lines[0].get_xdata()) > 3
    assert min(top.lines[0].get_xdata()) >= 0
    assert "in force: 2" in [text.get_text() for text in top.get_legend().get_texts()]
    surface = pareto_figure(psconrl.pareto_surface(model, points=3)).axes[0]
    assert "in force: 2, 0.4" in [text.get_text() for text in surface.texts]
    words = " ".join(
        t.get_text() for t in policy_figure(model, psconrl.plan(model)).findobj(match=lambda x: hasattr(x, "get_text"))
    )
    assert "profit 2 (limit 2)" in words


def test_explanations_have_the_signs_of_what_they_name(capsys):
    goal = ["--maximise", "profit", "--limit", "broken>=0.3"]
    _, printed = run(capsys, "explain", "machine.drn", "--state", "0", *goal, "--json")
    best = psconrl.explain(psconrl.load("machine.drn", maximise="profit", limits="broken>=0.3"), 0)
    last = json.loads(printed.out)["actions"][-1]
    assert last["changes"] == pytest.approx(dict(best.alternatives[-1].changes))
    assert last["loss"] == pytest.approx(
        -last["changes"]["profit"] + best.counted["broken"].price * last["changes"]["broken"]
    )


def test_models_are_converted_there_and_back(capsys):
    assert run(capsys, "convert", "queue", "queue.umb")[0] == 0
    names = psconrl.load("queue").cost_names
    goal = ["--maximise", names[0], "--limit", "delay<=2", "--limit", "power<=0.3"]
    code, printed = run(capsys, "convert", "queue.umb", "again.npz", *goal)
    assert code == 0
    assert "again.npz: CMDP(10 states, 6 actions, 2 constraints" in printed.out
    again = psconrl.load("again.npz")
    assert psconrl.plan(again).value == pytest.approx(psconrl.plan(psconrl.load("queue")).value, rel=1e-9)
    code, printed = run(capsys, "convert", "queue", "queue.tra")
    assert (code, "must end in .npz, .json, .umb, .drn" in printed.err) == (2, True)


def test_the_chain_of_a_plan_is_written(capsys):
    code, printed = run(
        capsys, "solve", "machine.drn", "--maximise", "profit", "--limit", "energy<=2", "--chain", "c.umb"
    )
    assert (code, "Chain: c.umb" in printed.out) == (0, True)
    assert psconrl.plan(psconrl.load("c.umb", minimise="energy")).value == pytest.approx(2)
    code, printed = run(capsys, "solve", "machine.drn", "--maximise", "profit", "--chain", "c.csv")
    assert (code, "must end in .umb, .drn" in printed.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "machine.drn"], "say what to minimise or maximise"),
        (["solve", "queue.drn", "--minimise", "full", "--maximise", "served"], "one objective"),
        (["solve", "machine.drn", "--minimise", "energy", "--limit", "broken=1"], "must be 'NAME <= NUMBER'"),
        (["solve", "box", "--limit", "corner<=0.5"], "--threshold NAME=VALUE changes its limits"),
        (["solve", "machine.drn", "--minimise", "energy", "--set", "minimise=profit"], "already given by --minimise"),
        (["solve", "machine.drn", "--minimise", "energy", "--set", "slip=1"], "unknown option 'slip'"),
        (["inspect", "none.umb"], "none.umb: no such file"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(arguments, words, capsys):
    code, printed = run(capsys, *arguments)
    assert code == 2
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1


def test_a_source_without_storm_says_what_to_install(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("psconrl.base.extras.find_spec", lambda name: None)
    (tmp_path / "model.nm").write_text("mdp")
    code, printed = run(capsys, "solve", "model.nm", "--minimise", "x")
    assert code == 2
    assert "model.nm: a .nm file needs Storm: pip install 'psconrl[storm]', or export it as .umb or .drn" in printed.err


def test_agents_learn_them_too(capsys):
    goal = ["--set", "minimise=waiting", "--set", "limits=served>=1"]
    code, printed = run(capsys, "learn", "queue.drn", *goal, "--horizon", "200")
    assert code == 0, printed.err
