"""The command ``pareto``: trade-off curves and surfaces over one or two thresholds."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from psconrl.answers.pareto import Pareto, ParetoSurface, constraint_index, pareto_surface
from psconrl.answers.pareto import pareto as trace
from psconrl.base.caps import LARGEST_COST
from psconrl.cli.options import (
    GivenModel,
    json_option,
    model_and_threshold_options,
    picture_path,
)
from psconrl.cli.progress import trade_off_with_progress
from psconrl.cli.render import console, number, numbers_table
from psconrl.cli.stated import curve_table
from psconrl.errors import ConfigError
from psconrl.model.cmdp import CMDP
from psconrl.model.names import Names
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.systems.system import System

CURVE_POINTS, SURFACE_POINTS = 21, 9
MOST_SIDE = 100  # thresholds per side of a surface
MOST_COLUMNS = 12  # of a surface shown as a table


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
    if isinstance(opened, System) and len(constraints) < 2:
        _curve_of_system(opened, constraints, low, high, points or CURVE_POINTS, as_json, model.name, picture)
        return
    cmdp = opened.model() if isinstance(opened, System) else opened
    if not constraints and cmdp.n_constraints > 1:
        raise click.UsageError(f"--constraint is needed; one or two of: {', '.join(cmdp.cost_names[1:])}")
    indices = [constraint_index(cmdp, name) for name in constraints or (1,)]
    if len(indices) > 2:
        raise click.UsageError("--constraint: at most two thresholds vary at a time")
    out = console()
    if len(indices) == 2:
        if low is not None or high is not None:
            raise click.UsageError("--from and --to go with one constraint")
        if points is not None and points > MOST_SIDE:
            raise click.UsageError(f"--points: a surface has at most {MOST_SIDE} per side; got {points}")
        surface = _with_bar(lambda bar: pareto_surface(cmdp, indices, points=points or SURFACE_POINTS, progress=bar))
        _draw(surface, cmdp, model.name, picture)
        if as_json:
            click.echo(json.dumps(_surface_record(surface, cmdp.names)))
            return
        _print_surface(surface, cmdp)
    else:
        index = indices[0]
        if cmdp.names.is_negated(index):
            low, high = (None if end is None else -end for end in (high, low))
        curve = _with_bar(
            lambda bar: trace(cmdp, index, points=points or CURVE_POINTS, low=low, high=high, progress=bar)
        )
        _draw(curve, cmdp, model.name, picture)
        if as_json:
            click.echo(json.dumps(_curve_record(curve, cmdp.names)))
            return
        _print_curve(curve, cmdp)
    if picture is not None:
        out.print(Text(f"Picture: {picture}"))


def _curve_of_system(
    system: System,
    limits: tuple[str, ...],
    low: float | None,
    high: float | None,
    points: int,
    as_json: bool,
    title: str,
    picture: Path | None,
) -> None:
    """Show the optimal value of a system as the number of one limit varies."""
    stated = {limit.name: limit for limit in system.requirements}
    if not limits and len(stated) != 1:
        raise click.UsageError(f"--constraint is needed; one of: {', '.join(stated)}")
    name = limits[0] if limits else next(iter(stated))
    if (low is None) != (high is None):
        raise click.UsageError("--from and --to: give both, or neither, for a System")
    numbers = None if low is None or high is None else np.linspace(low, high, points)
    curve = trade_off_with_progress(system, name, numbers, points)
    if picture is not None:
        from psconrl.report.figure_files import write_figure
        from psconrl.report.trade_off_figures import trade_off_figure

        write_figure(trade_off_figure(curve, stated[name], title=title), picture)
    if as_json:
        click.echo(json.dumps(curve.record(), allow_nan=False))
        return
    console().print(curve_table(curve, stated[name]))
    console().print(Text(f"In force: {stated[name]}"))
    if picture is not None:
        console().print(Text(f"Picture: {picture}"))


def _draw(found: Pareto | ParetoSurface, cmdp: CMDP, title: str, picture: Path | None) -> None:
    if picture is None:
        return
    from psconrl.report.figure_files import write_figure
    from psconrl.report.trade_off_figures import pareto_figure, surface_figure

    draw: Any = pareto_figure if isinstance(found, Pareto) else surface_figure
    write_figure(draw(found, cmdp, title=title), picture)


def _with_bar(work: Callable[[Callable[[int, int], object]], Any]) -> Any:
    """Run work that reports its progress, with a progress bar on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    out = console(stderr=True)
    bar = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
    with bar if out.is_terminal else nullcontext():  # older versions of rich print a line even if disabled
        task = bar.add_task("plans", total=None)
        return work(lambda done, total: bar.update(task, completed=done, total=total))


def _price(found: Plan, index: int) -> float | None:
    return float(found.multipliers[index - 1]) if found.feasible else None


def _curve_record(curve: Pareto, names: Names) -> dict[str, Any]:
    sign = float(names.signs[curve.index])
    points = [
        {
            "threshold": sign * float(level),
            "value": p.value if p.feasible else None,
            "status": p.status.value,
            "shadow_price": _price(p, curve.index),
        }
        for level, p in zip(curve.thresholds, curve.plans, strict=True)
    ]
    return {"constraint": curve.constraint, "objective": curve.objective, "curve": points}


def _surface_record(surface: ParetoSurface, names: Names) -> dict[str, Any]:
    first, second = (float(names.signs[i]) for i in surface.indices)
    points = [
        {
            "thresholds": dict(zip(surface.constraints, (first * float(x), second * float(y)), strict=True)),
            "value": p.value if p.feasible else None,
            "status": p.status.value,
            "shadow_prices": {n: _price(p, i) for n, i in zip(surface.constraints, surface.indices, strict=True)},
        }
        for x, row in zip(surface.thresholds[0], surface.plans, strict=True)
        for y, p in zip(surface.thresholds[1], row, strict=True)
    ]
    return {"constraints": list(surface.constraints), "objective": surface.objective, "surface": points}


def _print_curve(curve: Pareto, cmdp: CMDP) -> None:
    named = cmdp.units.named
    sign, relation = float(cmdp.names.signs[curve.index]), cmdp.names.relation(curve.index)
    table = numbers_table(f"{named(curve.constraint)} {relation}", named(curve.objective), "shadow price", "status")
    table.columns[0].justify, table.columns[3].justify = "right", "left"
    for level, p in zip(curve.thresholds, curve.plans, strict=True):
        price = _price(p, curve.index)
        shown = ("", "") if price is None else (number(p.value), number(price))
        table.add_row(number(sign * float(level)), *shown, p.status.value)
    console().print(table)
    _print_in_force(cmdp, curve.plans[-1], [curve.index])


def _print_surface(surface: ParetoSurface, cmdp: CMDP) -> None:
    first, second = surface.constraints
    chosen = np.unique(np.linspace(0, surface.thresholds[1].size - 1, MOST_COLUMNS).round().astype(int))
    (i, j), signs = surface.indices, cmdp.names.signs
    heads = [f"{cmdp.names.relation(j)} {number(float(signs[j] * surface.thresholds[1][k]))}" for k in chosen]
    table = numbers_table(f"{cmdp.units.named(first)} {cmdp.names.relation(i)}", *heads)
    table.columns[0].justify = "right"
    table.title = f"{cmdp.units.named(surface.objective)}, a column for each limit on {cmdp.units.named(second)}"
    for level, row in zip(surface.thresholds[0], surface.values, strict=True):
        table.add_row(
            number(float(signs[i] * level)), *("-" if np.isnan(row[k]) else number(float(row[k])) for k in chosen)
        )
    if np.isnan(surface.values).any():
        table.caption = "-: no policy keeps both limits"
    console().print(table)
    _print_in_force(cmdp, surface.plans[-1][-1], surface.indices)


def _print_in_force(cmdp: CMDP, near: Plan, indices: Any) -> None:
    """Print the value and the shadow prices at the thresholds in force."""
    here = plan(cmdp, start=near)
    names = cmdp.names
    shown = ((i, float(names.signs[i] * cmdp.thresholds[i - 1])) for i in indices)
    limits = ", ".join(f"{names.costs[i]} {names.relation(i)} {number(tau)}" for i, tau in shown)
    if here.infeasibility:
        found = "infeasible"
    else:
        prices = ", ".join(number(float(here.multipliers[i - 1])) for i in indices)
        found = f"{cmdp.cost_names[0]} {number(here.value)}, shadow price{'s' if len(indices) > 1 else ''} {prices}"
    console().print(Text(f"In force, {limits}: {found}"))
