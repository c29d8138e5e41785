"""One line that follows a plan which takes long, and what it will take before it is begun."""

import sys
import time
from collections.abc import Callable

from rich.text import Text

from psconrl.cli.render import console
from psconrl.model.cmdp import CMDP
from psconrl.planning.analysis.plan_time import estimate
from psconrl.planning.analysis.windows import WindowPlan, plan_windows
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.planning.progress import Progress

WORTH_TELLING = 3.0  # seconds


def plan_with_progress(cmdp: CMDP, method: str) -> Plan:
    """The plan; on a terminal, its progress on the way. Ctrl-C ends with the best plan so far."""
    line = _Line(sys.stderr.isatty())
    needed = estimate(cmdp)
    if needed is not None and needed.seconds >= WORTH_TELLING:
        console(stderr=True).print(Text(f"{cmdp.n_states} states: {needed}. Ctrl-C stops with the best plan so far."))
    try:
        return plan(cmdp, method, progress=line.show)
    finally:
        line.end()


def plan_windows_with_progress(cmdp: CMDP, within: float, plain: Plan) -> WindowPlan:
    """The plans of windows; on a terminal, how many there are already."""
    line = _Line(sys.stderr.isatty())
    try:
        return plan_windows(cmdp, within, plain, line.show)
    finally:
        line.end()


class _Line:
    """The last line of a terminal, written over and over; nothing where there is no terminal."""

    def __init__(self, on_terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._on, self._clock, self._began, self._width = on_terminal, clock, clock(), 0

    def show(self, progress: Progress | str) -> None:
        """Where the search stands, if it has taken a while."""
        if self._on and self._clock() - self._began >= 1.0:
            text = str(progress)
            self._width = max(self._width, len(text))
            sys.stderr.write(f"\r{text:{self._width}}")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave an empty line behind."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
