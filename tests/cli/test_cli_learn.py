"""The commands learn, envs and agents, as a user types them."""

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import psconrl
from psconrl.cli import app, main


def run(*args):
    return CliRunner().invoke(app, list(args), catch_exceptions=False)


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def shell(*args):
    """Run the command in this process: a new one takes seconds to import everything."""
    with contextlib.redirect_stdout(io.StringIO()) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            main(list(args))
        except SystemExit as end:
            return Ended(int(end.code or 0), stdout.getvalue(), stderr.getvalue())
    raise AssertionError("main always exits")


def test_lists():
    envs = run("envs").output
    for name in ("marsrover-4x4", "box", "queue", "inventory", "riverswim", "chain", "ward", "stock", "garnet"):
        assert name in envs
    agents = run("agents").output
    for name in ("psconrl", "psconrl-paper", "psconrl-published", "PSConRL (paper)", "Triple-QA"):
        assert name in agents


def test_learn_prints_averages_against_limits_and_draws(tmp_path):
    result = run("learn", "marsrover-4x4", "--horizon", "2000", "--plot", str(tmp_path / "run.png"))
    assert result.exit_code == 0
    assert "played 2000 rounds" in result.output
    assert "regret" in result.output
    assert "violation" in result.output
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_a_resumed_run_ends_like_an_uninterrupted_one(tmp_path):
    kept = str(tmp_path / "run.npz")
    assert run("learn", "queue", "--horizon", "700", "--save", kept).exit_code == 0
    taken = shell("learn", "queue", "--horizon", "1500", "--save", kept)
    assert (taken.returncode, "exists; --resume" in taken.stderr) == (2, True)
    first = Path(kept).read_bytes()
    resumed = run("learn", "queue", "--horizon", "1500", "--resume", kept).output
    whole = run("learn", "queue", "--horizon", "1500").output
    table = whole.split(" s sampling")[1]
    assert resumed.split(" s sampling")[1].startswith(table)  # seconds differ
    # A supervisor that restarts it repeatedly sees when it is done.
    complete = shell("learn", "queue", "--resume", kept, "--plot", str(tmp_path / "run.png"))
    assert complete.returncode == 0, complete.stderr
    assert f"{kept}: complete, 1500 rounds were played; a larger --horizon" in " ".join(complete.stdout.split())
    assert (tmp_path / "run.png").stat().st_size > 10_000
    copied = shell("learn", "queue", "--resume", kept, "--save", str(tmp_path / "copy.npz"))
    assert copied.returncode == 0
    assert (tmp_path / "copy.npz").exists()
    Path(kept).write_bytes(first)
    for wrong, message in (
        (["queue", "--threshold", "delay=3"], "another model, or under other thresholds"),
        (["queue", "--seed", "9"], "leave out --seed"),
        (["queue", "--agent", "fha"], "leave out --agent"),
    ):
        refused = shell("learn", *wrong, "--horizon", "1500", "--resume", kept)
        assert refused.returncode == 2
        assert message in refused.stderr
    again = shell("learn", "queue", "--horizon", "600", "--resume", kept)
    assert again.returncode == 0
    assert "complete, 700 rounds were played" in again.stdout
    assert Path(kept).read_bytes() == first


@pytest.mark.part(3)
@pytest.mark.parametrize(
    ("ignored", "sent"),
    [("", [signal.SIGINT]), ("", [signal.SIGTERM]), ("trap '' INT; ", [signal.SIGINT, signal.SIGTERM])],
    ids=["Ctrl-C", "kill", "kill in the background of a script, where Ctrl-C is ignored"],
)
def test_a_signal_keeps_what_was_done(tmp_path, ignored, sent):
    kept = tmp_path / "run.npz"
    command = [
        sys.executable,
        "-c",
        "from psconrl.cli import autosave, main; autosave.AUTOSAVE_SECONDS = 0.2; main()",
        "learn",
        "marsrover-4x4",
        "--horizon",
        "1000000000",
        "--save",
        str(kept),
    ]
    child = subprocess.Popen(
        ["sh", "-c", f"{ignored}exec {shlex.join(command)}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(6000):  # the first autosave shows that it plays
            if kept.exists():
                break
            time.sleep(0.1)
        for number in sent:
            assert child.poll() is None
            os.kill(child.pid, number)
            time.sleep(0.5 * (number != sent[-1]))
        output, errors = child.communicate(timeout=600)
    finally:
        child.kill()
    assert child.returncode == 130, errors
    assert "interrupted after" in output
    assert kept.exists()


@pytest.mark.parametrize(
    "options",
    [
        ["action=least_tried"],
        ["schedule=doubling", "belief=floored", "prior=0.1"],
        ["fallback=uniform", "ledger=repay", "share=0.2"],
        ["ledger=repay"],
        ["belief=learned-mass", "exact=true", "pool=all", "schedule=steady", "ledger=balance"],
    ],
)
def test_agent_options_may_be_words(options):
    given = [word for option in options for word in ("--option", option)]
    assert run("learn", "counterexample", "--horizon", "50", *given).exit_code == 0


@pytest.mark.parametrize("option", ["coef=none", "radius=hoeffding", "delta=0.1"])
def test_the_radius_is_an_option_too(option):
    done = run("learn", "counterexample", "--horizon", "50", "--agent", "c-ucrl", "--option", option)
    assert done.exit_code == 0


@pytest.mark.full
def test_a_run_that_plans_in_the_background_says_so_and_keeps_no_file(tmp_path):
    shown = run("learn", "queue", "--horizon", "500", "--background", "--emission", "deterministic")
    assert shown.exit_code == 0, shown.output
    assert "psconrl on queue: played 500 rounds" in shown.output
    assert "exploring interim" in shown.output
    assert "s sampling and planning, in the background" in " ".join(shown.output.split())
    plain = run("learn", "queue", "--horizon", "500").output
    assert [line.split()[1] for line in plain.splitlines() if "│" in line] == [
        line.split()[1] for line in shown.output.splitlines() if "│" in line
    ]  # the costs have the names of the model
    for option in ("--save", "--resume"):
        refused = shell("learn", "queue", "--background", option, str(tmp_path / "run.npz"))
        assert refused.returncode == 2
        assert "--background: such a run cannot be saved or resumed; leave out --save and --resume" in refused.stderr
    drawn = run("learn", "queue", "--horizon", "300", "--background", "--plot", str(tmp_path / "run.png"))
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "run.png").exists()


def test_a_resumed_run_is_called_by_its_recipe(tmp_path):
    path = str(tmp_path / "run.npz")
    assert run("learn", "counterexample", "--horizon", "50", "--agent", "cmdp-psrl", "--save", path).exit_code == 0
    assert "cmdp-psrl on counterexample" in run("learn", "counterexample", "--horizon", "90", "--resume", path).output


def test_options_reach_agent_and_environment():
    result = run(
        "learn",
        "marsrover-4x4",
        "--horizon",
        "300",
        "--agent",
        "psconrl-published",
        "--set",
        "slip=0.1",
        "--threshold",
        "risk=0.3",
        "--unknown-costs",
        "--emission",
        "bernoulli",
        "--seed",
        "5",
    )
    assert result.exit_code == 0
    assert "0.3" in result.output


def test_infeasible_limits_are_learned_under_and_said():
    result = run("learn", "counterexample", "--threshold", "cost=0.4", "--horizon", "300")
    assert result.exit_code == 0
    assert "no policy keeps 'cost' <= 0.4" in result.output
    assert "explore" in result.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["learn", "marsrover-4x5"], "did you mean 'marsrover-4x4'"),
        (["learn", "box", "--agent", "psconrll"], "did you mean 'psconrl'"),
        (["learn", "box", "--option", "piror=0.1"], "piror"),
        (["learn", "box", "--option", "prior"], "must be KEY=VALUE"),
        (["learn", "box", "--option", "seed=3"], "follows from the environment"),
        (["learn", "box", "--save", "."], "is a folder"),
        (["learn", "box", "--horizon", "0"], "--horizon"),
        (["learn", "box", "--save", "nowhere/at/all.npz"], "does not exist"),
        (["learn", "box", "--resume", "missing.npz"], "no such file"),
        (["learn", "box", "--plot", "x.gif"], "must end in"),
        (["learn", "queue", "--emission", "bernoulli"], "must lie in [0, 1]"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(args, message):
    result = shell(*args)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


# Prior knowledge


def test_learn_with_the_support_or_with_a_rough_model(tmp_path):
    rough = str(tmp_path / "rough.npz")
    psconrl.save(psconrl.load("network", side=4, arrival=1.3), rough)
    base = ["learn", "network", "--set", "side=4", "--horizon", "200"]
    nothing, support, trusted, learned = (
        shell(*base, *more).stdout
        for more in ([], ["--support"], ["--trust", rough, "--worth", "20"], ["--trust", rough])
    )
    assert len({text.split("│ waiting")[1] for text in (nothing, support, trusted, learned)}) == 4  # all runs differ
    beside = shell(*base, "--support", "--background").stdout
    assert "200 rounds" in beside
    assert "in the background" in beside


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--worth", "20"], "--worth says how much the model of --trust is worth"),
        (["--support", "--trust", "queue"], "not both"),
        (["--trust", "queue"], r"(S, A, m) = (10, 6, 2), the environment (16, 4, 1)"),
        (["--support", "--agent", "c-ucrl"], "agent 'c-ucrl' has no prior belief to set"),
        (["--support", "--option", "belief=dirichlet"], "--option belief and --support contradict each other"),
        (["--trust", "network", "--option", "cost_weight=3"], "--option cost_weight and --trust contradict each other"),
        (["--trust", "network", "--option", "prior=3"], "--option prior and --trust contradict each other"),
    ],
)
def test_knowledge_that_contradicts_itself_ends_in_one_line(arguments, complaint):
    ended = shell("learn", "network", "--set", "side=4", "--horizon", "20", *arguments)
    assert ended.returncode == 2
    assert complaint in " ".join(ended.stderr.split())


def test_a_model_with_missing_actions_has_no_support_to_tell(tmp_path):
    path = str(tmp_path / "some.npz")
    model = psconrl.CMDP([[[1.0], [0.0]]], [[[1.0, 2.0]], [[0.0, 0.0]]], [1.0], available=[[True, False]])
    psconrl.save(model, path)
    ended = shell("learn", path, "--support", "--horizon", "20")
    assert "every action is available" in " ".join(ended.stderr.split())
