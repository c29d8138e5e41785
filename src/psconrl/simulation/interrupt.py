"""Deferred handling of Ctrl-C.

An exception in the middle of a round would leave inconsistent counts and sums. So during a run a signal only requests a
stop; the run checks for it after each step, completes its records and raises ``Interrupted``. A second signal stops the
run at once; further signals are ignored during the cleanup.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """KeyboardInterrupt that is raised once all records are consistent, and holds the results so far.

    ``trace``: of a run, as ``simulate`` would have returned it. ``outcome``: of a sweep, as of ``run_sweep``.
    """

    def __init__(self, trace: Any = None, outcome: Any = None) -> None:
        super().__init__("interrupted; what was done is kept in .trace of a run, .outcome of a sweep")
        self.trace, self.outcome = trace, outcome


class StopRequest:
    """Whether a stop was requested."""

    asked = False

    def check(self) -> None:
        """Raise the deferred KeyboardInterrupt, if any; call it where an interruption is safe."""
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def deferred_interrupts() -> Iterator[StopRequest]:
    """Turn Ctrl-C into a stop request. Signals reach the main thread only; in other threads nothing changes.

    Where Ctrl-C is ignored, as in a background job of a script, it stays ignored. SIGTERM is a stop request too if its
    handler is ``signal.default_int_handler``.
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
