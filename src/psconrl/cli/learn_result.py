"""The result of ``learn`` on the screen: averages, optimum, regret and violations."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from psconrl.cli.render import number
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.simulation.regret import regret
from psconrl.simulation.trace import Trace


def print_result(out: Console, title: str, trace: Trace, best: Plan | None) -> None:
    """Print how a run went; ``best``: the optimal plan, if the environment has a model."""
    kinds = ", ".join(f"{trace.count(kind)} {kind}" for kind in dict.fromkeys(trace.episodes.kind))
    ended = "interrupted after" if trace.interrupted else "played"
    seconds, planning = trace.provenance["seconds"], trace.provenance["planning_seconds"]
    out.print(Text(f"{title}: {ended} {sum(trace.episodes.length)} rounds in {len(trace.episodes)} episodes ({kinds})"))
    beside = ", in the background" if trace.provenance.get("background") else ""
    out.print(Text(f"{seconds:.2f} s, of which {planning:.2f} s sampling and planning{beside}"))
    if not trace.rounds.size:
        return
    sign = -1.0 if trace.provenance["maximise"] else 1.0
    averages, names, limits = trace.averages[-1], trace.cost_names, trace.thresholds
    floors = frozenset() if best is None else best.names.at_least
    if best is not None and best.status is Status.INFEASIBLE:
        out.print(Text(f"No policy can meet the limits: {best.infeasibility}"))
        best = None
    optimum, lost, strong = "", "", None
    over, worst = trace.cumulative[-1, 1:] - trace.rounds[-1] * limits, trace.largest_excess[-1]
    if best is not None:
        measured = regret(trace, best)
        optimum, lost, strong = number(best.value), f"regret {measured.final[0]:.1f}", measured.strong
    table = Table(
        "", "average", "optimum or limit", "over the run", "at worst", *([] if strong is None else ["strong"])
    )
    for column in table.columns[1:]:
        column.justify = "right"
    named = trace.units.named
    exact = [()] * len(names) if strong is None else [(f"{x:.1f}",) for x in strong]
    table.add_row(Text(named(names[0])), number(sign * averages[0]), optimum, lost, "", *exact[0])
    for i, name in enumerate(names[1:]):
        of_limit = -1.0 if name in floors else 1.0
        shown = f"{'>= ' if name in floors else ''}{number(of_limit * float(limits[i]))}"
        found = number(of_limit * averages[i + 1]), shown, f"violation {over[i]:.1f}", f"{worst[i]:.1f}"
        table.add_row(Text(named(name)), *found, *exact[i + 1])
    out.print(table)
