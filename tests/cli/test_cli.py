"""The command line: its output, its figures, and one line with exit code 2 for every mistake."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imread

import psconrl
import psconrl.cli as cli_package
from psconrl import CMDP, load, save
from psconrl.cli import app, main
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.experiment.store import Store


@pytest.fixture
def cli(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*args):
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


def process(*args, **options):
    command = [sys.executable, "-m", "psconrl", *args]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, **options)


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def two_limits(tmp_path):
    """Two conflicting constraints: each cost alone can be 0, their sum is 1."""
    path = tmp_path / "two.json"
    costs = np.array([[[0, 1]], [[0, 1]], [[1, 0]]])
    save(CMDP([[[1], [1]]], costs, [1.0, 1.0], cost_names=["goal", "a", "b"], action_names=["x", "[red]y"]), path)
    return path


def test_solve_says_everything_about_a_plan(cli):
    code, out, err = cli("solve", "marsrover-4x4")
    assert (code, err) == (0, "")
    for piece in (
        "OPTIMAL",
        "0.775",
        "risk",
        "0.2",
        "shadow price",
        "0.5",
        "arrows",
        "up 88.89%, left 11.11%",
        "holds",
    ):
        assert piece in out


def test_solve_says_of_rewards_and_costs_alike_that_no_policy_is_better(cli):
    for name in ("riverswim", "marsrover-4x4"):
        assert (
            "OPTIMAL. The policy meets every threshold, and no policy that does so is better." in cli("solve", name)[1]
        )


def test_solve_through_click_directly():
    result = CliRunner().invoke(app, ["solve", "counterexample", "--method", "lp"])
    assert result.exit_code == 0
    assert "0.5275" in result.output
    assert "maximise" in result.output


def test_solve_exactly_prints_fractions(cli, tmp_path):
    third = CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], costs=[[[0.0], [1.0]], [[1.0], [0.0]]], thresholds=[0.75])
    save(third, tmp_path / "third.json")
    code, out, _ = cli("solve", tmp_path / "third.json", "--exact")
    assert code == 0
    assert "1/3 = 0.3333333333333333" in out
    assert "2/3 = 0.6666666666666666" in out
    code, out, _ = cli("solve", tmp_path / "third.json", "--exact", "--json")
    assert code == 0
    assert json.loads(out)["exact"]["costs"] == ["1/3", "2/3"]


def test_solve_json_is_the_plan(cli):
    code, out, _ = cli("solve", "box", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["status"], record["objective"], record["sense"]) == ("optimal", "steps", "minimise")
    assert record["value"] == pytest.approx(0.845)
    assert record["costs"] == {"corner": pytest.approx(0.6)}
    assert record["thresholds"] == {"corner": 0.6}
    assert record["multipliers"] == {"corner": pytest.approx(0.05)}
    assert record["certificate"]["holds"] is True
    cmdp = load("box")
    assert record["states"] == list(cmdp.state_names)
    assert psconrl.evaluate(cmdp, record["policy"]).value == pytest.approx(record["value"])
    assert np.sum(record["occupancy"]) == pytest.approx(1)


def test_thresholds_and_settings_change_the_model(cli):
    value = {}
    for option in ((), ("--threshold", "risk=1"), ("--set", "slip=0.1"), ("--set", "threshold=0"), ("--method", "lp")):
        code, out, _ = cli("solve", "marsrover-4x4", "--json", *option)
        assert code == 0
        value[option[-1] if option else ""] = json.loads(out)["value"]
    assert value[""] == pytest.approx(0.775) == value["lp"]
    assert value["risk=1"] == pytest.approx(0.75)
    assert value["threshold=0"] == pytest.approx(0.875)
    assert value["slip=0.1"] == pytest.approx(psconrl.plan(load("marsrover-4x4", slip=0.1)).value)


def test_a_proof_is_written_and_verified(cli, tmp_path):
    proof = tmp_path / "proof.json"
    assert cli("solve", "queue", "--threshold", "delay=3", "--proof", proof)[0] == 0
    code, out, _ = cli("verify", "queue", proof, "--threshold", "delay=3")
    assert code == 0
    assert out.startswith("PROVEN: optimal\n  throughput: ")
    code, out, _ = cli("verify", "queue", proof)
    assert (code, out) == (1, "REFUSED: the proof is for a threshold of 3 on 'delay', not 2\n")
    code, out, _ = cli("verify", "queue", proof, "--set", "arrival=0.5")
    assert code == 1
    assert "the proof is of another model" in out
    proof.write_text("[]")
    code, out, err = cli("verify", "queue", proof)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_solve_and_explain_state_the_tolerances_in_the_units_of_the_costs(cli, tmp_path):
    """One state, prices 1: a range of one makes the tolerance of the limit 2e-9, that of the gap 1e-9 * (1 + 1)."""
    units = {"round": "day", "counted": {"deaths": "deaths", "beds": "beds"}}
    model = CMDP(np.ones((1, 2, 1)), [[[0, 1]], [[1, 0]]], [0.25], cost_names=["beds", "deaths"], units=units)
    save(model, tmp_path / "ward.npz")
    lines = (
        "beds: no policy within the limits is better by more than 0 beds a day (tolerance 2e-09)",
        "limit on deaths: kept (tolerance 2e-09 deaths a day)",
    )
    for command in (("solve", tmp_path / "ward.npz"), ("explain", tmp_path / "ward.npz", "--state", "0")):
        out = cli(*command)[1]
        for line in lines:
            assert line in out
    record = json.loads(cli("solve", tmp_path / "ward.npz", "--json")[1])["certificate"]
    assert record["tolerance"] == pytest.approx(2e-9, rel=1e-12)
    assert record["limit_tolerances"] == pytest.approx([2e-9], rel=1e-12)


def test_solve_an_infeasible_model(cli):
    code, out, err = cli("solve", "counterexample", "--threshold", "cost=0.5")
    assert (code, err) == (3, "")
    assert "INFEASIBLE" in out
    assert "No policy keeps 'cost' <= 0.5; the least reachable average is 0.526316. Raise the threshold." in out
    code, out, _ = cli("solve", "counterexample", "--threshold", "cost=0.5", "--json")
    record = json.loads(out)
    assert code == 3
    assert (record["status"], record["gap"]) == ("infeasible", None)
    assert record["infeasibility"]["alone"] == {"cost": pytest.approx(1 / 1.9)}


def test_solve_limits_that_exclude_each_other(cli, two_limits):
    code, out, _ = cli("solve", two_limits, "--threshold", "a=0.25", "--threshold", "b=0.25")
    assert code == 3
    assert "No policy keeps 'a' <= 0.25 and 'b' <= 0.25 together" in out
    assert cli("solve", two_limits, "--threshold", "a=0.75")[0] == 0


def test_names_are_printed_as_they_are(cli, two_limits):
    _, out, _ = cli("solve", two_limits, "--threshold", "a=0.75", "--threshold", "b=0.25")
    assert "[red]y 75%, x 25%" in out


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_solve_a_file(cli, tmp_path, suffix):
    save(load("marsrover-8x8"), tmp_path / f"model{suffix}")
    code, out, _ = cli("solve", tmp_path / f"model{suffix}", "--json")
    assert code == 0
    assert json.loads(out)["value"] == pytest.approx(0.9380952381)


def test_inspect_says_what_kind_of_model_it_is(cli):
    code, out, err = cli("inspect", "marsrover-4x4")
    assert (code, err) == (0, "")
    for piece in ("16 (16 reachable)", "communicating", "unichain", "diameter", "6", "least average", "0.75"):
        assert piece in out


def test_inspect_json(cli):
    code, out, _ = cli("inspect", "counterexample", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["n_states"], record["n_actions"], record["n_constraints"], record["transitions"]) == (2, 2, 1, 5)
    assert (record["communicating"], record["unichain"], record["status"]) == (True, True, "optimal")
    assert record["diameter"] == pytest.approx(1 / 0.9)
    assert record["ranges"] == {"reward": pytest.approx([1 / 1.9, 1]), "cost": pytest.approx([1 / 1.9, 1])}


def test_inspect_takes_other_thresholds_as_solve_does(cli):
    record = json.loads(cli("inspect", "queue", "--threshold", "delay=1.5", "--json")[1])
    usual = json.loads(cli("inspect", "queue", "--json")[1])
    assert record["ranges"] == usual["ranges"]
    assert record["spans"] != usual["spans"]  # of the optimal policy, which keeps the threshold
    assert " 1.5 " in cli("inspect", "queue", "--threshold", "delay=1.5")[1]
    code, _, err = cli("inspect", "queue", "--threshold", "wait=1")
    assert (code, err) == (2, "ConfigError: --threshold: unknown constrained cost 'wait'; known: delay, power\n")


def test_inspect_a_model_that_does_not_communicate(cli, tmp_path):
    save(CMDP([[[0, 1]], [[0, 1]]], np.zeros((1, 2, 1))), tmp_path / "trap.json")
    assert json.loads(cli("inspect", tmp_path / "trap.json", "--json")[1])["diameter"] == "inf"
    assert "weakly communicating" in cli("inspect", tmp_path / "trap.json")[1]


def test_json_carries_the_whole_proof_of_a_multichain_model(cli, tmp_path):
    """Two traps: the bound is the initial distribution times the gains, which must be there to check it."""
    path = tmp_path / "traps.json"
    traps = {"transition": [[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], "costs": [[[5], [1], [3]]]}
    path.write_text(json.dumps(traps))
    code, out, _ = cli("solve", str(path), "--json")
    proof = json.loads(out)["certificate"]
    assert code == 0
    assert proof["gains"] == pytest.approx([2, 1, 3])
    assert proof["lower"] == pytest.approx(2)


def test_pareto_traces_the_curve(cli):
    code, out, err = cli("pareto", "box", "--points", "3")
    assert (code, err) == (0, "")
    for piece in ("corner <=", "steps", "0.875", "0.85416667", "0.83333333"):
        assert piece in out
    code, out, _ = cli("pareto", "box", "--json", "--from", "-0.5", "--to", "1", "--points", "4")
    record = json.loads(out)
    assert code == 0
    assert (record["constraint"], record["objective"]) == ("corner", "steps")
    assert [p["threshold"] for p in record["curve"]] == [-0.5, 0, 0.5, 1]
    assert [p["status"] for p in record["curve"]] == ["infeasible", "optimal", "optimal", "optimal"]
    assert [p["value"] for p in record["curve"]] == [None, *map(pytest.approx, (0.875, 0.85, 5 / 6))]
    assert [p["shadow_price"] for p in record["curve"]][0::2] == [None, pytest.approx(0.05)]


def test_pareto_of_one_of_several_limits(cli, two_limits):
    code, out, _ = cli("pareto", two_limits, "--constraint", "b", "--points", "3", "--json")
    assert code == 0
    assert [(p["threshold"], p["value"]) for p in json.loads(out)["curve"]] == [(0, 1), (0.5, 0.5), (1, 0)]


def test_pareto_where_the_other_limits_are_infeasible(cli, two_limits):
    code, out, err = cli("pareto", two_limits, "--constraint", "a", "--threshold", "b=-1")
    assert (code, out) == (3, "")
    assert err == "InfeasibleError: no policy keeps 'b' <= -1; the least reachable average is 0. Raise the threshold.\n"


SHORT_THEORY = """
[agents.theorem-1]
agent = "lagrangian-theorem"
true_constants = true
[experiments.bayes]
env = "dirichlet"
options = { states = 5, actions = 3, prior = 0.1, slack = 0.05 }
draw = true
agents = ["psconrl-paper"]
horizon = 1_000
replicates = 3
checkpoints = "log"
evaluate = true
[experiments.ferry-1e2]
env = "islands"
options = { threshold = 0.3, success = 0.02 }
agents = ["theorem-1"]
horizon = 100
replicates = 3
evaluate = false
[experiments.ferry-1e3]
env = "islands"
options = { threshold = 0.3, success = 0.02 }
agents = ["theorem-1"]
horizon = 1_000
replicates = 3
evaluate = false
"""


@pytest.mark.usefixtures("no_processes", "no_maps")
def test_reproduce_draws_runs_of_several_lengths_apart_from_the_rest_of_the_theory(cli, tmp_path, monkeypatch):
    shipped = {"theory": parse_spec(SHORT_THEORY), "paper": shipped_spec("paper")}
    monkeypatch.setattr("psconrl.cli.reproduce.shipped_spec", shipped.__getitem__)
    code, out, _ = cli("reproduce", "theory", "--out", tmp_path, "--workers", "1")
    assert code == 0
    pictures = sorted(path.stem for path in tmp_path.glob("*.pdf"))
    assert pictures == ["theory", "theory-ferry"]
    assert "Growth with T: A ferry with a diameter of 50" in out
    assert "Against the theory" in out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("Growth with T: A ferry") == 1


@pytest.mark.docs
@pytest.mark.full
@pytest.mark.usefixtures("no_processes")
def test_reproduce_draws_what_it_is_asked_for_and_prints_the_exact_values(cli, tmp_path):
    """The one command of the README that runs here and not in test_readme: it is slow."""
    command = "reproduce figure1 --quick"
    assert f"\n    psconrl {command} " in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code, out, _ = cli(*command.split(), "--out", tmp_path / "results", "--workers", "2")
    assert code == 0
    for suffix in ("png", "svg", "pdf"):
        assert (tmp_path / "results" / f"figure1.{suffix}").stat().st_size > 5_000
    assert (tmp_path / "results" / "report.html").exists()
    assert "report.html" in out
    claims = (tmp_path / "results" / "claims.md").read_text(encoding="utf-8")
    assert claims.count("| figure 1 |") == claims.count("| undecided |") == 8  # three runs of each agent
    with Store(tmp_path / "results" / "results.db") as store:
        assert store.query("SELECT value FROM meta WHERE key = 'group counterexample'") == [("paper",)]
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert table[:7] == [
        ["states", "16", "64", "121", "60"],
        ["diameter", "6", "14", "inf", "22"],
        ["threshold", "0.2", "0.1", "0.6", "0.6"],
        ["optimum", "0.775", "0.93809524", "0.845", "0.845"],
        ["optimum without constraint", "0.75", "0.92307692", "0.83333333", "0.83333333"],
        ["optimum at the least threshold", "0.875", "0.95238095", "0.875", "0.875"],
        ["shadow price", "0.5", "0.14285714", "0.05", "0.05"],
    ]
    assert table[8] == ["proof", "holds", "holds", "holds", "holds"]
    for name in ("claims.md", "figure1.png", "report.html"):
        (tmp_path / "results" / name).unlink()
    (tmp_path / "results" / "claims.md").mkdir()  # cannot be written: all else is
    code, _, err = cli(*command.split(), "--out", tmp_path / "results", "--workers", "1")
    assert code == 2
    assert re.search(r"ConfigError: .*claims\.md: cannot be written \(.*\)\n$", err)
    assert (tmp_path / "results" / "figure1.png").exists()
    assert (tmp_path / "results" / "report.html").exists()


PLOTS = {
    "map": ("solve", "marsrover-4x4"),
    "layers": ("solve", "box"),
    "table": ("solve", "counterexample"),
    "infeasible": ("solve", "counterexample", "--threshold", "cost=0"),
    "curve": ("pareto", "box", "--points", "5"),
    "no curve": ("pareto", "box", "--from", "-2", "--to", "-1", "--points", "2"),
}


@pytest.mark.parametrize("args", PLOTS.values(), ids=PLOTS)
def test_plots_are_not_blank(cli, tmp_path, args):
    path = tmp_path / "picture.png"
    code, out, err = cli(*args, "--plot", path)
    assert (code, err) == (3 if "cost=0" in args else 0, "")
    assert f"Picture: {path}" in "".join(out.splitlines())
    pixels = imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 100
    assert 0.005 < (pixels < 0.95).any(axis=2).mean() < 0.95  # the share of ink


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")])
def test_plots_in_other_formats(cli, tmp_path, suffix, start):
    path = tmp_path / f"picture{suffix}"
    assert cli("solve", "marsrover-4x4", "--plot", path)[0] == 0
    content = path.read_bytes()
    assert content.startswith(start)
    assert suffix != ".svg" or b"risk 0.2 (limit 0.2)" in content


@pytest.mark.part(2)
@pytest.mark.parametrize("layout", [None, {"rows": ["SG"], "cells": [[0, 0], [0, 1]]}], ids=["table", "map"])
@pytest.mark.parametrize("actions", [[r"$\foo$", "stay"], None], ids=["named", "unnamed"])
def test_names_with_dollars_and_actions_that_are_no_moves_can_be_drawn(cli, tmp_path, layout, actions):
    record = {
        "transition": [[[0.5, 0.5], [1, 0]], [[1, 0], [0, 1]]],
        "costs": [[[1, 0], [0, 2]], [[0, 1], [1, 0]]],
        "thresholds": [0.5],
        "action_names": actions,
        "cost_names": ["$ per $", "$^$"],
        "layout": layout,
    }
    (tmp_path / "model.json").write_text(json.dumps(record))
    for command in ("solve", "pareto"):
        code, _, err = cli(command, tmp_path / "model.json", "--plot", tmp_path / "picture.svg")
        assert (code, err) == (0, "")
        assert "$ per $" in (tmp_path / "picture.svg").read_text()


def test_version_and_help(cli):
    assert cli("--version") == (0, f"psconrl, version {psconrl.__version__}\n", "")
    for args in ((), ("--help",), ("-h",)):
        code, out, err = cli(*args)
        assert (code, err) == (0, "")
        for command in ("inspect", "pareto", "reproduce", "solve", "sweep", "report", "export"):
            assert command in out
    for command, option in (("solve", "--threshold"), ("inspect", "--diameter"), ("pareto", "--points")):
        code, out, _ = cli(command, "--help")
        assert code == 0
        assert option in out


def test_help_lists_every_command_in_one_section(cli):
    """Every command that a module of the command line defines, once, under the heading of its section."""
    defined = set()
    for path in Path(cli_package.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"psconrl.cli.{path.stem}") if path.stem != "__init__" else cli_package
        commands = [c for c in vars(module).values() if isinstance(c, click.Command) and c is not app]
        inner = {id(c) for group in commands if isinstance(group, click.Group) for c in group.commands.values()}
        defined |= {c.name for c in commands if id(c) not in inner}
    listed = [name for section in cli_package.SECTIONS.values() for name in section]
    assert sorted(listed) == sorted(defined)
    _, out, _ = cli("--help")
    shown = re.findall(r"^(?:  (\w+) {2,}\S|(\w+):$)", out, re.MULTILINE)
    expected = [x for title, names in cli_package.SECTIONS.items() for x in (("", title), *((n, "") for n in names))]
    assert shown[shown.index(expected[0]) :] == expected
    for name in listed:
        assert cli(name, "--help")[0] == 0


MISTAKES = {
    "slove box": "UsageError: unknown command 'slove'; did you mean 'solve'?",
    "--fast": "UsageError: No such option",
    "solve": "UsageError: Missing argument 'MODEL'",
    "solve box crate": "UsageError: Got unexpected extra argument",
    "solve box --fast": "UsageError: No such option",
    "solve box --method simplex": "UsageError: Invalid value for '--method': 'simplex' is not one of",
    "solve box --threshold": "UsageError: Option '--threshold' requires an argument",
    "solve bx": "ModelError: unknown environment 'bx'; did you mean 'box'?",
    "solve none.json": "ModelError: none.json: no such file",
    "solve none.npz": "ModelError: none.npz: no such file",
    "solve some/where": "ModelError: some/where: a model file must end in .npz, .json, .umb, .drn",
    "solve broken.json": "ModelError: broken.json: not valid JSON",
    "solve broken.npz": "ModelError: broken.npz: truncated, or not a psconrl-cmdp file",
    "solve rows.json": "ModelError: rows.json: transition[0, 0] must sum to 1 (±1e-09); got 0.5",
    "solve box --threshold corner": "ConfigError: --threshold: must be NAME=VALUE with a number; got 'corner'",
    "solve box --threshold =1": "ConfigError: --threshold: must be NAME=VALUE with a number; got '=1'",
    "solve box --threshold corner=low": "ConfigError: --threshold: must be NAME=VALUE with a number",
    "solve box --threshold corner=nan": "ModelError: thresholds must be finite; got nan",
    "solve box --threshold cornr=1": "ConfigError: --threshold: unknown constrained cost 'cornr'; did you mean",
    "solve box --threshold steps=1": "ConfigError: --threshold: unknown constrained cost 'steps'",
    "solve box --set slp=0.1": "ConfigError: box: unknown option 'slp'; did you mean 'slip'?",
    "solve box --set slip=2": "ModelError: slip must lie in [0, 1]; got 2",
    "solve box --set slip": "ConfigError: --set: must be KEY=VALUE; got 'slip'",
    "solve free.json --set slip=0.1": "ConfigError: free.json: a model file takes no options; got slip",
    "solve box --plot picture.gif": "ConfigError: --plot: 'picture.gif' must end in .png, .svg, .pdf",
    "solve box --plot none/picture.png": "ConfigError: --plot: folder 'none' does not exist",
    "solve box --plot folder.png": "ConfigError: folder.png: cannot be written (Is a directory)",
    "inspect bx": "ModelError: unknown environment 'bx'",
    "inspect box --set corner=1": "ConfigError: box: unknown option 'corner'",
    "pareto box --points 1": "UsageError: Invalid value for '--points': 1 is not in the range",
    "pareto box --from low": "UsageError: Invalid value for '--from': 'low' is not a valid float",
    "pareto box --from inf": "ConfigError: --from: must be a finite number; got inf",
    "pareto box --from 0 --to nan": "ConfigError: --to: must be a finite number; got nan",
    "pareto box --constraint cornr": "ConfigError: unknown constraint 'cornr'; did you mean 'corner'?",
    "pareto free.json": "ModelError: the model has no constrained cost",
    "pareto two.json": "UsageError: --constraint is needed; one or two of: a, b",
    "pareto two.json --constraint a --constraint b --from 0": "UsageError: --from and --to go with one constraint",
    "solve box --policy policy.txt": "ConfigError: --policy: 'policy.txt' must end in .csv",
    "solve box --save none/plan.npz": "ConfigError: --save: folder 'none' does not exist",
    "solve box --kind threshold": "ConfigError: --kind threshold: the states have no order: names such as 'agent (0,0)",
    "solve words.json --kind threshold": "ConfigError: --kind threshold: the states have no order: 'low' and 'high' do",
    "solve box --kind threshold --json": "UsageError: --kind threshold goes with --policy",
    "explain box --state 99": "PolicyError: a state must be a number from 0 to 59 or a name; got 99",
    "explain box": "UsageError: Missing option '--state'",
    "reproduce box": "UsageError: Invalid value",
    "reproduce figure2 --agents zzz --out new/folder": "ConfigError: --agents: unknown agent 'zzz'",
    "reproduce practical --agents zzz --out new/folder": "ConfigError: --agents: unknown agent 'zzz'",
    "reproduce sensitivity --agents psconrl --out new": "ConfigError: --agents: sensitivity has fixed agents",
}


@pytest.fixture
def folder(tmp_path, monkeypatch, two_limits):
    (tmp_path / "broken.json").write_text('{"transition": [')
    (tmp_path / "broken.npz").write_text("text")
    (tmp_path / "rows.json").write_text('{"transition": [[[0.5]]], "costs": [[[0]]]}')
    (tmp_path / "free.json").write_text('{"transition": [[[1]]], "costs": [[[0]]]}')
    save(CMDP(np.eye(2)[:, None], np.zeros((1, 2, 1)), state_names=["low", "high"]), tmp_path / "words.json")
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", MISTAKES)
def test_every_mistake_is_one_line_and_exit_code_2(cli, folder, line):
    before = sorted(folder.iterdir())
    code, out, err = cli(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith(MISTAKES[line])
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert sorted(folder.iterdir()) == before


@pytest.mark.part(4)
@pytest.mark.parametrize("line", ["solve broken.npz", "solve", "solve bx", "pareto box --from inf"])
def test_a_mistake_in_a_process_of_its_own(folder, line):
    result = process(*line.split(), cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(MISTAKES[line])
    assert result.stderr.count("\n") == 1


def test_exit_codes_of_a_process():
    assert process("solve", "counterexample", "--json").returncode == 0
    infeasible = process("solve", "counterexample", "--threshold", "cost=0.5")
    assert (infeasible.returncode, infeasible.stderr) == (3, "")


def test_a_terminal_without_arrows_is_no_reason_to_fail():
    result = process("solve", "marsrover-4x4", env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "0.775" in result.stdout


def test_a_reader_that_leaves_early_is_no_reason_to_complain():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "psconrl", "solve", "box"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, b"")


@pytest.mark.parametrize(
    "code", ["import psconrl", "import psconrl.cli; psconrl.cli.app(['--help'], standalone_mode=False)"]
)
def test_heavy_libraries_are_imported_on_first_use_only(code):
    heavy = ("gymnasium", "matplotlib", "highspy", "scipy")
    found = python(f"import sys; {code}; print(*({{m.split('.')[0] for m in sys.modules}} & {{*{heavy}}}))")
    assert found.splitlines()[-1] == ""


def test_the_package_shows_what_it_has():
    assert set(dir(psconrl)) == {*psconrl.__all__, "agents"}
    for name in psconrl.__all__:
        assert getattr(psconrl, name) is not None
    with pytest.raises(AttributeError, match="module 'psconrl' has no attribute 'slove'"):
        _ = psconrl.slove


def test_solve_writes_the_policy_and_the_plan(cli, tmp_path):
    code, out, _ = cli("solve", "queue", "--policy", tmp_path / "policy.csv", "--save", tmp_path / "plan.npz")
    assert code == 0
    assert f"Policy: {tmp_path / 'policy.csv'}" in out
    best = psconrl.plan(load("queue"))
    best.to_csv(tmp_path / "expected.csv")
    assert (tmp_path / "policy.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert psconrl.Plan.load(tmp_path / "plan.npz").value == best.value
    assert "Deterministic: throughput 0.36615995 customers a step; that costs 0.011346067" in out
    assert "A threshold rule is optimal: 0 waiting: speed 0 open;" in " ".join(out.split())


@pytest.mark.parametrize("kind", ["deterministic", "threshold"])
def test_solve_writes_simpler_policies(cli, tmp_path, kind):
    path, expected = tmp_path / "policy.csv", tmp_path / "expected.csv"
    code, out, _ = cli("solve", "inventory", "--kind", kind, "--policy", path)
    assert code == 0
    find = {"deterministic": psconrl.best_deterministic, "threshold": psconrl.threshold_rule}[kind]
    find(load("inventory")).to_csv(expected)
    assert path.read_bytes() == expected.read_bytes()
    assert "order 6" in out
    assert "Settles" not in out  # of the plan, which is not shown
    if kind == "threshold":
        assert "A threshold rule is optimal.\n" in out
        assert "2 in stock to 6 in stock │          50.9% │ order 0 " in out
        assert "Deterministic" not in out


def test_a_threshold_rule_that_is_not_optimal_shows_its_averages(cli):
    _, out, _ = cli("solve", "garnet", "--kind", "threshold")
    rule = psconrl.threshold_rule(load("garnet"))
    assert f"A threshold rule costs {rule.price:.8g}.\n" in out
    assert f"│ objective │ {rule.value:.8g} │" in out


def test_without_names_the_order_is_that_of_the_numbers(cli, tmp_path):
    queue = load("queue")
    save(CMDP(queue.transition, queue.costs, queue.thresholds), tmp_path / "model.npz")
    _, out, _ = cli("solve", tmp_path / "model.npz", "--kind", "threshold")
    assert "│ 2 to 3 │          46.1% │ 2 " in out


def test_a_policy_of_least_excess_is_written_and_the_exit_code_says_so(cli, tmp_path):
    code, _, _ = cli("solve", "inventory", "--threshold", "orders=0.1", "--policy", tmp_path / "policy.csv")
    assert code == 3
    assert (tmp_path / "policy.csv").exists()


@pytest.mark.parametrize("kind", ["deterministic", "threshold"])
def test_a_simpler_policy_is_written_or_there_is_an_error(cli, tmp_path, kind):
    """Also where the plan is not attained; the command names no file that it did not write."""
    apart, path = tmp_path / "apart.npz", tmp_path / "policy.csv"
    save(CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 5], [1, 5]], [[1, 5], [0, 5]]], [0.5]), apart)
    code, out, _ = cli("solve", apart, "--kind", kind, "--policy", path)
    assert path.exists() == ("Policy:" in out) == (code == 0)
    code, out, err = cli("solve", "inventory", "--threshold", "orders=0.1", "--kind", kind, "--policy", path)
    assert (code, out) == (3, "")
    assert err.startswith("InfeasibleError: no policy keeps")


def test_explain_says_what_each_action_changes(cli):
    code, out, err = cli("explain", "queue", "--state", "1 waiting")
    assert (code, err) == (0, "")
    for piece in (
        "28.2% of the rounds",
        "speed 2 open",
        "power 0.5483 customers per unit",
        "throughput (customers)",
        "loses (customers)",
    ):
        assert piece in out
    code, out, _ = cli("explain", "queue", "--state", "1", "--json")
    record = json.loads(out)
    why = psconrl.explain(load("queue"), "1 waiting")
    assert record["state"] == "1 waiting"
    assert record == json.loads(json.dumps(why.record()))


def test_pareto_over_two_limits(cli, tmp_path):
    two = ("pareto", "queue", "--constraint", "delay", "--constraint", "power", "--points", "3")
    code, out, err = cli(*two, "--plot", tmp_path / "surface.png")
    assert (code, err) == (0, "")
    assert "In force, delay <= 2, power <= 0.3: throughput 0.37750601, shadow prices 0.027064956, 0.54831596" in out
    assert imread(tmp_path / "surface.png").std() > 0.05
    code, out, _ = cli(*two, "--json")
    record = json.loads(out)
    assert record["constraints"] == ["delay", "power"]
    assert len(record["surface"]) == 9
    for point in record["surface"]:
        here = psconrl.plan(load("queue").with_thresholds(point["thresholds"]))
        assert point["value"] == pytest.approx(here.value, abs=1e-9)
        assert list(point["shadow_prices"]) == ["delay", "power"]
    for limits, says in (
        (("delay", "delay"), "constraints must be two different costs; got 'delay' twice"),
        (("delay", "power", "delay"), "--constraint: at most two thresholds vary at a time"),
    ):
        code, _, err = cli("pareto", "queue", *(word for name in limits for word in ("--constraint", name)))
        assert code == 2
        assert says in err
