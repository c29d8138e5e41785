"""The command ``explain``."""

import json

import click
from rich.text import Text

from psconrl.answers.explanation import explain, shown_label
from psconrl.cli.options import GivenModel, json_option, model_and_threshold_options
from psconrl.cli.progress import answer_with_progress
from psconrl.cli.render import console
from psconrl.cli.stated import explanation_table, state_of


@click.command("explain")
@model_and_threshold_options
@click.option("--state", required=True, help="Name or number of the state.")
@json_option
def explain_command(model: GivenModel, state: str, as_json: bool) -> None:
    """Show what every action in a state of MODEL would change, at the plan's shadow prices.

    A change is that of the total over all future rounds if the action is played once and the plan followed afterwards.
    """
    answer = answer_with_progress(model.open()).required()
    why = explain(answer, state_of(answer, state))
    if as_json:
        click.echo(json.dumps(why.record(), allow_nan=False))
        return
    out = console()
    if why.initially_randomised:
        out.print(Text("Each run draws one of several policies; this explains the closest stationary policy."))
    out.print(Text(f"{shown_label(why.state)}: {100 * why.share:.3g}% of the rounds are spent here"))
    out.print(explanation_table(why))
    if why.prices:
        out.print(Text(f"Prices: {', '.join(why.prices)}"))
    for line in why.proven:
        out.print(Text(line))
    for one in why.alternatives:
        if one.average_changes:
            out.print(Text(f"{shown_label(one.action)} {why.led_by(one)}."))
