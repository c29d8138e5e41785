"""Names that would be harmful where they are shown: on a terminal, or in a spreadsheet."""

import csv
import json

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, CSVLog, PSConRL, save
from psconrl.cli import main
from psconrl.escaping import csv_cell, printable
from psconrl.experiment.export import export_tables
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from sweeps import AtOnce

ESC = "\x1b]0;owned\x07\x1b[2J"
CONTROLS = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) != "\n"]
STEERING = [*CONTROLS, "\u202e", "\u2066", "\u200f", "\u2028", "\ud800", "\ufeff"]


@pytest.mark.parametrize("character", STEERING, ids=ascii)
def test_every_character_that_steers_is_shown_as_one_that_does_not(character):
    shown = printable(f"a{character}b")
    assert len(shown) == 3
    assert character not in shown
    assert shown.encode()


def test_ordinary_text_stays_as_it_is():
    for text in ("plain", "two\nlines", "größer ≤ 日本 ±", "a\u00a0b", "→ ↑ │ ┌", ""):
        assert printable(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "=cmd|' /C calc'!A0"])
def test_text_that_is_a_formula_is_text_in_a_spreadsheet(text):
    assert csv_cell(text) == "'" + text


def test_numbers_and_other_text_stay_as_they_are():
    for value in (-1, -1.5, None, "a=1", "", "'x", True):
        assert csv_cell(value) is value


@pytest.fixture
def evil(tmp_path):
    """A model with such names, in a file with such a name."""
    model = CMDP(
        np.full((2, 2, 2), 0.5),
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
        [0.6],
        state_names=[f"one{ESC}", "=two()"],
        action_names=[f"go{ESC}", "-stay"],
        cost_names=[f"=steps(){ESC}", f"@risk{ESC}"],
    )
    path = tmp_path / f"model{ESC.replace('/', '')}.json"
    save(model, path)
    return path


def run(capfd, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def test_no_name_reaches_the_terminal_as_it_is(evil, tmp_path, capfd):
    for arguments in (
        ["solve", evil],
        ["solve", evil, "--threshold", f"@risk{ESC}=-5"],
        ["solve", evil, "--threshold", f"missing{ESC}=1"],
        ["inspect", evil],
        ["pareto", evil, "--points", "3"],
        ["learn", evil, "--horizon", "50"],
        ["learn", f"box{ESC}"],
        ["solve", tmp_path / f"missing{ESC}.json"],
        [f"sol{ESC}"],
        ["report", tmp_path / f"missing{ESC}.db"],
        ["learn", "box", "--option", f"x{ESC}=1"],
    ):
        _, out, err = run(capfd, *arguments)
        assert "\x1b" not in out + err, arguments
        assert "\x07" not in out + err
        assert "\u241b" in out + err or "\\x1b" in out + err, arguments  # shown, and harmless
    _, out, _ = run(capfd, "solve", evil, "--json")
    assert "\x1b" not in out
    assert json.loads(out)["objective"] == f"=steps(){ESC}"  # data stays data


def test_names_in_a_live_bar_are_text(tmp_path, monkeypatch, capfd):
    """Neither escape sequences nor the markup of the bar's own library."""
    from psconrl.cli import learn, learn_progress, render

    model = CMDP(np.ones((1, 1, 1)), [[[1.0]], [[1.0]]], [2.0], cost_names=["[red]a", f"[/nothing]{ESC}"])
    save(model, tmp_path / "m.json")
    monkeypatch.setattr(learn_progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(learn_progress, "REFRESH_SECONDS", 0.0)
    for module in (learn, learn_progress):
        monkeypatch.setattr(
            module, "console", lambda stderr=False: render._SafeConsole(stderr=stderr, force_terminal=False, width=200)
        )
    code, out, err = run(capfd, "learn", tmp_path / "m.json", "--horizon", "2000")
    assert code in (0, None), err
    assert "[/nothing]" in out
    assert "\x07" not in out + err


def test_tables_for_spreadsheets_hold_no_formulas(evil, tmp_path):
    text = (
        "replicates = 2\n[agents.'=HYPERLINK(1)']\nagent = 'uniform'\n"
        "[experiments.'@sum']\nenv = 'counterexample'\nhorizon = 50\n"
    )
    run_sweep(parse_spec(text).jobs(), tmp_path / "r.db", executor=AtOnce())
    with Store(tmp_path / "r.db") as store:
        files = export_tables(store, tmp_path / "out", "csv")
    for path in files:
        with path.open(newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        assert {row["experiment"] for row in rows} == {"'@sum"}
        assert {row["label"] for row in rows} == {"'=HYPERLINK(1)"}
    with files[1].open() as f:
        assert any(float(row["total"]) < 0 for row in csv.DictReader(f))  # numbers are not touched
    agent = PSConRL(2, 2, [0.6], seed=0)
    agent.watch(CSVLog(tmp_path / "log.csv", cost_names=psconrl.load(evil).cost_names))
    psconrl.simulate(psconrl.load(evil), agent, 50, seed=0)
    with (tmp_path / "log.csv").open() as f:
        header = next(csv.reader(f))
    assert not any(cell.startswith(("=", "@", "+", "-")) for cell in header)
    CSVLog(tmp_path / "log.csv", cost_names=psconrl.load(evil).cost_names)(event(evil))  # it recognises its own file


def event(path):
    found = []
    agent = PSConRL(2, 2, [0.6], seed=0)
    agent.watch(found.append)
    psconrl.simulate(psconrl.load(path), agent, 50, seed=0)
    return found[-1]
