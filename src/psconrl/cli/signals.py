"""Signals that end a command."""

import signal
import threading


def end_politely() -> None:
    """Make SIGTERM act like Ctrl-C, so that results are kept and everything is closed properly."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
