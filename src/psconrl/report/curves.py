"""Reading a results file: for every experiment and agent, the curves of all runs side by side."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.experiment.facts import model_from
from psconrl.experiment.store import Store
from psconrl.model.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Curves:
    """The runs of one agent in one experiment: n checkpoints, q = m+1 costs, the objective first."""

    label: str
    agent: str
    rounds: Ints  # (n,)
    cumulative: Floats  # (runs, n, q)
    thresholds: Floats  # (runs, m)
    optimum: Floats  # (runs,) of the objective; nan if there is none
    replicates: Ints  # (runs,)
    seconds: Floats  # (runs,)
    planning_seconds: Floats  # (runs,)
    probe: Floats  # (runs, n), or (runs, 0)
    strong: Floats  # (runs, n, q); nan where policies were not evaluated
    summaries: tuple[dict[str, Any], ...]

    @property
    def runs(self) -> int:
        """How many there are."""
        return len(self.replicates)

    @property
    def regret(self) -> Floats:
        """Signed cumulative regret, (runs, n)."""
        return np.asarray(self.cumulative[:, :, 0] - self.optimum[:, None] * self.rounds)

    def violation(self, i: int) -> Floats:
        """Signed cumulative violation of constraint i, from 1, (runs, n)."""
        return np.asarray(self.cumulative[:, :, i] - self.thresholds[:, i - 1, None] * self.rounds)

    def average(self, i: int) -> Floats:
        """Average of cost i so far, (runs, n)."""
        return np.asarray(self.cumulative[:, :, i] / self.rounds)

    def moving_average(self, i: int, window: int) -> Floats:
        """Average of cost i over the last ``window`` rounds, (runs, n)."""
        grid = np.append(0, self.rounds)
        lag = np.maximum(self.rounds - window, 0)
        totals = self.cumulative[:, :, i]
        before = np.array([np.interp(lag, grid, np.append(0.0, total)) for total in totals])
        return np.asarray((totals - before) / (self.rounds - lag))

    def paper_curve(self, i: int, window: int) -> Floats:
        """The curve (n,) of the paper's figures: moving average of the mean over runs, above its target, added up."""
        target = float(self.optimum.mean()) if i == 0 else float(self.thresholds[0, i - 1])
        above = np.maximum(self.moving_average(i, window).mean(axis=0) - target, 0.0)
        return np.asarray(np.cumsum(above * np.diff(self.rounds, prepend=0)))


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment of a results file."""

    name: str
    facts: dict[str, Any]
    model: CMDP | None
    curves: dict[str, Curves]
    failures: list[tuple[str, int, str]] = field(default_factory=list)  # label, replicate, traceback

    @property
    def cost_names(self) -> list[str]:
        """Names of the costs, the objective first."""
        any_curves = next(iter(self.curves.values()), None)
        q = any_curves.cumulative.shape[2] if any_curves is not None else 1
        return list(self.facts.get("cost_names") or ["objective", *(f"cost {i}" for i in range(1, q))])


def read_experiments(store: Store) -> list[Experiment]:
    """All experiments that have runs, in the order they were given."""
    found = []
    for name, facts, model in store.query("SELECT name, facts, model FROM experiments ORDER BY position, name"):
        curves = _curves_of(store, name)
        failures = store.query(
            "SELECT label, replicate, error FROM runs WHERE experiment = ? AND status = 'failed' AND current"
            " ORDER BY label, replicate",
            (name,),
        )
        if curves or failures:
            found.append(Experiment(name, json.loads(facts), model_from(model), curves, failures))
    return found


def _curves_of(store: Store, experiment: str) -> dict[str, Curves]:
    rows = store.query(
        "SELECT id, label, agent, replicate, thresholds, optimum, summary, provenance FROM runs"
        " WHERE experiment = ? AND status = 'done' AND current ORDER BY id",
        (experiment,),
    )
    by_label: dict[str, list[Any]] = {}
    for row in rows:
        by_label.setdefault(row[1], []).append(row)
    order = sorted(by_label, key=lambda label: _position(store, experiment, label))
    return {label: _curves(store, label, sorted(by_label[label], key=lambda row: row[3])) for label in order}


def _position(store: Store, experiment: str, label: str) -> tuple[int, str]:
    order = json.loads(dict(store.query("SELECT key, value FROM meta")).get(f"order {experiment}", "[]"))
    return (order.index(label) if label in order else len(order), label)


def _curves(store: Store, label: str, rows: list[Any]) -> Curves:
    grids, tables, probes, strong = [], [], [], []
    for row in rows:
        points = np.array(
            store.query(
                "SELECT round, cost, total, strong FROM checkpoints WHERE run = ? ORDER BY round, cost", (row[0],)
            ),
            dtype=np.float64,
        )
        q = int(points[:, 1].max()) + 1
        grids.append(points[::q, 0].astype(np.int64))
        tables.append(points[:, 2].reshape(-1, q))
        strong.append(points[:, 3].reshape(-1, q))
        values = store.query("SELECT value FROM probes WHERE run = ? ORDER BY round", (row[0],))
        probes.append([np.nan if v is None else v for (v,) in values])
    rounds = min(grids, key=len)
    shared = [i for i, grid in enumerate(grids) if np.array_equal(grid, rounds)]
    rows, provenance = [rows[i] for i in shared], [json.loads(rows[i][7]) for i in shared]
    optimum = [json.loads(row[5]) for row in rows]
    return Curves(
        label=label,
        agent=rows[0][2],
        rounds=rounds,
        cumulative=np.array([tables[i] for i in shared]),
        thresholds=np.array([json.loads(row[4]) for row in rows], dtype=np.float64).reshape(len(rows), -1),
        optimum=np.array([costs[0] if costs else np.nan for costs in optimum]),
        replicates=np.array([row[3] for row in rows]),
        seconds=np.array([p.get("seconds", np.nan) for p in provenance]),
        planning_seconds=np.array([p.get("planning_seconds", np.nan) for p in provenance]),
        probe=np.array([probes[i] for i in shared], dtype=np.float64).reshape(len(rows), -1),
        strong=np.array([strong[i] for i in shared]),
        summaries=tuple(json.loads(row[6]) for row in rows),
    )
