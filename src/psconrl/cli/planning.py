"""The commands ``solve``, ``explain``, ``inspect`` and ``convert``."""

import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from psconrl.cli.options import (
    goal_options,
    json_option,
    model_argument,
    output_path,
    picture_path,
    read_model,
    set_option,
    threshold_option,
    words,
)
from psconrl.cli.progress import (
    best_deterministic_with_progress,
    inspect_with_progress,
    plan_windows_with_progress,
    plan_with_progress,
    threshold_rule_with_progress,
)
from psconrl.cli.render import (
    averages_table,
    certificate_line,
    console,
    cost_table,
    explanation_table,
    limit_text,
    number,
    numbers_table,
    policy_table,
    policy_view,
    print_windows,
    rule_table,
    settling_line,
    signed,
)
from psconrl.errors import ConfigError, InfeasibleError, SolverError
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.files import ENDINGS, is_exchange_file, read_everything
from psconrl.model.io import WRITTEN, save
from psconrl.planning.analysis.deterministic import MOST_PLANS, SimplePolicy
from psconrl.planning.analysis.explanation import explain as explain_state
from psconrl.planning.analysis.threshold_rule import ThresholdRule, state_order, why_unordered
from psconrl.planning.analysis.windows import WindowPlan
from psconrl.planning.methods import METHODS
from psconrl.planning.plan import Plan
from psconrl.planning.proof import Status

EXIT = {Status.OPTIMAL: 0, Status.NOT_ATTAINED: 0, Status.STOPPED: 0, Status.INFEASIBLE: 3, Status.UNCERTIFIED: 4}

INITIALLY_RANDOMISED = (
    "Each run draws one of several policies: on average over runs they meet every threshold, and no policy costs less."
)

KINDS = ("best", "deterministic", "threshold")
SIMPLE_POLICY_STATES = 100  # states up to which simpler policies are computed by default
FEW_PLANS = 30  # for such a policy
RANGES_STATES = 20_000  # states up to which ranges of all rewards and labels of a model without a goal are computed
OF_A_GOAL = ("constraints", "plan", "span of the bias")  # properties that a model without a goal does not have


class PlanFiles(NamedTuple):
    """The files that ``solve`` writes, in the order in which they are listed; None for those not wanted."""

    picture: Path | None
    policy: Path | None
    chain: Path | None
    plan: Path | None
    proof: Path | None


@click.command("solve")
@model_argument
@goal_options
@threshold_option
@set_option
@click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True, help="lp: HiGHS.")
@json_option
@click.option("--plot", metavar="FILE", help="Draw the policy to a .png, .svg or .pdf file.")
@click.option("--policy", "policy_to", metavar="FILE", help="Write the policy as a table to a .csv file.")
@click.option("--chain", "chain_to", metavar="FILE", help="Write the chain of the policy to a .umb or .drn file.")
@click.option("--save", "save_to", metavar="FILE", help="Save the plan to an .npz file, for psconrl.Plan.load.")
@click.option("--proof", "proof_to", metavar="FILE", help="Write the proof to a .json file, for psconrl verify.")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default=KINDS[0],
    show_default=True,
    help="Which policy to show and write: the best, the best deterministic one, or a threshold rule.",
)
@click.option(
    "--within",
    type=float,
    metavar="ROUNDS",
    help="Also keep the limits over windows of about this length; --policy then writes a policy for each window.",
)
def solve_command(
    model: str,
    thresholds: tuple[str, ...],
    settings: tuple[str, ...],
    method: str,
    as_json: bool,
    plot: str | None,
    policy_to: str | None,
    chain_to: str | None,
    save_to: str | None,
    proof_to: str | None,
    kind: str,
    within: float | None,
    goal: dict[str, Any],
) -> None:
    """Plan MODEL: value, costs against thresholds, shadow prices, policy, certificate.

    Exit code 0 if optimal, 3 if no policy meets the thresholds.
    """
    files = PlanFiles(
        picture_path(plot), output_path("--policy", policy_to, (".csv",)), output_path("--chain", chain_to, ENDINGS),
        output_path("--save", save_to, (".npz",)), output_path("--proof", proof_to, (".json",)),
    )  # fmt: skip
    _check_kind(kind, files, as_json, within)
    cmdp = read_model(model, settings, thresholds, goal)
    if kind == "threshold" and state_order(cmdp) is None:
        raise ConfigError(
            f"--kind threshold: {why_unordered(cmdp)}; name them by one number, such as '3 waiting', or give an order "
            "to psconrl.threshold_rule(model, order)"
        )
    result = plan_with_progress(cmdp, method)
    windows = None
    if within is not None and result.feasible:
        windows = plan_windows_with_progress(cmdp, within, result)
    if kind != KINDS[0]:
        result.required()
    _write_files(files, model, cmdp, result, windows, kind)
    if as_json:
        record = result.record() if windows is None else result.record() | {"windows": windows.record()}
        click.echo(json.dumps(record, allow_nan=False))
        sys.exit(EXIT[result.status])
    out = console()
    out.print(Text(f"{model}: {cmdp!r}"))
    _print_plan(out, cmdp, result, kind)
    if windows is not None:
        print_windows(out, windows)
    _print_other_kinds(out, cmdp, result, kind, files.policy)
    for what, path in files._asdict().items():
        if path is not None:
            out.print(Text(f"{what.capitalize()}: {path}"))
    sys.exit(EXIT[result.status])


def _check_kind(kind: str, files: PlanFiles, as_json: bool, within: float | None) -> None:
    """Raise an error for options that go only with the best policy."""
    if kind == KINDS[0]:
        return
    if as_json or files.plan or files.picture or files.chain or files.proof:
        raise click.UsageError(
            f"--kind {kind} goes with --policy; --json, --save, --proof, --chain and --plot show the best plan"
        )
    if within is not None:
        raise click.UsageError(f"--kind {kind}: windows have plans of their own; leave out --within")


def _write_files(files: PlanFiles, model: str, cmdp: CMDP, result: Plan, windows: WindowPlan | None, kind: str) -> None:
    """Write the best plan; ``_print_simpler`` writes policies of other kinds."""
    if files.chain is not None and result.mixture is not None:
        raise ConfigError(
            f"--chain: the plan draws one of {len(result.mixture)} policies, so it has no single chain; "
            "--policy writes each of them"
        )
    if files.picture is not None:
        from psconrl.report.figures import policy_figure, write_figure

        write_figure(policy_figure(cmdp, result, title=model), files.picture)
    if files.plan is not None:
        result.save(files.plan)
    if files.proof is not None:
        result.save_proof(files.proof, cmdp)
    if files.chain is not None:
        save(cmdp, files.chain, result.policy)
    if files.policy is not None and kind == KINDS[0]:
        (result if windows is None else windows).to_csv(files.policy)


def _print_plan(out: Console, cmdp: CMDP, result: Plan, kind: str) -> None:
    """Print status, costs, policy and certificate."""
    advice = result.status.advice if result.mixture is None or not result.feasible else INITIALLY_RANDOMISED
    out.print(Text(f"{result.status.value.upper()}. {advice}", style="bold"))
    if result.infeasibility is not None:
        why = str(result.infeasibility)
        out.print(Text(f"{why[0].upper()}{why[1:]}\nThe policy of least excess:"))
    if result.note:
        out.print(Text(f"Note: {result.note}."))
    out.print(cost_table(result))
    if kind == KINDS[0]:
        for view in policy_view(cmdp, result):
            out.print(view)
    out.print(Text("\n  ".join((certificate_line(result), *result.proven))))
    if kind == KINDS[0] and result.feasible and math.isfinite(result.settles):
        out.print(Text(settling_line(result)))


def _print_other_kinds(out: Console, cmdp: CMDP, best: Plan, kind: str, table: Path | None) -> None:
    """Print the simpler policy that was asked for; of a small model, what simpler policies would cost."""
    if kind == "deterministic":
        _print_deterministic(out, cmdp, best, table)
    elif kind == "threshold":
        _print_threshold_rule(out, cmdp, best, table)
    elif best.feasible and cmdp.n_states <= SIMPLE_POLICY_STATES:
        _print_simpler(out, cmdp, best)


def _print_simpler(out: Console, cmdp: CMDP, best: Plan) -> None:
    """Print what simpler policies of a small model would cost, in a line each."""
    if best.randomised_states.size or best.mixture:
        try:
            simple = best_deterministic_with_progress(cmdp, best, FEW_PLANS)
        except (InfeasibleError, SolverError) as error:
            out.print(Text(f"Deterministic: {error}."))
        else:
            out.print(Text(_price_of(cmdp, simple)))
    if cmdp.state_names:
        rule = threshold_rule_with_progress(cmdp, best)
        if rule is not None:
            out.print(Text(f"{_price_of_rule(rule, best)}: {rule}."))


def _print_deterministic(out: Console, cmdp: CMDP, best: Plan, table: Path | None) -> None:
    """Print the best deterministic policy, and write it."""
    simple = best_deterministic_with_progress(cmdp, best, MOST_PLANS)
    out.print(Text(_price_of(cmdp, simple)))
    out.print(averages_table(cmdp.names, simple.costs, cmdp.thresholds))
    out.print(policy_table(simple))
    if table is not None:
        simple.to_csv(table)


def _print_threshold_rule(out: Console, cmdp: CMDP, best: Plan, table: Path | None) -> None:
    """Print the best threshold rule, and write it."""
    rule = threshold_rule_with_progress(cmdp, best)
    if rule is None:
        raise SolverError("no threshold rule was found that meets the thresholds; try --kind deterministic")
    out.print(Text(f"{_price_of_rule(rule, best)}."))
    if not _is_optimal(rule, best):
        out.print(averages_table(cmdp.names, rule.costs, cmdp.thresholds))
    out.print(rule_table(rule))
    if table is not None:
        rule.to_csv(table)


def _price_of(cmdp: CMDP, simple: SimplePolicy) -> str:
    objective = cmdp.cost_names[0]
    value = cmdp.units.with_unit(number(simple.value), objective)
    least = "" if simple.is_proven else f" (proven minimum {number(simple.least_price)})"
    return f"Deterministic: {objective} {value}; that costs {number(simple.price)}{least}."


def _price_of_rule(rule: ThresholdRule, best: Plan) -> str:
    return f"A threshold rule {'is optimal' if _is_optimal(rule, best) else f'costs {number(rule.price)}'}"


def _is_optimal(rule: ThresholdRule, best: Plan) -> bool:
    return rule.price <= best.certificate.tolerance


@click.command("explain")
@model_argument
@click.option("--state", required=True, help="Name or number of the state.")
@goal_options
@threshold_option
@set_option
@json_option
def explain_command(
    model: str,
    state: str,
    thresholds: tuple[str, ...],
    settings: tuple[str, ...],
    as_json: bool,
    goal: dict[str, Any],
) -> None:
    """Show what every action in a state of MODEL would change, at the plan's shadow prices.

    A change is that of the total over all future rounds if the action is played once and the plan followed afterwards.
    """
    cmdp = read_model(model, settings, thresholds, goal)
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


@click.command("inspect")
@model_argument
@goal_options
@set_option
@json_option
@click.option("--diameter", "force", is_flag=True, help="Compute the diameter however large the model is.")
def inspect_command(model: str, settings: tuple[str, ...], as_json: bool, force: bool, goal: dict[str, Any]) -> None:
    """Show sizes, structure, diameter, span and the feasible range of every cost of MODEL.

    For a .umb or .drn file without a goal, show every reward and label.
    """
    cmdp, kinds = _model_to_look_at(model, settings, goal)
    if kinds and cmdp.n_states > RANGES_STATES and not as_json:
        _print_names(model, cmdp, kinds)
        return
    report = inspect_with_progress(cmdp, force)
    if as_json:
        click.echo(json.dumps(report.record() | ({"kinds": kinds} if kinds else {}), allow_nan=False))
        return
    out = console()
    out.print(Text(f"{model}: {_without_goal(cmdp) if kinds else repr(cmdp)}"))
    table = Table(show_header=False)
    for key, value in report.lines():
        if not kinds or key not in OF_A_GOAL:
            table.add_row(key, Text(value))
    out.print(table)
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


def _model_to_look_at(model: str, settings: tuple[str, ...], goal: dict[str, Any]) -> tuple[CMDP, dict[str, str]]:
    """Read a model; an exchange file without a goal is read with all rewards and labels, and the kind of each."""
    options = words("--set", settings)
    if is_exchange_file(model) and not goal and not set(options) - {"constants"}:
        return read_everything(model, options.get("constants", ""))
    return read_model(model, settings, goal=goal), {}


@click.command("convert")
@model_argument
@click.argument("file")
@goal_options
@set_option
def convert_command(model: str, file: str, settings: tuple[str, ...], goal: dict[str, Any]) -> None:
    """Write MODEL to FILE, which ends in .npz or .json, or in .umb or .drn for Storm and PRISM.

    The formats of Storm and PRISM hold no limits, and the objective is a reward among others.
    """
    target = output_path("FILE", file, WRITTEN)
    assert target is not None
    cmdp = read_model(model, settings, goal=goal)
    save(cmdp, target)
    console().print(Text(f"{target}: {cmdp!r}"))
