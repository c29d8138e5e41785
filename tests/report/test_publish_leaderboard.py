"""Runs of several folders are put on one board only if they are of one protocol; all pages show the same standings."""

import sys
from pathlib import Path

import pytest

from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from marked_tables import fill_tables, tables_of
from publish_leaderboard import README, README_COLUMNS, STANDINGS, experiments_of

FILE = "leaderboard.db"
FIRST = """
seed = 1
replicates = 2
[agents.uniform]
[agents.ucrl2]
[experiments.counterexample]
horizon = 40
"""
AGAIN = FIRST.replace("ucrl2", "lagrangian-published")


@pytest.fixture
def folders(tmp_path, no_processes):
    """Return a function that runs specs, each in a folder of its own, and returns the folders."""

    def run(*specs):
        found = []
        for k, text in enumerate(specs):
            found.append(tmp_path / str(k))
            found[-1].mkdir()
            run_sweep(parse_spec(text).jobs(), found[-1] / FILE, workers=1)
        return found

    return run


def test_an_agent_that_is_run_again_joins_the_others(folders):
    (experiment,) = experiments_of(folders(FIRST, AGAIN), FILE)
    assert set(experiment.curves) == {"uniform", "ucrl2", "lagrangian-published"}
    assert {curves.runs for curves in experiment.curves.values()} == {2}


NOT_THE_SAME = r"1/leaderboard.db: the runs of uniform in counterexample are not those of an earlier folder"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 1", "seed = 2"), NOT_THE_SAME),
        (("horizon = 40", "horizon = 50"), NOT_THE_SAME),
        (("replicates = 2", "replicates = 3"), NOT_THE_SAME),
        (("horizon = 40", "horizon = 40\ncheckpoints = 10"), NOT_THE_SAME),
        (("horizon = 40", "horizon = 40\noptions = { theta = 0.3 }"), "counterexample is not the environment"),
        (("[agents.uniform]\n", ""), "counterexample has no runs of uniform"),
        (("horizon = 40", "horizon = 40\noverride.lagrangian-published = { horizon = 30 }"),
         "counterexample has 2 runs of 30 rounds of lagrangian-published, and 2 of 40 of uniform"),
        (("horizon = 40", "horizon = 40\noverride.lagrangian-published = { replicates = 1 }"),
         "counterexample has 1 runs of 40 rounds of lagrangian-published, and 2 of 40 of uniform"),
    ],
)  # fmt: skip
def test_runs_of_another_protocol_are_refused(folders, change, message):
    assert change[0] in AGAIN
    with pytest.raises(SystemExit, match=message):
        experiments_of(folders(FIRST, AGAIN.replace(*change)), FILE)


def published_tables():
    """The table of every section of the page of all tables, by "board, title"."""
    text = (STANDINGS.parents[1] / "results" / "leaderboard-tables.md").read_text("utf-8")
    boards = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {
        f"{board}, {section.partition(chr(10))[0]}": section.partition("\n\n")[2].partition("\n\n")[0]
        for board, _, below in boards
        for section in below.split("\n### ")[1:]
    }


def rows_of(table):
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_the_page_of_the_standings_shows_those_of_all_tables():
    found = tables_of(STANDINGS.read_text("utf-8"))
    assert len(found) == 7  # two of each kind of costs, one of known structure
    published = published_tables()
    assert found == {name: published[name] for name in found}


def test_the_readme_shows_some_rows_of_the_same_tables():
    (table,) = tables_of(README.read_text("utf-8")).values()
    shown = {row["agent"]: row for row in rows_of(table)}
    assert {"PSConRL", "uniform"} < set(shown)
    published = published_tables()
    for heading, title, name in README_COLUMNS:
        cells = {row["agent"]: row[name] for row in rows_of(published[f"Costs known, {title}"])}
        assert {agent: row[heading] for agent, row in shown.items()} == {a: cells[a].split(" [")[0] for a in shown}


def test_tables_are_filled_between_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- table: one -->\n<!-- end of table -->\nb\n")
    for _ in range(2):
        fill_tables(page, {"one": "| 1 |", "two": "| 2 |"})
        assert page.read_text() == "a\n<!-- table: one -->\n\n| 1 |\n\n<!-- end of table -->\nb\n"
    assert tables_of(page.read_text()) == {"one": "| 1 |"}
    with pytest.raises(SystemExit, match="has the tables"):
        fill_tables(page, {"two": "| 2 |"})
    page.write_text("none")
    with pytest.raises(SystemExit, match="has the tables"):
        fill_tables(page, {})
