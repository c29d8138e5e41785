"""Lines of text about long work, for a progress function such as ``print``."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError

FIRST_AFTER_SECONDS = 2.0  # without a line
BETWEEN_SECONDS = 1.0  # from line to line

Report = Callable[[str], object]


class Reports:
    """Passes lines on, from two seconds on and at most one in a second; without a function, none.

    ``stage`` says what the following lines are about.

    >>> seconds = iter([0.0, 1.0, 2.5, 3.0])
    >>> report = Reports(print, clock=lambda: next(seconds))
    >>> for line in ("too early", "1,000 reachable states", "too soon"):
    ...     report(line)
    1,000 reachable states
    """

    def __init__(self, function: Report | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin(function)

    def _begin(self, function: Report | None) -> None:
        if function is not None and not callable(function):
            raise ConfigError(f"progress must be a function, such as print; got {quoted(function)}")
        self._function, self._stage = function, ""
        self._next = self._clock() + FIRST_AFTER_SECONDS

    @contextmanager
    def to(self, function: Report | None) -> Iterator["Reports"]:
        """Pass the lines of some work on to a function, and no others."""
        self._begin(function)
        try:
            yield self
        finally:
            self._begin(None)

    @property
    def is_silent(self) -> bool:
        """Whether all lines are ignored."""
        return self._function is None

    def stage(self, name: str) -> None:
        """Begin a part of the work, such as "plan 3 of 11"; its lines begin with its name, unless that is empty."""
        self._stage = ""
        if name:
            self(name)
        self._stage = name

    def __call__(self, line: object) -> None:
        """Report a line, or another object by its text, unless it is too early."""
        if self._function is not None:
            now = self._clock()
            if now >= self._next:
                self._next = now + BETWEEN_SECONDS
                self._function(f"{self._stage}: {line}" if self._stage else str(line))
