"""The commands on logs, ``log check``."""

import json

import click
from rich.table import Table
from rich.text import Text

from psconrl.cli.log_options import GivenLog, log_options
from psconrl.cli.options import json_option, pairs, threshold_option
from psconrl.cli.render import console
from psconrl.data.checks.report import LogReport
from psconrl.systems.system import System


@click.group("log")
def log_command() -> None:
    """Check a log: a table of what the state was, what was done, and what happened."""


@log_command.command("check")
@log_options
@threshold_option
@json_option
def check_log_command(given: GivenLog, thresholds: tuple[str, ...], as_json: bool) -> None:
    """Check whether the state in TABLE is good enough, and what was never tried.

    TABLE is a file: .csv, .csv.gz, .tsv, .parquet or .arrow. With --system, its columns are the variables of the
    System, unless others are named, and rounds are compared with its rules.
    """
    model, limits = given.model(), pairs("--threshold", thresholds)
    if isinstance(model, System) and limits:
        model = model.with_thresholds(limits)
    log = given.read(model)
    report = log.check(None if isinstance(model, System) or not limits else limits)
    if as_json:
        click.echo(json.dumps(report.record(), allow_nan=False))
        return
    _print(report)


def _print(report: LogReport) -> None:
    out = console()
    out.print(Text(str(report)))
    if report.coverage.gaps:
        table = Table("state", "action", "share of rounds", "times tried", title="Hardly tried where it matters")
        for gap in report.coverage.gaps:
            table.add_row(Text(gap.state), Text(gap.action), f"{gap.share:.1%}", f"{gap.times:,}")
        out.print(table)
