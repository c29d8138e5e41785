"""Storage of results in one SQLite file: runs, checkpoints, provenance. Its tables: ``experiment.results_format``.

A finished run is one transaction, so a crash loses at most the runs in progress. Write-ahead logging lets other
programs read while a sweep writes. All that is written has checksums, which are checked when it is read.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from psconrl.base.escaping import quoted
from psconrl.base.file_lock import held
from psconrl.errors import StoreError
from psconrl.experiment.checksum import changed_error, changes_named, checksum, difference_of, sum_of
from psconrl.experiment.columns import ColumnReader
from psconrl.experiment.job import Job, Result
from psconrl.experiment.results_check import (
    META,
    NEEDED_IN_META,
    Change,
    Series,
    changed_parts,
    experiment_checksum,
    read_meta,
    read_series,
    run_checksum,
    sum_of_meta,
    sum_of_runs,
)
from psconrl.experiment.results_format import (
    EXPERIMENT_COLUMNS,
    RUN_COLUMNS,
    SUM_OF_META,
    SUM_OF_RUNS,
    TRAJECTORY_TABLE,
    clear_errors,
    create_if_empty,
    opened,
)

BEYOND_REPAIR = "A sweep cannot repair its tables: run it into a new file"
GROUP = "group"  # start of the keys in meta for the shipped specs that experiments belong to


class Store:
    """A results file, open for reading; ``Store.writer`` opens one for a sweep."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.columns = ColumnReader(self.path)
        if not self.path.is_file():
            raise StoreError(f"{self.path}: {'is a folder' if self.path.is_dir() else 'no such file'}")
        with clear_errors(self.path):
            try:
                self.connection = opened(self.path)
            except sqlite3.OperationalError:  # in WAL mode SQLite must write next to the file, even to read it
                self.connection = opened(self.path, "?mode=ro&immutable=1")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def query(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT statement."""
        with clear_errors(self.path):
            return self.connection.execute(sql, parameters).fetchall()

    @contextmanager
    def snapshot(self, with_series: bool = False) -> Iterator[None]:
        """Read the file as it is now, even if a sweep adds to it meanwhile; an error if it was changed since written.

        ``series`` checks what it returns; ``with_series`` checks all runs, for queries of their checkpoints. A snapshot
        within another one is the same.
        """
        if self.connection.in_transaction:
            yield
            return
        with clear_errors(self.path):
            self.connection.execute("BEGIN")
        try:
            if self.changed_parts(with_series):
                self._refuse()
            yield
        finally:
            self.connection.rollback()

    def series(self, run: int) -> Series:
        """Return what a run has recorded; an error if it was changed since it was written."""
        found = read_series(self.query, run)
        if [(checksum(found),)] != self.query("SELECT series FROM runs WHERE id = ?", (run,)):
            self._refuse()
        return found

    def changed_parts(self, with_series: bool) -> list[Change]:
        """Return what is not as it was written."""
        with self._any_text():
            return changed_parts(self.query, with_series)

    @contextmanager
    def _any_text(self) -> Iterator[None]:
        """Read text that is not UTF-8 as well: it was changed, and is to be named."""
        before = self.connection.text_factory
        self.connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        try:
            yield
        finally:
            self.connection.text_factory = before

    def _refuse(self) -> NoReturn:
        parts = _parts(self.changed_parts(with_series=True))
        raise changed_error(self.path, parts, "Repeat its sweep, which makes these again")

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
            create_if_empty(target)
            store = Writer(target)
            try:
                store.need_writable()
                yield store
            finally:
                store.close()


class Writer(Store):
    """A results file, open for one sweep."""

    def need_writable(self) -> None:
        """Raise an error if the file can only be read."""
        with clear_errors(self.path):
            self.connection.execute("UPDATE meta SET value = value")
            self.connection.rollback()
            self.connection.execute(TRAJECTORY_TABLE)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with clear_errors(self.path), self.connection:
            yield

    def add_experiment(self, name: str, position: int, facts: dict[str, Any], model: bytes | None) -> None:
        """Store the facts and the model of an experiment's environment."""
        with self._transaction():
            row = self._insert("experiments", EXPERIMENT_COLUMNS, (name, position, json.dumps(facts), model))
            self._set("experiments", row, checksum=experiment_checksum(self.query, row))

    def note(self, values: dict[str, str]) -> None:
        """Store facts about the whole file, such as its title and the order of its agents."""
        with self._transaction():
            self._put(values)

    def add(self, result: Result, provenance: dict[str, Any] | None = None) -> None:
        """Store a run in one transaction. It replaces an earlier failed attempt."""
        job = result.job
        with self._transaction():
            for (old,) in self.query("SELECT id FROM runs WHERE hash = ?", (job.hash,)):
                self._count(old, difference_of)
                self._delete(old)
            run = self._insert("runs", RUN_COLUMNS, _run_row(job, result, provenance or {}))
            self.connection.executemany(
                "INSERT INTO checkpoints (run, round, cost, total, strong, largest) VALUES (?, ?, ?, ?, ?, ?)",
                ((run, *point) for point in _points(result)),
            )
            if result.probe.size:
                probes = zip(result.rounds.tolist(), result.probe.tolist(), strict=True)
                self.connection.executemany("INSERT INTO probes VALUES (?, ?, ?)", ((run, t, x) for t, x in probes))
            if result.trajectory:
                rounds = result.summary["trajectory"]["rounds"]
                self._insert("trajectories", "run, rounds, content", (run, rounds, result.trajectory))
            # Checksums are of what SQLite returns: it stores -0.0 as 0.0, and nan as NULL.
            series = checksum(read_series(self.query, run))
            self._set("runs", run, series=series, checksum=run_checksum(self.query, run, series))
            self._count(run, sum_of)

    def replace_summary(self, run: int, summary: str) -> None:
        """Store another summary of a run, and keep the checksums up to date."""
        with self._transaction():
            self._count(run, difference_of)
            self._set("runs", run, summary=summary)
            ((series,),) = self.query("SELECT series FROM runs WHERE id = ?", (run,))
            self._set("runs", run, checksum=run_checksum(self.query, run, series))
            self._count(run, sum_of)

    def select(self, experiments: Collection[str], hashes: set[str]) -> int:
        """Mark the runs of the experiments that reports show; runs of older code or settings stay but are hidden.

        Returns the number of hidden runs.
        """
        hidden = 0
        with self._transaction():
            for name in experiments:
                own = self.query("SELECT hash FROM runs WHERE experiment = ?", (name,))
                marks = [(h in hashes, h) for (h,) in own]
                self.connection.executemany("UPDATE runs SET current = ? WHERE hash = ?", marks)
                self._put({f"{SUM_OF_RUNS}{name}": sum_of_runs(self.query, name)})
                hidden += sum(h not in hashes for (h,) in own)
        return hidden

    def mend(self, experiments: Collection[str], hashes: set[str]) -> str:
        """Remove what was changed since it was written, for the sweep of these experiments and runs to make again.

        What belongs to other experiments stays, for their own sweeps. Returns what was removed or written again, in
        words.
        """
        found = self.changed_parts(with_series=True)
        if not found:
            return ""
        with self._transaction(), self._any_text():
            self._repair_indexes(found)
            found = list(dict.fromkeys(found + self.changed_parts(with_series=True)))  # what indexes did not lead to
            self._remove_runs(found, experiments, hashes)
            self._remove_experiments(found, experiments)
            for name in experiments:
                self._put({f"{SUM_OF_RUNS}{name}": sum_of_runs(self.query, name)})
            if META in found:
                self.connection.execute(f"DELETE FROM meta WHERE NOT ({NEEDED_IN_META})")
            row = (SUM_OF_META, sum_of_meta(read_meta(self.query)))
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
        left = self.changed_parts(with_series=True)
        return changes_named(
            _parts(change for change in found if change.experiment in experiments or change not in left)
        )

    def _repair_indexes(self, found: list[Change]) -> None:
        """Repair the indexes; an error if a table is damaged, since rows could then not be found and replaced."""
        self.connection.execute("REINDEX")
        if self.query("PRAGMA integrity_check") != [("ok",)]:
            raise changed_error(self.path, _parts(found), BEYOND_REPAIR)

    def _remove_runs(self, found: list[Change], experiments: Collection[str], hashes: set[str]) -> None:
        known = {name for (name,) in self.query("SELECT name FROM experiments")}
        for change in (change for change in found if change.table == "runs"):
            keys = {key for (key,) in self.query("SELECT hash FROM runs WHERE id = ?", (change.row,))}
            if not keys:  # a table whose definition was changed
                raise changed_error(self.path, _parts(found), BEYOND_REPAIR)
            if change.experiment in experiments or keys & hashes or change.experiment not in known:
                self._delete(change.row)
        # Of runs that were deleted by hand: a new run may get their number.
        for table in ("checkpoints", "probes", "trajectories"):
            self.connection.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT id FROM runs)")

    def _remove_experiments(self, found: list[Change], experiments: Collection[str]) -> None:
        used = {name for (name,) in self.query("SELECT experiment FROM runs")}
        for change in (change for change in found if change.table == "experiments"):
            if change.experiment in experiments or change.experiment not in used:
                self.connection.execute("DELETE FROM experiments WHERE rowid = ?", (change.row,))

    def _insert(self, table: str, columns: str, values: tuple[Any, ...]) -> int:
        places = ", ".join("?" * len(values))
        row = self.connection.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})", values).lastrowid
        assert row is not None
        return row

    def _set(self, table: str, row: int, **values: str) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        self.connection.execute(f"UPDATE {table} SET {columns} WHERE rowid = ?", (*values.values(), row))

    def _delete(self, run: int) -> None:
        for table, key in (("checkpoints", "run"), ("probes", "run"), ("trajectories", "run"), ("runs", "id")):
            self.connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (run,))

    def _count(self, run: int, changed: Callable[..., str]) -> None:
        """Add a run to the sum over those of its experiment, or remove it."""
        ((name, *row),) = self.query("SELECT experiment, hash, checksum, current FROM runs WHERE id = ?", (run,))
        key = f"{SUM_OF_RUNS}{name}"
        self._put({key: changed([row], self._value(key))})

    def _put(self, values: Mapping[str, str]) -> None:
        """Write rows of meta, and keep their sum up to date."""
        for row in values.items():
            old = self.query("SELECT key, value FROM meta WHERE key = ?", row[:1])
            total = sum_of([row], difference_of(old, self._value(SUM_OF_META)))
            self.connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [row, (SUM_OF_META, total)])

    def _value(self, key: str) -> str:
        found = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else ""


def _parts(found: Iterable[Change]) -> list[str]:
    """Return what was changed, in words; a run may be in the list for two reasons."""
    return list(dict.fromkeys(change.part for change in found))


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


@contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """Hold the lock of a file, also if it is called by a symbolic link; by several hard links it cannot be locked."""
    target = Path(os.path.realpath(path))
    if target.exists() and target.stat().st_nlink > 1:
        raise StoreError(
            f"{path}: has several names (hard links), and a sweep under another would not be seen; copy it"
        )
    with ExitStack() as stack:
        try:
            stack.enter_context(held(target.with_name(f"{target.name}.psconrl-lock")))
        except BlockingIOError:
            raise StoreError(f"{path}: another sweep is writing to it; wait for it, or choose another file") from None
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from None
        yield
