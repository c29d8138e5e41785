"""From submissions and a sensitivity study to docs: ``python benchmarks/publish_leaderboard.py FOLDER``.

Run ``psconrl reproduce leaderboard`` and ``psconrl reproduce sensitivity`` first; FOLDER is where they wrote
(results/full). With ``--submit`` this writes the submission of every agent, docs/submissions/AGENT.json, from the runs
in FOLDER. The board itself is built from these files; only agents that know the structure are taken from FOLDER. It
writes small figures and leaderboard-tables.md to docs/results, and prints the standings; the text around them,
docs/leaderboard.md, is written by hand.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from psconrl.experiment.board_protocol import REFERENCE, board_plays, find_entry
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import titles_of
from psconrl.report.board_page import PRICE_FACTORS, ranking_changes, read_folder
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.leaderboard import STRUCTURE_SUFFIX, leaderboards
from psconrl.report.leaderboard_figures import leaderboard_figure, sensitivity_figure
from psconrl.report.leaderboard_tables import markdown_page, standings_table
from psconrl.report.metrics import measures
from psconrl.report.print_table import markdown_table, print_table
from psconrl.report.sensitivity import hyperparameter_table, hyperparameters
from psconrl.report.submission import merged_experiments, submission
from psconrl.report.submission_file import write_submission

DOCS = Path(__file__).parents[1] / "docs"
OUT, SUBMISSIONS = DOCS / "results", DOCS / "submissions"
DPI = 100


def experiments_of(path: Path) -> list[Experiment]:
    with Store(path) as store:
        return [e for e in read_experiments(store) if e.curves]


def submit(experiments: Sequence[Experiment]) -> None:
    """Write the submissions of all agents that have runs; those of other agents stay."""
    SUBMISSIONS.mkdir(exist_ok=True)
    for label, agent in shipped_spec("leaderboard").agents.items():
        if label == REFERENCE or agent.knowledge.structure or not any(label in e.curves for e in experiments):
            continue
        entry = find_entry(label)
        plays = board_plays(entry, quick=False)
        names = {job.experiment for job in plays.jobs}
        own = [e for e in experiments if e.name in names]
        write_submission(submission(entry, plays, False, own, None, {}), SUBMISSIONS / f"{label}.json")


def board_of_docs() -> list[Experiment]:
    """Return the environments with the runs of all submissions in docs."""
    found = merged_experiments({each.name: each for each in read_folder(SUBMISSIONS).values()})
    titles = titles_of({label for e in found for label in e.curves})
    return [replace(e, curves={x: replace(c, title=titles[x]) for x, c in e.curves.items()}) for e in found]


def at_end(experiment: Experiment) -> Experiment:
    """Return an experiment with the last checkpoint alone; submissions have no strong violations of earlier ones."""
    tables = ("cumulative", "strong", "largest_excess")
    curves = {
        label: replace(each, rounds=each.rounds[-1:], **{name: getattr(each, name)[:, -1:] for name in tables})
        for label, each in experiment.curves.items()
    }
    return replace(experiment, curves=curves)


def main() -> None:
    parser = argparse.ArgumentParser(description="From submissions and a sensitivity study to docs.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/full"))
    parser.add_argument("--submit", action="store_true", help="first write the submissions from the runs in FOLDER")
    arguments = parser.parse_args()
    stored = experiments_of(arguments.folder / "leaderboard.db")
    if arguments.submit:
        submit(stored)
    submitted = board_of_docs()
    environments = [*submitted, *(e for e in stored if e.name.endswith(STRUCTURE_SUFFIX))]
    boards = leaderboards(environments)
    settings = {label: agent.setting for label, agent in shipped_spec("leaderboard").agents.items()}
    tried = hyperparameters(experiments_of(arguments.folder / "sensitivity.db"))
    for name, figure in (("leaderboard", leaderboard_figure(boards)), ("sensitivity", sensitivity_figure(tried))):
        figure.savefig(OUT / f"{name}.png", dpi=DPI, bbox_inches="tight", pil_kwargs={"optimize": True})
    columns = ["priced", "penalised", "violation", "largest-excess", "strong-violation"]
    parts = ["# Leaderboard: all tables\n", markdown_page(boards, settings), "## All measures\n"]
    for e in map(at_end, environments):
        parts.append(f"### {e.name}\n\n{print_table([e], measures([e], columns), 'markdown')}")
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
    at_factors = {factor: leaderboards(environments, factor) for factor in PRICE_FACTORS}
    print("\n".join(ranking_changes(at_factors)))


if __name__ == "__main__":
    main()
