"""The commands ``board submit``, ``board check`` and ``board page``: submissions to the leaderboard."""

import random
import sys
import tempfile
from pathlib import Path

import click
from rich.text import Text

from psconrl.base.escaping import quoted
from psconrl.cli.exit_codes import REFUSED
from psconrl.cli.experiments import leave_unless_complete, print_outcome, run_with_progress, workers_option
from psconrl.cli.leaderboard import show_boards
from psconrl.cli.options import output_path, words
from psconrl.cli.render import console, show_table
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import Entry, Plays, board_groups, board_plays, find_entry, tuning_plays
from psconrl.experiment.sent_code import placed
from psconrl.experiment.store import Store
from psconrl.report.board_check import Repetition, entry_of, faults, is_same_protocol, repeated_jobs
from psconrl.report.board_page import board_contents, submissions_by_title, submissions_in, write_board
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.leaderboard import leaderboards
from psconrl.report.leaderboard_tables import entry_table, positions_of
from psconrl.report.quick_board import QUICK_BOARD, read_quick_board, with_built_in
from psconrl.report.sensitivity import Hyperparameter, hyperparameter_table, hyperparameters
from psconrl.report.submission import Submission, merged_experiments, submission
from psconrl.report.submission_file import files_of_agent, read_submission, write_submission

SEEDS = 2**31


@click.group("board")
def board_command() -> None:
    """Submit an agent to the leaderboard as one file, check such a file, or write the page of several."""


@board_command.command("submit")
@click.argument("agent", metavar="FILE[:CLASS]")
@click.option(
    "--grid", metavar="OPTION=V1,V2,...", help="Choose an option on the development environments; 2-8 values."
)
@click.option("--quick", is_flag=True, help="Fewer and shorter runs, compared at once; they do not count.")
@click.option("--out", metavar="FILE.json", help="The submission to write. [default: the name of FILE]")
@click.option(
    "--results",
    metavar="FILE.db",
    help="Where runs are found and kept, such as the leaderboard's results. [default: beside --out]",
)
@workers_option
def submit_command(
    agent: str, grid: str | None, quick: bool, out: str | None, results: str | None, workers: int | None
) -> None:
    """Run the leaderboard's protocol with the agent in FILE, and write one file with all results.

    FILE is a Python file with one agent; CLASS says which, if there are several. An agent of the leaderboard is given
    by its name. Environments, seeds and horizons are fixed. With --quick, the standings among the built-in agents are
    printed, whose short runs are part of psconrl. With --grid, the value with the least mean loss on the
    development environments is used. Runs are kept in a results file: if the command is stopped, the same command
    continues.
    """
    entry = find_entry(agent)
    target = output_path("--out", out or f"{entry.name.partition(':')[0]}.json", (".json",))
    assert target is not None
    kept = output_path("--results", results or str(target.with_suffix(".db")), (".db",))
    assert kept is not None
    files = files_of_agent(entry.name)
    tuned = None
    if grid is not None:
        option, values = _grid(grid)
        tuned = _tuned(entry, option, values, quick, kept, workers)
        show_table(hyperparameter_table([tuned]))
        entry = entry.with_option(option, tuned.values[tuned.best])
    plays = board_plays(entry, quick)
    experiments = _run(plays, kept, workers)
    found = submission(entry, plays, quick, experiments, tuned, files)
    write_submission(found, target)
    show_table(entry_table(entry.label, leaderboards(experiments, groups=board_groups())))
    if quick:
        _show_standings(found)
    console().print(Text(f"Submission: {target}"))


@board_command.command("check")
@click.argument("path", metavar="[FILE.json|FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="Share of runs to repeat.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of their choice. [default: another at every call]")
@click.option("--run-code", is_flag=True, help="Execute the code stored in the submissions.")
@workers_option
def check_command(path: Path | None, share: float, seed: int | None, run_code: bool, workers: int | None) -> None:
    """Repeat a random share of the runs of a submission, or of all those in a folder, and compare all numbers.

    Without a path, the quick submissions of the built-in agents, which are part of psconrl, are checked. Exit code 0 if
    all runs are the same to the last bit, 1 if not. This executes the code stored in a submission, with your
    rights: read it first, then pass --run-code.
    """
    if path is None:
        submitted = [(QUICK_BOARD, found) for found in read_quick_board().values()]
    else:
        submitted = [(file, read_submission(file)) for file in submissions_in(path)]
    for file, found in submitted:
        if found.files and not run_code:
            raise ConfigError(
                f"{file}: a check executes the code stored in it ({', '.join(found.files)}) with your rights; read it, "
                "and pass --run-code if you trust it"
            )
    seed = random.SystemRandom().randrange(SEEDS) if seed is None else seed
    good = [_check(file, found, share, seed, workers) for file, found in submitted]
    if not all(good):
        sys.exit(REFUSED)


@board_command.command("page")
@click.argument("path", metavar="FILE.json|FOLDER", type=click.Path(path_type=Path))
@click.option("-o", "--out", default="board.html", show_default=True, metavar="FILE", help="The page to write.")
def page_command(path: Path, out: str) -> None:
    """Write one self-contained page from a submission, or from all of a folder: sortable standings, filters.

    Quick submissions are compared with those of the built-in agents, which are part of psconrl.
    """
    target = output_path("--out", out, (".html", ".htm"))
    assert target is not None
    contents = board_contents(submissions_by_title(path))
    write_board(contents, target)
    if contents["remark"]:
        console().print(Text(contents["remark"]))
    console().print(Text(f"Page: {target}"))


def _show_standings(found: Submission) -> None:
    """Print the standings of a quick submission among those of the built-in agents, or why there are none."""
    compared = with_built_in({f"{found.title} (yours)": found})
    if compared.own:
        settings = {label: each.setting for label, each in compared.submissions.items()}
        boards = leaderboards(merged_experiments(compared.submissions), groups=board_groups())
        show_boards(boards, settings)
        for line in positions_of(compared.own[0], boards):
            console().print(Text(line))
    console().print(Text(compared.remark))


def _check(file: Path, found: Submission, share: float, seed: int, workers: int | None) -> bool:
    """Repeat some runs of a submission, print what differs, and return whether nothing does."""
    code = {path: text.encode() for path, text in found.files.items()}
    with placed(code), tempfile.TemporaryDirectory(prefix="psconrl-check-") as folder:
        entry = entry_of(found)
        plays = board_plays(entry, found.protocol["quick"])
        if not is_same_protocol(found, plays):
            raise ConfigError(f"{file}: its environments, seeds or horizons are not those of this version of psconrl")
        jobs = repeated_jobs(plays, entry.label, share, seed)
        experiments = _run(Plays(jobs, {}), Path(folder, "again.db"), workers, quiet=True)
        lines = faults(found, Repetition(entry.label, plays, experiments))
    for line in lines:
        console().print(Text(line))
    runs = "quick runs" if found.protocol["quick"] else "runs"
    verdict = "REFUSED" if lines else "The same to the last bit"
    repeated = sum(job.label == entry.label for job in jobs)
    every = sum(len(runs) for runs in found.runs.values())
    how = f"--share {share:g} --seed {seed}"
    console().print(Text(f"{verdict}: {repeated} of {every} {runs} of {found.title} repeated ({how})"))
    return not lines


def _grid(grid: str) -> tuple[str, list[float]]:
    ((option, values),) = words("--grid", (grid,)).items()
    numbers = values if isinstance(values, list) else [values]
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers):
        raise ConfigError(f"--grid: the values of {option} must be numbers; got {quoted(grid)}")
    return option, numbers


def _tuned(
    entry: Entry, option: str, values: list[float], quick: bool, results: Path, workers: int | None
) -> Hyperparameter:
    """Run the development environments, and return the mean loss at every value."""
    (found,) = hyperparameters(_run(tuning_plays(entry, option, values, quick), results, workers))
    return found


def _run(plays: Plays, results: Path, workers: int | None, quiet: bool = False) -> list[Experiment]:
    """Run what is missing, and return the experiments; leave unless all runs are done."""
    for name, reason in plays.left_out.items():
        console().print(Text(f"Left out: {name} ({reason})"))
    outcome = run_with_progress(plays.jobs, results, plays.jobs.title, workers, "processes")
    if not quiet or outcome.failed or outcome.interrupted:
        print_outcome(outcome, results)
    if outcome.failed:
        console().print(Text("No submission is written, since it needs all runs."))
    leave_unless_complete(outcome)
    names = {job.experiment for job in plays.jobs}
    with Store(results) as store:
        return [experiment for experiment in read_experiments(store) if experiment.name in names]
