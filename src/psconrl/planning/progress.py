"""Progress reports while a large model is planned, and interruption by the user."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from psconrl.planning.scaling import Scaling

Made = TypeVar("Made")


class Progress(NamedTuple):
    """Progress of a search: the best mixture so far and the bound on all policies."""

    policies: int  # evaluated so far
    value: float  # average objective of the best mixture, in the user's sense
    bound: float  # no policy within the thresholds is better
    seconds: float  # since planning began

    @property
    def gap(self) -> float:
        """Distance between value and bound."""
        return abs(self.value - self.bound)

    def __str__(self) -> str:
        return f"{self.policies} policies, {self.seconds:.0f} s: value {self.value:.6g}, gap {self.gap:.1e}"


class Watch:
    """Follows the search for a plan, reports its progress, and records whether the user has stopped it.

    ``stoppable``: whether Ctrl-C ends the search with the best plan so far; if not, it ends whatever needs the plan.
    """

    def __init__(self, report: Callable[[Progress], object] | None, maximise: bool, *, stoppable: bool = True) -> None:
        self._report, self._sign, self._stoppable = report, -1.0 if maximise else 1.0, stoppable
        self._began = time.monotonic()
        self.scaling: Scaling | None = None  # of the problem that is solved
        self.stopped = False

    @property
    def follow(self) -> "Watch | None":
        """This object if a progress function was given, else None; without one Ctrl-C ends the program, as usual."""
        return None if self._report is None else self

    def found(self, evaluated: int, value: float, bound: float) -> None:
        """Report the value of the best mixture and the lower bound after ``evaluated`` policies."""
        if self._report is not None and self.scaling is not None:
            shift, scale = float(self.scaling.shift[0]), float(self.scaling.scale[0])
            value, bound = (self._sign * (shift + scale * x) for x in (value, bound))
            self._report(Progress(evaluated, value, bound, time.monotonic() - self._began))

    def finish(self, work: Callable[[], Made]) -> Made:
        """Run ``work``, which turns the search result into a plan; if the user interrupts it, run it again."""
        try:
            return work()
        except KeyboardInterrupt:
            if self._report is None or self.stopped:
                raise
        self.interrupted()
        return work()

    def interrupted(self) -> None:
        """Record that the user has stopped the search; raise KeyboardInterrupt if it cannot be stopped by itself."""
        if not self._stoppable:
            raise KeyboardInterrupt
        self.stopped = True
