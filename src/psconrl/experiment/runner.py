"""Running the jobs of a sweep: only what is missing, on any executor, each kept as soon as it is done."""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psconrl.errors import PsconrlError, StoreError
from psconrl.experiment.executors import ExecutorFactory, executor_factory
from psconrl.experiment.facts import facts_of, model_bytes
from psconrl.experiment.job import Job, Result, execute, failure
from psconrl.experiment.store import Store, Writer
from psconrl.experiment.versions import git_commit
from psconrl.planning.planner import plan

# How often a run is tried again after the process that ran it has died.
RETRIES = 3


@dataclass
class Outcome:
    """What a sweep did; while it runs, how far it is."""

    total: int
    known: int = 0  # were in the file before
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    errors: list[str] = field(default_factory=list)  # last line of every traceback

    @property
    def left(self) -> int:
        """Runs still to come."""
        return self.total - self.known - self.done - self.failed


Progress = Callable[[Outcome], None]


def run_sweep(
    jobs: Sequence[Job],
    path: str | Path,
    *,
    executor: Any = None,
    workers: int | None = None,
    progress: Progress | None = None,
    title: str = "",
) -> Outcome:
    """Run what is missing in a results file. Ctrl-C ends it early; the same call again goes on.

    ``executor``: processes by default, ``"dask://HOST:PORT"``, a Dask client, or any ``concurrent.futures`` executor.
    """
    check(jobs)
    began = time.perf_counter()
    with Store.writer(path) as store:
        finished = store.finished()
        hashes = {job.hash: job for job in jobs}
        missing = [job for key, job in hashes.items() if key not in finished]
        outcome = Outcome(len(hashes), known=len(hashes) - len(missing))
        names = list(dict.fromkeys(job.experiment for job in jobs))
        _note_experiments(store, jobs, names)
        orders = {f"order {name}": list(dict.fromkeys(j.label for j in jobs if j.experiment == name)) for name in names}
        store.note({"title": title or "psconrl"} | {key: json.dumps(labels) for key, labels in orders.items()})
        store.select(names, set(hashes))
        if progress is not None:
            progress(outcome)
        # The long ones first: nobody waits for one that began last.
        missing.sort(key=lambda job: -job.horizon)

        def keep(result: Result) -> None:
            store.add(result, {"commit": git_commit()})
            if result.error:
                outcome.failed += 1
                job = result.job
                outcome.errors.append(f"{job.experiment}, {job.label}, run {job.replicate}: {_last_line(result.error)}")
            else:
                outcome.done += 1
            outcome.seconds = time.perf_counter() - began
            if progress is not None:
                progress(outcome)

        try:
            if missing:
                with executor_factory(executor, workers) as factory:
                    _run_all(missing, factory, keep)
        except KeyboardInterrupt:
            outcome.interrupted = True
        outcome.seconds = time.perf_counter() - began
        return outcome


def check(jobs: Iterable[Job]) -> None:
    """Build every environment and agent once, so that a misspelt option is an error now, not in the 40th run."""
    models: dict[tuple[str, str, str], Any] = {}
    seen = set()
    for job in jobs:
        key = (job.experiment, job.label)
        if key in seen:
            continue
        seen.add(key)
        if job.model_key not in models:
            models[job.model_key] = job.model()
        try:
            job.make_agent(models[job.model_key])
        except PsconrlError as error:
            raise type(error)(f"experiment {job.experiment!r}, agent {job.label!r}: {error}") from None


def _note_experiments(store: Writer, jobs: Sequence[Job], names: list[str]) -> None:
    known = {
        row[0]: (row[1], json.loads(row[2])) for row in store.query("SELECT name, position, facts FROM experiments")
    }
    following = itertools.count(1 + max((position for position, _ in known.values()), default=-1))
    for name in names:
        models = {job.model_key: job for job in jobs if job.experiment == name}
        key = [list(model) for model in models]
        if name in known and known[name][1]["key"] == key:
            continue
        position = known[name][0] if name in known else next(following)
        job = next(iter(models.values()))
        facts = {"key": key, "env": Path(job.env).name}
        if len(models) > 1:  # drawn anew for each run: each keeps its own optimum
            store.add_experiment(name, position, facts | {"drawn": True}, None)
        else:
            cmdp = job.model()
            store.add_experiment(name, position, facts | facts_of(cmdp, plan(cmdp)), model_bytes(cmdp))


def _run_all(jobs: list[Job], factory: ExecutorFactory, keep: Callable[[Result], None]) -> None:
    """Submit everything and keep what comes back; if the pool breaks, what was lost goes to a new one."""
    attempts = 0
    left = jobs
    while left:
        executor = factory()
        lost: list[Job] = []
        pending: dict[Future[Result], Job] = {}
        try:
            pending = {executor.submit(execute, job): job for job in left}
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    job = pending.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        lost.append(job)
                        continue
                    except Exception as error:  # of the cluster, as when a run has killed several workers
                        result = failure(job, f"{type(error).__name__}: {error}")
                    keep(result)
        except BrokenProcessPool:
            lost = [*lost, *pending.values()]
        except BaseException:
            _abandon(executor, pending)
            raise
        executor.shutdown()
        attempts = attempts + 1 if len(lost) == len(left) else 0
        if attempts > RETRIES:
            raise StoreError(
                f"worker processes died {attempts} times without finishing a run: out of memory, or a script that "
                "calls run_sweep outside of if __name__ == '__main__':"
            )
        left = lost


def _abandon(executor: Executor, pending: Iterable[Future[Result]]) -> None:
    """Leave without waiting for what is running."""
    for future in pending:
        future.cancel()
    processes = getattr(executor, "_processes", None) or {}
    executor.shutdown(wait=False, cancel_futures=True)
    for process in list(processes.values()):
        process.terminate()


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
