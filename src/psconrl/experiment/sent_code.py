"""User code on other machines: the source is sent with every run.

The files sent are those that a run's hash covers: the modules that the user names, and what they import from the same
folder. A worker keeps them in a folder of its own, first in ``sys.path``, so that it never runs another version.
Installed packages (in site-packages) and files that the code reads are not sent: they must be on the worker.
"""

import hashlib
import importlib
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from psconrl.base.named_code import sources
from psconrl.errors import ConfigError, PsconrlError
from psconrl.experiment.job import Job, code_names, need_the_same
from psconrl.experiment.versions import versions

MOST_BYTES = 1_000_000  # every run carries the code; larger code belongs in a package

Files = Mapping[str, bytes]  # contents by path, relative to the folder that holds them
T = TypeVar("T")

_placing = threading.Lock()
_folders: dict[str, "tempfile.TemporaryDirectory[str]"] = {}  # of a worker, by digest of the contents


def sources_of(jobs: Sequence[Job]) -> Files:
    """Return the files of all code that the jobs name, except installed packages."""
    names = {name for job in jobs if job.code for name, _ in code_names(job)}
    files: dict[str, bytes] = {}
    for name in sorted(names):
        for path, content in sources(name).items():
            if files.setdefault(path, content) != content:
                raise ConfigError(f"two files that would be sent to the workers are called {path}; rename one")
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise ConfigError(
            f"the code that would be sent to the workers is {size:,} bytes, more than {MOST_BYTES:,}: make it a "
            "package, and install that on all of them"
        )
    return files


class Sending(Executor):
    """Wrapper of an executor with remote workers, which sends the code along with every call."""

    def __init__(self, owned: Executor, files: Files) -> None:
        self._owned, self._files = owned, files

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit to the wrapped executor, with the code."""
        return self._owned.submit(_with_code, self._files, _here(), fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the wrapped executor down; Dask's has no argument ``cancel_futures``."""
        self._owned.shutdown(wait, **({"cancel_futures": True} if cancel_futures else {}))


def need_workers(client: Any, jobs: Sequence[Job], files: Files) -> None:
    """Check that every worker of a Dask cluster can run all jobs; raise a one-line error if one cannot."""
    outside = {
        (job.agent, job.env, str(job.env_options), job.knowledge): job
        for job in jobs
        if job.code or job.file or job.knowledge.file
    }
    if not outside:
        return
    answers = client.run(_complaint, list(outside.values()), files, _here(), versions(), on_error="return")
    for worker, complaint in sorted(answers.items()):
        if complaint:
            raise ConfigError(f"worker {worker}: {' '.join(str(complaint).split())}")


def place(files: Files) -> None:
    """Put code first in this process's ``sys.path``, and unload modules of the same names."""
    parts = [part for path in sorted(files) for part in (path.encode(), files[path])]
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    with _placing:
        if key not in _folders:
            _folders[key] = tempfile.TemporaryDirectory(prefix="psconrl-code-")
            for path, content in files.items():
                target = Path(_folders[key].name, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        folder = _folders[key].name
        if sys.path[0] == folder:
            return
        others = {each.name for each in _folders.values()}
        sys.path[:] = [folder, *(path for path in sys.path if path not in others)]
        _unload(files)


@contextmanager
def placed(files: Files) -> Iterator[None]:
    """Run a block with code first in ``sys.path``; afterwards the path is as before, and the code is unloaded."""
    before = list(sys.path)
    place(files)
    try:
        yield
    finally:
        sys.path[:] = before
        _unload(files)


def _unload(files: Files) -> None:
    tops = {Path(path).parts[0].removesuffix(".py") for path in files}
    for module in [name for name in sys.modules if name.partition(".")[0] in tops]:
        del sys.modules[module]
    importlib.invalidate_caches()


def _with_code(files: Files, sender: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    if files and sender != _here():  # a thread of the sender already has the code
        place(files)
    return fn(*args, **kwargs)


def _complaint(jobs: Sequence[Job], files: Files, sender: str, wanted: Mapping[str, str]) -> str:
    other = {key: value for key, value in versions().items() if wanted.get(key) != value}
    if other:
        return f"has other versions than this machine: {', '.join(f'{key} {value}' for key, value in other.items())}"
    try:
        for job in jobs:
            _with_code(files, sender, need_the_same, job)
    except PsconrlError as error:
        return str(error)
    return ""


def _here() -> str:
    return f"{socket.gethostname()} {os.getpid()}"
