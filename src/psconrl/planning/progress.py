"""Following a plan of a large model while it is made: how far it is from its bound, and stopping it by hand."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from psconrl.planning.scaling import Scaling

Made = TypeVar("Made")


class Progress(NamedTuple):
    """How far a plan is: the best mixture so far, and what no policy can be better than."""

    policies: int  # evaluated so far
    value: float  # the average objective of the best mixture, in the user's sense
    bound: float  # no policy within the limits is better
    seconds: float  # since the plan was begun

    @property
    def gap(self) -> float:
        """The distance between them."""
        return abs(self.value - self.bound)

    def __str__(self) -> str:
        return f"{self.policies} policies, {self.seconds:.0f} s: value {self.value:.6g}, gap {self.gap:.1e}"


class Watch:
    """Follows the search for a plan, tells of its progress, and remembers whether the user has stopped it."""

    def __init__(self, tell: Callable[[Progress], object] | None, maximise: bool) -> None:
        self._tell, self._sign = tell, -1.0 if maximise else 1.0
        self._began = time.monotonic()
        self.scaling: Scaling | None = None  # of the problem that is solved
        self.stopped = False

    @property
    def follow(self) -> "Watch | None":
        """Itself, if there is anybody to tell: else Ctrl-C ends the program, as usual."""
        return None if self._tell is None else self

    def found(self, evaluated: int, value: float, bound: float) -> None:
        """After so many policies a mixture has this value, and nothing feasible costs less than the bound."""
        if self._tell is not None and self.scaling is not None:
            shift, scale = float(self.scaling.shift[0]), float(self.scaling.scale[0])
            value, bound = (self._sign * (shift + scale * x) for x in (value, bound))
            self._tell(Progress(evaluated, value, bound, time.monotonic() - self._began))

    def finish(self, work: Callable[[], Made]) -> Made:
        """Do what makes a plan of what was found, once more from its beginning if the user stops it meanwhile."""
        try:
            return work()
        except KeyboardInterrupt:
            if self._tell is None or self.stopped:
                raise
        self.interrupted()
        return work()

    def interrupted(self) -> None:
        """The user has stopped it."""
        self.stopped = True
