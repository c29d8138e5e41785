"""The command ``reproduce``: the paper's environments, solved exactly."""

import click
from rich.table import Table

from psconrl.cli.render import console, number
from psconrl.envs.registry import load
from psconrl.model.distance import diameter
from psconrl.planning.pareto import cost_ranges
from psconrl.planning.planner import plan

PAPER = ("marsrover-4x4", "marsrover-8x8", "box")


@click.command()
def reproduce() -> None:
    """Solve the paper's three environments and print the table of their exact values."""
    table = Table("environment", "S", "D", "threshold", "optimum", "fastest", "safest", "shadow price", "gap", "proof")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in PAPER:
        cmdp = load(name)
        best = plan(cmdp)
        low = cost_ranges(cmdp)[:, 0]
        safest = plan(cmdp.with_thresholds([low[1]]))
        table.add_row(
            name,
            str(cmdp.n_states),
            number(diameter(cmdp)),
            number(float(cmdp.thresholds[0])),
            number(best.value),
            number(low[0]),
            number(safest.value),
            number(float(best.multipliers[0])),
            f"{abs(best.gap):.0e}",
            "holds" if best.certificate.holds else "FAILS",
        )
    console().print(table)
