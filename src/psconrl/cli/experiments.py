"""The commands ``sweep``, ``report`` and ``export``."""

import sys
import time
from contextlib import nullcontext
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from psconrl.base.escaping import quoted
from psconrl.cli.exit_codes import INTERRUPTED, REFUSED
from psconrl.cli.render import console
from psconrl.cli.signals import end_politely
from psconrl.cli.unfinished import print_unfinished
from psconrl.errors import ConfigError
from psconrl.experiment.executors import MOST_WORKERS
from psconrl.experiment.job import Job
from psconrl.experiment.runner import SweepOutcome, run_sweep
from psconrl.experiment.spec import Spec
from psconrl.experiment.spec_file import read_spec, shipped_spec
from psconrl.experiment.store import Store
from psconrl.experiment.trajectories import export_trajectories
from psconrl.simulation.interrupt import Interrupted

SHIPPED = ("paper", "theory", "leaderboard", "practical", "sensitivity")
# Interval of the progress messages of a sweep without a terminal.
REPORT_SECONDS = 30.0

workers_option = click.option(
    "--workers", type=click.IntRange(1, MOST_WORKERS), help="Number of processes. [default: one per core]"
)
executor_option = click.option(
    "--executor", default="processes", show_default=True, help="processes, or dask://HOST:PORT for a Dask cluster."
)


@click.command("sweep")
@click.argument("spec")
@click.option(
    "--out", required=True, metavar="FILE", help="Results file (SQLite). If it exists, only missing runs are made."
)
@click.option("--quick", is_flag=True, help="The spec's short form.")
@workers_option
@executor_option
def sweep_command(spec: str, out: str, quick: bool, workers: int | None, executor: str) -> None:
    """Run all experiments of SPEC: a .toml file, paper, theory, leaderboard, practical or sensitivity.

    Ctrl-C, a crash or a power cut loses at most the runs in progress: the same command continues.
    """
    chosen = shipped_spec(spec) if spec in SHIPPED and not Path(spec).exists() else read_spec(spec)
    outcome = run_with_progress(chosen.jobs(quick), out, chosen.name, workers, executor)
    print_outcome(outcome, out)
    leave_unless_complete(outcome)


@click.command("report")
@click.argument("results")
@click.option("-o", "--out", default="report.html", show_default=True, metavar="FILE", help="The page to write.")
def report_command(results: str, out: str) -> None:
    """Write one self-contained page from RESULTS: interactive curves, tables, maps, provenance. It works offline."""
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--out: {quoted(out)} must end in .html")
    console().print(Text(f"Page: {write_page(results, Path(out))}"))


def write_page(results: str | Path, page: Path) -> Path:
    """Write the page of a results file, and return its path."""
    from psconrl.report.page import write_report
    from psconrl.report.page_contents import build

    with Store(results) as store:
        write_report(build(store), page)
    return page


@click.command("export")
@click.argument("results")
@click.option("--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
@click.option("-o", "--out", metavar="FOLDER", help="The folder to write to. [default: RESULTS-tables]")
@click.option("--stale", is_flag=True, help="Also the runs that newer code or settings have replaced: current is 0.")
@click.option("--trajectories", is_flag=True, help="Also the rounds of runs with trajectories = true, as .csv.")
def export_command(results: str, form: str, out: str | None, stale: bool, trajectories: bool) -> None:
    """Write the runs, checkpoints and probes of RESULTS as flat tables for other programs.

    A run has its settings and hyperparameters, thresholds and shadow prices, final values of all metrics, versions and
    processor.
    """
    from psconrl.report.export import export_tables
    from psconrl.report.unfinished import unfinished_experiments

    with Store(results) as store:
        folder = Path(out or f"{results}-tables")
        files = export_tables(store, folder, form, stale)
        files += export_trajectories(store, folder) if trajectories else []
        print_unfinished(unfinished_experiments(store))
    for path in files:
        console().print(Text(f"Table: {path}"))


def with_agents(spec: Spec, agents: str) -> Spec:
    """Return the spec with the agents of an option ``--agents A,B``."""
    names = [name.strip() for name in agents.split(",") if name.strip()]
    if not names:
        raise ConfigError("--agents: at least one agent must be named")
    try:
        return spec.with_agents(names)
    except ConfigError as error:
        raise ConfigError(f"--agents: {error}") from None


def run_with_progress(jobs: list[Job], out: str | Path, title: str, workers: int | None, executor: str) -> SweepOutcome:
    """Run a sweep with a live progress line: runs done, rate, time left, failures."""
    screen = console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    began = time.monotonic()
    quiet_until = [began + REPORT_SECONDS]
    bar = Progress(*columns, console=screen, transient=True)
    with bar if screen.is_terminal else nullcontext():
        task = bar.add_task("runs", total=len(jobs), note="")

        def show(outcome: SweepOutcome) -> None:
            fresh = outcome.done + outcome.failed
            rate = fresh / max(time.monotonic() - began, 1e-9)
            early = fresh < max(5, 0.1 * outcome.total)  # the long runs come first, so early rates mislead
            note = "" if early else f"{rate:.2g} runs/s, {_duration(outcome.left / rate)} left"
            if outcome.failed:
                note += f" {outcome.failed} failed"
            if not screen.is_terminal and time.monotonic() > quiet_until[0]:
                quiet_until[0] = time.monotonic() + REPORT_SECONDS
                click.echo(f"{outcome.total - outcome.left} of {outcome.total} runs{note and ', '}{note}", err=True)
            bar.update(task, completed=outcome.total - outcome.left, total=outcome.total, note=note)

        end_politely()
        try:
            return run_sweep(jobs, out, executor=executor, workers=workers, progress=show, title=title)
        except Interrupted as stopped:
            outcome: SweepOutcome = stopped.outcome
            return outcome


def print_outcome(outcome: SweepOutcome, path: str | Path) -> None:
    """Print what was done in one line, the runs that failed, and, on standard error, advice on runs."""
    out = console()
    known = f", {outcome.known} were there" if outcome.known else ""
    out.print(Text(f"{outcome.done} runs done in {outcome.seconds:.1f} s{known}, {outcome.failed} failed: {path}"))
    if outcome.mended:
        out.print(Text(f"Changed in the file since it was written, and made again or removed: {outcome.mended}."))
    if outcome.hidden:
        out.print(Text(f"{outcome.hidden} runs of other settings or code stay in the file, but reports omit them."))
    for line in outcome.errors[:10]:
        out.print(Text(f"  failed: {line}"))
    for line, runs in outcome.advice.items():
        agents = ", ".join(f"{number} of {label}" for label, number in runs.items())
        advised = Text(f"Advice on {runs.total()} runs ({agents}): {line}.", style="yellow")
        console(stderr=True).print(advised, soft_wrap=True)
    if outcome.interrupted:
        out.print(Text(f"Interrupted with {outcome.left} runs to go; the same command continues from here."))


def leave_unless_complete(outcome: SweepOutcome) -> None:
    """Exit with code 130 if the sweep was interrupted, or 1 if some runs failed."""
    if outcome.interrupted:
        sys.exit(INTERRUPTED)
    if outcome.failed:
        sys.exit(REFUSED)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
