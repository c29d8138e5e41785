"""A small leaderboard for the tests of submissions, and its commands."""

import sys

import pytest

from boards import MINE, TINY
from psconrl.cli import main
from psconrl.experiment.spec_file import parse_spec
from psconrl.report.quick_board import write_quick_board
from reports import made_up_submission


@pytest.fixture
def tiny(tmp_path, monkeypatch, no_processes):
    """A folder with ``mine.py``, and a board of two environments."""
    texts = {"leaderboard": TINY, "sensitivity": TINY.replace("seed = 5", "seed = 6")}
    for module in ("experiment.board_protocol", "report.submission_file"):
        monkeypatch.setattr(f"psconrl.{module}.shipped_spec", lambda name: parse_spec(texts[name]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr("psconrl.report.quick_board.QUICK_BOARD", tmp_path / "quick_board.json.gz")
    other_board = made_up_submission({"chain": (29.0, 0.0)})
    write_quick_board([other_board], tmp_path / "quick_board.json.gz")
    yield
    for name in ("mine", "two", "none", "broken", "blind", "picky"):
        sys.modules.pop(name, None)


@pytest.fixture
def board(capsys):
    """Run a command ``psconrl board``, and return its exit code and what it printed."""

    def run(*arguments):
        try:
            main(["board", *arguments])
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return run
