"""Reading damaged files in a process of its own, whose memory and processor time are limited for every file."""

import contextlib
import hashlib
import importlib
import io
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from psconrl.errors import PsconrlError

MEMORY = 10**9  # bytes that reading and using a file may take
SECONDS = 10  # of processor time
WAITING = 120.0  # seconds after which a process that does not even compute is given up
LONGEST_MESSAGE = 3000  # characters
FILES_OF_A_PROCESS = 400
ACCEPTED, REFUSED, FAILED = "accepted", "refused", "FAILED"
PAGE = os.sysconf("SC_PAGE_SIZE")


class RefusedError(Exception):
    """A command ended with a line for the user and an exit code that says so."""


class Reader(NamedTuple):
    """A reader: a name, the ending of its files, how to make one from a seed, and how to read and use one.

    ``numbers``: all numbers of a file with checksums. ``seal``: how to calculate these again, unless the changes that
    know the format do so.
    """

    name: str
    ending: str
    sample: Callable[[Path, int], object]
    read: Callable[[Path], object]
    numbers: Callable[[Path], object] | None = None
    seal: Callable[[bytes], bytes] | None = None
    refusals: tuple[type[Exception], ...] = (PsconrlError, RefusedError)  # errors that are meant for the user


class Outcome(NamedTuple):
    """What reading a file ended in; ``reason``: the same for like failures; ``numbers``: a digest of what was read."""

    kind: str
    reason: str = ""
    message: str = ""
    numbers: str = ""
    seconds: float = 0.0

    @property
    def is_failure(self) -> bool:
        return self.kind == FAILED


class Judge:
    """A process that reads files one after the other. One that dies or hangs is replaced by a new one."""

    def __init__(self, module="damage.readers", seconds=SECONDS):
        self._module, self._seconds = module, seconds  # whose READERS are meant, and how long each may compute
        self._process = None
        self._known = set()  # readers that have read a whole file, after which all modules are loaded
        self._read = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop()

    def outcome(self, reader, content: bytes, whole: bytes) -> Outcome:
        """Return what reading a file ends in; ``whole``: a file that is not damaged, which has to be accepted."""
        if self._process is None or self._read >= FILES_OF_A_PROCESS:
            self._start()
        if reader.name not in self._known:
            first = self._ask(reader, whole)
            if first.kind != ACCEPTED:
                raise ValueError(f"a whole file is not accepted by {reader.name}: {first}")
            self._known.add(reader.name)
        self._read += 1
        return self._ask(reader, content)

    def _ask(self, reader, content) -> Outcome:
        limited = reader.name in self._known
        try:
            self._ours.send((reader.name, content, limited))
            if not self._ours.poll(WAITING):
                self._stop()
                return Outcome(FAILED, f"waits more than {WAITING:g} seconds", seconds=WAITING)
            return self._ours.recv()
        except (EOFError, OSError):
            code = self._stop()
        if code == -signal.SIGXCPU:
            return Outcome(FAILED, f"takes more than {self._seconds} seconds", seconds=self._seconds)
        return Outcome(FAILED, f"the process ends ({signal.Signals(-code).name if code < 0 else code})")

    def _start(self):
        self._stop()
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._folder = tempfile.TemporaryDirectory(prefix="damaged-", ignore_cleanup_errors=True)
        given = theirs, self._module, self._seconds, Path(self._folder.name)
        self._process = context.Process(target=serve, args=given, daemon=True)
        self._process.start()
        theirs.close()
        self._known, self._read = set(), 0

    def _stop(self):
        """End the process, and return its exit code."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        self._ours.close()
        process.join(2.0)
        if process.is_alive():
            process.kill()
            process.join()
        self._folder.cleanup()
        return process.exitcode


def serve(connection, module, seconds, folder):
    """Read files for a ``Judge`` until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    readers = importlib.import_module(module).READERS
    while True:
        try:
            name, content, limited = connection.recv()
        except EOFError:
            return
        connection.send(judged(readers[name], content, folder / "read", seconds if limited else None))


def judged(reader, content: bytes, folder: Path, seconds: int | None) -> Outcome:
    """Read a file in this process, and return what that ended in; ``seconds``: None for no limits."""
    folder.mkdir(parents=True)
    path = folder / f"file{reader.ending}"
    as_it_came = folder / f"as-it-came{reader.ending}"
    for each in (path, as_it_came):
        each.write_bytes(content)
    begin = time.process_time()
    try:
        with _limits(seconds), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")  # a damaged number may overflow
            reader.read(path)
            numbers = "" if reader.numbers is None else digest(reader.numbers(as_it_came))
        outcome = Outcome(ACCEPTED, numbers=numbers)
    except reader.refusals as error:
        outcome = _refused(error)
    except BaseException as error:
        outcome = Outcome(FAILED, f"{type(error).__name__} in {_place(error)}", str(error)[:500])
    finally:
        shutil.rmtree(folder)
    return outcome._replace(seconds=time.process_time() - begin)


@contextlib.contextmanager
def _limits(seconds):
    """Limit what the block may take beyond what the process has."""
    if seconds is None:
        yield
        return
    has = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + seconds + 1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _refused(error) -> Outcome:
    """An error for the user is one line of a bounded length, and hides no lack of memory."""
    message, name = str(error), type(error).__name__
    if len(message.splitlines()) != 1:
        return Outcome(FAILED, f"{name} of several lines in {_place(error)}", message[:500])
    if len(message) > LONGEST_MESSAGE:
        return Outcome(FAILED, f"{name} of thousands of characters in {_place(error)}", message[:500])
    cause = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return Outcome(FAILED, f"MemoryError in {_place(cause)}", message[:500])
        cause = cause.__cause__ or cause.__context__
    return Outcome(REFUSED, message=message[:500])


def _place(error):
    """Return the function of the library that an error comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "psconrl" in Path(frame.filename).parts] or frames
    return f"{own[-1].name} ({Path(own[-1].filename).name})"


def digest(value) -> str:
    """Return a digest of all numbers and texts of nested data."""
    total = hashlib.sha256()

    def add(part):
        if isinstance(part, dict):
            for key in sorted(part):
                add(key)
                add(part[key])
        elif isinstance(part, list | tuple):
            total.update(b"(")
            for each in part:
                add(each)
        elif hasattr(part, "tocsr"):
            add([part.data, part.indices, part.indptr])
        else:
            array = np.asarray(part)
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(str(part).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())

    add(value)
    return total.hexdigest()
