"""Runs of ``learn`` with a live progress bar."""

import sys
import time
from contextlib import nullcontext
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from psconrl.cli.autosave import Autosave
from psconrl.cli.render import console
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.simulation.interrupt import Interrupted
from psconrl.simulation.regret import signed_regret, targets
from psconrl.simulation.run import Run
from psconrl.simulation.trace import Trace

REFRESH_SECONDS = 0.1
WIDE_SCREEN = 110


def learn_with_progress(run: Run, horizon: int, best: Plan | None, target: Path | None) -> Trace:
    """Play a run up to a horizon; save it to ``target``, if given. Ctrl-C ends it with the results so far."""
    shown, autosave = time.monotonic(), Autosave(target)
    screen = console(stderr=True)
    wide = [BarColumn()] if screen.width >= WIDE_SCREEN else []  # the figures matter more than the bar
    bar = Progress(
        TextColumn("{task.description}"),
        *wide,
        MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=2 * len(str(horizon)) + 1)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
        TextColumn("{task.fields[status]}", markup=False),
        console=screen,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    task = bar.add_task("round", total=horizon, completed=run.round, status="")

    def progress(run: Run) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= REFRESH_SECONDS:
            shown = now
            bar.update(task, completed=run.round, status=_status(run, best))
        autosave(run)

    with nullcontext() if bar.disable else bar:  # older versions of rich print a line even if disabled
        try:
            return run.run(horizon, progress=progress)
        except Interrupted as stopped:
            trace: Trace = stopped.trace
            return trace


def _status(run: Run, best: Plan | None) -> str:
    t = max(run.round, 1)
    averages = run.cumulative / t
    limits = ", ".join(
        f"{name} {a:.3f}/{tau:g}" for name, a, tau in zip(run.cost_names[1:], averages[1:], run.thresholds, strict=True)
    )
    lost = ""
    if best is not None and best.status is not Status.INFEASIBLE:
        signed = signed_regret(run.cumulative[None], [t], targets(best.costs[0], run.thresholds))
        lost = f", regret {signed[0, 0]:.0f}"
    return f"episode {len(run.log)}, {limits}{lost}"
