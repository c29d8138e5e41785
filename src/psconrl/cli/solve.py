"""The command ``solve``."""

import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.text import Text

from psconrl.answers.answer import Answer
from psconrl.answers.deterministic import MOST_PLANS, SimplePolicy
from psconrl.answers.threshold_rule import ThresholdRule, state_order, why_unordered
from psconrl.answers.windows import WindowPlan
from psconrl.cli.exit_codes import INFEASIBLE, UNCERTIFIED
from psconrl.cli.options import (
    GivenModel,
    json_option,
    model_and_threshold_options,
    output_path,
    picture_path,
)
from psconrl.cli.progress import (
    answer_with_progress,
    best_deterministic_with_progress,
    plan_windows_with_progress,
    plan_with_progress,
    threshold_rule_with_progress,
)
from psconrl.cli.render import (
    averages_table,
    certificate_line,
    console,
    cost_table,
    exact_table,
    number,
    policy_table,
    policy_view,
    print_windows,
    rule_table,
    settling_line,
)
from psconrl.cli.stated import stated_table
from psconrl.errors import ConfigError, InfeasibleError, SolverError
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.files import ENDINGS
from psconrl.model.io import save
from psconrl.planning.methods import METHODS
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.systems.system import System

EXIT = {Status.INFEASIBLE: INFEASIBLE, Status.UNCERTIFIED: UNCERTIFIED}  # 0 for the others

INITIALLY_RANDOMISED = (
    "Each run draws one of several policies: on average over runs they meet every threshold, and no policy that does "
    "so is better."
)

KINDS = ("best", "deterministic", "threshold")
SIMPLE_POLICY_STATES = 100  # states up to which simpler policies are computed by default
FEW_PLANS = 30  # for such a policy


class PlanFiles(NamedTuple):
    """The files that ``solve`` writes, in the order in which they are listed; None for those not wanted."""

    picture: Path | None
    policy: Path | None
    chain: Path | None
    plan: Path | None
    proof: Path | None


@click.command("solve")
@model_and_threshold_options
@click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True, help="lp: HiGHS.")
@click.option("--exact", is_flag=True, help="Also plan in rational arithmetic, and print the optimum as fractions.")
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
    model: GivenModel,
    method: str,
    exact: bool,
    as_json: bool,
    plot: str | None,
    policy_to: str | None,
    chain_to: str | None,
    save_to: str | None,
    proof_to: str | None,
    kind: str,
    within: float | None,
) -> None:
    """Plan MODEL: value, costs against thresholds, shadow prices, policy, certificate.

    Exit code 0 if optimal, 3 if no policy meets the thresholds.
    """
    files = PlanFiles(
        picture_path(plot),
        output_path("--policy", policy_to, (".csv",)),
        output_path("--chain", chain_to, ENDINGS),
        output_path("--save", save_to, (".npz",)),
        output_path("--proof", proof_to, (".json",)),
    )
    _check_kind(kind, files, as_json, within)
    opened = model.open()
    answer, cmdp = _answered(opened)
    if kind == "threshold" and state_order(cmdp) is None:
        raise ConfigError(
            f"--kind threshold: {why_unordered(cmdp)}; name them by one number, such as '3 waiting', or give an order "
            "to psconrl.threshold_rule(model, order)"
        )
    again = answer is None or exact or method != METHODS[0]
    result = plan_with_progress(cmdp, method, exact) if answer is None or again else answer.plan
    windows = None
    if within is not None and result.feasible:
        windows = plan_windows_with_progress(cmdp, within, result)
    if kind != KINDS[0]:
        (result if answer is None else answer).required()
    _write_files(files, model.name, cmdp, result, windows, kind)
    if as_json:
        record = result.record() if windows is None else result.record() | {"windows": windows.record()}
        record |= {} if answer is None else {"stated": answer.record()}
        click.echo(json.dumps(record, allow_nan=False))
        sys.exit(EXIT.get(result.status, 0))
    out = console()
    out.print(Text(f"{model.name}: {cmdp!r}"))
    _print_plan(out, cmdp, result, kind, answer)
    if windows is not None:
        print_windows(out, windows)
    _print_other_kinds(out, cmdp, result, kind, files.policy)
    for what, path in files._asdict().items():
        if path is not None:
            out.print(Text(f"{what.capitalize()}: {path}"))
    sys.exit(EXIT.get(result.status, 0))


def _answered(opened: CMDP | System) -> tuple[Answer | None, CMDP]:
    """Return the answer for a system, if it is one, and the model."""
    if isinstance(opened, CMDP):
        return None, opened
    answer = answer_with_progress(opened)
    return answer, answer.model


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
        from psconrl.report.figure_files import write_figure
        from psconrl.report.policy_figure import policy_figure

        write_figure(policy_figure(cmdp, result, title=model), files.picture)
    if files.plan is not None:
        result.save(files.plan)
    if files.proof is not None:
        result.save_proof(files.proof, cmdp)
    if files.chain is not None:
        save(cmdp, files.chain, result.policy)
    if files.policy is not None and kind == KINDS[0]:
        (result if windows is None else windows).to_csv(files.policy)


def _print_plan(out: Console, cmdp: CMDP, result: Plan, kind: str, answer: Answer | None) -> None:
    """Print status, costs, policy and certificate; of a system, values and limits as stated."""
    advice = result.status.advice if result.mixture is None or not result.feasible else INITIALLY_RANDOMISED
    out.print(Text(f"{result.status.value.upper()}. {advice}", style="bold"))
    infeasibility = result.infeasibility if answer is None else answer.infeasibility
    if infeasibility is not None:
        why = str(infeasibility)
        out.print(Text(f"{why[0].upper()}{why[1:]}\nThe policy of least excess:"))
    note = result.note if answer is None else answer.note
    if note:
        out.print(Text(f"Note: {note.removesuffix('.')}."))
    if answer is None:
        out.print(cost_table(result))
    else:
        out.print(stated_table(answer, answer.averages_of(result.occupancy)))
    if kind == KINDS[0]:
        for view in policy_view(cmdp, result):
            out.print(view)
    if result.exact is not None:
        out.print(exact_table(result))
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
