"""From a leaderboard and a sensitivity study to docs: ``python benchmarks/publish_leaderboard.py FOLDER``.

Run ``psconrl reproduce leaderboard`` and ``psconrl reproduce sensitivity`` first; FOLDER is where they wrote
(results/full). This writes small figures and leaderboard-tables.md to docs/results, and prints the standings; the text
around them, docs/leaderboard.md, is written by hand.
"""

import sys
from pathlib import Path
from typing import Any

from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.leaderboard import leaderboards
from psconrl.report.leaderboard_figures import leaderboard_figure, sensitivity_figure
from psconrl.report.leaderboard_tables import markdown_page, standings_table
from psconrl.report.metrics import measures
from psconrl.report.print_table import markdown_table, print_table
from psconrl.report.sensitivity import hyperparameter_table, hyperparameters

OUT = Path(__file__).parents[1] / "docs" / "results"
DPI = 100


def experiments_of(path: Path) -> list[Any]:
    with Store(path) as store:
        return [e for e in read_experiments(store) if e.curves]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/full")
    environments = experiments_of(folder / "leaderboard.db")
    boards = leaderboards(environments)
    settings = {label: agent.setting for label, agent in shipped_spec("leaderboard").agents.items()}
    tried = hyperparameters(experiments_of(folder / "sensitivity.db"))
    for name, figure in (("leaderboard", leaderboard_figure(boards)), ("sensitivity", sensitivity_figure(tried))):
        figure.savefig(OUT / f"{name}.png", dpi=DPI, bbox_inches="tight", pil_kwargs={"optimize": True})
    columns = ["priced", "penalised", "violation", "largest-excess", "strong-violation"]
    parts = ["# Leaderboard: all tables\n", markdown_page(boards, settings), "## All measures\n"]
    parts += [f"### {e.name}\n\n{print_table([e], measures([e], columns), 'markdown')}" for e in environments]
    hyperparameter = hyperparameter_table(tried)
    parts += [
        "## One hyperparameter each\n",
        markdown_table(hyperparameter["header"], hyperparameter["rows"]),
        "",
        hyperparameter["note"],
        "",
    ]
    (OUT / "leaderboard-tables.md").write_text("\n".join(parts), encoding="utf-8")
    for name, board in boards.items():
        table = standings_table(board, settings)
        print(f"\n### {name}\n\n{markdown_table(table['header'], table['rows'])}")


if __name__ == "__main__":
    main()
