"""Whether a results file is as it was written: every run, every experiment, and what belongs to the file as a whole."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from psconrl.base.escaping import shortened
from psconrl.experiment.checksum import checksum, sum_of
from psconrl.experiment.results_format import EXPERIMENT_COLUMNS, RUN_COLUMNS, SUM_OF_META, SUM_OF_RUNS
from psconrl.simulation.run_trajectory import noted_trajectory

MOST_CHARACTERS = 60  # of a name in a message

Query = Callable[..., list[tuple[Any, ...]]]


class Series(NamedTuple):
    """What a run has recorded: round, cost, total, strong, largest; and round, probability. None is no number."""

    points: list[tuple[Any, ...]]
    probes: list[tuple[Any, ...]]


class Change(NamedTuple):
    """A part of a results file that is not as it was written."""

    part: str  # for messages
    experiment: Any = None  # that it belongs to; None if to the whole file
    table: str = ""
    row: int = 0  # its number in the table


META = Change("the table meta")
# Rows of meta that no sweep writes again: the format, and the sums over the runs of experiments.
NEEDED_IN_META = (
    f"key IN ('format', 'schema') OR key LIKE '{SUM_OF_RUNS}%' AND substr(key, {len(SUM_OF_RUNS) + 1}) IN"
    " (SELECT name FROM experiments UNION SELECT experiment FROM runs)"
)


def read_series(query: Query, run: int) -> Series:
    """Return what a run has recorded."""
    points = "SELECT round, cost, total, strong, largest FROM checkpoints WHERE run = ? ORDER BY round, cost"
    return Series(query(points, (run,)), query("SELECT round, value FROM probes WHERE run = ? ORDER BY round", (run,)))


def read_packed(query: Query, run: int, summary: dict[str, Any]) -> bytes:
    """Return the packed trajectory of a run; nothing if it is missing or not as it was written."""
    found = query("SELECT rounds, content FROM trajectories WHERE run = ?", (run,))
    if len(found) != 1 or not isinstance(found[0][1], bytes):
        return b""
    rounds, content = found[0]
    return content if noted_trajectory(content, rounds)["trajectory"] == summary.get("trajectory") else b""


def read_meta(query: Query) -> dict[Any, Any]:
    """Return the rows of meta."""
    return dict(query("SELECT key, value FROM meta"))


def run_checksum(query: Query, run: int, series: str) -> str:
    """Return the checksum of the row of a run, given that of its series."""
    return checksum([*query(f"SELECT {RUN_COLUMNS} FROM runs WHERE id = ?", (run,))[0], series])


def experiment_checksum(query: Query, row: int) -> str:
    """Return the checksum of the row of an experiment."""
    return checksum(query(f"SELECT {EXPERIMENT_COLUMNS} FROM experiments WHERE rowid = ?", (row,))[0])


def sum_of_runs(query: Query, experiment: Any) -> str:
    """Return the sum over the runs of an experiment."""
    return sum_of(query("SELECT hash, checksum, current FROM runs WHERE experiment = ?", (experiment,)))


def sum_of_meta(meta: dict[Any, Any]) -> str:
    """Return the sum over the rows of meta but its own."""
    return sum_of((key, value) for key, value in meta.items() if key != SUM_OF_META)


def changed_parts(query: Query, with_series: bool) -> list[Change]:
    """Return what is not as it was written; the series of the runs only if wanted, since they are long."""
    found = [*_changed_indexes(query), *_changed_experiments(query), *_changed_runs(query, with_series)]
    return [*found, *_changed_sums(query)]


def _changed_indexes(query: Query) -> Iterator[Change]:
    """Yield the tables whose indexes do not lead to their rows: such a row would be left out in silence."""
    for table in ("meta", "experiments", "runs"):
        if query(f"PRAGMA integrity_check({table})") != [("ok",)]:
            yield Change(f"the index of the table {table}")


def _changed_experiments(query: Query) -> Iterator[Change]:
    rows = query(f"SELECT rowid, checksum, {EXPERIMENT_COLUMNS} FROM experiments ORDER BY position")
    for row, written, name, *columns in rows:
        if checksum([name, *columns]) != written:
            yield Change(f"facts and model of {_shown(name)}", name, "experiments", row)


def _changed_runs(query: Query, with_series: bool) -> Iterator[Change]:
    rows = query(f"SELECT id, series, checksum, experiment, label, replicate, {RUN_COLUMNS} FROM runs ORDER BY id")
    for run, series, written, experiment, label, replicate, *columns in rows:
        if checksum([*columns, series]) != written or (with_series and _series_changed(query, run, series, columns)):
            part = f"{_shown(experiment)}, {_shown(label)}, run {_shown(replicate)}"
            yield Change(part, experiment, "runs", run)


def _series_changed(query: Query, run: int, series: Any, columns: list[Any]) -> bool:
    """Return whether the checkpoints, the probes or the trajectory of a run, whose row is as written, are others."""
    try:
        summary = json.loads(columns[RUN_COLUMNS.split(", ").index("summary")])
        lost = "trajectory" in summary and not read_packed(query, run, summary)
    except (TypeError, ValueError):  # a summary that psconrl does not write, with a checksum that fits
        return True
    return lost or checksum(read_series(query, run)) != series


def _changed_sums(query: Query) -> Iterator[Change]:
    """Yield the sets of rows of which some were removed, added or hidden."""
    meta = read_meta(query)
    if sum_of_meta(meta) != meta.get(SUM_OF_META):
        yield META
    rows = defaultdict(list)
    for experiment, *row in query("SELECT experiment, hash, checksum, current FROM runs"):
        rows[experiment].append(row)
    written = {key.removeprefix(SUM_OF_RUNS) for key in map(str, meta) if key.startswith(SUM_OF_RUNS)}
    known = {name for (name,) in query("SELECT name FROM experiments")}
    for name in dict.fromkeys([*rows, *sorted(written)]):
        if sum_of(rows[name]) != meta.get(f"{SUM_OF_RUNS}{name}"):
            yield Change(f"the list of runs of {_shown(name)}", name)
        elif rows[name] and name not in known:
            yield Change(f"facts and model of {_shown(name)}", name)


def _shown(value: Any) -> str:
    """Return a value as one line of text, whatever it is."""
    text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else str(value)
    return shortened(" ".join(text.split()), MOST_CHARACTERS)
