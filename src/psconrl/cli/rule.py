"""The command ``rule``."""

import json

import click
from rich.text import Text

from psconrl.answers.short_rule import DEEPEST_RULE
from psconrl.cli.options import GivenModel, json_option, model_and_threshold_options, output_path
from psconrl.cli.progress import answer_with_progress, rule_with_progress
from psconrl.cli.render import console
from psconrl.cli.stated import stated_table


@click.command("rule")
@model_and_threshold_options
@click.option(
    "--depth",
    type=click.IntRange(0, DEEPEST_RULE),
    default=3,
    show_default=True,
    help="Most questions that are asked one after the other.",
)
@json_option
@click.option("--policy", "policy_to", metavar="FILE", help="Write the policy of the rule as a table to a .csv file.")
def rule_command(model: GivenModel, depth: int, as_json: bool, policy_to: str | None) -> None:
    """Show a short rule for MODEL: a few questions about the state, with what the rule costs.

    It asks for the variables of a System (shop.toml, shop.py), or for the numbers in the names of a model's states.
    """
    table = output_path("--policy", policy_to, (".csv",))
    answer = answer_with_progress(model.open()).required()
    rule = rule_with_progress(answer, depth)
    if table is not None:
        rule.to_csv(table)
    if as_json:
        click.echo(json.dumps(rule.record(), allow_nan=False))
        return
    out = console()
    out.print(Text(str(rule)))
    out.print(stated_table(answer, rule.averages))
    if table is not None:
        out.print(Text(f"Policy: {table}"))
