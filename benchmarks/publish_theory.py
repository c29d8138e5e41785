"""From runs of several lengths to figures: ``python benchmarks/publish_theory.py results/results.db ...``.

Run ``psconrl reproduce theory`` first (about 70 minutes of processor time for these runs). This writes the figures to
docs/results and docs/note, and prints the tables of benchmarks/RESULTS.md.
"""

import argparse
from pathlib import Path

from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.figure_files import write_figure
from psconrl.report.print_table import markdown_table
from psconrl.report.theory_growth import growth_tables
from psconrl.report.theory_growth_figures import growth_figures

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Write the figures, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="results files of psconrl reproduce, each with other experiments")
    experiments = []
    for path in parser.parse_args().results:
        with Store(path) as store:
            experiments += read_experiments(store)
    for name, figure in growth_figures(experiments).items():
        write_figure(figure, DOCS / "results" / f"theory-{name}.png")
        write_figure(figure, DOCS / "note" / f"theory-{name}.pdf", exact=True)
    for table in growth_tables(experiments):
        print(f"**{table['title']}**\n\n{markdown_table(table['header'], table['rows'])}\n")


if __name__ == "__main__":
    main()
