"""From a full reproduction to docs/results: ``python benchmarks/publish.py results/results.db``.

Run ``psconrl reproduce`` first (a little more than an hour on two cores that do nothing else). This writes small
figures and the file tables.md; the text around them, docs/results/index.md, is written by hand.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.cli.reproduce import COLUMNS_OF_GRIDS, GRID_EXPERIMENTS
from psconrl.experiment.store import Store
from psconrl.learning.registry import title_of
from psconrl.planning.planner import plan_model
from psconrl.report.claims_table import claims_markdown, claims_table
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.metrics import measures
from psconrl.report.number_format import format_number
from psconrl.report.page_tables import final_table, growth_table
from psconrl.report.paper_claims import ENDS
from psconrl.report.paper_figures import figure1, figure2, figure3
from psconrl.report.policy_figure import policy_figure
from psconrl.report.print_table import markdown_table
from psconrl.report.statistics import estimate_of, mean_interval
from psconrl.report.theory import check_theory
from psconrl.report.theory_figure import theory_figure
from psconrl.report.theory_growth import is_of_several_lengths

OUT = Path(__file__).parents[1] / "docs" / "results"
DPI = 100
FIGURE1_RUNS = 5  # in the paper
NOTE_ON_METRIC = """In the paper's metric, at round {:,}: the average cost of each run over its last rounds, minus the
optimum or the threshold, positive part, added up from the first full window on; then mean ± standard deviation over
runs, computed from the checkpoints. The authors' scripts take .8479 for the optimum of Box, which is .845.
"""


def markdown(table: dict[str, Any]) -> str:
    return markdown_table(table["header"], table["rows"])


def paper_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of regret and violation in the paper's metric at the paper's last round."""
    wanted = measures([experiment], ["paper-regret", "paper-violation"])
    rows: list[list[Any]] = []
    for curves in experiment.curves.values():
        at = int(np.searchsorted(curves.rounds, paper_round(experiment), side="right")) - 1
        cells = [estimate_of(measure, measure.values(experiment, curves)[:, at]) for measure in wanted]
        rows.append([curves.title, curves.runs, *cells])
    return {"header": ["agent", "runs", *(measure.title for measure in wanted)], "rows": rows}


def paper_round(experiment: Experiment) -> int:
    return ENDS[experiment.facts["env"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", help="a results file of psconrl reproduce")
    with Store(parser.parse_args().results) as store:
        experiments = {e.name: e for e in read_experiments(store)}
        (hours,) = store.query("SELECT total(seconds) / 3600 FROM runs WHERE current")[0]
        (runs,) = store.query("SELECT count(*) FROM runs WHERE current AND status = 'done'")[0]
    grids = [experiments[name] for name in COLUMNS_OF_GRIDS]
    tables = [experiments[name] for name in GRID_EXPERIMENTS]
    others = [e for e in experiments.values() if e.name not in (*GRID_EXPERIMENTS, "counterexample")]
    theory = [e for e in others if not is_of_several_lengths(e)]  # publish_theory.py publishes these
    OUT.mkdir(exist_ok=True)
    figures = {
        "figure1": figure1(experiments["counterexample"]),
        "figure2": figure2(grids),
        "figure2-paper-metric": figure2(grids, "paper"),
        "figure3": figure3(grids),
        "theory": theory_figure(theory),
    }
    models = {e.facts["env"]: e.model for e in grids if e.model is not None}
    figures |= {f"map-{name}": policy_figure(model, plan_model(model), name) for name, model in models.items()}
    for name, figure in figures.items():
        figure.savefig(OUT / f"{name}.png", dpi=DPI, bbox_inches="tight", pil_kwargs={"optimize": True})
    parts = [
        f"# Tables\n\n{runs:,} runs, {hours:.2f} hours of computing. Means with 95% intervals (Student's t) over runs. "
        "Agents learn the costs, as in the paper, where the heading says so; elsewhere they know them.\n"
    ]
    for experiment in [experiments["counterexample"], *tables]:
        parts.append(f"## {experiment.name}\n")
        parts.append(markdown(final_table(experiment)) + "\n")
        if experiment in tables:
            parts += [NOTE_ON_METRIC.format(paper_round(experiment)), markdown(paper_table(experiment)) + "\n"]
        parts.append(markdown(growth_table(experiment)) + "\n")
    parts.append("## Theory\n\nStrong regret: by exact evaluation of every policy played, positive parts only.\n")
    header = [
        "experiment",
        "agent",
        "S",
        "D",
        "strong regret",
        "exponent",
        "signed regret",
        "episodes, share of bound",
        "exploring, share of bound",
    ]
    rows = [
        [
            c.experiment,
            title_of(c.agent),
            c.states,
            format_number(c.diameter),
            c.regret,
            c.slope,
            c.signed,
            f"{c.episodes_ratio:.2f}",
            format_number(c.exploring_ratio, 2),
        ]
        for c in check_theory(theory)
    ]
    parts.append(markdown({"header": header, "rows": rows}) + "\n")
    averages = experiments["counterexample"].curves["resampling-cmdp-psrl"].average(1)[:, -1]
    first, every = mean_interval(averages[:FIGURE1_RUNS]), mean_interval(averages)
    parts.append(
        f"CMDP-PSRL on the counterexample, average cost at the end: {every} over {len(averages)} runs, {first} over "
        f"the first {FIGURE1_RUNS}, as many as in the paper.\n"
    )
    parts += map(claims_markdown, claims_table(list(experiments.values())))
    (OUT / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    for name in sorted(OUT.iterdir()):
        print(f"{name.name}: {name.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
