"""A lock that one holder has at a time, among all processes and threads, and that ends with its process.

The file of a lock is never removed. If it were, a process that had just opened it could lock the removed file while
another one creates and locks a new file of the same name.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def _lock_at_once(f: IO[bytes]) -> None:
        f.seek(0)
        try:
            msvcrt.locking(f.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from None

    def _unlock(f: IO[bytes]) -> None:
        f.seek(0)
        msvcrt.locking(f.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock_at_once(f: IO[bytes]) -> None:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(f: IO[bytes]) -> None:
        fcntl.flock(f, fcntl.LOCK_UN)  # closing is not enough while a process that was just forked has the file


_open_files: set[IO[bytes]] = set()
_changing = threading.Lock()  # held while _open_files is changed, and during a fork


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing. ``BlockingIOError`` is raised at once if it is taken."""
    with _changing:
        f = path.open("ab")
        _open_files.add(f)
    try:
        _lock_at_once(f)
        try:
            yield
        finally:
            if not f.closed:  # in a forked process it is closed, and the lock is its parent's
                _unlock(f)
    finally:
        with _changing:
            _open_files.discard(f)
            f.close()


def _leave_to_parent() -> None:
    """Close the files in a forked child: a lock outlives its process while another one has the file open."""
    for f in _open_files:
        f.close()
    _open_files.clear()
    _changing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_leave_to_parent)
