"""The examples run as they stand, at a short horizon."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = {
    "service_desk.py": (["--horizon", "2000", "--plot", "tradeoff.png"], ["no policy keeps 'delay'", "toss a coin"]),
    "cliff_walking.py": (["--horizon", "3000"], ["exact: reward -0.9341", "learned"]),
    "sweep.py": (["mine.db", "--horizon", "500", "--replicates", "2"], ["8 runs done", "sampling prior=0.01: regret"]),
    "own_system.py": (["learned.npz", "300"], ["average profit"]),
    "blackjack.py": (["--rounds", "2000"], ["best per hand: wins -0.046556", "certificate holds: True", "± "]),
    "taxi.py": ([], ["dry, no limit: earns 0.5636", "certificate holds: True", "toss a coin: taxi at"]),
}


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py"} == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_run(script, tmp_path):
    arguments, expected = SCRIPTS[script]
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=900,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in expected:
        assert text in done.stdout
    for name in arguments:
        if Path(name).suffix:
            assert (tmp_path / name).stat().st_size > 0


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own code
def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    for cell in notebook.cells:
        assert not cell.get("outputs"), "committed without outputs"
        cell.source = cell.source.replace("HORIZON = 20_000", "HORIZON = 2_000")
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
