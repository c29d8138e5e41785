"""The command ``pareto``: trade-off curves and surfaces over one or two thresholds."""

import json
import math
from collections.abc import Sequence

import click
from rich.text import Text

from psconrl.answers.answer import Answer
from psconrl.answers.pareto import Pareto, constraint_name
from psconrl.answers.stated_model import StatedModel
from psconrl.base.caps import LARGEST_COST
from psconrl.cli.options import GivenModel, json_option, model_and_threshold_options, picture_path
from psconrl.cli.progress import answer_with_progress, pareto_with_progress
from psconrl.cli.render import console, number
from psconrl.cli.stated import curve_table, surface_table
from psconrl.errors import ConfigError
from psconrl.systems.system import System

CURVE_POINTS, SURFACE_POINTS = 21, 9
MOST_SIDE = 100  # thresholds per side of a surface


@click.command("pareto")
@model_and_threshold_options
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="NAME",
    help="The cost whose threshold varies; needed if there are several. Give it twice for a surface over two.",
)
@click.option("--from", "low", type=float, help="First threshold.")
@click.option("--to", "high", type=float, help="Last threshold.")
@click.option(
    "--points",
    type=click.IntRange(2, 10_000),
    help=f"Number of thresholds. [default: {CURVE_POINTS}, or {SURFACE_POINTS} per side of a surface]",
)
@json_option
@click.option("--plot", metavar="FILE", help="Draw the curve or the surface to a .png, .svg or .pdf file.")
def pareto_command(
    model: GivenModel,
    constraints: tuple[str, ...],
    low: float | None,
    high: float | None,
    points: int | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Show the optimal value of MODEL as one or two thresholds vary, with the other limits kept."""
    picture = picture_path(plot)
    for option, level in (("--from", low), ("--to", high)):
        if level is not None and not abs(level) <= LARGEST_COST:
            wanted = f"at most {LARGEST_COST:g} in size" if math.isfinite(level) else "a finite number"
            raise ConfigError(f"{option}: must be {wanted}; got {level}")
    opened = model.open()
    stated = opened if isinstance(opened, System) else StatedModel(opened)
    if not constraints and len(stated.statement.requirements) > 1:
        names = ", ".join(limit.name for limit in stated.statement.requirements)
        raise click.UsageError(f"--constraint is needed; one or two of: {names}")
    chosen = [constraint_name(stated, name) for name in constraints or (1,)]
    if len(chosen) > 2:
        raise click.UsageError("--constraint: at most two thresholds vary at a time")
    if len(chosen) == 2:
        if low is not None or high is not None:
            raise click.UsageError("--from and --to go with one constraint")
        if points is not None and points > MOST_SIDE:
            raise click.UsageError(f"--points: a surface has at most {MOST_SIDE} per side; got {points}")
    found = pareto_with_progress(opened, chosen, points or (SURFACE_POINTS, CURVE_POINTS)[len(chosen) == 1], low, high)
    if picture is not None:
        from psconrl.report.figure_files import write_figure
        from psconrl.report.trade_off_figures import pareto_figure

        write_figure(pareto_figure(found, title=model.name), picture)
    if as_json:
        click.echo(json.dumps(found.record(), allow_nan=False))
        return
    out = console()
    out.print(curve_table(found) if isinstance(found, Pareto) else surface_table(found))
    out.print(Text(_in_force(answer_with_progress(opened), chosen)))
    if picture is not None:
        out.print(Text(f"Picture: {picture}"))


def _in_force(here: Answer, constraints: Sequence[str]) -> str:
    """Return the value and the shadow prices at the thresholds in force, in words."""
    limits = ", ".join(str(limit) for limit in here.asked.statement.requirements if limit.name in constraints)
    if not here.feasible:
        return f"In force, {limits}: infeasible"
    goal = here.asked.statement.goal.text
    prices = ", ".join(number(here.prices[name].amount) for name in constraints if here.prices)
    named = f", shadow price{'s' if len(constraints) > 1 else ''} {prices}" if prices else ""
    return f"In force, {limits}: {goal} {number(here.value)}{named}"
