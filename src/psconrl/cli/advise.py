"""The command ``advise``."""

import json
from pathlib import Path

import click
from rich.text import Text

from psconrl.base.escaping import quoted
from psconrl.base.limit_text import read_limit_text
from psconrl.cli.log_options import GivenLog, log_options
from psconrl.cli.options import json_option, output_path
from psconrl.cli.render import console
from psconrl.errors import ConfigError
from psconrl.report.memo.page import write_memo
from psconrl.systems.system import System


@click.command("advise")
@log_options
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="'NAME<=VALUE'",
    help="Limit the average of a cost, or a quantity of a System; may be repeated.",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Probability with which limits must hold, and the policy be no worse than today's.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the memo to an .html file.")
@click.option("--policy", "policy_to", metavar="FILE", help="Write the policy to be played to a .csv file.")
@json_option
def advise_command(
    given: GivenLog,
    limits: tuple[str, ...],
    confidence: float,
    output: str | None,
    policy_to: str | None,
    as_json: bool,
) -> None:
    """Say what to do instead of what TABLE shows, and how sure that is.

    TABLE is a file of past rounds: .csv, .csv.gz, .tsv, .parquet or .arrow. With --system, its columns are the
    variables of the System, and its objective and limits count; --limit replaces or adds limits. Without one, --costs
    names the columns of the costs, the objective first.
    """
    memo, table = output_path("--output", output, (".html",)), output_path("--policy", policy_to, (".csv",))
    model = given.model()
    if isinstance(model, System):
        log = given.read(model.with_limits(list(limits)) if limits else model)
        advice = log.improve(confidence=confidence)
    else:
        numbers: dict[str, float] = {}
        for name, value in map(_limit, limits):
            if name in numbers:
                raise ConfigError(f"--limit: {quoted(name)} is limited twice")
            numbers[name] = value
        advice = given.read(model).improve(confidence=confidence, limits=numbers)
    if memo is not None:
        write_memo(advice, memo, f"What {Path(given.table).name} supports")
    if table is not None:
        advice.to_csv(table)
    if as_json:
        click.echo(json.dumps(advice.record(), allow_nan=False))
        return
    out = console()
    out.print(Text(str(advice)))
    for what, path in (("Memo", memo), ("Policy", table)):
        if path is not None:
            out.print(Text(f"{what}: {path}"))


def _limit(text: str) -> tuple[str, float]:
    """Return the name and the number of a limit on a column, whose average is kept at or below the number.

    A name with relations in it is put in quotation marks.
    """
    found = read_limit_text(text, _number)
    if found is None:
        raise ConfigError(f"--limit: must be 'NAME <= VALUE' with a number; got {quoted(text)}")
    if found.high is None or found.low is not None:
        raise ConfigError(
            f"--limit: without a --system, a limit is 'NAME <= VALUE'; got {quoted(text)}. A System has others, too"
        )
    name = found.quantity
    is_quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "'\""
    return name[1:-1] if is_quoted else name, found.high


def _number(text: str) -> float | None:
    number, percent, rest = text.partition("%")
    try:
        return None if rest else float(number) / (100.0 if percent else 1.0)
    except ValueError:
        return None
