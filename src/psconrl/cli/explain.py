"""The command ``explain``."""

import json

import click
from rich.text import Text

from psconrl.answers.explanation import explain as explain_state
from psconrl.cli.options import (
    GivenModel,
    json_option,
    model_and_threshold_options,
)
from psconrl.cli.progress import (
    answer_with_progress,
    plan_with_progress,
)
from psconrl.cli.render import (
    console,
    explanation_table,
    number,
    signed,
)
from psconrl.cli.stated import reasons_table, state_of
from psconrl.planning.methods import METHODS
from psconrl.systems.functions import shown_values
from psconrl.systems.system import System


@click.command("explain")
@model_and_threshold_options
@click.option("--state", required=True, help="Name or number of the state.")
@json_option
def explain_command(model: GivenModel, state: str, as_json: bool) -> None:
    """Show what every action in a state of MODEL would change, at the plan's shadow prices.

    A change is that of the total over all future rounds if the action is played once and the plan followed afterwards.
    """
    cmdp = model.open()
    if isinstance(cmdp, System):
        _explain_in_system(cmdp, state, as_json)
        return
    named = cmdp.state_names is not None and state in cmdp.state_names
    asked = cmdp.names.state_number(state if named or not state.isdecimal() else int(state), cmdp.n_states)
    why = explain_state(cmdp, asked, plan_with_progress(cmdp, METHODS[0]))
    if as_json:
        click.echo(json.dumps(why.record(), allow_nan=False))
        return
    out = console()
    if why.initially_randomised:
        out.print(Text("Each run draws one of several policies; this explains the closest stationary policy."))
    out.print(Text(f"{cmdp.state_name(why.state)}: {100 * why.share:.3g}% of the rounds are spent here"))
    out.print(explanation_table(why))
    prices = ", ".join(f"{name} {number(float(x))}" for name, x in zip(cmdp.cost_names[1:], why.prices, strict=True))
    if prices:
        out.print(Text(f"Prices, in {cmdp.units.named(cmdp.cost_names[0])} for one unit: {prices}"))
    for line in why.proven:
        out.print(Text(line))
    sign = cmdp.names.signs
    for a, moved in zip(why.actions, why.average_changes, strict=True):
        if moved.any():
            pairs = zip(cmdp.cost_names, sign * moved, strict=True)
            changes = ", ".join(f"{name} {cmdp.units.with_unit(signed(x), name)}" for name, x in pairs)
            out.print(Text(f"{cmdp.action_name(int(a))} leads elsewhere for good: the averages change by {changes}."))


def _explain_in_system(system: System, state: str, as_json: bool) -> None:
    """Print the same in the variables, costs and limits of a system."""
    answer = answer_with_progress(system).required()
    why = answer.explain(state_of(answer, state))
    if as_json:
        click.echo(json.dumps(why.record(), allow_nan=False))
        return
    out = console()
    out.print(Text(f"{shown_values(why.state)}: {100 * why.share:.3g}% of the rounds are spent here"))
    out.print(reasons_table(why))
    if why.prices:
        out.print(Text(f"Prices: {', '.join(why.prices)}"))
    for one in why.alternatives:
        if one.for_good:
            out.print(Text(f"{shown_values(one.action)} {why.led_by(one)}."))
    out.print(Text(str(answer)))
