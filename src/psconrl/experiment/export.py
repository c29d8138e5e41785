"""Export of results as two flat tables, runs and checkpoints, in CSV or Parquet."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from psconrl.errors import ConfigError, StoreError
from psconrl.escaping import csv_cell, quoted
from psconrl.experiment.store import Store
from psconrl.files import write_atomically

FORMATS = ("csv", "parquet")
RUNS = (
    "run", "experiment", "label", "agent", "replicate", "status", "horizon", "episodes", "seconds", "optimum",
    "hash", "current", "error",
)  # fmt: skip
CHECKPOINTS = (
    "run", "experiment", "label", "replicate", "round", "cost", "total", "target", "strong", "largest", "current",
)  # fmt: skip


def export_tables(store: Store, folder: Path, form: str) -> list[Path]:
    """Write the tables ``runs`` and ``checkpoints`` to a folder and return the files.

    The column ``target`` of a checkpoint is the optimum or the threshold times the round, so total - target is the
    signed regret or violation.
    """
    if form not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}; got {quoted(form)}")
    write: Callable[..., None] = _write_csv if form == "csv" else _parquet_writer()
    files = [folder / f"runs.{form}", folder / f"checkpoints.{form}"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made ({error.strerror or error})") from None
    with store.snapshot():
        # Checkpoints first: if they were changed since they were written, nothing is exported.
        write_atomically(files[1], lambda f: write(f, CHECKPOINTS, _checkpoints(store)), StoreError)
        write_atomically(files[0], lambda f: write(f, RUNS, _runs(store)), StoreError)
    return files


def _runs(store: Store) -> Iterator[tuple[Any, ...]]:
    sql = (
        "SELECT id, experiment, label, agent, replicate, status, horizon, episodes, seconds,"
        " json_extract(optimum, '$[0]'), hash, current, error FROM runs ORDER BY experiment, label, replicate, id"
    )
    yield from store.query(sql)


def _checkpoints(store: Store) -> Iterator[tuple[Any, ...]]:
    sql = "SELECT id, experiment, label, replicate, thresholds, optimum, current FROM runs WHERE status = 'done'"
    for row in store.query(sql + " ORDER BY experiment, label, id"):
        run, experiment, label, replicate, thresholds, optimum, current = row
        columns, where = store.columns, f"of run {run}"
        limits = columns.numbers(columns.json(thresholds, f"thresholds {where}"), f"thresholds {where}")
        best = columns.numbers(columns.json(optimum, f"optimum {where}"), f"optimum {where}")
        targets = [best[0] if best else None, *limits]
        rows = store.series(run).points
        columns.points(rows, f"checkpoints {where}", len(targets))
        for t, i, total, strong, largest in rows:
            target = targets[int(i)]
            bound = None if target is None else t * target
            yield run, experiment, label, replicate, t, int(i), total, bound, strong, largest, current


def _write_csv(f: IO[bytes], header: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
    text = io.TextIOWrapper(f, encoding="utf-8", errors="replace", newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(map(csv_cell, row) for row in rows)
    text.detach()  # flushes, and leaves closing the file to the caller


def _parquet_writer() -> Callable[..., None]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError("Parquet needs the extra: pip install 'psconrl[parquet]', or use --format csv") from None

    def write(f: IO[bytes], header: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        parquet.write_table(pyarrow.table(dict(zip(header, map(list, columns), strict=True))), f)

    return write
