"""From submissions and a sensitivity study to docs: ``python benchmarks/publish_leaderboard.py FOLDER...``.

Run ``psconrl reproduce leaderboard`` and ``psconrl reproduce sensitivity`` first; FOLDER is where they wrote
(results/full). There may be several, such as one with agents that were run again: of an agent in an environment, the
runs in the last folder that has any count. With ``--submit`` this writes the submission of every agent,
docs/submissions/AGENT.json, from the runs in the folders. The board itself is built from these files; only agents that
know the structure are taken from the folders. It writes small figures and leaderboard-tables.md to docs/results, and
prints the standings; the text around them, docs/leaderboard.md, is written by hand.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from psconrl.experiment.board_protocol import REFERENCE, board_groups, board_plays, find_entry
from psconrl.experiment.spec_file import shipped_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import titles_of
from psconrl.report.board_page import PRICE_FACTORS, ranking_changes, read_folder
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.leaderboard import STRUCTURE_SUFFIX, leaderboards
from psconrl.report.leaderboard_figures import leaderboard_figure, sensitivity_figure
from psconrl.report.leaderboard_tables import markdown_page, overall_tables
from psconrl.report.metrics import measures
from psconrl.report.print_table import markdown_table, print_table
from psconrl.report.sensitivity import hyperparameter_table, hyperparameters
from psconrl.report.submission import FACTS, merged_experiments, submission
from psconrl.report.submission_file import write_submission

DOCS = Path(__file__).parents[1] / "docs"
OUT, SUBMISSIONS = DOCS / "results", DOCS / "submissions"
DPI = 100


def experiments_of(folders: Sequence[Path], file: str) -> list[Experiment]:
    """Return the experiments of the results files in the folders, each with the agents of all."""
    found: dict[str, Experiment] = {}
    for path in (folder / file for folder in folders if (folder / file).exists()):
        with Store(path) as store:
            for e in read_experiments(store):
                earlier = found.get(e.name)
                if earlier is not None and any(earlier.facts[key] != e.facts[key] for key in FACTS):
                    raise SystemExit(f"{path}: {e.name} is not the environment that it is in an earlier folder")
                curves = e.curves if earlier is None else {**earlier.curves, **e.curves}
                if curves:
                    found[e.name] = replace(e, curves=curves)
    if not found:
        raise SystemExit(f"no runs in {file} of {', '.join(map(str, folders))}")
    return list(found.values())


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
    tried = hyperparameters(experiments_of(arguments.folders, "sensitivity.db"))
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
        for table in overall_tables(board, settings):
            print(f"\n### {name}: {table['title']}\n\n{markdown_table(table['header'], table['rows'])}")
    at_factors = {factor: leaderboards(environments, factor) for factor in PRICE_FACTORS}
    print("\n".join(ranking_changes(at_factors)))


if __name__ == "__main__":
    main()
