"""Plans and models as text: tables and maps with arrows."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from psconrl.answers.threshold_rule import ThresholdRule
from psconrl.answers.windows import WindowPlan
from psconrl.base.arrays import Floats
from psconrl.base.escaping import printable
from psconrl.model.cmdp import CMDP
from psconrl.model.names import Names
from psconrl.planning.deployable import Deployable
from psconrl.planning.exact.checking import nearest_double
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
VISITED = 1e-9  # long-run share below which a state is not shown
MAX_ROWS = 40  # of a policy table
WIDE_TABLE = 1_000  # characters in a line of a report that is written to a file, at most
FEW_NAMES = 5  # of states in a line
SHOWN_BITS = 64  # of a numerator or denominator
LONG_SETTLING = 1e5  # rounds to settle from which on a warning is shown


class _SafeConsole(Console):
    """A console that escapes control characters in names that come from files."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def console(stderr: bool = False, width: int = 120) -> Console:
    """Return the console to print to; ``width``: characters in a line if the output is not a terminal."""
    out = _SafeConsole(highlight=False, stderr=stderr)
    return out if out.is_terminal or stderr else _SafeConsole(highlight=False, width=width)


def number(x: float) -> str:
    """Format a number with eight significant digits; values below 1e-12 in size become 0.

    >>> number(0.30000000000000004), number(-1e-17)
    ('0.3', '0')
    """
    return "0" if abs(x) < 1e-12 else f"{x:.8g}"


def cost_table(plan: Plan) -> Table:
    """Return a table of every cost with average, threshold, slack and shadow price, and units if the model has any."""
    infeasible = plan.status is Status.INFEASIBLE
    table = numbers_table("", "average", "threshold", "slack", "Farkas weight" if infeasible else "shadow price")
    names, units = plan.names, plan.names.units
    rows = [[f"{names.costs[0]} ({names.sense})", number(plan.value), "", "", ""]]
    for i, name in enumerate(names.costs[1:]):
        tau, cost = float(plan.thresholds[i]), float(plan.costs[i + 1])
        shown, limit = number(float(names.signs[i + 1]) * cost), limit_text(names, i + 1, tau)
        rows.append([name, shown, limit, number(tau - cost), number(float(plan.multipliers[i]))])
    if any(units.average(name) for name in names.costs):
        table.add_column("averages in")
        for row, name in zip(rows, names.costs, strict=True):
            row.append(units.average(name))
    for row in rows:
        table.add_row(*map(Text, row))
    if units.average(names.costs[0]) and len(rows) > 1 and not infeasible:
        table.caption = Text(f"shadow prices: {units.average(names.costs[0])} for one unit more of a limit")
    return table


def exact_table(plan: Plan) -> Table:
    """Return a table of the averages and multipliers of a plan in rational numbers."""
    assert plan.exact is not None
    names, exact = plan.names, plan.exact
    table = numbers_table("exactly", "average", "Farkas weight" if not exact.feasible else "shadow price")
    table.add_row(Text(f"{names.costs[0]} ({names.sense})"), Text(rational(exact.value)), "")
    for i, name in enumerate(names.costs[1:]):
        average = int(names.signs[i + 1]) * exact.costs[i + 1]
        table.add_row(Text(name), Text(rational(average)), Text(rational(exact.multipliers[i])))
    return table


def rational(x: Fraction) -> str:
    """Format a fraction with its decimal; numbers of many digits are shortened to their size.

    >>> rational(Fraction(31, 40)), rational(Fraction(2)), rational(Fraction(3**99, 2**99))
    ('31/40 = 0.775', '2', '(157 bits)/(100 bits) = 2.7104078502347683e+17')
    """
    parts = [f"({n.bit_length()} bits)" if n.bit_length() > SHOWN_BITS else str(n) for n in x.as_integer_ratio()]
    if x.denominator == 1 and x.numerator.bit_length() <= SHOWN_BITS:
        return parts[0]
    return f"{'/'.join(parts)} = {nearest_double(x)!r}"


def show_table(found: Mapping[str, Any]) -> None:
    """Print a table of a report: title, note, header, rows. A file has its lines in full length."""
    table = Table(*found["header"], title=found["title"], caption=found["note"])
    table.title_justify = table.caption_justify = "left"
    for row in found["rows"]:
        table.add_row(*map(str, row))
    console(width=WIDE_TABLE).print(table)


def limit_text(names: Names, i: int, threshold: float) -> str:
    """Format a threshold; lower bounds are marked by ``>=``."""
    return f">= {number(-threshold)}" if names.is_negated(i) else number(threshold)


def numbers_table(first: str, *columns: str) -> Table:
    """Return a table with a column of names and right-aligned columns of numbers."""
    table = Table(first, title_justify="left")
    for column in columns:
        table.add_column(escape(column), justify="right")
    return table


def signed(x: float) -> str:
    """Format a change with its sign.

    >>> signed(0.25), signed(-3.0), signed(1e-17)
    ('+0.25', '-3', '0')
    """
    return "0" if abs(x) < 1e-9 else f"{x:+.5g}"


def policy_view(cmdp: CMDP, plan: Plan) -> list[Any]:
    """Return the policy as maps if the model has a grid layout, else as a table of its most visited states."""
    if cmdp.layout:
        return [*policy_maps(cmdp, plan), *([mixture_table(plan)] if plan.mixture else [])]
    return [mixture_table(plan) if plan.mixture else policy_table(plan)]


def mixture_table(plan: Plan) -> Table:
    """Return a table of states by how often they are visited, with the action of every policy of the mixture."""
    mixture = plan.mixture
    assert mixture is not None
    mass = plan.occupancy.sum(axis=1)
    differ = (mixture.policies != mixture.policies[0]).any(axis=0)  # shown even if transient
    order = [int(s) for s in np.argsort(-(mass + 2.0 * differ), kind="stable")]
    shown = [s for s in order if mass[s] > VISITED or differ[s]][:MAX_ROWS]
    headers = [f"policy {j + 1} ({100 * share:.4g}% of runs)" for j, share in enumerate(mixture.shares)]
    table = Table("state", "long-run share", *headers)
    table.columns[1].justify = "right"
    for s in shown:
        actions = (Text(plan.names.action(int(actions[s]))) for actions in mixture.policies)
        table.add_row(Text(plan.names.state(s)), f"{100 * mass[s]:.3g}%", *actions)
    left = int(((mass > VISITED) | differ).sum()) - len(shown)
    if left > 0:
        table.caption = f"and {left} more states (--policy FILE.csv has all)"
    return table


def policy_maps(cmdp: CMDP, plan: Plan) -> list[Any]:
    """Return one map per layer, with arrows where the policy goes in the long run, and randomised actions in words."""
    layout = cmdp.layout
    assert layout is not None
    mass = plan.occupancy.sum(axis=1)
    views: list[Any] = []
    layers = list(dict.fromkeys(layout.layers)) if layout.layers else [None]
    for layer in layers:
        here = [s for s in range(cmdp.n_states) if layer is None or (layout.layers and layout.layers[s] == layer)]
        if not any(mass[s] > VISITED for s in here):
            continue
        grid = [[f" {symbol} " for symbol in row] for row in layout.rows]
        if (moved := layout.moved(here[0])) is not None:
            grid[moved[0]][moved[1]] = " B "
        for s in here:
            i, j = layout.cells[s]
            if mass[s] > VISITED and layout.rows[i][j] != "G":
                grid[i][j] = _arrows(cmdp, plan.shown_policy[s]) + grid[i][j][1] + " "
        title = f"{layer}\n" if layer else ""
        views.append(Text(title + "\n".join("  " + " ".join(cell) for cell in grid)))
    randomised = randomised_actions(cmdp, plan)
    symbols = {"S": "start", "G": "goal", "R": "risky", "#": "wall"}
    known = [f"{symbol} {meaning}" for symbol, meaning in symbols.items() if symbol in "".join(layout.rows)]
    known += ["B box"] if layout.layers and layout.moved(0) is not None else []
    legend = f"  arrows: the way taken in the long run; {', '.join(known)}"
    return [*views, Text(legend), *([Text(randomised)] if randomised else [])]


def _arrows(cmdp: CMDP, row: Floats) -> str:
    best = [a for a in np.argsort(-row, kind="stable") if row[a] > VISITED]
    marks = "".join(ARROWS.get(cmdp.action_name(int(a)), "?") for a in best[:2])
    return marks[0] if len(best) == 1 else "*"


def randomised_actions(cmdp: CMDP, plan: Plan) -> str:
    """Describe the visited states in which the policy randomises."""
    lines = []
    for s in plan.randomised_states[:MAX_ROWS]:
        if plan.occupancy[s].sum() > VISITED:
            lines.append(f"  * in {cmdp.state_name(int(s))}: {plan.names.shares(plan.policy[s])}")
    return "\n".join(lines)


def policy_table(played: Deployable) -> Table:
    """Return a table of states by how often they are visited, with the actions taken there."""
    mass = played.occupancy.sum(axis=1)
    order = [int(s) for s in np.argsort(-mass, kind="stable")]
    shown = [s for s in order if mass[s] > VISITED][:MAX_ROWS] or order[:1]
    table = Table("state", "long-run share", "action")
    table.columns[1].justify = "right"
    for s in shown:
        table.add_row(Text(played.names.state(s)), f"{100 * mass[s]:.3g}%", Text(played.names.shares(played.policy[s])))
    left = int((mass > VISITED).sum()) - len(shown)
    if left > 0:
        table.caption = f"and {left} less visited states (--policy FILE.csv has all)"
    return table


def rule_table(rule: ThresholdRule) -> Table:
    """Return a table of the intervals of states of a threshold rule, from first to last, with their actions."""
    table = Table("states", "long-run share", "action")
    table.columns[1].justify = "right"
    for where, share, actions in rule.intervals():
        table.add_row(Text(where), f"{100 * share:.3g}%", Text(actions))
    return table


def averages_table(names: Names, costs: Floats, thresholds: Floats) -> Table:
    """Return a table of the averages of a policy against the thresholds."""
    table = numbers_table("", "average", "threshold", "slack")
    for i, (name, cost) in enumerate(zip(names.costs, costs.tolist(), strict=True)):
        row = [number(float(names.signs[i]) * cost)]
        if i:
            tau = float(thresholds[i - 1])
            row += [limit_text(names, i, tau), number(tau - cost)]
        table.add_row(Text(names.units.named(name)), *row)
    return table


def settling_line(plan: Plan) -> str:
    """Describe in one line how soon the averages of a plan settle."""
    rounds = f"{plan.settles:,.0f}" if plan.settles < LONG_SETTLING else f"{plan.settles:.1e}"
    line = f"Settles: from the start, averages are final within 1% of a cost's range after {rounds} rounds"
    if plan.settles < LONG_SETTLING:
        return f"{line}."
    return f"{line}; over shorter times a limit may be exceeded (see --within)."


def print_windows(out: Console, windows: WindowPlan) -> None:
    """Print the price of limits over windows and the averages over windows."""
    plain, names = windows.plain, windows.plain.names
    rounds = f"{windows.within:,g} rounds"
    table = numbers_table(f"over windows of {rounds}", "long run", "plain plan", "worst window", "threshold")
    costs, best = names.signs * windows.costs, names.signs * plain.costs
    table.add_row(Text(f"{names.costs[0]} ({names.sense})"), number(costs[0]), number(best[0]), "", "")
    for i, worst in enumerate(windows.worst, start=1):
        limit = limit_text(names, i, float(plain.thresholds[i - 1]))
        shown = (costs[i], best[i], names.signs[i] * worst)
        table.add_row(Text(names.costs[i]), *map(number, shown), limit)
    out.print(table)
    price = names.units.with_unit(number(windows.price), names.costs[0])
    where = "wherever that is possible" if windows.infeasible.size else "in each"
    out.print(Text(f"Windows: they begin in {len(windows.plans)} states; to keep the limits {where} costs {price}."))
    if windows.infeasible.size:
        some = ", ".join(repr(names.state(int(s))) for s in windows.infeasible[:FEW_NAMES])
        more = ", ..." if windows.infeasible.size > FEW_NAMES else ""
        out.print(
            Text(f"Windows from {windows.infeasible.size} states exceed a limit under every policy: {some}{more}.")
        )
    if not windows.proven:
        out.print(Text("Windows: not every plan is proven."))


def certificate_line(plan: Plan) -> str:
    """Describe the certificate in one line."""
    proof = plan.certificate
    if plan.status is Status.INFEASIBLE:
        return f"Certificate: Farkas margin {proof.margin:.3g} > 0, {'holds' if proof.holds else 'DOES NOT HOLD'}"
    return (
        f"Certificate: gap {abs(proof.gap):.1e}, flow residual {proof.flow_residual:.1e}, "
        f"policy error {proof.policy_error:.1e}, {'holds' if proof.holds else 'DOES NOT HOLD'}"
    )
