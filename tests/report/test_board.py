"""Submissions to the leaderboard: protocol, files, checks and page, as a user runs the commands."""

import dataclasses
import json
import re

import numpy as np
import pytest

from boards import MINE, TINY
from psconrl.cli.render import show_table
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment import board_protocol
from psconrl.experiment.board_protocol import board_plays, find_entry, protocol_digest, tuning_plays
from psconrl.experiment.spec import EnvironmentGroup
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.experiment.store import Store
from psconrl.report.board_page import CHARGES, board_contents, ranking_changes, submissions_by_title
from psconrl.report.curves import read_experiments
from psconrl.report.growth import growth_of_score
from psconrl.report.leaderboard import leaderboards
from psconrl.report.submission import SubmittedRun, differences, merged_experiments
from psconrl.report.submission_checksums import changed_in, with_checksums
from psconrl.report.submission_file import read_submission, write_submission
from reports import EVIL, made_up_submission


@pytest.mark.usefixtures("tiny")
def test_an_agent_is_tuned_submitted_continued_and_checked(board, tmp_path):
    code, printed = board("submit", "mine.py", "--grid", "least=0.9,0.1")
    assert code == 0
    assert printed.count("Left out: ") == 4  # two boards of queue, of the development environments and of the board
    assert "Left out: queue (costs noisy) (ValueError: one constraint only)" in printed
    found = read_submission(tmp_path / "mine.json")
    assert (found.name, found.title) == ("mine:Mine", "Mine, mixed")
    assert found.files == {"mine.py": MINE}
    losses = dict(zip(found.tuning["values"], found.tuning["losses"], strict=True))
    best = min(losses, key=losses.get)
    assert list(losses) == [0.1, 0.9]
    assert (found.options, found.tuning["chosen"]) == ({"least": best}, best)
    assert found.setting == f"tuned: least {best:g}"
    assert set(found.runs) == {"chain", "chain (costs noisy)"}
    assert set(found.reference) == {"chain", "chain (costs noisy)", "queue", "queue (costs noisy)"}
    assert found.left_out["queue"] == "ValueError: one constraint only"
    assert [run.rounds for run in found.runs["chain"]] == [[21, 320]] * 2  # the first checkpoint from T/16 = 20 on
    before = (tmp_path / "mine.json").read_text()
    code, printed = board("submit", "mine.py", "--grid", "least=0.9,0.1")
    assert re.search(r" 0 runs done in [\d.]+ s, 12 were there", f" {printed}")
    assert (tmp_path / "mine.json").read_text() == before
    (tmp_path / "mine.py").unlink()  # the check uses the code of the submission
    code, printed = board("check", "mine.json", "--share", "0.5", "--seed", "3", "--run-code")
    said = "The same to the last bit: 2 of 4 runs of Mine, mixed repeated (--share 0.5 --seed 3)"
    assert (code, said in printed) == (0, True)
    code, printed = board("check", "mine.json")
    assert (code, "executes the code stored in it (mine.py) with your rights" in printed) == (2, True)


def edited(path, change):
    """Change a submission in another file, and leave its checksums as they are."""
    record = json.loads(path.read_text())
    change(record)
    target = path.with_name("edited.json")
    target.write_text(json.dumps(record))
    return target.name


def forge(path, change):
    """Change a submission in another file, and calculate its checksums again."""
    record = json.loads(path.read_text())
    change(record)
    forged = path.with_name("forged.json")
    forged.write_text(json.dumps(with_checksums(record)))
    return forged.name


def better(record):
    for run in record["runs"]["chain"]:
        run["totals"][1][0] -= 1e-9


def cheaper(record):
    record["environments"]["chain"]["prices"] = [0.0]


def worse_reference(record):
    record["reference"]["chain"][0]["totals"][1][0] += 5.0


def other_version(record):
    better(record)
    record["versions"]["numpy"] = "1.0"


def without_noise(record):
    del record["runs"]["chain (costs noisy)"]


@pytest.mark.usefixtures("tiny")
def test_a_check_detects_forged_numbers(board, tmp_path):
    board("submit", "mine.py")
    genuine = tmp_path / "mine.json"
    for change, message in (
        (better, "chain, Mine, mixed, run 1: totals"),
        (cheaper, "chain: prices [0.0], repeated"),
        (worse_reference, "chain, uniform, run 0: totals"),
        (other_version, "made with other versions, which may be why: numpy 1.0 (here "),
        (without_noise, "chain (costs noisy), run 0: is missing"),
    ):
        code, printed = board("check", forge(genuine, change), "--share", "1", "--run-code")
        assert (code, message in printed, "REFUSED: 4 of " in printed) == (1, True, True), printed


@pytest.mark.usefixtures("tiny")
def test_a_submission_has_the_same_board_as_the_results_file(board, tmp_path):
    board("submit", "psconrl", "--out", "a.json")
    with Store("a.db") as store:
        stored = read_experiments(store)
    read = merged_experiments({"psconrl": read_submission(tmp_path / "a.json")})
    for charge in CHARGES:
        ours, theirs = leaderboards(read, charge), leaderboards(stored, charge)
        assert list(ours) == ["Costs known", "Costs noisy"] == list(theirs)
        for kind, found in ours.items():
            for one, two in zip(found.standings, theirs[kind].standings, strict=True):
                numbers = [dataclasses.asdict(s) for s in (one, two)]
                for name in ("loss", "tail", "worst_run", "overspent", "worst", "strong", "growth"):
                    assert numbers[0][name] == pytest.approx(numbers[1][name], rel=1e-12, nan_ok=True)
                assert one.seconds == pytest.approx(two.seconds, abs=1e-4)
                assert str(one.rank) == str(two.rank)
    assert board("check", "a.json", "--share", "0.1")[0] == 0  # without --run-code: an agent of the library


@pytest.mark.usefixtures("tiny")
def test_runs_of_a_results_file_are_submitted_and_a_folder_is_checked(board, tmp_path):
    (tmp_path / "all").mkdir()
    assert board("submit", "psconrl", "--out", "first.json", "--results", "board.db")[0] == 0
    code, printed = board("submit", "psconrl", "--out", "all/again.json", "--results", "board.db")
    assert (code, " were there" in printed) == (0, True)
    assert not (tmp_path / "all" / "again.db").exists()
    assert (tmp_path / "all" / "again.json").read_text() == (tmp_path / "first.json").read_text()
    assert board("submit", "mine.py", "--out", "all/mine.json", "--results", "board.db")[0] == 0
    code, printed = board("check", "all", "--share", "0.3", "--seed", "1")
    assert (code, "all/mine.json: a check executes the code stored in it" in printed) == (2, True)
    code, printed = board("check", "all", "--share", "0.3", "--seed", "1", "--run-code")
    assert (code, printed.count("The same to the last bit")) == (0, 2), printed
    forge(tmp_path / "all" / "mine.json", better)
    code, printed = board("check", "all", "--share", "1", "--run-code")
    assert (code, printed.count("The same to the last bit"), printed.count("REFUSED")) == (1, 2, 1), printed


def test_only_what_depends_on_plans_may_be_rounded_otherwise():
    run = SubmittedRun(
        replicate=0, rounds=[1, 16], totals=[[1.0, 2.0], [3.0, 4.0]], largest_excess=[5.0], strong=[100.0, 0.0],
        seconds=1.0, digest="a",
    )  # fmt: skip
    assert differences(run, dataclasses.replace(run, seconds=2.0, strong=[100.00009, 0.9e-6])) == []
    for other in (
        {"strong": [100.00011, 0.0]}, {"strong": [100.0, 1.1e-6]}, {"strong": None}, {"strong": [100.0]},
        {"totals": [[1.0, 2.0], [3.0, np.nextafter(4.0, 5.0)]]}, {"largest_excess": [np.nextafter(5.0, 6.0)]},
        {"digest": "b"},
    ):  # fmt: skip
        assert len(differences(run, dataclasses.replace(run, **other))) == 1


@pytest.mark.usefixtures("tiny")
def test_a_submission_has_a_line_for_every_run(board, tmp_path):
    board("submit", "mine.py")
    found = read_submission(tmp_path / "mine.json")
    runs = [run for table in (found.runs, found.reference) for each in table.values() for run in each]
    lines = (tmp_path / "mine.json").read_text().splitlines()
    assert sum(line.startswith('{"replicate"') for line in lines) == len(runs)


@pytest.mark.usefixtures("tiny")
def test_the_page_has_all_submissions_of_a_folder(board, tmp_path):
    folder = tmp_path / "all"
    folder.mkdir()
    board("submit", "psconrl", "--quick", "--out", "all/psconrl.json")
    board("submit", "mine.py:Mine", "--quick", "--out", "all/mine.json")
    first = read_submission(folder / "mine.json")
    write_submission(dataclasses.replace(first, title=EVIL), folder / "evil.json")
    write_submission(dataclasses.replace(first, title="uniform"), folder / "again.json")
    code, printed = board("page", "all", "-o", "board.html")
    assert (code, "Page: board.html" in printed) == (0, True)
    contents = board_contents(submissions_by_title(folder))
    assert contents["quick"]
    known = contents["boards"][0]["Costs known"]
    assert {row["agent"]: row["environments"] for row in known["standings"]} == {
        "PSConRL": 2, "Mine, mixed": 1, EVIL: 1, "uniform (again)": 1, "uniform": 2,
    }  # fmt: skip
    assert set(known["places"]["queue"]) == {"PSConRL", "uniform"}
    assert [line.partition(":")[0] for line in contents["changes"]] == [
        "Costs known",
        "Costs known",
        "Costs noisy",
        "Costs noisy",
    ]
    text = (tmp_path / "board.html").read_text()
    assert EVIL not in text
    assert "https://" not in text
    board("submit", "psconrl", "--out", "all/longer.json")
    code, printed = board("page", "all", "-o", "board.html")
    assert (code, "are not of the same board" in printed) == (2, True)


def test_the_page_says_where_the_ranking_depends_on_the_charge():
    """An agent with regret 29 against one with regret 10 and an overspending of 10 at price 1."""

    submissions = [made_up_submission({"chain": outcome}) for outcome in ((29.0, 0.0), (10.0, 10.0))]
    experiments = merged_experiments(dict(zip("ab", submissions, strict=True)))
    boards = {charge: leaderboards(experiments, charge) for charge in CHARGES}
    assert ranking_changes(boards) == [
        "Costs known: the ranking changes with the price factor (1.5 instead of 2: b 2 → 1, a 1 → 2). Within "
        "environments it changes in chain (1.5).",
        "Costs known: the ranking is the same at every floor of 0, 0.5, 1, 2. Within environments it is the same as "
        "well.",
    ]
    free = [dataclasses.replace(e, facts=e.facts | {"prices": [0.0], "range_prices": [1.5]}) for e in experiments]
    boards = {charge: leaderboards(free, charge) for charge in CHARGES}
    assert ranking_changes(boards) == [
        "Costs known: the ranking is the same at every price factor of 1.5, 2, 4. Within environments it is the same "
        "as well.",
        "Costs known: the ranking changes with the floor (2 instead of 1: a 2 → 1, b 1 → 2). Within environments it "
        "changes in chain (2).",
    ]


def test_the_page_has_the_standings_of_every_part(monkeypatch):
    groups = tuple(EnvironmentGroup(name, f"About {name}.", (name,)) for name in ("chain", "queue"))
    monkeypatch.setattr("psconrl.report.board_page.board_groups", lambda: groups)
    outcomes = ({"chain": (10.0, 0.0), "queue": (30.0, 0.0)}, {"chain": (20.0, 0.0), "queue": (20.0, 0.0)})
    contents = board_contents(dict(zip("ab", map(made_up_submission, outcomes), strict=True)))
    known = contents["boards"][0]["Costs known"]
    assert [(part["title"], part["description"]) for part in known["parts"]] == [
        ("chain", "About chain."), ("queue", "About queue."),
    ]  # fmt: skip
    positions = [{row["agent"]: row["position"] for row in part["standings"]} for part in known["parts"]]
    assert positions == [{"a": 1, "b": 2, "uniform": 3}, {"a": 2, "b": 1, "uniform": 3}]
    assert {row["agent"]: row["position"] for row in known["standings"]} == {"a": 1, "b": 1, "uniform": 3}


@pytest.mark.usefixtures("tiny")
def test_the_protocol_leaves_out_what_its_spec_does(monkeypatch):
    text = TINY.replace("horizon = 320\nquick", 'horizon = 320\nwithout = { psconrl = "no gap" }\nquick')
    before = protocol_digest(board_plays(find_entry("psconrl"), quick=False).jobs)
    monkeypatch.setattr("psconrl.experiment.board_protocol.shipped_spec", lambda name: parse_spec(text))
    plays = board_plays(find_entry("psconrl"), quick=False)
    assert plays.left_out == {"queue": "no gap", "queue (costs noisy)": "no gap"}
    played = {(job.experiment, job.label) for job in plays.jobs}
    assert ("queue", "uniform") in played
    assert {name for name, label in played if label == "psconrl"} == {"chain", "chain (costs noisy)"}
    assert protocol_digest(plays.jobs) == before
    assert board_plays(find_entry("mine.py"), quick=False).left_out["queue"] == "ValueError: one constraint only"


def test_the_growth_of_a_score_is_that_of_a_power():
    rounds = np.array([10, 200, 1600])
    assert growth_of_score(rounds, np.array([[9.0, 10.0, 40.0], [9.0, 10.0, 40.0]])) == pytest.approx(
        np.log(4) / np.log(8)
    )
    assert np.isnan(growth_of_score(rounds, np.array([[9.0, -1.0, 40.0]])))
    assert np.isnan(growth_of_score(np.array([100]), np.array([[5.0]])))


def test_the_shipped_protocol_has_all_environments_and_keeps_its_digest():
    """A submission is comparable only with those of the same protocol, so agents that come or go must not change it."""
    plays = board_plays(find_entry("psconrl"), quick=False)
    names = {job.experiment for job in shipped_spec("leaderboard").jobs() if "structure" not in job.experiment}
    assert {job.experiment for job in plays.jobs} == names
    assert plays.left_out == {}
    assert len(plays.jobs) == 2 * 10 * len(names)
    other = board_plays(find_entry("sa-cvi-ucb"), quick=False)
    assert protocol_digest(other.jobs) == protocol_digest(plays.jobs)
    assert set(other.left_out) == {
        job.experiment for job in shipped_spec("leaderboard").jobs() if job.label == "psconrl"
    } & names - {job.experiment for job in shipped_spec("leaderboard").jobs() if job.label == "sa-cvi-ucb"}
    assert protocol_digest(board_plays(find_entry("psconrl"), quick=True).jobs) != protocol_digest(plays.jobs)
    tried = tuning_plays(find_entry("psconrl"), "share", [0.1, 1.0], quick=False)
    assert {job.seed for job in tried.jobs} == {shipped_spec("sensitivity").seed}
    assert {job.label for job in tried.jobs} == {"psconrl share=0.1", "psconrl share=1.0", "uniform"}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "uniform"], "'uniform' is the reference"),
        (["submit", "psconlr"], "did you mean 'psconrl'? (one of your own is file.py or file.py:Class)"),
        (["submit", "theirs.py"], "theirs.py: no such file"),
        (["submit", "two.py"], "two.py: must have one class with begin and end; it has several: A, B; say which, as"),
        (["submit", "none.py"], "none.py: must have one class with begin and end; it has none"),
        (["submit", "mine.py", "--out", "mine.db"], "--out: 'mine.db' must end in .json"),
        (["submit", "mine.py", "--grid", "least"], "--grid: must be KEY=VALUE"),
        (["submit", "mine.py", "--grid", "least=a,b"], "--grid: the values of least must be numbers"),
        (["submit", "mine.py", "--grid", "least=0.5"], "a grid has 2 to 8 different values"),
        (["submit", "mine.py", "--grid", "lest=0.5,0.6"], "unknown option 'lest'; did you mean 'least'?"),
        (["submit", "mine.py", "--results", "a.json"], "--results: 'a.json' must end in .db"),
        (["check", "none.json"], "none.json: no such file"),
        (["check", "."], "has no submissions"),
        (["check", "mine.py"], "mine.py: is not JSON"),
        (["page", "none"], "none: no such file or folder"),
        (["page", "."], "has no submissions"),
    ],
)
def test_mistakes_get_one_line(board, tmp_path, arguments, message):
    begin = "    def begin(self, state): ...\n    def end(self, record): ...\n"
    (tmp_path / "two.py").write_text(f"class A:\n{begin}class B:\n{begin}")
    (tmp_path / "none.py").write_text("from psconrl import Episode\n")
    code, printed = board(*arguments)
    assert (code, message in printed) == (2, True), printed


@pytest.mark.usefixtures("tiny")
def test_a_run_that_fails_leaves_no_submission(board, tmp_path):
    (tmp_path / "broken.py").write_text(
        MINE.replace("return Episode", "raise RuntimeError('lost')\n        return Episode")
    )
    code, printed = board("submit", "broken.py", "--quick")
    assert (code, "RuntimeError: lost" in printed, "No submission is written" in printed) == (1, True, True)
    assert not (tmp_path / "broken.json").exists()


@pytest.mark.usefixtures("tiny")
def test_an_agent_that_takes_no_costs_has_no_runs_with_known_ones(tmp_path):
    (tmp_path / "blind.py").write_text(MINE.replace("costs=None, ", ""))
    jobs = board_plays(find_entry("blind.py"), quick=False).jobs
    assert {job.experiment for job in jobs if job.label != "uniform"} == {"chain (costs noisy)"}


DAMAGE = {
    "is not a submission": lambda r: r.update(format="x"),
    "has schema 7": lambda r: r.update(schema=7),
    "the path '../mine.py' of a file must be": lambda r: r["files"].update({"../mine.py": ""}),
    "the path 'numpy.py' of a file must be": lambda r: r["files"].update({"numpy.py": ""}),
    "name must be module:Class, with the module among files": lambda r: r.update(name="os:system"),
    "name must be an agent of the leaderboard": lambda r: r.update(name="os:system", files={}),
    "code must be the digest of files": lambda r: r["files"].update({"mine.py": "import os"}),
    "runs of 'chain' must be as many as those of the reference": lambda r: r["runs"]["chain"].pop(),
    "totals in runs of 'chain' must be a number": lambda r: r["runs"]["chain"][0]["totals"][0].__setitem__(0, None),
    "prices of 'chain' must be a list of 1 numbers": lambda r: r["environments"]["chain"].update(prices=[]),
    "range_prices of 'chain' must be a list of numbers from 0 on": lambda r: r["environments"]["chain"].update(
        range_prices=[-1.0]
    ),
    "quick of protocol must be true or false": lambda r: r["protocol"].update(quick=1),
    "runs must be there": lambda r: r.update(runs={}),
}


@pytest.mark.usefixtures("tiny")
def test_damaged_files_get_one_line(board, tmp_path):
    board("submit", "mine.py")
    for message, damage in DAMAGE.items():
        with pytest.raises(StoreError) as raised:
            read_submission(tmp_path / edited(tmp_path / "mine.json", damage))
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)


CHANGED = "edited.json: was changed since it was written: "


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (better, f"{CHANGED}chain, Mine, mixed, run 0; chain, Mine, mixed, run 1. Make it again with"),
        (worse_reference, f"{CHANGED}chain, uniform, run 0. Make it again with"),
        (cheaper, f"{CHANGED}what belongs to no run, or which runs there are. Make it again with"),
        (without_noise, f"{CHANGED}what belongs to no run, or which runs there are"),
        (lambda record: record.pop("checksum"), f"{CHANGED}what belongs to no run, or which runs there are"),
    ],
    ids=["runs", "reference", "prices", "lost", "checksum"],
)
def test_a_submission_that_was_edited_is_neither_checked_nor_on_the_page(board, tmp_path, change, message):
    board("submit", "mine.py", "--quick")
    edited(tmp_path / "mine.json", change)
    (tmp_path / "mine.json").unlink()
    for command in (("check", "edited.json", "--run-code"), ("check", ".", "--run-code"), ("page", ".")):
        code, printed = board(*command)
        assert (code, message in printed) == (2, True), printed


def test_the_checksum_of_a_run_has_64_bits():
    record = with_checksums({"title": "a", "runs": {"chain": [{"replicate": 0, "seconds": 1.0}]}, "reference": {}})
    (run,) = record["runs"]["chain"]
    assert re.fullmatch("[0-9a-f]{16}", run["checksum"])
    assert changed_in(record) == []
    run["seconds"] = 2.0
    assert changed_in(record) == ["chain, a, run 0"]


@pytest.mark.usefixtures("tiny")
def test_no_digit_of_a_submission_changes_in_silence(board, tmp_path, full):
    board("submit", "mine.py", "--quick")
    path = tmp_path / "mine.json"
    text = path.read_text()
    record = json.loads(text)
    digits = [k for k, letter in enumerate(text) if letter in "0123456789"]
    for k in digits if full else digits[::7]:
        other = str((int(text[k]) + 1) % 10)
        path.write_text(text[:k] + other + text[k + 1 :])
        try:
            read_submission(path)
        except StoreError:
            continue
        assert json.loads(path.read_text()) == record  # a digit beyond those of a float


@pytest.mark.usefixtures("tiny")
def test_options_that_are_nested_deeply_get_one_line(board, tmp_path):
    board("submit", "mine.py", "--quick")
    path = tmp_path / "mine.json"
    text = path.read_text()
    assert '"options": {}' in text
    for depth in (500, 900, 980, 990, 1000, 10**5):
        path.write_text(text.replace('"options": {}', '"options": {"a": ' + "[" * depth + "]" * depth + "}"))
        with pytest.raises(StoreError, match=r"changed since|nested too deeply|is not JSON"):
            read_submission(path)


@pytest.mark.usefixtures("tiny")
def test_a_value_that_an_agent_refuses_is_an_error_not_an_environment_left_out(tmp_path):
    picky = MINE.replace("if len(thresholds) > 1:", "if least > 1:")
    (tmp_path / "picky.py").write_text(picky)
    with pytest.raises(ConfigError, match=r"'development chain', Mine, mixed least=2: ValueError: one constraint only"):
        tuning_plays(find_entry("picky.py"), "least", [0.5, 2], quick=True)
    assert board_protocol.MOST_VALUES == 8


def test_tables_in_a_file_have_whole_headers_and_names(capsys):
    header = [f"a heading that is long {k}" for k in range(12)]
    show_table({"title": "Wide", "note": "a note", "header": header, "rows": [["Triple-QA, tuned and separate"] * 12]})
    lines = capsys.readouterr().out.splitlines()
    assert all(text in lines[2] for text in header)
    assert lines[4].count("Triple-QA, tuned and separate") == 12
    assert max(map(len, lines)) < 500  # as wide as the table
