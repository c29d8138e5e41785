"""The tables of a results file: their columns, how a file is created, and how it is recognised.

    experiments(name, position, facts, model)           the environment: optimum, thresholds, and the model itself
    runs(hash, experiment, label, replicate, ...)       status 'done' or 'failed', with the traceback; current = 0
                                                        if runs of newer code or settings have replaced it
    checkpoints(run, round, cost, total, strong,        cumulative costs; cost 0 is the objective; strong regret and
                largest)                                violations where policies were evaluated; for a constraint,
                                                        the largest excess so far
    probes(run, round, value)                           a sampled probability, if one was recorded
    trajectories(run, rounds, content)                  all rounds of a run, packed, if they were recorded; a file
                                                        of an older version has no such table
    meta(key, value)

Checksums (``experiment.checksum``) show whether a file is as it was written:

    runs.summary, trajectory   SHA-256 of the content in trajectories
    runs.series                of the checkpoints and probes of a run
    runs.checksum              of all other columns of a run but its number and ``current``, with ``series``
    experiments.checksum       of all other columns of an experiment
    meta, 'runs NAME'          sum over the runs of an experiment, of hash, checksum and current
    meta, 'checksum'           sum over all other rows of meta
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psconrl.base.escaping import quoted
from psconrl.errors import StoreError
from psconrl.experiment.checksum import sum_of

FORMAT = "psconrl-results"
SCHEMA_VERSION = 2
WAIT_SECONDS = 20.0
TABLES = ("meta", "experiments", "runs", "checkpoints", "probes")
TRAJECTORIES = "trajectories"  # a table of some files
EXPERIMENT_COLUMNS = "name, position, facts, model"
RUN_COLUMNS = (
    "hash, experiment, label, replicate, status, agent, horizon, job, thresholds, optimum, episodes, summary, seconds,"
    " provenance, error"
)
SUM_OF_META = "checksum"
SUM_OF_RUNS = "runs "  # start of the keys in meta for the sums over the runs of experiments
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE experiments (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, facts TEXT NOT NULL, model BLOB, checksum TEXT NOT NULL DEFAULT ''
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, experiment TEXT NOT NULL, label TEXT NOT NULL,
    replicate INTEGER NOT NULL, status TEXT NOT NULL, agent TEXT NOT NULL, horizon INTEGER NOT NULL,
    job TEXT NOT NULL, thresholds TEXT NOT NULL, optimum TEXT NOT NULL, episodes INTEGER, summary TEXT NOT NULL,
    seconds REAL, provenance TEXT NOT NULL, error TEXT NOT NULL, current INTEGER NOT NULL DEFAULT 1,
    series TEXT NOT NULL DEFAULT '', checksum TEXT NOT NULL DEFAULT ''
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


TRAJECTORY_TABLE = """
CREATE TABLE IF NOT EXISTS trajectories (
    run INTEGER PRIMARY KEY REFERENCES runs (id), rounds INTEGER NOT NULL, content BLOB NOT NULL
)
"""


def opened(path: Path, how: str = "") -> sqlite3.Connection:
    """Open a results file, of this version."""
    connection = _connected(path) if not how else sqlite3.connect(f"{path.absolute().as_uri()}{how}", uri=True)
    try:
        _check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def create_if_empty(path: Path) -> None:
    """Create the tables, if the file has none."""
    with clear_errors(path):
        connection = _connected(path)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            connection.execute("PRAGMA journal_mode = WAL")
            facts = [("format", FORMAT), ("schema", str(SCHEMA_VERSION))]
            rows = ", ".join(f"('{key}', '{value}')" for key, value in [*facts, (SUM_OF_META, sum_of(facts))])
            connection.executescript(f"BEGIN; {_SCHEMA} INSERT INTO meta VALUES {rows}; COMMIT;")
        finally:
            connection.close()


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
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
        elif "malformed" in reason:
            reason = f"damaged ({reason}); take an older copy, or run its sweep into a new file"
        elif "locked" in reason:
            reason = "is locked by another program; close it and run the same again"
        raise StoreError(f"{path}: {reason}") from None


def _connected(path: Path) -> sqlite3.Connection:
    # No two threads use a connection at once, but the thread that closes it may not be the one that opened it.
    return sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")  # the file's schema may not call functions with side effects
    kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE type <> 'index'"))
    tables = {name for name, kind in kinds.items() if kind == "table"}
    facts = "SELECT key, value FROM meta WHERE +key IN ('format', 'schema')"  # + means: not by the index
    meta = dict(connection.execute(facts)) if "meta" in tables else {}
    if meta.get("format") != FORMAT:
        raise StoreError(f"{path}: is an SQLite file, but not a results file of psconrl; choose another name")
    wanted = (*TABLES, TRAJECTORIES) if TRAJECTORIES in kinds else TABLES
    if "trigger" in kinds.values() or not tables.issuperset(wanted):
        raise StoreError(f"{path}: damaged: it must have the tables {', '.join(wanted)}, and no triggers")
    if not str(meta.get("schema", "")).isdecimal():
        raise StoreError(f"{path}: damaged (its schema is {quoted(meta.get('schema'))})")
    if int(meta["schema"]) > SCHEMA_VERSION:
        raise StoreError(f"{path}: was written by a newer psconrl (schema {meta['schema']}); update psconrl")
    if int(meta["schema"]) < SCHEMA_VERSION:
        raise StoreError(
            f"{path}: was written by an older psconrl (schema {meta['schema']}), without checksums; run its spec "
            "into a new file"
        )
