"""The trajectories in a results file: read as arrays, and written as tables."""

import itertools
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from psconrl.base.escaping import quoted
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError, PsconrlError, StoreError
from psconrl.experiment.environment_record import model_from
from psconrl.experiment.results_check import read_packed
from psconrl.experiment.store import Store
from psconrl.model.names import Names
from psconrl.model.units import read_units
from psconrl.simulation.run_trajectory import RunTrajectory, write_rows


class StoredTrajectory(NamedTuple):
    """A run of a results file with all its rounds."""

    run: int  # its number in the table runs
    experiment: str
    label: str
    replicate: int
    trajectory: RunTrajectory


def read_trajectories(
    store: Store, experiment: str | None = None, label: str | None = None
) -> Iterator[StoredTrajectory]:
    """Yield the trajectories of the current runs of a results file, one after the other.

    ``experiment``, ``label``: of these runs only. States and actions have names if the file has the model and the model
    has names.

    >>> from psconrl.experiment.store import Store
    >>> with Store("results.db") as results:  # doctest: +SKIP
    ...     for run in read_trajectories(results, experiment="rover"):
    ...         print(run.label, run.replicate, run.trajectory.costs.mean(axis=0))
    """
    chosen, columns = [("experiment", experiment), ("label", label)], store.columns
    given = [(f" AND {column} = ?", value) for column, value in chosen if value is not None]
    sql = "SELECT id, experiment, label, replicate, summary, thresholds FROM runs WHERE status = 'done' AND current"
    sql += "".join(text for text, _ in given) + " ORDER BY experiment, label, replicate"
    values = tuple(value for _, value in given)
    names: dict[str, Names] = {}
    with store.snapshot():
        for run, name, of, replicate, text, limits in store.query(sql, values):
            summary = columns.table(text, f"summary of run {run}")
            if "trajectory" not in summary:
                continue
            if name not in names:
                m = len(columns.numbers(columns.json(limits, f"thresholds of run {run}"), f"thresholds of run {run}"))
                names[name] = _names_in(store, name, m)
            content = read_packed(store.query, run, summary)
            if not content:
                columns.wrong(f"the trajectory of run {run}", "as it was written")
            try:
                trajectory = RunTrajectory.unpacked(content, summary["trajectory"]["rounds"], names[name])
            except PsconrlError:
                columns.wrong(f"the trajectory of run {run}", "states, actions and costs of its experiment")
            yield StoredTrajectory(run, name, of, replicate, trajectory)


def _names_in(store: Store, experiment: str, m: int) -> Names:
    """Return the names of states, actions and m+1 costs in an experiment; None of states that have none."""
    ((text, data),) = store.query("SELECT facts, model FROM experiments WHERE name = ?", (experiment,))
    facts = store.columns.facts(text, f"facts of {quoted(experiment)}")
    model = model_from(data, facts.get("states"))
    if model is not None:
        return model.names
    costs = tuple(facts.get("cost_names") or ("objective", *(f"cost {i}" for i in range(1, m + 1))))
    return Names(None, None, costs, bool(facts.get("maximise")), read_units(facts.get("units"), costs))


def export_trajectories(store: Store, folder: Path) -> list[Path]:
    """Write a CSV file for every experiment whose runs have trajectories, and return the files.

    Columns: ``run``, as in the table of runs, ``time``, ``state``, ``action``, and one for every cost; see
    ``RunTrajectory.table``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    with store.snapshot():
        names = [name for (name,) in store.query("SELECT name FROM experiments ORDER BY position, name")]
        for name in names:
            if next(read_trajectories(store, name), None) is None:
                continue
            path = folder / f"trajectories-{_in_file_name(name)}.csv"
            if path in files.values():
                path = folder / f"trajectories-{_in_file_name(name)}-{len(files) + 1}.csv"
            files[name] = path
            write_atomically(path, partial(_write, store, name), StoreError)
    if not files:
        raise ConfigError(f"{store.path}: no run has a trajectory; set trajectories = true in [experiments.NAME]")
    return list(files.values())


def _write(store: Store, experiment: str, f: IO[bytes]) -> None:
    for k, stored in enumerate(read_trajectories(store, experiment)):
        write_rows(f, itertools.islice(stored.trajectory.rows(stored.run), int(k > 0), None))  # one header


def _in_file_name(name: str) -> str:
    """Return the name of an experiment as part of the name of a file.

    >>> _in_file_name("rover slip=0.1 (costs noisy)")
    'rover-slip-0.1-costs-noisy'
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-.") or "experiment"
