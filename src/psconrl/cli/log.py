"""The commands on logs, ``log check``."""

import json
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from psconrl.base.escaping import quoted
from psconrl.cli.options import json_option, pairs, threshold_option
from psconrl.cli.render import console
from psconrl.data.checks.report import LogReport
from psconrl.data.log import Log
from psconrl.envs.registry import open_environment
from psconrl.envs.user_systems import holds_system, read_system
from psconrl.errors import ConfigError
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System


@click.group("log")
def log_command() -> None:
    """Check a log: a table of what the state was, what was done, and what happened."""


@log_command.command("check")
@click.argument("table")
@click.option("--state", metavar="COLUMNS", help="Columns of the state, separated by commas.")
@click.option("--action", metavar="COLUMNS", help="Columns of the action.")
@click.option("--next-state", metavar="COLUMNS", help="Columns of the next state; by default, it is in the next row.")
@click.option("--costs", metavar="COLUMNS", help="Columns of the costs, the objective first.")
@click.option("--run", metavar="COLUMN", help="Column that tells runs or plants apart.")
@click.option("--time", metavar="COLUMN", help="Column with times, by which rows are in order.")
@click.option("--system", "described", metavar="MODEL", help="System (shop.toml, shop.py) or model that wrote the log.")
@threshold_option
@click.option("--skip-bad", is_flag=True, help="Leave out rows that are at fault; by default they are an error.")
@json_option
def check_log_command(
    table: str,
    state: str | None,
    action: str | None,
    next_state: str | None,
    costs: str | None,
    run: str | None,
    time: str | None,
    described: str | None,
    thresholds: tuple[str, ...],
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Check whether the state in TABLE is good enough, and what was never tried.

    TABLE is a file: .csv, .csv.gz, .tsv, .parquet or .arrow. With --system, its columns are the variables of the
    System, unless others are named, and rounds are compared with its rules.
    """
    columns = {"state": state, "action": action, "next_state": next_state, "costs": costs}
    given: dict[str, Any] = {name: _listed(name, value) for name, value in columns.items() if value is not None}
    model = None if described is None else _described(described)
    limits = pairs("--threshold", thresholds)
    if isinstance(model, System):
        given["system"] = model.with_thresholds(limits) if limits else model
    elif isinstance(model, CMDP):
        given["support"] = model
    for option in ("state", "action"):
        if option not in given and not isinstance(model, System):
            raise ConfigError(f"--{option}: name its columns, or give a --system whose variables they are")
    log = Log(table, run=run, time=time, skip_bad=skip_bad, **given)
    report = log.check(None if isinstance(model, System) or not limits else limits)
    if as_json:
        click.echo(json.dumps(report.record(), allow_nan=False))
        return
    _print(report)


def _listed(option: str, value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ConfigError(f"--{option.replace('_', '-')}: must be names separated by commas; got {quoted(value)}")
    return names


def _described(name: str) -> System | CMDP:
    found = read_system(name) if holds_system(name) else open_environment(name)
    if not isinstance(found, System | CMDP):
        raise ConfigError(f"--system: {quoted(name)} is neither a System nor a model")
    return found


def _print(report: LogReport) -> None:
    out = console()
    out.print(Text(str(report)))
    if report.coverage.gaps:
        table = Table("state", "action", "share of rounds", "times tried", title="Hardly tried where it matters")
        for gap in report.coverage.gaps:
            table.add_row(Text(gap.state), Text(gap.action), f"{gap.share:.1%}", f"{gap.times:,}")
        out.print(table)
