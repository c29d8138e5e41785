"""Atomic writing of files: a file appears whole or not at all, and leftovers are removed."""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, PsconrlError

try:
    import fcntl
except ImportError:  # on Windows an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]


def as_path(path: Any, error: type[PsconrlError]) -> Path:
    """Return a ``Path`` from a path or text."""
    if not isinstance(path, str | os.PathLike):
        raise error(f"a path must be text or a Path; got {quoted(path)}")
    return Path(path)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], error: type[PsconrlError]) -> None:
    """Write beside the target, then rename over it: a crash leaves the old file or the new one, never half of one.

    Temporary files left by killed writers of the same file are removed.
    """
    part: Path | None = None
    try:
        part, f = _new_part(path)
        with f:
            write(f)
            f.flush()
            os.fsync(f.fileno())
            if fcntl is None:
                f.close()  # Windows cannot rename an open file
            os.replace(part, path)
        _remove_left_behind(path)
    except PsconrlError:
        raise
    except OSError as failed:
        raise error(f"{path}: cannot be written ({failed.strerror or failed})") from None
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink()


def _new_part(path: Path) -> tuple[Path, IO[bytes]]:
    """Create a file beside the target, locked while open; the operating system releases the locks of dead processes."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # tempfile would hide it from other users
        f = part.open("xb")
        if _lock(f) and part.exists():
            return part, f
        f.close()  # another process cleaned it up before it was locked


def _lock(f: IO[bytes]) -> bool:
    if fcntl is not None:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks: then no other process can clean up either
    return True


def _remove_left_behind(path: Path) -> None:
    """Remove the temporary files of dead writers: those that can be locked."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if ours.fullmatch(name):
                _remove_if_abandoned(path.with_name(name))


def _remove_if_abandoned(part: Path) -> None:
    with suppress(OSError):
        if fcntl is not None:
            with part.open("rb") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
        else:
            part.unlink()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Prefix errors in reading a file with its name."""
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        yield
    except PsconrlError as error:
        raise type(error)(f"{path}: {error}") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error})") from None
