"""Figure of a run: moving averages, cumulative regret and violations."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from psconrl.model.units import Units
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.report.figure_files import LITERAL
from psconrl.report.running_averages import window_for
from psconrl.report.style import GREY, PALETTE
from psconrl.simulation.regret import moving_average, signed_regret, targets
from psconrl.simulation.trace import Trace


@LITERAL
def trace_figure(trace: Trace, best: Plan | None, title: str = "") -> Figure:
    """Draw a run, one row per cost: the moving average against the optimum or threshold, and the cumulative regret.

    Every axis has one unit. The second panel of a constraint has the cumulative violation; that of the objective has
    the objective itself if there is no optimum.
    """
    optimum = None if best is None or best.status is Status.INFEASIBLE else float(best.costs[0])
    t, window = trace.rounds, window_for(trace.horizon)
    aims = targets(0.0 if optimum is None else optimum, trace.thresholds)
    added = signed_regret(trace.cumulative, t, aims)
    sign = -1.0 if trace.provenance.get("maximise") else 1.0
    units, floors = (Units(), frozenset()) if best is None else (best.names.units, best.names.at_least)
    m = trace.thresholds.size
    figure = Figure(figsize=(10.0, 1.0 + 2.1 * (m + 1)))
    rows = figure.subplots(1 + m, 2, sharex=True, squeeze=False)
    for i, (left, right) in enumerate(rows):
        name, colour = trace.cost_names[i], PALETTE[i % len(PALETTE)]
        of_name = sign if i == 0 else -1.0 if name in floors else 1.0
        average = of_name * moving_average(trace.cumulative[:, i], t, window) if t.size else t
        left.plot(t, average, color=colour, label=f"average of the last {window:,} rounds")
        if i > 0 or optimum is not None:
            aim = of_name * float(aims[i])
            kind = ("at least" if name in floors else "limit") if i else "optimum"
            left.axhline(aim, color=GREY, ls="--", lw=1.2, label=f"{kind} {aim:.4g}")
        left.set_title(units.named(name) if units.average(name) else f"{name}, a round", loc="left", fontsize=9)
        lost = i > 0 or optimum is not None
        right.plot(t, added[:, i] if lost else of_name * added[:, i], color=colour)
        right.axhline(0, color=GREY, lw=0.8)
        what = (f"violation of {name} so far" if i else f"regret in {name} so far") if lost else f"{name}, in all"
        right.set_title(f"{what} ({total})" if (total := units.total(name)) else what, loc="left", fontsize=9)
        left.legend(fontsize=8)
    for axes in rows.flat:
        axes.grid(alpha=0.3)
    for axes in rows[-1]:
        axes.set_xlabel("round")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if title:
        figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure
