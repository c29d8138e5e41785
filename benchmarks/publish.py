"""From a full reproduction to docs/results: ``python benchmarks/publish.py results/results.db``.

Run ``psconrl reproduce`` first (about twenty minutes on two cores that do nothing else). This writes small figures and
the file tables.md; the text around them, docs/results/index.md, is written by hand.
"""

import argparse
from pathlib import Path
from typing import Any

from psconrl.cli.reproduce import GRIDS
from psconrl.experiment.store import Store
from psconrl.learning.registry import title_of
from psconrl.planning.planner import plan
from psconrl.report.curves import read_experiments
from psconrl.report.number_format import format_number
from psconrl.report.page_tables import final_table, growth_table
from psconrl.report.paper_figures import figure1, figure2, figure3
from psconrl.report.policy_figure import policy_figure
from psconrl.report.print_table import markdown_table
from psconrl.report.statistics import mean_interval
from psconrl.report.theory import check_theory
from psconrl.report.theory_figure import theory_figure

OUT = Path(__file__).parents[1] / "docs" / "results"
DPI = 100
LEARNING = ("psconrl-learning-costs", "psconrl-published")  # agents that learn the costs


def markdown(table: dict[str, Any]) -> str:
    return markdown_table(table["header"], table["rows"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", help="a results file of psconrl reproduce")
    with Store(parser.parse_args().results) as store:
        experiments = {e.name: e for e in read_experiments(store)}
        (hours,) = store.query("SELECT total(seconds) / 3600 FROM runs WHERE current")[0]
        (runs,) = store.query("SELECT count(*) FROM runs WHERE current AND status = 'done'")[0]
    grids = [experiments[name] for name in GRIDS]
    theory = [e for e in experiments.values() if e.name not in (*GRIDS, "counterexample")]
    OUT.mkdir(exist_ok=True)
    figures = {
        "figure1": figure1(experiments["counterexample"]),
        "figure2": figure2(grids),
        "figure2-paper-metric": figure2(grids, "paper"),
        "figure3": figure3(grids),
        "theory": theory_figure(theory),
    }
    figures |= {f"map-{e.name}": policy_figure(e.model, plan(e.model), e.name) for e in grids if e.model is not None}
    for name, figure in figures.items():
        figure.savefig(OUT / f"{name}.png", dpi=DPI, bbox_inches="tight", pil_kwargs={"optimize": True})
    parts = [
        f"# Tables\n\n{runs:,} runs, {hours:.2f} hours of computing. Means with 95% bootstrap intervals over runs. "
        f"All agents know the costs, except {' and '.join(map(title_of, LEARNING))}.\n"
    ]
    for experiment in [experiments["counterexample"], *grids]:
        parts.append(f"## {experiment.name}\n")
        parts += [markdown(table(experiment)) + "\n" for table in (final_table, growth_table)]
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
    average = mean_interval(experiments["counterexample"].curves["resampling-cmdp-psrl"].average(1)[:, -1])
    parts.append(f"CMDP-PSRL on the counterexample, average cost at the end: {average}.\n")
    (OUT / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    for name in sorted(OUT.iterdir()):
        print(f"{name.name}: {name.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
