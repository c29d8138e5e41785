"""A line on the terminal when kernels are compiled, which the first call on a machine does for seconds.

Numba keeps the result beside the package (or in ``NUMBA_CACHE_DIR``), so that it happens once; ``psconrl warm`` does it
beforehand. Nothing is printed where nobody looks: in worker processes, or into a file.
"""

import multiprocessing
import sys
import time

from numba.core import event

PATIENCE = 1.0  # seconds of compiling that are not worth a line
NOTICE = "psconrl: compiling for this machine, once; this takes a while (psconrl warm does it beforehand)"


class CompileNotice(event.Listener):
    """Says once that kernels of this library are being compiled, when that takes longer than the patience."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._open: list[bool] = []  # of what is being compiled, one inside the other: is it ours?
        self._begin = 0.0
        self._said = False

    def on_start(self, event: event.Event) -> None:
        """Something begins to be compiled; what is in the cache never does."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("psconrl.")
        if ours and not any(self._open):
            self._begin = time.monotonic()
        self._open.append(ours or any(self._open))

    def on_end(self, event: event.Event) -> None:
        """Parts of a kernel are compiled before it, so that this is called every now and then."""
        ours = self._open.pop()
        if ours and not self._said and time.monotonic() - self._begin > self._patience:
            self._said = True
            if _somebody_looks():
                print(NOTICE, file=sys.stderr, flush=True)


def _somebody_looks() -> bool:
    """Is this a terminal, or a session where commands are typed, such as a notebook?"""
    if multiprocessing.parent_process() is not None:
        return False
    return hasattr(sys, "ps1") or bool(sys.stderr is not None and sys.stderr.isatty())


_NOTICE = CompileNotice()


def announce() -> None:
    """Watch what Numba compiles in this process."""
    event.register("numba:compile", _NOTICE)  # type: ignore[no-untyped-call]


def keep_quiet() -> None:
    """For whoever says it himself."""
    event.unregister("numba:compile", _NOTICE)  # type: ignore[no-untyped-call]
