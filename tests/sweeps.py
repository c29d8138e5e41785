"""Helpers shared by the tests of sweeps."""

import os
from concurrent.futures import Executor, Future

from psconrl.experiment.job import execute
from psconrl.experiment.store import Store


class AtOnce(Executor):
    """An executor that runs its tasks immediately, in this process."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def content(path):
    """All results of a file in a canonical order: these must be equal however the runs were made."""
    with Store(path) as store:
        runs = store.query(
            "SELECT id, hash, experiment, label, replicate, status, horizon, job, thresholds, optimum, summary, current"
            " FROM runs ORDER BY hash"
        )
        experiments = store.query("SELECT name, facts, model FROM experiments ORDER BY name")
        return [
            (
                run[1:],
                store.points(run[0]),
                store.query("SELECT round, value FROM probes WHERE run = ? ORDER BY 1", run[:1]),
            )
            for run in runs
        ], experiments


def die_of_third(job):
    """Run a job; the third one kills its process."""
    if job.replicate == 2:
        os._exit(1)
    return execute(job)


def elsewhere(job):
    """Act as a worker with different code."""
    result = execute(job)
    result.provenance["code"] = "another"
    return result
