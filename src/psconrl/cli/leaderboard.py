"""``psconrl reproduce leaderboard``, ``practical`` and ``sensitivity``: agents ranked, and their hyperparameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from psconrl.base.files import write_atomically
from psconrl.cli.experiments import leave_unless_complete, print_outcome, run_with_progress, with_agents, write_page
from psconrl.cli.render import console, show_table
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE
from psconrl.experiment.spec import Spec
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store

if TYPE_CHECKING:
    from psconrl.report.leaderboard import Board

RANKED = ("leaderboard", "practical")
BOARDS = (*RANKED, "sensitivity")


def reproduce_board(
    what: str, quick: bool, agents: str | None, folder: Path, workers: int | None, executor: str
) -> None:
    """Run the missing jobs of a board's spec, print its tables, and write tables, figures and page to the folder."""
    spec = shipped_spec(what)
    if agents is not None:
        if what not in RANKED:
            raise ConfigError(f"--agents: {what} has fixed agents; they can be chosen for {' and '.join(RANKED)}")
        named = [name.strip() for name in agents.split(",")]
        spec = with_agents(spec, agents if REFERENCE in named else f"{agents},{REFERENCE}")
    results = folder / f"{what}.db"
    outcome = run_with_progress(spec.jobs(quick), results, spec.name, workers, executor)
    print_outcome(outcome, results)
    if outcome.interrupted:
        leave_unless_complete(outcome)
    written = _ranking(what, results, folder, spec) if what in RANKED else _sensitivity(results, folder)
    for path in (*written, write_page(results, folder / f"{what}.html")):
        console().print(Text(f"{'Picture' if path.suffix == '.png' else 'Page'}: {path}"))
    leave_unless_complete(outcome)


def show_boards(boards: Mapping[str, "Board"], settings: Mapping[str, str]) -> None:
    """Print the overall tables of every board; ``settings``: by label, how options were chosen."""
    from psconrl.report.leaderboard_tables import overall_tables

    for name, board in boards.items():
        first, *others = overall_tables(board, settings)
        show_table(first | {"title": name})
        for table in others:
            show_table(table | {"title": f"{name}: {table['title'].lower()}"})


def _ranking(what: str, results: Path, folder: Path, spec: Spec) -> list[Path]:
    from psconrl.report.leaderboard import leaderboards
    from psconrl.report.leaderboard_figures import leaderboard_figure
    from psconrl.report.leaderboard_tables import markdown_page

    boards = leaderboards(_experiments(results), groups=spec.groups)
    settings = {label: agent.setting for label, agent in spec.agents.items()}
    show_boards(boards, settings)
    text = markdown_page(boards, settings)
    tables = folder / f"{what}.md"
    write_atomically(tables, lambda f: f.write(text.encode()), ConfigError)
    return [*_pictures(leaderboard_figure(boards), folder / what), tables]


def _sensitivity(results: Path, folder: Path) -> list[Path]:
    from psconrl.report.leaderboard_figures import sensitivity_figure
    from psconrl.report.sensitivity import hyperparameter_table, hyperparameters

    found = hyperparameters(_experiments(results))
    show_table(hyperparameter_table(found))
    return _pictures(sensitivity_figure(found), folder / "sensitivity")


def _experiments(results: Path) -> list[Any]:
    from psconrl.report.curves import read_experiments

    with Store(results) as store:
        return [e for e in read_experiments(store) if e.curves]


def _pictures(figure: Any, path: Path) -> list[Path]:
    from psconrl.report.figure_files import write_figure

    for suffix in (".pdf", ".svg", ".png"):
        write_figure(figure, path.with_suffix(suffix))
    return [path.with_suffix(".png")]
