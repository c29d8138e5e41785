"""Ctrl-C that waits for a good moment.

An exception raised by a signal in the middle of a compiled call surfaces as a SystemError and leaves arrays half
written. So while a run is on, a signal only asks it to stop; the run looks after each step. A second one is obeyed at
once.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Has somebody asked to stop?"""

    asked = False

    def heed(self) -> None:
        """Raise the KeyboardInterrupt that was held back, if any; call it where it does no harm."""
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def deferred_interrupts() -> Iterator[StopRequest]:
    """Turn Ctrl-C into a request. Signals reach the main thread only; elsewhere nothing changes."""
    request = StopRequest()
    # Where Ctrl-C is ignored, as in a job in the background, it stays so.
    ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
    if threading.current_thread() is not threading.main_thread() or ignored:
        yield request
        return

    def note(signum: int, frame: FrameType | None) -> None:
        if request.asked:
            raise KeyboardInterrupt
        request.asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, before)
