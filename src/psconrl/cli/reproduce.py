"""The command ``reproduce``: the paper's experiments, figures and page from scratch, and the leaderboard."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from psconrl.answers.pareto import cost_ranges
from psconrl.base.escaping import quoted
from psconrl.base.extras import need_matplotlib
from psconrl.cli.experiments import (
    executor_option,
    leave_unless_complete,
    print_outcome,
    run_with_progress,
    with_agents,
    workers_option,
    write_page,
)
from psconrl.cli.leaderboard import BOARDS, reproduce_board
from psconrl.cli.render import console, number, numbers_table, show_table
from psconrl.envs.registry import load
from psconrl.errors import ConfigError
from psconrl.experiment.job import Job
from psconrl.experiment.spec import COSTS_SUFFIX, KNOWN, LEARNED, Spec
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import GROUP, Store
from psconrl.markov.hitting_times import diameter
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan_model
from psconrl.report.number_format import format_number

TITLE = "Posterior sampling in average-reward constrained MDPs"
GRIDS = ("marsrover-4x4", "marsrover-8x8", "box")
# The columns of figures 2 and 3: the paper's setting, in which agents learn the costs, then known costs.
COLUMNS_OF_GRIDS = tuple(f"{grid}{COSTS_SUFFIX[costs]}" for costs in (LEARNED, KNOWN) for grid in GRIDS)
# Box with the states alone that can be reached: in tables, not in figures.
REACHABLE = "box-reachable"
GRID_EXPERIMENTS = (*COLUMNS_OF_GRIDS, *(REACHABLE + COSTS_SUFFIX[costs] for costs in (LEARNED, KNOWN)))
# What to draw: the shipped spec and the experiments it needs; None for all.
PARTS: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "figure1": ("paper", ("counterexample",)),
    "figure2": ("paper", GRID_EXPERIMENTS),
    "figure3": ("paper", GRID_EXPERIMENTS),
    "theory": ("theory", None),
}


@click.command("reproduce")
@click.argument("what", type=click.Choice([*PARTS, *BOARDS, "all"]), default="all")
@click.option("--quick", is_flag=True, help="Fewer runs, shorter horizons, fewer agents: two to three minutes.")
@click.option(
    "--agents",
    metavar="A,B",
    help="For figures 2 and 3, leaderboard and practical: names, labels, or your own, "
    "module:Class or file.py:Class; all: the usual ones. [default: all]",
)
@click.option("--out", metavar="FOLDER", help="Folder of all output. [default: results/full or results/quick]")
@click.option(
    "--metric",
    type=click.Choice(["signed", "paper"]),
    default="signed",
    show_default=True,
    help="For figure 2: signed, or the paper's metric, which adds up the excess of each run's moving average.",
)
@workers_option
@executor_option
def reproduce_command(
    what: str, quick: bool, agents: str | None, out: str | None, metric: str, workers: int | None, executor: str
) -> None:
    """Run the paper's experiments with all agents, draw its figures, judge its claims, and write a page.

    Figures 2 and 3 have every environment twice: with costs that agents learn, as in the paper, and with known costs.

    You can stop it at any time; the same command continues. figure2 --agents all,mine.py:MyAgent draws figure 2 with
    your own agent, leaderboard --agents all,mine.py:MyAgent ranks it.

    all: the figures and the theory bench. leaderboard: every agent on every environment, ranked (about 80 minutes
    on two cores; five with --quick). practical: the same on seven environments of 40 to 144 states, with runs of
    100,000 rounds and more (an hour). sensitivity: the effect of every agent's one hyperparameter, from which
    the settings of both were chosen.
    """
    need_matplotlib("reproduce")
    with _folder(out, quick) as folder:
        if what in BOARDS:
            reproduce_board(what, quick, agents, folder, workers, executor)
        else:
            _reproduce_paper(what, quick, agents, folder, metric, workers, executor)


def _reproduce_paper(
    what: str, quick: bool, agents: str | None, folder: Path, metric: str, workers: int | None, executor: str
) -> None:
    """Run the missing jobs of the paper's experiments, print their tables, and write figures and page to the folder."""
    from psconrl.report.claims_table import SHORT_RUNS, claims_table, write_claims
    from psconrl.report.curves import read_experiments

    paper = _with_agents(shipped_spec("paper"), what, agents)
    chosen = list(PARTS) if what == "all" else [what]
    if what != "theory":
        _print_exact_values(paper)
    results = folder / "results.db"
    outcomes = []
    for spec_name in dict.fromkeys(PARTS[part][0] for part in chosen):
        spec = paper if spec_name == "paper" else shipped_spec(spec_name)
        needed = [PARTS[part][1] for part in chosen if PARTS[part][0] == spec_name]
        names = {name for part in needed for name in part or ()}
        jobs = spec.jobs(quick) if None in needed else spec.jobs(quick).of(names)
        outcome = run_with_progress(jobs, results, TITLE, workers, executor)
        print_outcome(outcome, results)
        _note_groups(results, spec_name, jobs)
        if outcome.interrupted:
            leave_unless_complete(outcome)
        outcomes.append(outcome)
    if quick:
        _say_what_is_short(results, dict.fromkeys(PARTS[part][0] for part in chosen))
    if "theory" in chosen:
        _print_bounds(results)
    remark = SHORT_RUNS if quick else ""
    with Store(results) as store:
        claims = claims_table(read_experiments(store), chosen)
    for table in claims:
        _print_decided(table, remark)
    formats = ("png",) if quick and what == "all" else ("png", "svg", "pdf")  # a quick look needs no print formats
    for path in _draw(results, folder, chosen, metric, formats):
        console().print(Text(f"Picture: {path}"))
    console().print(Text(f"Page: {write_page(results, folder / 'report.html')}"))
    for table in claims:
        write_claims(folder / "claims.md", table, remark)
        console().print(Text(f"Claims: {folder / 'claims.md'}"))
    for outcome in outcomes:
        leave_unless_complete(outcome)


@contextmanager
def _folder(out: str | None, quick: bool) -> Iterator[Path]:
    """Make the folder of all output; after an error, remove what is new of it and still empty."""
    folder = Path(out or ("results/quick" if quick else "results/full"))
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out: {quoted(str(folder))} cannot be made ({error.strerror})") from None
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            for path in new:
                path.rmdir()
        raise


def _with_agents(paper: Spec, what: str, agents: str | None) -> Spec:
    """Return the paper's spec with the requested agents in the experiments on grids."""
    if agents is None:
        return paper
    if what not in ("figure2", "figure3", "all"):
        others = "figure2, figure3, leaderboard and practical"
        raise ConfigError(f"--agents: {what} has fixed agents; they can be chosen for {others}")
    changed = with_agents(paper, agents)
    on_grids = {name: changed.experiments[name] for name in (*GRIDS, REACHABLE)}
    experiments = {**paper.experiments, **on_grids}
    return replace(changed, experiments=experiments)


def _note_groups(results: Path, spec: str, jobs: Iterable[Job]) -> None:
    """Store the shipped spec that experiments belong to, for the page to group them."""
    with Store.writer(results) as store:
        store.note({f"{GROUP} {job.experiment}": spec for job in jobs})


def _say_what_is_short(results: Path, specs: Iterable[str]) -> None:
    """Store what the short form leaves out, for the page to show."""
    left_out = [line for name in specs for line in shipped_spec(name).shortened()]
    with Store.writer(results) as store:
        store.note({"shortened": "; ".join(left_out)})


def _draw(results: Path, folder: Path, chosen: list[str], metric: str, formats: Sequence[str]) -> list[Path]:
    from psconrl.report.curves import read_experiments
    from psconrl.report.figure_files import write_figure
    from psconrl.report.paper_figures import figure1, figure2, figure3
    from psconrl.report.policy_figure import policy_figure
    from psconrl.report.theory_figure import theory_figure
    from psconrl.report.theory_growth import is_of_several_lengths
    from psconrl.report.theory_growth_figures import growth_figures

    with Store(results) as store:
        experiments = {e.name: e for e in read_experiments(store) if e.curves}
    grids = [experiments[name] for name in COLUMNS_OF_GRIDS if name in experiments]
    theory = {job.experiment for job in shipped_spec("theory").jobs()}
    figures = {}
    if "figure1" in chosen and "counterexample" in experiments:
        figures["figure1"] = figure1(experiments["counterexample"])
    if "figure2" in chosen and grids:
        figures["figure2" if metric == "signed" else "figure2-paper-metric"] = figure2(grids, metric)
    if "figure3" in chosen and grids:
        figures["figure3"] = figure3(grids)
        for name, cmdp in {e.facts["env"]: e.model for e in grids}.items():
            if cmdp is not None:
                figures[f"map-{name}"] = policy_figure(cmdp, plan_model(cmdp), name)
    if "theory" in chosen:
        bench = [e for name, e in experiments.items() if name in theory]
        figures["theory"] = theory_figure([e for e in bench if not is_of_several_lengths(e)])
        figures |= {f"theory-{name}": figure for name, figure in growth_figures(bench).items()}
    for name, figure in figures.items():
        for suffix in formats:
            write_figure(figure, folder / f"{name}.{suffix}")
    return [folder / f"{name}.png" for name in figures]


def _print_decided(claims: dict[str, Any], remark: str) -> None:
    """Print the claims of a table that were decided."""
    from psconrl.report.claims_table import decided_claims

    shown = decided_claims(claims)
    if shown["rows"]:
        show_table(shown | {"note": f"{shown['note']} {remark}".strip()})
    else:
        console().print(Text(f"All {len(claims['rows'])} claims of the paper are undecided. {remark}".strip()))


def _print_bounds(results: Path) -> None:
    """Print the tables of the theory bench."""
    from psconrl.report.curves import read_experiments
    from psconrl.report.page_tables import bounds_table
    from psconrl.report.theory_growth import growth_tables

    with Store(results) as store:
        experiments = read_experiments(store)
    for found in (*bounds_table(experiments), *growth_tables(experiments)):
        show_table(found)


def _print_exact_values(paper: Spec) -> None:
    """Print the exact solutions of the environments, with proof: a column for each, to fit narrow terminals."""
    names = (*GRIDS, REACHABLE)
    columns = [_exact_values(load(paper.experiments[name].env, **paper.experiments[name].options)) for name in names]
    table = numbers_table("exact solutions", *names)
    for quantity in columns[0]:
        table.add_row(quantity, *(column[quantity] for column in columns))
    console().print(table)


def _exact_values(cmdp: CMDP) -> dict[str, str]:
    """Return what is known exactly of an environment, as texts."""
    best, low = plan_model(cmdp), cost_ranges(cmdp)[:, 0]
    return {
        "states": str(cmdp.n_states),
        "diameter": number(diameter(cmdp)),
        "threshold": number(float(cmdp.thresholds[0])),
        "optimum": number(best.value),
        "optimum without constraint": number(low[0]),
        "optimum at the least threshold": number(plan_model(cmdp.with_thresholds([low[1]])).value),
        "shadow price": number(float(best.multipliers[0])),
        "gap": format_number(abs(best.gap), 1),
        "proof": "holds" if best.certificate.holds else "FAILS",
    }
