"""The commands ``solve``, ``inspect`` and ``pareto``."""

import json
import math
import sys

import click
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from psconrl.cli.options import picture_path, read_model
from psconrl.cli.render import certificate_line, console, cost_table, number, policy_view
from psconrl.errors import ConfigError
from psconrl.limits import LARGEST_COST
from psconrl.planning.inspection import inspect as look_at
from psconrl.planning.methods import METHODS
from psconrl.planning.pareto import constraint_index
from psconrl.planning.pareto import pareto as trace
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status

EXIT = {Status.OPTIMAL: 0, Status.NOT_ATTAINED: 0, Status.INFEASIBLE: 3, Status.UNCERTIFIED: 4}

model_argument = click.argument("model")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Environment option, as slip=0.1."
)
threshold_option = click.option(
    "--threshold", "thresholds", multiple=True, metavar="NAME=VALUE", help="Change a limit; may be repeated."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


@click.command()
@model_argument
@threshold_option
@set_option
@click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True, help="lp: HiGHS.")
@json_option
@click.option("--plot", metavar="FILE", help="Draw the policy to a .png, .svg or .pdf file.")
def solve(
    model: str, thresholds: tuple[str, ...], settings: tuple[str, ...], method: str, as_json: bool, plot: str | None
) -> None:
    """Plan MODEL: value, costs against thresholds, shadow prices, policy, certificate.

    Exit code 0 if optimal, 3 if no policy meets the thresholds.
    """
    picture = picture_path(plot)
    cmdp = read_model(model, settings, thresholds)
    result = plan(cmdp, method)
    if picture is not None:
        from psconrl.report.figures import policy_figure, write_figure

        write_figure(policy_figure(cmdp, result, title=model), picture)
    if as_json:
        click.echo(json.dumps(result.record(), allow_nan=False))
        sys.exit(EXIT[result.status])
    out = console()
    out.print(Text(f"{model}: {cmdp!r}"))
    out.print(Text(f"{result.status.value.upper()}. {result.status.advice}", style="bold"))
    if result.infeasibility is not None:
        why = str(result.infeasibility)
        out.print(Text(f"{why[0].upper()}{why[1:]}\nThe policy of least excess:"))
    if result.note:
        out.print(Text(f"Note: {result.note}."))
    out.print(cost_table(cmdp, result))
    for view in policy_view(cmdp, result):
        out.print(view)
    out.print(Text(certificate_line(result)))
    if picture is not None:
        out.print(Text(f"Picture: {picture}"))
    sys.exit(EXIT[result.status])


@click.command()
@model_argument
@set_option
@json_option
@click.option("--diameter", "force", is_flag=True, help="Compute the diameter however large the model is.")
def inspect(model: str, settings: tuple[str, ...], as_json: bool, force: bool) -> None:
    """What kind of model MODEL is: sizes, structure, diameter, span, feasible range of every cost."""
    cmdp = read_model(model, settings)
    report = look_at(cmdp, always_diameter=force)
    if as_json:
        click.echo(json.dumps(report.record(), allow_nan=False))
        return
    out = console()
    out.print(Text(f"{model}: {cmdp!r}"))
    table = Table(show_header=False)
    for key, value in report.lines():
        table.add_row(key, Text(value))
    out.print(table)
    ranges = Table("", "least average", "largest average", "threshold")
    for column in ranges.columns[1:]:
        column.justify = "right"
    for i, name in enumerate(cmdp.cost_names):
        low, high = report.ranges[i]
        limit = number(float(cmdp.thresholds[i - 1])) if i else ""
        ranges.add_row(Text(name), number(low), number(high), limit)
    out.print(ranges)


@click.command()
@model_argument
@click.option("--constraint", metavar="NAME", help="The constrained cost whose threshold varies; needed if several.")
@click.option("--from", "low", type=float, help="First threshold.")
@click.option("--to", "high", type=float, help="Last threshold.")
@click.option("--points", type=click.IntRange(2, 10_000), default=21, show_default=True)
@threshold_option
@set_option
@json_option
@click.option("--plot", metavar="FILE", help="Draw the curve to a .png, .svg or .pdf file.")
def pareto(
    model: str,
    constraint: str | None,
    low: float | None,
    high: float | None,
    points: int,
    thresholds: tuple[str, ...],
    settings: tuple[str, ...],
    as_json: bool,
    plot: str | None,
) -> None:
    """The optimal value of MODEL as one threshold varies, the other limits kept."""
    picture = picture_path(plot)
    for option, level in (("--from", low), ("--to", high)):
        if level is not None and not abs(level) <= LARGEST_COST:
            wanted = f"at most {LARGEST_COST:g} in size" if math.isfinite(level) else "a finite number"
            raise ConfigError(f"{option}: must be {wanted}; got {level}")
    cmdp = read_model(model, settings, thresholds)
    if constraint is None and cmdp.n_constraints > 1:
        raise click.UsageError(f"--constraint is needed; one of: {', '.join(cmdp.cost_names[1:])}")
    index = constraint_index(cmdp, 1 if constraint is None else constraint)
    curve = trace(cmdp, index, points=points, low=low, high=high)
    if picture is not None:
        from psconrl.report.figures import pareto_figure, write_figure

        write_figure(pareto_figure(curve, threshold=float(cmdp.thresholds[index - 1]), title=model), picture)
    if as_json:
        record = [
            {"threshold": float(t), "value": None if p.infeasibility else p.value, "status": p.status.value,
             "shadow_price": None if p.infeasibility else float(p.multipliers[index - 1])}
            for t, p in zip(curve.thresholds, curve.plans, strict=True)
        ]  # fmt: skip
        click.echo(json.dumps({"constraint": curve.constraint, "objective": curve.objective, "curve": record}))
        return
    out = console()
    table = Table(escape(f"{curve.constraint} <="), escape(curve.objective), "shadow price", "status")
    for column in table.columns[:3]:
        column.justify = "right"
    for t, p in zip(curve.thresholds, curve.plans, strict=True):
        shown = ("", "") if p.infeasibility else (number(p.value), number(float(p.multipliers[index - 1])))
        table.add_row(number(float(t)), *shown, p.status.value)
    out.print(table)
    if picture is not None:
        out.print(Text(f"Picture: {picture}"))
