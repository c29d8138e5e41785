"""Ctrl-C that waits for a good moment.

An exception in the middle of a round would leave counts and sums that contradict each other. So while a run is on, a
signal only asks it to stop; the run looks after each step, completes its records and raises ``Interrupted``. A second
signal is obeyed at once; those that follow do not disturb the tidying up.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, once everything is in order. What was done until then is kept.

    ``trace``: of a run, as ``simulate`` would have returned it. ``outcome``: of a sweep, as of ``run_sweep``.
    """

    def __init__(self, trace: Any = None, outcome: Any = None) -> None:
        super().__init__("interrupted; what was done is kept in .trace of a run, .outcome of a sweep")
        self.trace, self.outcome = trace, outcome


class StopRequest:
    """Has somebody asked to stop?"""

    asked = False

    def check(self) -> None:
        """Raise the KeyboardInterrupt that was held back, if any; call it where it does no harm."""
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def deferred_interrupts() -> Iterator[StopRequest]:
    """Turn Ctrl-C into a request. Signals reach the main thread only; elsewhere nothing changes.

    Where Ctrl-C is ignored, as in a script's job in the background, it stays so. SIGTERM is a request too if it was
    made to mean the same, by ``signal.default_int_handler``.
    """
    request = StopRequest()

    def note(signum: int, frame: FrameType | None) -> None:
        if request.asked:
            signal.signal(signum, signal.SIG_IGN)
            raise KeyboardInterrupt
        request.asked = True

    before = {number: signal.getsignal(number) for number in _meaning_stop()}
    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _meaning_stop() -> list[signal.Signals]:
    if threading.current_thread() is not threading.main_thread():
        return []
    interrupt = [] if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None) else [signal.SIGINT]
    terminate = [signal.SIGTERM] if signal.getsignal(signal.SIGTERM) is signal.default_int_handler else []
    return interrupt + terminate
