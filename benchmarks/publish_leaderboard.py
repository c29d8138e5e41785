"""From submissions and a sensitivity study to docs: ``python benchmarks/publish_leaderboard.py FOLDER...``.

Run ``psconrl reproduce leaderboard`` and ``psconrl reproduce sensitivity`` first; FOLDER is where they wrote
(results/full). There may be several, such as one with agents that were run again: of an agent in an environment, the
runs in the last folder that has any count. With ``--submit`` this writes the submission of every agent,
docs/submissions/AGENT.json, from the runs in the folders. The board itself is built from these files; only agents that
know the structure are taken from the folders. It writes small figures and leaderboard-tables.md to docs/results, and
the standings to docs/leaderboard/standings.md and README.md, between the marks of ``marked_tables``. What other
rankings there would be at other charges is printed. The text around the tables is written by hand.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from marked_tables import fill_tables
from psconrl.experiment.board_protocol import REFERENCE, board_groups, board_plays, find_entry
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import titles_of
from psconrl.report.board_page import CHARGES, ranking_changes, submissions_by_title
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.leaderboard import STRUCTURE_SUFFIX, Board, leaderboards
from psconrl.report.leaderboard_figures import leaderboard_figure, sensitivity_figure
from psconrl.report.leaderboard_tables import markdown_page, overall_tables
from psconrl.report.metrics import measures
from psconrl.report.print_table import markdown_table, print_table
from psconrl.report.sensitivity import Hyperparameter, hyperparameter_table, hyperparameters
from psconrl.report.submission import FACTS, SAME_BOARD, agree, merged_experiments, submission
from psconrl.report.submission_file import write_submission

DOCS = Path(__file__).parents[1] / "docs"
OUT, SUBMISSIONS = DOCS / "results", DOCS / "submissions"
TABLES, STUDY = OUT / "leaderboard-tables.md", "## One hyperparameter each"
STANDINGS, README = DOCS / "leaderboard" / "standings.md", DOCS.parent / "README.md"
DPI = 100
# The rows of the README, and its columns: a heading, and the table and the column from which it is.
README_AGENTS = ("psconrl", "lagrangian-theorem", "lagrangian", "ucrl-cmdp", "psconrl-paper", REFERENCE)
README_COLUMNS = (
    ("agent", "Standings", "agent"),
    ("setting", "Standings", "setting"),
    ("mean rank", "Standings", "rank"),
    ("loss, %", "Standings", "loss"),
    ("90th percentile", "Standings", "90%"),
    ("worst run", "Standings", "worst run"),
    ("overspent, %", "Standings", "overspent"),
    ("strong violation, %", "Standings", "strong"),
    ("mean rank, not seen", "By part", "rank, not seen"),
    ("loss, not seen, %", "By part", "loss, not seen"),
    ("seconds per run", "Standings", "s"),
)


def experiments_of(folders: Sequence[Path], file: str) -> list[Experiment]:
    """Return the experiments of the results files in the folders, each with the agents of all."""
    found: dict[str, Experiment] = {}
    for path in (folder / file for folder in folders if (folder / file).exists()):
        with Store(path) as store:
            for e in read_experiments(store):
                if not e.curves:
                    continue
                need_complete(path, e)
                earlier = found.get(e.name)
                if earlier is not None:
                    need_same_runs(path, earlier, e)
                found[e.name] = e if earlier is None else replace(e, curves={**earlier.curves, **e.curves})
    if not found:
        raise SystemExit(f"no runs in {file} of {', '.join(map(str, folders))}")
    return list(found.values())


def sensitivity_study(folders: Sequence[Path]) -> list[Hyperparameter]:
    """Return the study of hyperparameters in the folders; nothing if they have none, and that of the docs stays."""
    file = "sensitivity.db"
    return hyperparameters(experiments_of(folders, file)) if any((each / file).exists() for each in folders) else []


def need_complete(path: Path, e: Experiment) -> None:
    """Exit unless all agents of an experiment have the runs of uniform play, and as many rounds."""
    reference = e.curves.get(REFERENCE)
    if reference is None:
        raise SystemExit(f"{path}: {e.name} has no runs of {REFERENCE}, by which it is compared with others")
    for label, each in e.curves.items():
        if each.rounds[-1] != reference.rounds[-1] or not np.array_equal(each.replicates, reference.replicates):
            raise SystemExit(
                f"{path}: {e.name} has {each.runs} runs of {each.rounds[-1]:,} rounds of {label}, and {reference.runs} "
                f"of {reference.rounds[-1]:,} of {REFERENCE}"
            )


def need_same_runs(path: Path, earlier: Experiment, e: Experiment) -> None:
    """Exit unless an experiment is the one of an earlier folder: the environment, and all runs of uniform play."""
    if not all(agree(earlier.facts.get(key), e.facts.get(key)) for key in FACTS):
        raise SystemExit(f"{path}: {e.name} is not the environment that it is in an earlier folder")
    one, two = earlier.curves[REFERENCE], e.curves[REFERENCE]
    same = np.array_equal(one.rounds, two.rounds) and np.array_equal(one.replicates, two.replicates)
    if not same or not np.allclose(one.cumulative, two.cumulative, rtol=SAME_BOARD, atol=SAME_BOARD):
        raise SystemExit(
            f"{path}: the runs of {REFERENCE} in {e.name} are not those of an earlier folder: the horizon, the "
            "checkpoints, the seed or the number of runs differs"
        )


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
    found = merged_experiments({each.name: each for each in submissions_by_title(SUBMISSIONS).values()})
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


def readme_table(board: Board, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of the README from those of a board, by title: some agents, and no intervals."""
    rows = []
    for number, standing in enumerate(board.standings):
        if standing.label in README_AGENTS:
            cells = [
                tables[title]["rows"][number][tables[title]["header"].index(name)] for _, title, name in README_COLUMNS
            ]
            rows.append([re.sub(r" \[.*", "", str(cell)) for cell in cells])
    return markdown_table([heading for heading, _, _ in README_COLUMNS], rows)


def fill_pages(boards: Mapping[str, Board], settings: Mapping[str, str]) -> None:
    """Write the standings to the page that has all of them, and some to the README."""
    tables = {name: {t["title"]: t for t in overall_tables(board, settings)} for name, board in boards.items()}
    fill_tables(
        STANDINGS,
        {
            f"{name}, {title}": markdown_table(table["header"], table["rows"])
            for name, own in tables.items()
            for title, table in own.items()
        },
    )
    known = next(iter(boards))
    fill_tables(README, {f"{known}, in short": readme_table(boards[known], tables[known])})


def main() -> None:
    parser = argparse.ArgumentParser(description="From submissions and a sensitivity study to docs.")
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="*", default=[Path("results/full")])
    parser.add_argument("--submit", action="store_true", help="first write the submissions from the runs in FOLDER")
    arguments = parser.parse_args()
    stored = experiments_of(arguments.folders, "leaderboard.db")
    if arguments.submit:
        submit(stored)
    submitted = board_of_docs()
    environments = [*submitted, *(e for e in stored if e.name.endswith(STRUCTURE_SUFFIX))]
    boards = leaderboards(environments, groups=board_groups())
    settings = {label: agent.setting for label, agent in shipped_spec("leaderboard").agents.items()}
    figures = {"leaderboard": leaderboard_figure(boards)}
    if study := sensitivity_study(arguments.folders):
        figures["sensitivity"] = sensitivity_figure(study)
    for name, figure in figures.items():
        figure.savefig(OUT / f"{name}.png", dpi=DPI, bbox_inches="tight", pil_kwargs={"optimize": True})
    columns = ["score", "priced", "violation", "largest-excess", "strong-violation"]
    parts = ["# Leaderboard: all tables\n", markdown_page(boards, settings), "## All measures\n"]
    for e in map(at_end, environments):
        parts.append(f"### {e.name}\n\n{print_table([e], measures([e], columns), 'markdown')}")
    if study:
        table = hyperparameter_table(study)
        parts += [STUDY, "", markdown_table(table["header"], table["rows"]), "", table["note"], ""]
    else:
        parts.append(STUDY + TABLES.read_text(encoding="utf-8").split(STUDY)[1])
    TABLES.write_text("\n".join(parts), encoding="utf-8")
    fill_pages(boards, settings)
    print("\n".join(ranking_changes({charge: leaderboards(environments, charge) for charge in CHARGES})))


if __name__ == "__main__":
    main()
