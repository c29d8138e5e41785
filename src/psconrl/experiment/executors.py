"""Where jobs run: processes on this machine or a Dask cluster, both behind the ``concurrent.futures`` interface."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.experiment.job import Job
from psconrl.experiment.sent_code import Sending, need_workers, sources_of
from psconrl.experiment.versions import code_digest, inherit_code_digest

# One BLAS thread per process: more threads make small linear systems many times slower.
PINNED = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

MOST_WORKERS = 1000  # processes on this machine, each 150 MB or more; use a cluster for more

T = TypeVar("T")

# Makes an executor; it is called again if the processes die.
ExecutorFactory = Callable[[], Executor]


@contextmanager
def executor_factory(where: Any, workers: int | None = None, jobs: Sequence[Job] = ()) -> Iterator[ExecutorFactory]:
    """Yield a factory for the executor that ``where`` names.

    ``where``: ``"processes"``, ``"dask://HOST:PORT"``, a Dask client, or an executor.
    ``jobs``: the jobs to run; user code that they name is sent to the workers of a cluster.
    """
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise ConfigError(f"workers must be a whole number from 1 to {MOST_WORKERS}; got {workers}")
    if where in (None, "processes"):
        yield lambda: _processes(workers or os.cpu_count() or 1)
    elif isinstance(where, str) and where.startswith("dask://"):
        client = _connect(where.removeprefix("dask://"))
        try:
            yield _dask(client, jobs)
        finally:
            client.close()
    elif hasattr(where, "get_executor"):
        yield _dask(where, jobs)
    elif isinstance(where, Executor):
        yield lambda: _Borrowed(where)
    else:
        raise ConfigError(
            f"executor must be 'processes', 'dask://HOST:PORT', a Dask client or an Executor; got {quoted(where)}"
        )


class _Borrowed(Executor):
    """Wrapper of the caller's executor, which the sweep must not shut down."""

    def __init__(self, owned: Executor) -> None:
        self._owned = owned
        self._futures: list[Future[Any]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit to the wrapped executor."""
        future = self._owned.submit(fn, *args, **kwargs)
        self._futures.append(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is not running yet if ``cancel_futures``; the wrapped executor stays open."""
        if cancel_futures:
            for future in self._futures:
                future.cancel()


def _processes(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    before = {name: os.environ.get(name) for name in PINNED}
    os.environ.update(PINNED)  # the workers inherit it; it has no effect once NumPy is loaded
    try:
        with _interrupts_blocked():  # inherited too: Ctrl-C must not kill a worker that is starting
            pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(code_digest(),))
            for _ in range(workers):
                pool.submit(os.getpid)  # spawn all of them while the settings hold
        return pool
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while workers start; the parent handles it afterwards."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # start it first: it unblocks signals when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(digest: str) -> None:
    """Initialise a worker process, which exits if its parent dies for any reason."""
    inherit_code_digest(digest)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def leave() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=leave, daemon=True).start()


def _dask(client: Any, jobs: Sequence[Job]) -> ExecutorFactory:
    files = sources_of(jobs)
    need_workers(client, jobs, files)
    return lambda: Sending(client.get_executor(pure=False), files)  # pure=False: equal calls are not merged


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("a Dask cluster needs the extra: pip install 'psconrl[distributed]'") from None
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise ConfigError(f"executor must be dask://HOST:PORT; got dask://{address}")
    try:
        client: Any = Client
        return client(f"tcp://{address}", timeout="5s")
    except OSError as error:
        raise ConfigError(f"dask://{address}: no scheduler answers there ({error})") from None
