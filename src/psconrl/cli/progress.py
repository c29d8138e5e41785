"""Progress line for long computations, and an estimate of the planning time beforehand."""

import math
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from rich.text import Text

from psconrl.answers.answer import Answer
from psconrl.answers.asking import plan
from psconrl.answers.deterministic import SearchProgress, SimplePolicy, best_deterministic
from psconrl.answers.inspection import Inspection, inspect_model
from psconrl.answers.pareto import Pareto, ParetoSurface, pareto, pareto_surface
from psconrl.answers.short_rule import ShortRule, rule
from psconrl.answers.stated_model import StatedModel
from psconrl.answers.threshold_rule import ThresholdRule, threshold_rule
from psconrl.answers.windows import WindowPlan, plan_windows
from psconrl.base.escaping import printable
from psconrl.cli.render import console
from psconrl.model.cmdp import CMDP
from psconrl.planning.methods import METHODS
from psconrl.planning.plan import Plan
from psconrl.planning.plan_time import planning_effort
from psconrl.planning.planner import plan_model, plan_settled
from psconrl.planning.progress import Progress, Watch
from psconrl.systems.system import System

WORTH_TELLING = 3.0  # seconds
QUIET_SECONDS = 1.0  # seconds without a line
STOPS = "(Ctrl-C stops with the best so far)"


def plan_with_progress(cmdp: CMDP, method: str, exact: bool = False) -> Plan:
    """Return the plan; show its progress on a terminal. Ctrl-C ends with the best plan so far."""
    needed = planning_effort(cmdp)
    if needed is not None and needed.seconds >= WORTH_TELLING:
        console(stderr=True).print(Text(f"{cmdp.n_states} states: {needed}. Ctrl-C stops with the best plan so far."))
    with _Line(sys.stderr.isatty()) as line:
        return plan_model(cmdp, method, progress=line.show, exact=exact)


def reference_with_progress(cmdp: CMDP) -> Plan:
    """Return the plan with which a run is compared; show its progress on a terminal. Ctrl-C ends the program."""
    with _Line(sys.stderr.isatty()) as line:
        found = plan_settled(cmdp, watch=Watch(line.show, cmdp.maximise, stoppable=False))
    return found.of_model(cmdp) if found.feasible else plan_model(cmdp)


def answer_with_progress(opened: CMDP | System) -> Answer:
    """Return the answer for a model or a system; show on a terminal how far it is."""
    if isinstance(opened, CMDP):
        return Answer.of_model(StatedModel(opened), opened, plan_with_progress(opened, METHODS[0]))
    with _Line(sys.stderr.isatty(), patience=0.0) as line:  # it reports from two seconds on
        return plan(opened, progress=line.show)


def pareto_with_progress(
    opened: CMDP | System, names: Sequence[str], points: int, low: float | None, high: float | None
) -> Pareto | ParetoSurface:
    """Return the curve over one threshold, or the surface over two; show on a terminal how far it is."""
    with _Line(sys.stderr.isatty(), patience=0.0) as line:
        if len(names) == 2:
            return pareto_surface(opened, names, points=points, progress=line.show)
        return pareto(opened, names[0], points=points, low=low, high=high, progress=line.show)


def rule_with_progress(answer: Answer, depth: int) -> ShortRule:
    """Return a short rule; say on a terminal that one is being searched for."""
    with _Line(sys.stderr.isatty(), patience=0.0) as line:
        line.show(f"searching for a rule of at most {depth} questions")
        return rule(answer, depth)


def build_with_progress(system: System) -> CMDP:
    """Return the model of a system; show on a terminal how far it is."""
    with _Line(sys.stderr.isatty(), patience=0.0) as line:  # it reports from two seconds on
        return system.model(progress=line.show)


def prepare_with_progress(system: System) -> None:
    """Prepare a system for an agent or a simulation; show on a terminal how far it is."""
    with _Line(sys.stderr.isatty(), patience=0.0) as line:  # it reports from two seconds on
        system.prepare(line.show)


def plan_windows_with_progress(cmdp: CMDP, within: float, plain: Plan) -> WindowPlan:
    """Return the plans of windows; show on a terminal how many are done."""
    with _Line(sys.stderr.isatty()) as line:
        return plan_windows(cmdp, within, plain, line.show)


def best_deterministic_with_progress(cmdp: CMDP, best: Plan, most_plans: int) -> SimplePolicy:
    """Return the best deterministic policy; show the progress of the search. Ctrl-C ends with the best so far."""
    with _Line(sys.stderr.isatty()) as line:

        def show(progress: SearchProgress) -> None:
            line.show(str(progress) if math.isnan(progress.value) else f"{progress} {STOPS}")

        return best_deterministic(cmdp, best, most_plans=most_plans, progress=show)


def threshold_rule_with_progress(cmdp: CMDP, best: Plan) -> ThresholdRule | None:
    """Return the best threshold rule; show how many have been evaluated. Ctrl-C ends with the best so far."""
    with _Line(sys.stderr.isatty()) as line:
        return threshold_rule(cmdp, best=best, progress=lambda text: line.show(f"{text} {STOPS}"))


def inspect_with_progress(cmdp: CMDP, always_diameter: bool) -> Inspection:
    """Return the properties of a model; show which of them is being computed."""
    with _Line(sys.stderr.isatty(), patience=0.0) as line:  # as a step may be long
        return inspect_model(cmdp, always_diameter, line.show)


class _Line:
    """The last line of a terminal, which is overwritten; nothing is written without a terminal."""

    def __init__(
        self, on_terminal: bool, clock: Callable[[], float] = time.monotonic, patience: float | None = None
    ) -> None:
        self._on, self._clock, self._began, self._width = on_terminal, clock, clock(), 0
        self._patience = QUIET_SECONDS if patience is None else patience

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def show(self, progress: Progress | str) -> None:
        """Show the progress, unless it is too early; cut to the width of the terminal."""
        if self._on and self._clock() - self._began >= self._patience:
            text = printable(str(progress))[: shutil.get_terminal_size().columns - 1]
            self._width = max(self._width, len(text))
            sys.stderr.write(f"\r{text:{self._width}}")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
