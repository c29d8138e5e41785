"""Storage of results in one SQLite file: runs, checkpoints, provenance.

A finished run is one transaction, so a crash loses at most the runs in progress. Write-ahead logging lets other
programs read while a sweep writes. Tables:

    experiments(name, position, facts, model)           the environment: optimum, thresholds, and the model itself
    runs(hash, experiment, label, replicate, ...)       status 'done' or 'failed', with the traceback; current = 0
                                                        if runs of newer code or settings have replaced it
    checkpoints(run, round, cost, total, strong,        cumulative costs; cost 0 is the objective; strong regret and
                largest)                                violations where policies were evaluated; for a constraint,
                                                        the largest excess so far
    probes(run, round, value)                           a sampled probability, if one was recorded
    meta(key, value)
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.errors import StoreError
from psconrl.escaping import quoted
from psconrl.experiment.columns import ColumnReader
from psconrl.experiment.job import Job, Result

FORMAT = "psconrl-results"
SCHEMA_VERSION = 1
WAIT_SECONDS = 20.0
GROUP = "group"  # start of the keys in meta for the shipped specs that experiments belong to
TABLES = ("meta", "experiments", "runs", "checkpoints", "probes")
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE experiments (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, facts TEXT NOT NULL, model BLOB
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, experiment TEXT NOT NULL, label TEXT NOT NULL,
    replicate INTEGER NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL, horizon INTEGER NOT NULL,
    job TEXT NOT NULL, thresholds TEXT NOT NULL, optimum TEXT NOT NULL, episodes INTEGER, summary TEXT NOT NULL,
    seconds REAL, provenance TEXT NOT NULL, error TEXT NOT NULL, current INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX runs_by_experiment ON runs (experiment, label, replicate);
CREATE TABLE checkpoints (
    run INTEGER NOT NULL REFERENCES runs (id), round INTEGER NOT NULL, cost INTEGER NOT NULL, total REAL NOT NULL,
    strong REAL, largest REAL, PRIMARY KEY (run, round, cost)
) WITHOUT ROWID;
CREATE TABLE probes (
    run INTEGER NOT NULL REFERENCES runs (id), round INTEGER NOT NULL, value REAL, PRIMARY KEY (run, round)
) WITHOUT ROWID;
"""


class Store:
    """A results file, open for reading; ``Store.writer`` opens one for a sweep."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.columns = ColumnReader(self.path)
        if not self.path.is_file():
            raise StoreError(f"{self.path}: {'is a folder' if self.path.is_dir() else 'no such file'}")
        with _clear_errors(self.path):
            try:
                self.connection = _opened(self.path)
            except sqlite3.OperationalError:  # in WAL mode SQLite must write next to the file, even to read it
                self.connection = _opened(self.path, "?mode=ro&immutable=1")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT statement."""
        with _clear_errors(self.path):
            return self.connection.execute(sql, parameters).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the file as it is now, even if a sweep adds to it meanwhile."""
        with _clear_errors(self.path):
            self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.rollback()

    def points(self, run: int) -> list[tuple[Any, ...]]:
        """Return the checkpoints of a run: round, cost, total, strong, largest; None where there is no number."""
        sql = "SELECT round, cost, total, strong, largest FROM checkpoints WHERE run = ? ORDER BY round, cost"
        return self.query(sql, (run,))

    def finished(self) -> set[str]:
        """Return the hashes of the finished runs, which are not run again. Failed runs are retried."""
        return {row[0] for row in self.query("SELECT hash FROM runs WHERE status = 'done'")}

    @classmethod
    @contextmanager
    def writer(cls, path: str | os.PathLike[str]) -> Iterator["Writer"]:
        """Open a file for a sweep, creating it if missing. A second writer at the same time gets an error at once."""
        target = Path(path)
        if target.is_dir():
            raise StoreError(f"{quoted(str(path))}: is a folder; give the name of a file")
        if not target.parent.is_dir():
            raise StoreError(f"{target}: folder {quoted(str(target.parent))} does not exist")
        with _only_writer(target):
            _create_if_empty(target)
            store = Writer(target)
            try:
                yield store
            finally:
                store.close()


class Writer(Store):
    """A results file, open for one sweep."""

    def add_experiment(self, name: str, position: int, facts: dict[str, Any], model: bytes | None) -> None:
        """Store the facts and the model of an experiment's environment."""
        with _clear_errors(self.path), self.connection:
            self.connection.execute(
                "INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, ?)", (name, position, json.dumps(facts), model)
            )

    def note(self, values: dict[str, str]) -> None:
        """Store facts about the whole file, such as its title and the order of its agents."""
        with _clear_errors(self.path), self.connection:
            self.connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def add(self, result: Result, provenance: dict[str, Any] | None = None) -> None:
        """Store a run in one transaction. It replaces an earlier failed attempt."""
        job = result.job
        with _clear_errors(self.path), self.connection as db:
            old = db.execute("SELECT id FROM runs WHERE hash = ?", (job.hash,)).fetchone()
            if old is not None:
                for table, key in (("checkpoints", "run"), ("probes", "run"), ("runs", "id")):
                    db.execute(f"DELETE FROM {table} WHERE {key} = ?", old)
            run = db.execute(
                "INSERT INTO runs (hash, experiment, label, replicate, status, agent, horizon, job, thresholds,"
                " optimum, episodes, summary, seconds, provenance, error)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                _run_row(job, result, provenance or {}),
            ).lastrowid
            db.executemany(
                "INSERT INTO checkpoints (run, round, cost, total, strong, largest) VALUES (?, ?, ?, ?, ?, ?)",
                ((run, *point) for point in _points(result)),
            )
            if result.probe.size:
                probes = zip(result.rounds.tolist(), result.probe.tolist(), strict=True)
                db.executemany("INSERT INTO probes VALUES (?, ?, ?)", ((run, t, x) for t, x in probes))

    def select(self, experiments: Iterable[str], hashes: set[str]) -> int:
        """Mark the runs of the experiments that reports show; runs of older code or settings stay but are hidden.

        Returns the number of hidden runs.
        """
        hidden = 0
        with _clear_errors(self.path), self.connection as db:
            for name in experiments:
                own = db.execute("SELECT hash FROM runs WHERE experiment = ?", (name,)).fetchall()
                db.executemany("UPDATE runs SET current = ? WHERE hash = ?", [(h in hashes, h) for (h,) in own])
                hidden += sum(h not in hashes for (h,) in own)
        return hidden


def _points(result: Result) -> Iterator[tuple[Any, ...]]:
    """Yield round, cost, total, strong, largest of every checkpoint; a missing number is nan, in SQLite NULL."""
    shape = result.cumulative.shape
    strong = result.strong if result.strong.size else np.full(shape, np.nan)
    largest = np.column_stack([np.full(shape[0], np.nan), result.largest_excess])
    tables = (result.rounds, result.cumulative, strong, largest)
    for t, *rows in zip(*(table.tolist() for table in tables), strict=True):
        for i, numbers in enumerate(zip(*rows, strict=True)):
            yield t, i, *numbers


def _run_row(job: Job, result: Result, provenance: dict[str, Any]) -> tuple[Any, ...]:
    return (
        job.hash,
        job.experiment,
        job.label,
        job.replicate,
        "failed" if result.error else "done",
        job.agent,
        job.horizon,
        json.dumps(asdict(job), default=str),
        json.dumps(result.thresholds),
        json.dumps(result.optimum),
        result.summary.get("episodes"),
        json.dumps(result.summary, sort_keys=True),
        result.provenance.get("seconds"),
        json.dumps(result.provenance | provenance),
        result.error,
    )


def _connect(path: Path) -> sqlite3.Connection:
    # No two threads use a connection at once, but the thread that closes it may not be the one that opened it.
    return sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)


def _opened(path: Path, how: str = "") -> sqlite3.Connection:
    connection = _connect(path) if not how else sqlite3.connect(f"{path.absolute().as_uri()}{how}", uri=True)
    try:
        _check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_if_empty(path: Path) -> None:
    with _clear_errors(path):
        connection = _connect(path)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            connection.execute("PRAGMA journal_mode = WAL")
            meta = f"INSERT INTO meta VALUES ('format', '{FORMAT}'), ('schema', '{SCHEMA_VERSION}');"
            connection.executescript(f"BEGIN; {_SCHEMA} {meta} COMMIT;")
        finally:
            connection.close()


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")  # the file's schema may not call functions with side effects
    kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE type <> 'index'"))
    tables = {name for name, kind in kinds.items() if kind == "table"}
    meta = dict(connection.execute("SELECT key, value FROM meta")) if "meta" in tables else {}
    if meta.get("format") != FORMAT:
        raise StoreError(f"{path}: is an SQLite file, but not a results file of psconrl; choose another name")
    if "trigger" in kinds.values() or not tables.issuperset(TABLES):
        raise StoreError(f"{path}: damaged: it must have the tables {', '.join(TABLES)}, and no triggers")
    if not str(meta.get("schema", "")).isdecimal():
        raise StoreError(f"{path}: damaged (its schema is {quoted(meta.get('schema'))})")
    if int(meta["schema"]) > SCHEMA_VERSION:
        raise StoreError(f"{path}: was written by a newer psconrl (schema {meta['schema']}); update psconrl")


@contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """Hold a lock that the operating system releases when the process ends, even if it is killed."""
    beside = path.with_name(f"{path.name}.psconrl-lock")
    lock = None
    try:
        lock = sqlite3.connect(beside, timeout=0.0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        if lock is not None:
            lock.close()
        if "locked" in str(error):
            raise StoreError(f"{path}: another sweep is writing to it; wait for it, or choose another file") from None
        raise StoreError(f"{path}: cannot be written ({error})") from None
    try:
        yield
    finally:
        lock.close()
        beside.unlink(missing_ok=True)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into messages that say what to do. Committed data stays."""
    try:
        yield
    except UnicodeDecodeError:
        raise StoreError(f"{path}: damaged (text that cannot be read)") from None
    except sqlite3.Error as error:
        reason = " ".join(str(error).split())
        if "full" in reason:
            reason = "the disk is full; all earlier finished runs are kept; free some space and run the same again"
        elif "readonly" in reason or "unable to open" in reason:
            reason = f"cannot be written ({reason})"
        elif "not a database" in reason:
            reason = "is not a results file (no SQLite file at all)"
        elif "locked" in reason:
            reason = "is locked by another program; close it and run the same again"
        raise StoreError(f"{path}: {reason}") from None
