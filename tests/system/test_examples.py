"""The examples run unchanged, at a short horizon."""

import contextlib
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psconrl

pytestmark = pytest.mark.docs

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = {
    "service_desk.py": (["--horizon", "2000", "--plot", "tradeoff.png"], ["no policy keeps 'delay'", "randomises"]),
    "cliff_walking.py": (["--horizon", "3000"], ["exact: reward -0.9341", "learned"]),
    "sweep.py": (["mine.db", "--horizon", "500", "--replicates", "2"], ["8 runs done", "sampling prior=0.01: regret"]),
    "own_system.py": (["learned.npz", "300"], ["average profit"]),
    "blackjack.py": (["--rounds", "2000"], ["best per hand: wins -0.046556", "certificate holds: True", "± "]),
    "philosophers.py": ([], ["for at most 0.909091 of the time", "hungry for 0.457143 of the time (optimal)"]),
    "taxi.py": ([], ["dry, no limit: earns 0.5636", "certificate holds: True", "randomises: taxi at"]),
}


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py"} == set(SCRIPTS)


def printed_here(script, arguments, monkeypatch):
    """The output of a script run in this process, which has imported everything."""
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue()


def printed_there(script, arguments):
    """The output of a script run in a separate process."""
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(script, printed):
    """Check the output, and that the requested files are in the current folder."""
    arguments, expected = SCRIPTS[script]
    for text in expected:
        assert text in printed
    for name in arguments:
        if Path(name).suffix:
            assert Path(name).stat().st_size > 0


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(script, printed_here(EXAMPLES / script, SCRIPTS[script][0], monkeypatch))


@pytest.mark.full
@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run_in_processes_of_their_own(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(script, printed_there(EXAMPLES / script, SCRIPTS[script][0]))


NUMBER = re.compile(r"-?\d+(\.\d*)?(e-?\d+)?")


def outputs_of(notebook):
    """Texts of all outputs, with # for numbers, whose last digits depend on the machine; and the number of pictures."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [output.get("text") or output["data"]["text/plain"] for output in found]
    numbered = [NUMBER.sub("#", text).replace("kept within # (", "kept (") for text in texts]  # or kept exactly
    return numbered, sum("image/png" in output.get("data", {}) for output in found)


def test_the_notebook_is_committed_with_small_outputs():
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(cell.outputs for cell in code)
    assert outputs_of(notebook)[1] == 3
    assert (EXAMPLES / "first_steps.ipynb").stat().st_size < 300_000


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own code
def test_the_notebook_runs_and_prints_what_it_shows(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    shown = outputs_of(notebook)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert outputs_of(notebook) == shown


JOURNEYS = {
    "operations.sh": ["ward.toml", "wall.csv", "plan.npz", "policy.png", "price.png", "learning.csv", "watched.html"],
    "researcher.sh": ["study.db", "figure.pdf", "table.tex", "study.html"],
    "student.sh": ["optimum.png", "learned.png", "figures/figure1.png"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="scripts for bash")
@pytest.mark.full
@pytest.mark.parametrize("script", JOURNEYS)
def test_journeys_arrive(script, tmp_path):
    """From an empty folder to a result, by commands alone."""
    journey = EXAMPLES / "journeys" / script
    programs = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", journey],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=os.environ | {"PATH": programs + os.pathsep + os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    for name in JOURNEYS[script]:
        assert (tmp_path / name).stat().st_size > 0
    if script == "operations.sh":
        said = " ".join(done.stdout.split())
        assert "No policy keeps 'refused' <= 0.0002; the least reachable average is 0.000278915" in said
        assert "3 nurses, open" in done.stdout
        assert "of urgent patients" in (tmp_path / "watched.html").read_text()
    if script == "researcher.sh":
        assert "Margin (ours) & 5 &" in (tmp_path / "table.tex").read_text()


def test_every_journey_is_tested():
    assert {path.name for path in (EXAMPLES / "journeys").iterdir()} == set(JOURNEYS)


def test_the_small_model_file_can_be_planned():
    model = psconrl.load(EXAMPLES / "machine.drn", minimise="energy", limits=["profit >= 2", "broken <= 0.1"])
    assert psconrl.plan(model).value == pytest.approx(1.8307692, abs=1e-6)
