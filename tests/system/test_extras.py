"""Without matplotlib everything but figures works, and the error says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from psconrl.base.extras import has_matplotlib, need_matplotlib
from psconrl.errors import ConfigError

HIDDEN = "import sys; sys.modules['matplotlib'] = None; "  # as if it were not installed


COMMANDS = """
sys.path.insert(0, {tests!r})
import psconrl.experiment.executors
from sweeps import AtOnce
from psconrl.cli import main
psconrl.experiment.executors._processes = lambda workers: AtOnce()  # others would have matplotlib
for command in {commands!r}:
    try:
        main(command.split())
    except SystemExit as end:
        print(end.code or 0)
"""


def psconrl_without_matplotlib(*commands, cwd):
    """Run several commands in one process; the last line that each prints is its exit code."""
    code = HIDDEN + COMMANDS.format(tests=str(Path(__file__).parents[1]), commands=commands)
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=600)


def test_the_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not has_matplotlib()
    with pytest.raises(ConfigError, match=r"^--plot needs matplotlib: pip install 'psconrl\[plots\]'$"):
        need_matplotlib("--plot")


def test_with_it_no_message_is_shown():
    assert has_matplotlib()
    need_matplotlib("--plot")


PICTURES = {
    "solve box --plot box.png": "--plot",
    "pareto inventory --constraint lost --plot curve.png": "--plot",
    "learn box --horizon 10 --plot run.png": "--plot",
    "reproduce figure1 --quick": "reproduce",
}


def test_pictures_say_what_to_install_before_any_work(tmp_path):
    result = psconrl_without_matplotlib(*PICTURES, cwd=tmp_path)
    assert result.stdout == "2\n" * len(PICTURES)
    assert result.stderr.splitlines() == [
        f"ConfigError: {what} needs matplotlib: pip install 'psconrl[plots]'" for what in PICTURES.values()
    ]
    assert list(tmp_path.iterdir()) == []


def test_planning_and_learning_need_no_pictures(tmp_path):
    code = f"""{HIDDEN}
import psconrl
model = psconrl.load("marsrover-4x4")
psconrl.plan(model)
psconrl.simulate(model, psconrl.PSConRL(16, 4, model.thresholds, model.costs, seed=0), 100, seed=0)
env = psconrl.CMDPEnv(psconrl.load("queue"), render_mode="rgb_array")
env.reset(seed=0)
try:
    env.render()
except psconrl.ConfigError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.stderr == ""
    assert result.stdout == "the picture of an environment needs matplotlib: pip install 'psconrl[plots]'\n"


@pytest.mark.full
def test_the_page_of_a_sweep_does_without_maps(tmp_path):
    spec = tmp_path / "small.toml"
    spec.write_text(
        'replicates = 2\n[experiments.small]\nenv = "marsrover-4x4"\nagents = ["psconrl"]\nhorizon = 60\n',
        encoding="utf-8",
    )
    done = psconrl_without_matplotlib("sweep small.toml --out r.db", "report r.db", cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["0", "0"], done.stderr
    (page,) = tmp_path.glob("*.html")
    assert "data:image/svg+xml;base64," not in page.read_text(encoding="utf-8")
