"""The code in the README runs as shown."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from psconrl.cli import app

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("    psconrl ")]
COMMANDS = [command for command in COMMANDS if "reproduce" not in command]  # test_cli runs and checks that one


def test_python_blocks_run_and_print_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "Plan(optimal, value=0.775, costs=[0.2]" in printed
    assert "[0.5]" in printed
    assert names["regret"] < 200
    assert (tmp_path / "agent.npz").exists()


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.full if "--horizon 100000" in c else ()) for c in COMMANDS]
)
def test_commands_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert result.exit_code == (3 if "orders=0.1" in command else 0), result.output
    for option in ("--plot", "--save"):
        if option in command:
            assert (tmp_path / command.split(f"{option} ")[1].split()[0]).exists()


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
