"""The command ``inspect``."""

import json

import click
from rich.table import Table
from rich.text import Text

from psconrl.answers.answer import Answer
from psconrl.answers.stated_infeasibility import ranges_of
from psconrl.cli.options import (
    GivenModel,
    json_option,
    model_and_threshold_options,
    words,
)
from psconrl.cli.progress import (
    answer_with_progress,
    inspect_with_progress,
)
from psconrl.cli.render import (
    console,
    limit_text,
    number,
    numbers_table,
)
from psconrl.cli.stated import ranges_table
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.files import is_exchange_file, read_everything

RANGES_STATES = 20_000  # states up to which ranges of all rewards and labels of a model without a goal are computed
OF_A_GOAL = ("constraints", "plan", "span of the bias")  # properties that a model without a goal does not have


@click.command("inspect")
@model_and_threshold_options
@json_option
@click.option("--diameter", "force", is_flag=True, help="Compute the diameter however large the model is.")
def inspect_command(model: GivenModel, as_json: bool, force: bool) -> None:
    """Show sizes, structure, diameter, span and the feasible range of every cost of MODEL.

    For a .umb or .drn file without a goal, show every reward and label.
    """
    cmdp, kinds, answer = _model_to_look_at(model)
    if kinds and cmdp.n_states > RANGES_STATES and not as_json:
        _print_names(model.name, cmdp, kinds)
        return
    report = inspect_with_progress(cmdp, force)
    if as_json:
        more = {} if answer is None else {"stated": [row._asdict() for row in ranges_of(answer.asked)]}
        click.echo(json.dumps(report.record() | ({"kinds": kinds} if kinds else {}) | more, allow_nan=False))
        return
    out = console()
    out.print(Text(f"{model.name}: {_without_goal(cmdp) if kinds else repr(cmdp)}"))
    table = Table(show_header=False)
    for key, value in report.lines():
        if not kinds or key not in OF_A_GOAL:
            table.add_row(key, Text(value))
    out.print(table)
    if answer is not None:
        out.print(ranges_table(answer.asked))
        return
    ranges = numbers_table("", "least average", "largest average", "kind" if kinds else "threshold")
    for i, name in enumerate(cmdp.cost_names):
        low, high = report.ranges[i]
        limit = kinds.get(name) or (limit_text(cmdp.names, i, float(cmdp.thresholds[i - 1])) if i else "")
        ranges.add_row(Text(cmdp.units.named(name)), number(low), number(high), limit)
    out.print(ranges)


def _without_goal(cmdp: CMDP) -> str:
    return f"{cmdp.n_states} states, {cmdp.n_actions} actions; no goal yet (--minimise, --maximise, --limit)"


def _print_names(model: str, cmdp: CMDP, kinds: dict[str, str]) -> None:
    """Print the rewards and labels of a large model without their ranges, which take two plans each."""
    out, table = console(), Table("", "kind")
    out.print(Text(f"{model}: {_without_goal(cmdp)}"))
    for name, kind in kinds.items():
        table.add_row(Text(name), kind)
    out.print(table)


def _model_to_look_at(model: GivenModel) -> tuple[CMDP, dict[str, str], Answer | None]:
    """Read a model; an exchange file without a goal is read with all rewards and labels, and the kind of each.

    Of a system, return the linear model of its answer, and the answer.
    """
    options = words("--set", model.settings)
    if is_exchange_file(model.name) and not (model.goal or model.thresholds or set(options) - {"constants"}):
        return *read_everything(model.name, options.get("constants", "")), None
    found = model.open()
    if isinstance(found, CMDP):
        return found, {}, None
    answer = answer_with_progress(found)
    return answer.model, {}, answer
