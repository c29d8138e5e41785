"""Export of results as flat tables, runs, checkpoints and probes, in CSV or Parquet."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from psconrl.base.escaping import csv_cell, quoted
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment.default_options import options_left_out
from psconrl.experiment.provenance import PROVENANCE
from psconrl.experiment.store import Store
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.metrics import available, metrics_of

FORMATS = ("csv", "parquet")
# Columns of the table runs: of the file's own, of the settings of a run, and of its record of provenance.
OF_RUN = ("run", "experiment", "label", "title", "agent", "replicate", "status", "current", "horizon", "episodes")
OF_JOB = ("env", "seed", "known_costs", "emission")
OF_RECORD = ("finished", "seconds", "planning_seconds", *PROVENANCE)
# Settings of a run that are tables: each of their entries is a column with this prefix.
PREFIXES = {"agent_options": "option", "knowledge": "knowledge", "env_options": "env"}
CHECKPOINTS = (
    "run", "experiment", "label", "replicate", "round", "cost", "cost_name", "total", "target", "strong", "largest",
    "current",
)  # fmt: skip
PROBES = ("run", "experiment", "label", "replicate", "state", "action", "next_state", "round", "value", "current")

Row = dict[str, Any]


def export_tables(store: Store, folder: Path, form: str, stale: bool = False) -> list[Path]:
    """Write the tables ``runs``, ``checkpoints`` and ``probes`` to a folder and return the files.

    The column ``target`` of a checkpoint is the optimum or the threshold times the round, so total - target is the
    signed regret or violation.

    ``stale``: also the runs that newer code or settings have replaced, with 0 in the column ``current``.
    """
    if form not in FORMATS:
        raise ConfigError(f"format must be one of {', '.join(FORMATS)}; got {quoted(form)}")
    write: Callable[..., None] = _write_csv if form == "csv" else _parquet_writer()
    files = [folder / f"{name}.{form}" for name in ("runs", "checkpoints", "probes")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made ({error.strerror or error})") from None
    with store.snapshot():
        # Checkpoints first: if they were changed since they were written, nothing is exported.
        experiments = {experiment.name: experiment for experiment in read_experiments(store)}
        runs = _runs(store, experiments, stale)
        points = _checkpoints(store, runs, experiments)
        write_atomically(files[1], lambda f: write(f, CHECKPOINTS, points), StoreError)
        write_atomically(files[2], lambda f: write(f, PROBES, _probes(store, runs)), StoreError)
        header = list(dict.fromkeys(key for row in runs for key in row if not key.startswith("_"))) or list(OF_RUN)
        cells = ([row.get(key) for key in header] for row in runs)
        write_atomically(files[0], lambda f: write(f, header, cells), StoreError)
    return files


def _runs(store: Store, experiments: Mapping[str, Experiment], stale: bool) -> list[Row]:
    """Return the rows of the table of runs; the keys with an underscore are for the other tables."""
    columns = store.columns
    sql = (
        "SELECT id, experiment, label, agent, replicate, status, current, horizon, episodes, hash, error, job,"
        " thresholds, optimum, provenance FROM runs"
    )
    rows = []
    for found in store.query(f"{sql}{'' if stale else ' WHERE current'} ORDER BY experiment, label, replicate, id"):
        run, experiment, label, agent, replicate, status, current, horizon, episodes, key, error, *rest = found
        where = f"of run {run}"
        job, record = columns.table(rest[0], f"job {where}"), columns.table(rest[3], f"provenance {where}")
        thresholds, optimum = (
            columns.numbers(columns.json(text, f"{name} {where}"), f"{name} {where}")
            for name, text in (("thresholds", rest[1]), ("optimum", rest[2]))
        )
        known = experiments.get(experiment)
        curves = None if known is None else known.curves.get(label)
        title = label if curves is None else curves.title
        own = (run, experiment, label, title, agent, replicate, status, current, horizon, episodes)
        row = dict(zip(OF_RUN, own, strict=True)) | {name: _plain(job.get(name)) for name in OF_JOB}
        row |= _settings(job)
        row |= _costs(known, thresholds, optimum)
        row |= {name: _plain(record.get(name)) for name in OF_RECORD} | {"hash": key, "error": error}
        targets = [optimum[0] if optimum else None, *thresholds]
        usual = {f"option.{name}": value for name, value in options_left_out(store, job, record.get("code")).items()}
        rows.append(row | {"_targets": targets, "_probe": job.get("probe"), "_usual": usual})
    set_by_some = {name for row in rows for name in row if name.startswith("option.")}
    for row in rows:
        row |= {name: value for name, value in row["_usual"].items() if name in set_by_some and name not in row}
    final = _final_values(experiments.values())
    names = list(dict.fromkeys(name for values in final.values() for name in values))
    for row in rows:
        place = row["experiment"], row["label"], row["replicate"]
        values = final.get(place, {}) if row["current"] and row["status"] == "done" else {}
        row |= {name: values.get(name) for name in names}
    return rows


def _settings(job: Row) -> Row:
    """Return the options of the agent and of the environment, and the prior knowledge, one entry for each."""
    found: Row = {}
    for key, prefix in PREFIXES.items():
        table = job.get(key)
        for name, value in (table if isinstance(table, dict) else {}).items():
            if key != "knowledge" or value:
                found |= _flat(f"{prefix}.{name}", value)
    return found


def _flat(name: str, value: Any) -> Row:
    """Return the entries of a table within tables: that of a part of an agent is ``option.ledger.share``."""
    if not isinstance(value, dict):
        return {name: _plain(value)}
    return {key: cell for inner, each in value.items() for key, cell in _flat(f"{name}.{inner}", each).items()}


def _costs(known: Experiment | None, thresholds: Sequence[float], optimum: Sequence[float]) -> Row:
    """Return the names of all costs, their optimal averages, thresholds and prices; cost 0 is the objective."""
    names, facts = ([], {}) if known is None else (known.cost_names, known.facts)
    found: Row = {f"cost_{i}": name for i, name in enumerate(names)}
    found |= {f"optimum_{i}": value for i, value in enumerate(optimum)}
    found |= {f"threshold_{i}": value for i, value in enumerate(thresholds, start=1)}
    for key, column in (("prices", "price"), ("range_prices", "range_price")):
        found |= {f"{column}_{i}": value for i, value in enumerate(facts.get(key, []), start=1)}
    return found


def _final_values(experiments: Iterable[Experiment]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Return the metrics of every current run after its last round, by experiment, label and number.

    The paper's metrics are left out: they depend on a window.
    """
    found: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    for experiment in experiments:
        for name, metric in metrics_of([experiment]).items():
            for measure in [] if metric.deviation else available(experiment, [name]):
                column = name.replace("-", "_") + (f"_{measure.cost}" if metric.of_limits else "")
                for label, curves in experiment.curves.items():
                    last = measure.values(experiment, curves)[:, -1]
                    for replicate, value in zip(curves.replicates.tolist(), last.tolist(), strict=True):
                        if np.isfinite(value):
                            found[experiment.name, label, replicate][f"final_{column}"] = value
    return found


def _checkpoints(store: Store, runs: Iterable[Row], experiments: Mapping[str, Experiment]) -> Iterator[Sequence[Any]]:
    for row in runs:
        if row["status"] != "done":
            continue
        targets, known = row["_targets"], experiments.get(row["experiment"])
        names = dict(enumerate(known.cost_names)) if known is not None else {}
        points = store.series(row["run"]).points
        store.columns.points(points, f"checkpoints of run {row['run']}", len(targets))
        start = [row[key] for key in ("run", "experiment", "label", "replicate")]
        for t, i, total, strong, largest in points:
            bound = None if targets[i] is None else t * targets[i]
            yield *start, t, i, names.get(i), total, bound, strong, largest, row["current"]


def _probes(store: Store, runs: Iterable[Row]) -> Iterator[Sequence[Any]]:
    for row in runs:
        entry = row["_probe"] if isinstance(row["_probe"], list) and len(row["_probe"]) == 3 else [None] * 3
        start = [row[key] for key in ("run", "experiment", "label", "replicate")]
        for t, value in store.series(row["run"]).probes:
            yield *start, *entry, t, value, row["current"]


def _plain(value: Any) -> Any:
    """Return a value of JSON as a cell."""
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _write_csv(f: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.TextIOWrapper(f, encoding="utf-8", errors="replace", newline="")
    writer = csv.writer(text)
    writer.writerow(map(csv_cell, header))
    writer.writerows(map(csv_cell, row) for row in rows)
    text.detach()  # flushes, and leaves closing the file to the caller


def _parquet_writer() -> Callable[..., None]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError("Parquet needs the extra: pip install 'psconrl[tables]', or use --format csv") from None

    def write(f: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        parquet.write_table(pyarrow.table(dict(zip(header, map(_of_one_type, columns), strict=True))), f)

    return write


def _of_one_type(column: Sequence[Any]) -> list[Any]:
    """Return the cells of a column, as text if they are of several types, which Parquet does not have."""
    types = {type(cell) for cell in column if cell is not None}
    if len(types) < 2 or types == {int, float}:
        return [float(cell) if isinstance(cell, int) and float in types else cell for cell in column]
    return [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in column]
