"""Quick submissions are compared with those of the built-in agents, which the package ships."""

import dataclasses
import sys
from pathlib import Path

import pytest

from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import board_plays, find_entry, protocol_digest
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.report.board_check import Repetition, entry_of, faults, repeated_jobs
from psconrl.report.board_page import board_contents, submissions_by_title
from psconrl.report.curves import read_experiments
from psconrl.report.quick_board import QUICK_BOARD, read_quick_board, with_built_in, write_quick_board
from psconrl.report.submission_file import read_submission, write_submission
from reports import made_up_submission

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import publish_quick_board

RENEW = "the quick runs that the package ships are of another leaderboard.toml; `make quick-board` makes them again"
PROTOCOL = {"digest": "a", "seed": 0, "quick": True}


def quick(**changes):
    """A made-up quick submission."""
    return dataclasses.replace(made_up_submission({"chain": (29.0, 0.0)}), **{"protocol": PROTOCOL} | changes)


def built_in(label, **changes):
    return quick(name=label, title=label.upper(), files={}, **changes)


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Return a function that ships submissions in place of those of the package."""
    path = tmp_path / "shipped.json.gz"
    monkeypatch.setattr("psconrl.report.quick_board.QUICK_BOARD", path)

    def ship(*submissions):
        write_quick_board(submissions, path)
        return path

    return ship


@pytest.fixture
def tiny_shipped(tiny, board, tmp_path, monkeypatch):
    """The small leaderboard, with the quick submission of its agent, as the script makes it."""
    monkeypatch.setattr(
        "sys.argv",
        ["publish_quick_board.py", "--agents", "psconrl", "--results", "quick.db", "--out", "quick_board.json.gz"],
    )
    publish_quick_board.main()


def test_what_is_shipped_is_what_was_submitted(shipped):
    submissions = [built_in("a", options={"share": 0.3}), built_in("b", left_out={"chain": "no"}, runs={})]
    path = shipped(*submissions)
    content = path.read_bytes()
    read = read_quick_board()
    assert list(read) == ["A", "B"]
    assert list(map(dataclasses.asdict, read.values())) == list(map(dataclasses.asdict, submissions))
    assert shipped(*submissions).read_bytes() == content


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": PROTOCOL | {"digest": "b"}}, "seeds, horizons or numbers of runs differ"),
        ({"protocol": PROTOCOL | {"quick": False}}, "seeds, horizons or numbers of runs differ"),
        ({"reference": made_up_submission({"chain": (1.0, 0.0)}).runs}, "runs of uniform differ in chain"),
        ({"versions": {"psconrl": "1"}}, "versions differ"),
    ],
)
def test_only_submissions_of_one_board_are_shipped(shipped, changes, reason):
    with pytest.raises(ConfigError, match=f"B and A: .*{reason}"):
        shipped(built_in("a"), built_in("b", **changes))


def test_a_quick_submission_is_first_among_the_built_in_agents(shipped):
    shipped(built_in("a"), built_in("b"))
    found = with_built_in({"Mine": quick()})
    assert (list(found.submissions), found.own) == (["Mine", "A", "B"], ("Mine",))
    assert "the quick runs of 2 built-in agents" in found.remark
    assert list(with_built_in({"A": quick(), "C": quick()}).submissions) == ["A (yours)", "C", "A", "B"]


def test_a_built_in_agent_that_is_submitted_again_takes_the_place_of_the_shipped_one(shipped):
    shipped(built_in("a", options={"share": 0.3}), built_in("b"))
    again = built_in("a", options={"share": 0.3})
    assert list(with_built_in({"A": again}).submissions) == ["A", "B"]
    tuned = dataclasses.replace(again, options={"share": 1.0})
    assert list(with_built_in({"A": tuned}).submissions) == ["A (yours)", "A", "B"]


def test_full_submissions_are_never_compared_with_quick_ones(shipped):
    shipped(built_in("a"))
    full = quick(protocol=PROTOCOL | {"quick": False})
    assert with_built_in({"Mine": full}) == ({"Mine": full}, (), "")
    contents = board_contents({"Mine": full})
    assert (contents["remark"], contents["own"], len(contents["submissions"])) == ("", (), 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": PROTOCOL | {"digest": "b"}}, "their environments, seeds, horizons or numbers of runs differ"),
        ({"reference": made_up_submission({"chain": (1.0, 0.0)}).runs}, "or runs of uniform differ in chain"),
    ],
)
def test_runs_of_other_code_are_not_compared(shipped, changes, reason):
    shipped(built_in("a", **changes))
    contents = board_contents({"Mine": quick()})
    assert contents["remark"].startswith("Not compared with the built-in agents")
    assert reason in contents["remark"]
    assert [row["agent"] for row in contents["boards"][0]["Costs known"]["standings"]] == ["Mine", "uniform"]


@pytest.mark.usefixtures("tiny_shipped")
def test_a_quick_try_is_compared_at_once(board, tmp_path):
    code, printed = board("submit", "mine.py", "--quick")
    assert code == 0
    assert "Compared with the quick runs of 1 built-in agents" in printed
    for kind in ("known", "noisy"):
        assert f"Costs {kind}: Mine, mixed (yours) is number " in printed
    assert " of 3, with a loss of " in printed
    assert "PSConRL" in printed
    code, printed = board("page", "mine.json")
    assert (code, "Compared with the quick runs of 1 built-in agents" in printed) == (0, True)
    (tmp_path / "all").mkdir()
    for name in ("first", "second"):
        write_submission(read_submission(tmp_path / "mine.json"), tmp_path / "all" / f"{name}.json")
    contents = board_contents(submissions_by_title(tmp_path / "all"))
    assert contents["own"] == ("Mine, mixed (first)", "Mine, mixed (second)")
    known = contents["boards"][0]["Costs known"]["standings"]
    assert {row["agent"] for row in known} == {*contents["own"], "PSConRL", "uniform"}
    code, printed = board("submit", "mine.py", "--out", "full.json")
    assert (code, "yours" in printed, "ompared" in printed) == (0, False, False)


@pytest.mark.usefixtures("tiny")
def test_a_quick_try_is_not_compared_with_another_board(board):
    code, printed = board("submit", "mine.py", "--quick")
    assert (code, "(yours)" in printed) == (0, False)
    assert "Not compared with the built-in agents, whose quick runs are part of psconrl: their environments" in printed


@pytest.mark.usefixtures("tiny_shipped")
def test_a_check_without_a_path_repeats_the_shipped_runs(board, tmp_path):
    code, printed = board("check", "--share", "0.5", "--seed", "1")
    assert (code, "The same to the last bit: 3 of 6 quick runs of PSConRL repeated" in printed) == (0, True), printed
    (found,) = read_quick_board().values()
    runs = {name: [dataclasses.replace(run, digest="") for run in each] for name, each in found.runs.items()}
    write_quick_board([dataclasses.replace(found, runs=runs)], tmp_path / "quick_board.json.gz")
    code, printed = board("check", "--share", "0.5", "--seed", "1")
    assert (code, "REFUSED: 3 of 6 quick runs of PSConRL repeated" in printed) == (1, True)


def test_the_shipped_file_is_small():
    assert QUICK_BOARD.stat().st_size < 1e6


def test_the_shipped_runs_are_of_the_quick_protocol():
    plays = board_plays(find_entry("psconrl"), quick=True)
    expected = {"digest": protocol_digest(plays.jobs), "seed": plays.jobs[0].seed, "quick": True}
    for each in read_quick_board().values():
        assert each.protocol == expected, RENEW


def test_the_shipped_agents_have_the_settings_of_the_board():
    spec = shipped_spec("leaderboard")
    jobs = spec.jobs()
    for each in read_quick_board().values():
        agent = spec.agents.get(each.name)
        assert agent is not None, RENEW
        assert (each.options, each.setting) == (dict(agent.options), agent.setting), RENEW
        wanted = {job.experiment for job in jobs if job.label == each.name} & each.environments.keys()
        assert each.runs.keys() == wanted, RENEW
        unplayed = each.environments.keys() - wanted
        with_known_costs = {name for name in unplayed if "(costs" not in name}  # some take no costs
        assert each.left_out.keys() in (unplayed, unplayed - with_known_costs), RENEW


def test_all_agents_of_the_board_are_shipped():
    shipped = {each.name for each in read_quick_board().values()}
    assert shipped == set(publish_quick_board.labels_of_board()), RENEW


def test_some_shipped_runs_are_repeated(tmp_path, no_processes):
    for found in list(read_quick_board().values())[:2]:
        entry = entry_of(found)
        plays = board_plays(entry, quick=True)
        jobs = repeated_jobs(plays, entry.label, share=0.01, seed=3)
        results = tmp_path / f"{entry.label}.db"
        run_sweep(jobs, results, workers=1)
        with Store(results) as store:
            experiments = read_experiments(store)
        assert faults(found, Repetition(entry.label, plays, experiments)) == [], RENEW
