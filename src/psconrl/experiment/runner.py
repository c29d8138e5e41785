"""Running the missing jobs of a sweep on any executor; each result is stored as soon as it is done."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from psconrl.errors import ConfigError, StoreError
from psconrl.experiment.checks import check_jobs
from psconrl.experiment.default_options import defaults_noted
from psconrl.experiment.environment_record import environment_record, is_complete, model_bytes
from psconrl.experiment.executors import ExecutorFactory, executor_factory
from psconrl.experiment.job import ADVICE, Job, Result, execute, failure, model_of
from psconrl.experiment.provenance import notes_of, on_this_machine
from psconrl.experiment.spec import Jobs
from psconrl.experiment.store import Store, Writer
from psconrl.experiment.user_metrics import measure_runs
from psconrl.experiment.user_titles import TITLES, user_titles
from psconrl.experiment.versions import git_commit, versions
from psconrl.simulation.interrupt import Interrupted, StopRequest, deferred_interrupts

# The longest time until a Ctrl-C is noticed.
LOOK_SECONDS = 0.2


@dataclass
class SweepOutcome:
    """Counts of a sweep's runs; its progress while it runs."""

    total: int
    known: int = 0  # already in the file before
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    mended: str = ""  # what had been changed in the file since it was written, and is made again
    hidden: int = 0  # runs of the same experiments from other code or settings: stored, but not shown
    errors: list[str] = field(default_factory=list)  # the last line of every traceback
    advice: dict[str, Counter[str]] = field(default_factory=dict)  # each line, with its number of runs by label

    @property
    def left(self) -> int:
        """Number of runs still to come."""
        return self.total - self.known - self.done - self.failed


Progress = Callable[[SweepOutcome], None]
Finished = SimpleQueue[Future[Result]]


def run_sweep(
    jobs: Sequence[Job],
    path: str | Path,
    *,
    executor: Any = None,
    workers: int | None = None,
    progress: Progress | None = None,
    title: str = "",
) -> SweepOutcome:
    """Run the jobs that are missing in a results file, or were changed in it since they were written.

    Ctrl-C raises ``psconrl.simulation.interrupt.Interrupted``, a KeyboardInterrupt. Its ``outcome`` and the file have
    what was done; repeat the call to continue.

    ``title``: the title of the report; by default the name of the jobs' spec, else the title that the file has.
    ``executor``: processes by default, ``"dask://HOST:PORT"``, a Dask client, or any ``concurrent.futures`` executor.
    """
    check_jobs(jobs)
    began = time.perf_counter()
    with Store.writer(path) as store, deferred_interrupts() as stop:
        hashes = {job.hash: job for job in jobs}
        names = list(dict.fromkeys(job.experiment for job in jobs))
        mended = store.mend(names, set(hashes))
        finished = store.finished()
        missing = [job for key, job in hashes.items() if key not in finished]
        outcome = SweepOutcome(len(hashes), known=len(hashes) - len(missing), mended=mended)
        orders = {f"order {name}": list(dict.fromkeys(j.label for j in jobs if j.experiment == name)) for name in names}
        planned = {
            f"planned {name}": Counter(j.label for j in hashes.values() if j.experiment == name) for name in names
        }
        known_title = "".join(text for (text,) in store.query("SELECT value FROM meta WHERE key = 'title'"))
        named = title or (jobs.title if isinstance(jobs, Jobs) else known_title) or "psconrl"
        titles = {f"{TITLES}{name}": user_titles([j for j in jobs if j.experiment == name]) for name in names}
        noted = {key: json.dumps(value) for key, value in (orders | planned | titles).items()}
        store.note({"title": named} | noted | notes_of(jobs) | defaults_noted(jobs))
        outcome.hidden = store.select(names, set(hashes))
        if progress is not None:
            progress(outcome)
        # Longest first, so that the sweep does not end by waiting for one long run.
        missing.sort(key=lambda job: -job.horizon)

        def keep(result: Result) -> None:
            result = _of_this_code(result)
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
            _note_experiments(store, jobs, names, stop)
            if missing:
                with executor_factory(executor, workers, missing) as factory:
                    _run_all(missing, factory, keep, stop)
            stop.check()  # a Ctrl-C at the last moment still stops what would come next
        except KeyboardInterrupt:
            outcome.interrupted = True
        if isinstance(jobs, Jobs):
            measure_runs(store, jobs.metrics, names)
        outcome.advice = _advice_of(store, names)
        outcome.seconds = time.perf_counter() - began
    if outcome.interrupted:
        raise Interrupted(outcome=outcome)
    return outcome


def _note_experiments(store: Writer, jobs: Sequence[Job], names: list[str], stop: StopRequest) -> None:
    columns = store.columns
    known = {
        row[0]: (columns.whole(row[1], "position of an experiment"), columns.table(row[2], "facts of an experiment"))
        for row in store.query("SELECT name, position, facts FROM experiments")
    }
    following = itertools.count(1 + max((position for position, _ in known.values()), default=-1))
    for name in names:
        stop.check()
        models = {job.model_key: job for job in jobs if job.experiment == name}
        key = [list(model) for model in models]
        if name in known and known[name][1].get("key") == key and is_complete(known[name][1]):
            continue
        position = known[name][0] if name in known else next(following)
        job = next(iter(models.values()))
        facts = {"key": key, "env": Path(job.env).name}
        if len(models) > 1:  # a new model for each run: each run has its own optimum
            store.add_experiment(name, position, facts | {"drawn": True}, None)
        else:
            environment = job.environment()
            model = model_of(environment)
            record = environment_record(environment)
            store.add_experiment(name, position, facts | record, None if model is None else model_bytes(model))


def _advice_of(store: Store, names: Sequence[str]) -> dict[str, Counter[str]]:
    """Return the advice on the current runs of some experiments: each line, with its number of runs by label."""
    found: dict[str, Counter[str]] = {}
    for name in names:
        runs = store.query(
            f"SELECT label, json_extract(summary, '$.{ADVICE}') FROM runs WHERE experiment = ? AND current"
            f" AND json_type(summary, '$.{ADVICE}') IS NOT NULL ORDER BY id",
            (name,),
        )
        for label, lines in runs:
            for line in store.columns.texts(store.columns.json(lines, ADVICE), ADVICE):
                found.setdefault(line, Counter())[store.columns.text(label, "a label")] += 1
    return found


def _of_this_code(result: Result) -> Result:
    """Turn the result of a worker with other versions into a failure, since the job's hash covers our versions."""
    other = {
        key: result.provenance.get(key) for key, value in versions().items() if result.provenance.get(key) != value
    }
    if result.error or not other:
        return result
    found = ", ".join(f"{key} {value}" for key, value in other.items())
    return failure(result.job, f"ConfigError: the worker has other versions than this machine: {found}")


def _run_all(jobs: list[Job], factory: ExecutorFactory, keep: Callable[[Result], None], stop: StopRequest) -> None:
    """Submit all jobs and keep the results. If the pool breaks, run each job that may have broken it alone."""
    left = jobs
    while left:
        lost, at_once = _run_together(left, factory, keep, stop)
        for job in lost[: at_once + 1]:  # in flight or next in line
            keep(_run_alone(job, factory, stop))
        left = lost[at_once + 1 :]


def _run_together(
    jobs: list[Job], factory: ExecutorFactory, keep: Callable[[Result], None], stop: StopRequest
) -> tuple[list[Job], int]:
    """Return the jobs lost with the pool, in the order of submission, and how many ran at once."""
    executor = factory()
    finished: Finished = SimpleQueue()
    pending: dict[Future[Result], Job] = {}
    lost: list[Job] = []
    try:
        for job in jobs:
            if stop.asked:
                break
            try:
                pending[_submit(executor, job, finished)] = job
            except BrokenProcessPool:
                lost.append(job)
        while pending:
            for future in _next_finished(finished, stop):
                job = pending.pop(future)
                result = _outcome(future, job)
                if result is None:
                    lost.append(job)
                else:
                    keep(result)
            stop.check()
    except BaseException:
        _abandon(executor)
        raise
    executor.shutdown()
    order = {id(job): k for k, job in enumerate(jobs)}
    return sorted(lost, key=lambda job: order[id(job)]), getattr(executor, "_max_workers", 1)


def _run_alone(job: Job, factory: ExecutorFactory, stop: StopRequest) -> Result:
    executor = factory()
    try:
        try:
            executor.submit(int).result()
        except BrokenProcessPool:
            raise StoreError(
                "worker processes die as they start: call run_sweep under if __name__ == '__main__': in a script, and "
                "give it an executor that is not broken"
            ) from None
        finished: Finished = SimpleQueue()
        _submit(executor, job, finished)
        (future,) = _next_finished(finished, stop)
        result = _outcome(future, job)
    except BaseException:
        _abandon(executor)
        raise
    executor.shutdown(wait=False)
    return result or failure(job, "BrokenProcessPool: the process died while running it (out of memory?)")


def _submit(executor: Executor, job: Job, finished: Finished) -> Future[Result]:
    """Submit a job; its future is put into the queue when it has finished or is cancelled."""
    try:
        future = executor.submit(on_this_machine, job, execute)
    except BrokenProcessPool:
        raise
    except RuntimeError as error:
        raise ConfigError(f"the executor accepts no runs: {error}") from None
    future.add_done_callback(finished.put)
    return future


def _next_finished(finished: Finished, stop: StopRequest) -> list[Future[Result]]:
    """Wait for a future to finish, and return all that have, cancelled ones last.

    A queue takes the same time however many are pending; ``concurrent.futures.wait`` looks at each of them.
    """
    found: list[Future[Result]] = []
    while not found:
        try:
            found.append(finished.get(timeout=0 if stop.asked else LOOK_SECONDS))
        except Empty:
            stop.check()
    while not finished.empty():
        found.append(finished.get_nowait())
    return sorted(found, key=Future.cancelled)


def _outcome(future: Future[Result], job: Job) -> Result | None:
    """Return the result of a run; None if it was lost with its process."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except CancelledError:
        raise ConfigError(
            "the executor has cancelled runs: it was shut down, or the cluster's scheduler is gone. Finished runs are "
            "kept; the same command continues"
        ) from None
    except Exception as error:  # raised by the cluster, e.g. when a run has killed several workers
        return failure(job, f"{type(error).__name__}: {error}")


def _abandon(executor: Executor) -> None:
    """Shut down without waiting for the runs in progress."""
    processes = list((getattr(executor, "_processes", None) or {}).values())
    try:
        executor.shutdown(wait=False, cancel_futures=True)
    except TypeError:  # Dask's executor has no such argument, and cancels anyway
        executor.shutdown(wait=False)
    finally:
        for process in processes:
            process.terminate()


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
