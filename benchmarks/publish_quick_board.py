"""The quick submissions that the package ships: ``python benchmarks/publish_quick_board.py`` (``make quick-board``).

Runs the short protocol of the leaderboard with all of its agents but those that know the structure, and writes their
submissions to src/psconrl/report/quick_board.json.gz. Runs are kept in results/quick/leaderboard.db: those of ``psconrl
reproduce leaderboard --quick``, which leaves out slow agents on five groups of environments, are used, and a command
that was stopped continues. With ``--agents`` the file has some of the agents alone, for development.
"""

import argparse
from pathlib import Path

from psconrl.cli.experiments import leave_unless_complete, print_outcome, run_with_progress
from psconrl.experiment.board_protocol import REFERENCE, board_plays, find_entry
from psconrl.experiment.spec import Jobs
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.quick_board import QUICK_BOARD, write_quick_board
from psconrl.report.submission import submission

RESULTS = Path("results/quick/leaderboard.db")


def labels_of_board() -> list[str]:
    """Return the labels of all agents that are on the board by submissions."""
    agents = shipped_spec("leaderboard").agents
    return [label for label, agent in agents.items() if label != REFERENCE and not agent.knowledge.structure]


def main() -> None:
    parser = argparse.ArgumentParser(description="The quick submissions that the package ships.")
    parser.add_argument("--agents", metavar="A,B", help="some agents alone, for development")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"where runs are kept [default: {RESULTS}]")
    parser.add_argument("--out", type=Path, default=QUICK_BOARD, help="the file to write")
    parser.add_argument("--workers", type=int, help="processes")
    arguments = parser.parse_args()
    labels = arguments.agents.split(",") if arguments.agents else labels_of_board()
    entries = [find_entry(label) for label in labels]
    plays = {entry.label: board_plays(entry, quick=True) for entry in entries}
    jobs = {(job.experiment, job.label, job.replicate): job for each in plays.values() for job in each.jobs}
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    title = next(iter(plays.values())).jobs.title
    outcome = run_with_progress(
        Jobs(title, list(jobs.values())), arguments.results, title, arguments.workers, "processes"
    )
    print_outcome(outcome, arguments.results)
    leave_unless_complete(outcome)
    names = {job.experiment for job in jobs.values()}
    with Store(arguments.results) as store:
        experiments = [e for e in read_experiments(store) if e.name in names]
    found = [submission(entry, plays[entry.label], True, experiments, None, {}) for entry in entries]
    write_quick_board(found, arguments.out)
    print(f"{arguments.out}: {len(found)} agents, {arguments.out.stat().st_size / 1000:,.0f} kB")


if __name__ == "__main__":
    main()
