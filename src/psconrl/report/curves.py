"""Reading a results file: for every experiment and agent, the curves of all runs as arrays."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.experiment.environment_record import model_from
from psconrl.experiment.store import Store
from psconrl.experiment.user_metrics import UserValues, user_values
from psconrl.experiment.user_titles import shown_titles
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units, read_units
from psconrl.report.style import UNKNOWN, Look, looks_of
from psconrl.report.unfinished import UnfinishedAgent, unfinished_agents
from psconrl.simulation.regret import moving_average, paper_curve, signed_regret, targets


@dataclass(frozen=True, eq=False)
class Curves:
    """The runs of one agent in one experiment: n checkpoints, q = m+1 costs, the objective first."""

    label: str
    agent: str
    rounds: Ints  # (n,)
    cumulative: Floats  # (runs, n, q)
    thresholds: Floats  # (runs, m)
    optimum: Floats  # (runs,) optimal objective; nan if there is none
    replicates: Ints  # (runs,)
    seconds: Floats  # (runs,)
    planning_seconds: Floats  # (runs,)
    probe: Floats  # (runs, n), or (runs, 0)
    strong: Floats  # (runs, n, q); nan where policies were not evaluated
    largest_excess: Floats  # (runs, n, q); nan for the objective
    summaries: tuple[dict[str, Any], ...]
    own: dict[str, UserValues] = field(default_factory=dict)  # metrics of the spec, (runs, n); nan where a run has none
    title: str = ""  # the agent's name in figures and tables
    look: Look = UNKNOWN

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.replicates)

    def spread_over(self, most: int) -> Ints:
        """Return the numbers of at most ``most`` checkpoints, evenly spread, the first and the last among them."""
        return np.unique(np.linspace(0, self.rounds.size - 1, most).round().astype(np.int64))

    @property
    def regret(self) -> Floats:
        """Signed cumulative regret, (runs, n)."""
        return self._signed[:, :, 0]

    def violation(self, i: int) -> Floats:
        """Signed cumulative violation of constraint i, from 1, (runs, n)."""
        return self._signed[:, :, i]

    @property
    def _signed(self) -> Floats:
        return signed_regret(self.cumulative, self.rounds, targets(self.optimum, self.thresholds))

    def average(self, i: int) -> Floats:
        """Average of cost i up to each checkpoint, (runs, n)."""
        return np.asarray(self.cumulative[:, :, i] / self.rounds)

    def moving_average(self, i: int, window: int) -> Floats:
        """Average of cost i over the last ``window`` rounds, (runs, n); nan before the first full window."""
        averages = moving_average(self.cumulative[:, :, i], self.rounds, window)
        return np.where(self.rounds >= window, averages, np.nan)

    def paper_curve(self, i: int, window: int) -> Floats:
        """Curves (runs, n) of the paper's figures: cumulative excess of a run's moving average over its target."""
        aims = targets(self.optimum, self.thresholds)[:, i]
        return paper_curve(self.cumulative[:, :, i], self.rounds, window, aims)


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment of a results file."""

    name: str
    facts: dict[str, Any]
    model: CMDP | None
    curves: dict[str, Curves]
    failures: list[tuple[str, int, str]] = field(default_factory=list)  # label, replicate, traceback
    title: str = ""  # the experiment's name in figures and in tables for print
    unfinished: tuple[UnfinishedAgent, ...] = ()  # with fewer finished runs than planned

    @property
    def cost_names(self) -> list[str]:
        """Names of the costs, the objective first."""
        any_curves = next(iter(self.curves.values()), None)
        q = any_curves.cumulative.shape[2] if any_curves is not None else 1
        return list(self.facts.get("cost_names") or ["objective", *(f"cost {i}" for i in range(1, q))])

    @property
    def units(self) -> Units:
        """Units of the costs, if the model has them."""
        return read_units(self.facts.get("units"), tuple(self.cost_names))


def read_experiments(store: Store) -> list[Experiment]:
    """Return all experiments that have runs, in the order of the spec. An error if one was changed since written."""
    with store.snapshot():
        found = _experiments(store)
        labels = [label for e in found for label in e.curves]
        looks = looks_of(labels)
        titles = shown_titles(store, [*labels, *(each.label for e in found for each in e.unfinished)])
    return [
        replace(
            e,
            curves={x: replace(c, title=titles[x], look=looks[x]) for x, c in e.curves.items()},
            unfinished=tuple(each._replace(title=titles[each.label]) for each in e.unfinished),
        )
        for e in found
    ]


def _experiments(store: Store) -> list[Experiment]:
    found = []
    for name, facts, model in store.query("SELECT name, facts, model FROM experiments ORDER BY position, name"):
        curves = _curves_of(store, name)
        failures = [
            (store.columns.text(label, "a label"), replicate, store.columns.text(error, "an error"))
            for label, replicate, error in store.query(
                "SELECT label, replicate, error FROM runs WHERE experiment = ? AND status = 'failed' AND current"
                " ORDER BY label, replicate",
                (name,),
            )
        ]
        if curves or failures:
            known = store.columns.facts(facts, f"facts of {quoted(name)}")
            _check_costs(store, name, known, curves)
            title = store.columns.text(name, "the name of an experiment")
            read = model_from(model, known.get("states"))
            lacking = tuple(unfinished_agents(store, title))
            found.append(Experiment(title, known, read, curves, failures, title, lacking))
    return found


def _check_costs(store: Store, name: str, facts: dict[str, Any], curves: dict[str, Curves]) -> None:
    sizes = {c.cumulative.shape[2] for c in curves.values()} | (
        {len(facts["cost_names"])} if "cost_names" in facts else set()
    )
    if len(sizes) > 1:
        store.columns.wrong(f"the runs of {quoted(name)}", "of the same number of costs")


def _curves_of(store: Store, experiment: str) -> dict[str, Curves]:
    rows = store.query(
        "SELECT id, label, agent, replicate, thresholds, optimum, summary, provenance FROM runs"
        " WHERE experiment = ? AND status = 'done' AND current ORDER BY id",
        (experiment,),
    )
    by_label: dict[str, list[_Run]] = {}
    for row in rows:
        run = _run(store, row)
        by_label.setdefault(run.label, []).append(run)
    order = _order(store, experiment)
    labels = sorted(by_label, key=lambda label: (order.index(label) if label in order else len(order), label))
    return {label: _curves(store, label, sorted(by_label[label], key=lambda run: run.replicate)) for label in labels}


def _order(store: Store, experiment: str) -> list[str]:
    key = f"order {experiment}"
    given = store.query("SELECT value FROM meta WHERE key = ?", (key,))
    return store.columns.texts(store.columns.json(given[0][0], f"the {key}"), f"the {key}") if given else []


class _Run(NamedTuple):
    """A run whose parts have been checked."""

    id: int
    label: str
    agent: str
    replicate: int
    points: Floats  # (n, q, 5): round, cost, total, strong, largest
    thresholds: list[float]
    optimum: list[float]
    summary: dict[str, Any]
    seconds: float
    planning_seconds: float
    probe: list[float]
    own: dict[str, UserValues]

    @property
    def rounds(self) -> Ints:
        """Rounds of the checkpoints."""
        return self.points[:, 0, 0].astype(np.int64)


def _run(store: Store, row: tuple[Any, ...]) -> _Run:
    columns = store.columns
    run = columns.whole(row[0], "the number of a run")
    where = f"of run {run}"
    thresholds = columns.numbers(columns.json(row[4], f"thresholds {where}"), f"thresholds {where}")
    optimum = columns.json(row[5], f"optimum {where}")
    q = len(thresholds) + 1
    record = columns.table(row[7], f"provenance {where}")
    points, probes = store.series(run)
    summary = columns.summary(row[6], f"summary {where}")
    numbers = columns.points(points, f"checkpoints {where}", q)
    return _Run(
        run,
        columns.text(row[1], f"label {where}"),
        columns.text(row[2], f"agent {where}"),
        columns.whole(row[3], f"replicate {where}"),
        numbers,
        thresholds,
        columns.numbers(optimum, f"optimum {where}", q if optimum else 0),
        summary,
        columns.seconds(record, "seconds", f"provenance {where}"),
        columns.seconds(record, "planning_seconds", f"provenance {where}"),
        [np.nan if v is None else columns.number(v, f"probes {where}", finite=False) for _, v in probes],
        user_values(columns, summary, len(numbers), where),
    )


def _curves(store: Store, label: str, runs: list[_Run]) -> Curves:
    if len({len(run.thresholds) for run in runs}) > 1:
        store.columns.wrong(f"the runs of {quoted(label)}", "of the same number of costs")
    rounds = min((run.rounds for run in runs), key=len)
    runs = [run for run in runs if np.array_equal(run.rounds, rounds)]
    probed = all(len(run.probe) == rounds.size for run in runs)
    return Curves(
        label=label,
        agent=runs[0].agent,
        rounds=rounds,
        cumulative=np.array([run.points[:, :, 2] for run in runs]),
        thresholds=np.array([run.thresholds for run in runs], dtype=np.float64).reshape(len(runs), -1),
        optimum=np.array([run.optimum[0] if run.optimum else np.nan for run in runs]),
        replicates=np.array([run.replicate for run in runs]),
        seconds=np.array([run.seconds for run in runs]),
        planning_seconds=np.array([run.planning_seconds for run in runs]),
        probe=np.array([run.probe if probed else [] for run in runs], dtype=np.float64).reshape(len(runs), -1),
        strong=np.array([run.points[:, :, 3] for run in runs]),
        largest_excess=np.array([run.points[:, :, 4] for run in runs]),
        summaries=tuple(run.summary for run in runs),
        own=_own_of(runs, rounds.size),
    )


def _own_of(runs: list[_Run], n: int) -> dict[str, UserValues]:
    """Return the metrics of the spec that any of the runs has."""
    titles = {name: own.title for run in runs for name, own in run.own.items()}
    none = UserValues("", np.full(n, np.nan))
    return {
        name: UserValues(title, np.array([run.own.get(name, none).values for run in runs]))
        for name, title in titles.items()
    }
