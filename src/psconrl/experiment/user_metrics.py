"""Metrics of one's own in a spec: a function of what a run has recorded, with a number for every checkpoint.

They are computed after the runs of a sweep, in the process that writes the results file, and are stored with each run.
Programs that read the file need no code. A metric that is added or changed is computed from what is stored, so that no
run is repeated.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.named_code import as_module, digest, find_code, is_code
from psconrl.errors import ConfigError
from psconrl.experiment.columns import ColumnReader
from psconrl.experiment.store import Writer
from psconrl.simulation.regret import signed_regret, targets

MEASURED = "metrics"  # the entry of a run's summary


class UserMetric(NamedTuple):
    """One table ``[metrics.NAME]`` of a spec."""

    name: str
    code: str  # where the function is, module:function
    title: str  # in figures and tables


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """What a run of an experiment has recorded at its n checkpoints, for a metric of one's own.

    Costs are as the agent pays them, so that a reward has a minus sign; cost 0 is the objective.
    """

    experiment: str
    label: str
    rounds: Ints  # (n,)
    costs: Floats  # (n, m+1) sums of all costs so far
    regret: Floats  # (n,) signed; nan without an optimum
    violation: Floats  # (n, m) signed
    largest_excess: Floats  # (n, m) largest violation over all rounds so far, at least 0
    strong: Floats  # (n, m+1) strong regret and violations; nan where policies were not evaluated
    thresholds: Floats  # (m,)
    optimum: Floats  # (m+1,) averages of the optimal policy; nan without an optimum
    prices: Floats  # (m,) shadow prices of the constraints; nan if unknown, or if every run has its own model
    cost_names: tuple[str, ...]  # (m+1,)
    maximise: bool  # whether the objective is a reward


class UserValues(NamedTuple):
    """The values of a metric in a run."""

    title: str
    values: Floats  # (n,) nan where there is no number


def user_metrics(tables: Mapping[str, Any], folder: Path | None) -> tuple[UserMetric, ...]:
    """Return the metrics of the tables ``[metrics.NAME]`` of a spec. Files are looked for in ``folder`` first."""
    found = []
    for name, table in tables.items():
        where = f"[metrics.{name}]"
        if not name.strip() or "," in name:
            raise ConfigError(f"{where} a name must not be empty, nor have a comma")
        if not isinstance(table, dict) or "code" not in table or set(table) - {"code", "title"}:
            raise ConfigError(f'{where} must have code = "file.py:function", and may have a title; got {quoted(table)}')
        code, title = table["code"], table.get("title", name)
        if not is_code(code):
            raise ConfigError(f'{where} code must be "file.py:function" or "module:function"; got {quoted(code)}')
        if not isinstance(title, str) or not title.strip():
            raise ConfigError(f"{where} title must be text; got {quoted(title)}")
        try:
            place = as_module(code, folder)
            find_code(place)
        except ConfigError as error:
            raise ConfigError(f"{where} {error}") from None
        found.append(UserMetric(name, place, title.strip()))
    return tuple(found)


def measure_runs(store: Writer, metrics: Sequence[UserMetric], experiments: Collection[str]) -> None:
    """Compute the metrics of all finished runs of some experiments that do not have them yet, and store them."""
    wanted = {metric.name: [metric.title, digest(metric.code, "")] for metric in metrics}
    functions = {metric.name: find_code(metric.code) for metric in metrics}
    known = {name: store.columns.facts(facts, f"facts of {quoted(name)}") for name, facts in _facts(store)}
    runs = "SELECT id, experiment, summary FROM runs WHERE status = 'done' AND current ORDER BY id"
    for run, experiment, text in store.query(runs):
        if experiment not in experiments:
            continue
        summary = store.columns.table(text, f"summary of run {run}")
        has = summary.get(MEASURED, {})
        if {name: [values.get("title"), values.get("code")] for name, values in has.items()} == wanted:
            continue
        recorded = _recorded(store, run, known.get(experiment, {}))
        summary.pop(MEASURED, None)
        if wanted:
            summary[MEASURED] = {
                name: {"title": title, "code": code, "values": _values(name, functions[name], recorded)}
                for name, (title, code) in wanted.items()
            }
        store.replace_summary(run, json.dumps(summary, sort_keys=True))


def user_values(columns: ColumnReader, summary: Mapping[str, Any], n: int, where: str) -> dict[str, UserValues]:
    """Return the metrics of a run from its summary, by name; ``n``: its number of checkpoints."""
    tables = summary.get(MEASURED, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        columns.wrong(f"metrics {where}", "tables")
    found = {}
    for name, table in tables.items():
        numbers = table.get("values")
        if not isinstance(numbers, list) or len(numbers) != n:
            columns.wrong(f"metric {quoted(name)} {where}", f"a list of {n} numbers")
        each = [math.nan if x is None else columns.number(x, f"metric {quoted(name)} {where}") for x in numbers]
        found[name] = UserValues(columns.text(table.get("title"), f"title of {quoted(name)} {where}"), np.array(each))
    return found


def _facts(store: Writer) -> list[tuple[Any, ...]]:
    return store.query("SELECT name, facts FROM experiments")


def _recorded(store: Writer, run: int, facts: Mapping[str, Any]) -> RecordedRun:
    sql = "SELECT experiment, label, thresholds, optimum FROM runs WHERE id = ?"
    ((experiment, label, limits, best),) = store.query(sql, (run,))
    thresholds, columns = np.array(json.loads(limits), dtype=np.float64), store.columns
    m = thresholds.size
    optimum = np.array(json.loads(best) or [math.nan] * (m + 1), dtype=np.float64)
    points = columns.points(store.series(run).points, f"checkpoints of run {run}", m + 1)
    rounds = points[:, 0, 0].astype(np.int64)
    signed = signed_regret(points[:, :, 2], rounds, targets(optimum[0], thresholds))
    names = facts.get("cost_names") or ["objective", *(f"cost {i}" for i in range(1, m + 1))]
    return RecordedRun(
        experiment=experiment,
        label=label,
        rounds=rounds,
        costs=points[:, :, 2],
        regret=signed[:, 0],
        violation=signed[:, 1:],
        largest_excess=points[:, 1:, 4],
        strong=points[:, :, 3],
        thresholds=thresholds,
        optimum=optimum,
        prices=np.array(facts.get("prices") or [math.nan] * m, dtype=np.float64),
        cost_names=tuple(names),
        maximise=bool(facts.get("maximise")),
    )


def _values(name: str, function: Callable[[RecordedRun], Any], run: RecordedRun) -> list[float | None]:
    """Return a number for every checkpoint; None where the function has none."""
    where = f"metric {quoted(name)}, {run.experiment}, {run.label}"
    remedy = "the runs are kept: mend the function and repeat the sweep"
    try:
        values = np.asarray(function(run), dtype=np.float64)
    except Exception as error:
        raise ConfigError(f"{where}: {type(error).__name__}: {error}; {remedy}") from error
    if values.shape != run.rounds.shape:
        raise ConfigError(
            f"{where}: must return {run.rounds.size} numbers, one for each checkpoint; got shape {values.shape}; "
            f"{remedy}"
        )
    return [x if math.isfinite(x) else None for x in values.tolist()]
