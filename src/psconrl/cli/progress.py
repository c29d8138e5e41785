"""Progress line for long planning, and an estimate of the planning time beforehand."""

import sys
import time
from collections.abc import Callable

from rich.text import Text

from psconrl.cli.render import console
from psconrl.model.cmdp import CMDP
from psconrl.planning.analysis.plan_time import planning_effort
from psconrl.planning.analysis.windows import WindowPlan, plan_windows
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.planning.progress import Progress

WORTH_TELLING = 3.0  # seconds


def plan_with_progress(cmdp: CMDP, method: str) -> Plan:
    """Return the plan; show its progress on a terminal. Ctrl-C ends with the best plan so far."""
    line = _Line(sys.stderr.isatty())
    needed = planning_effort(cmdp)
    if needed is not None and needed.seconds >= WORTH_TELLING:
        console(stderr=True).print(Text(f"{cmdp.n_states} states: {needed}. Ctrl-C stops with the best plan so far."))
    try:
        return plan(cmdp, method, progress=line.show)
    finally:
        line.end()


def plan_windows_with_progress(cmdp: CMDP, within: float, plain: Plan) -> WindowPlan:
    """Return the plans of windows; show on a terminal how many are done."""
    line = _Line(sys.stderr.isatty())
    try:
        return plan_windows(cmdp, within, plain, line.show)
    finally:
        line.end()


class _Line:
    """The last line of a terminal, which is overwritten; nothing is written without a terminal."""

    def __init__(self, on_terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._on, self._clock, self._began, self._width = on_terminal, clock, clock(), 0

    def show(self, progress: Progress | str) -> None:
        """Show the progress of the search, if it has taken a second or more."""
        if self._on and self._clock() - self._began >= 1.0:
            text = str(progress)
            self._width = max(self._width, len(text))
            sys.stderr.write(f"\r{text:{self._width}}")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
