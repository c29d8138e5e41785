"""Helpers shared by the tests of sweeps."""

import os
import sqlite3
from concurrent.futures import Executor, Future
from contextlib import closing

from psconrl.experiment.checksum import checksum
from psconrl.experiment.job import execute
from psconrl.experiment.results_check import (
    experiment_checksum,
    read_meta,
    read_series,
    run_checksum,
    sum_of_meta,
    sum_of_runs,
)
from psconrl.experiment.store import Store


class AtOnce(Executor):
    """An executor that runs its tasks immediately, in this process."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def content(path):
    """All results of a file in a canonical order: these must be equal however the runs were made."""
    with Store(path) as store, store.snapshot(with_series=True):  # an error if a checksum does not hold
        runs = store.query(
            "SELECT id, hash, experiment, label, replicate, status, horizon, job, thresholds, optimum, summary, current"
            " FROM runs ORDER BY hash"
        )
        experiments = store.query("SELECT name, facts, model FROM experiments ORDER BY name")
        return [
            (
                run[1:],
                store.series(run[0]),
            )
            for run in runs
        ], experiments


def changed(path, *statements):
    """Execute SQL statements on a results file; readers then notice that it was changed."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def changed_unnoticed(path, *statements):
    """Execute SQL statements on a results file, and calculate its checksums again."""
    changed(path, *statements)
    with closing(sqlite3.connect(path)) as db:

        def query(sql, parameters=()):
            return db.execute(sql, parameters).fetchall()

        for (run,) in query("SELECT id FROM runs"):
            series = checksum(read_series(query, run))
            db.execute("UPDATE runs SET series = ? WHERE id = ?", (series, run))
            db.execute("UPDATE runs SET checksum = ? WHERE id = ?", (run_checksum(query, run, series), run))
        for (row,) in query("SELECT rowid FROM experiments"):
            values = (experiment_checksum(query, row), row)
            db.execute("UPDATE experiments SET checksum = ? WHERE rowid = ?", values)
        db.execute("DELETE FROM meta WHERE key LIKE 'runs %'")
        for (name,) in query("SELECT DISTINCT experiment FROM runs"):
            db.execute("INSERT INTO meta VALUES (?, ?)", (f"runs {name}", sum_of_runs(query, name)))
        db.execute("INSERT OR REPLACE INTO meta VALUES ('checksum', ?)", (sum_of_meta(read_meta(query)),))
        db.commit()


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
