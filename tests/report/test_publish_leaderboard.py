"""Runs of several folders are put on one board only if they are of one protocol."""

import sys
from pathlib import Path

import pytest

from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from publish_leaderboard import experiments_of

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
