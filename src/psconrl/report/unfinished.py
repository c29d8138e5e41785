"""Sweeps that are not complete: how many of the planned runs are done."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from psconrl.base.escaping import quoted
from psconrl.experiment.store import Store

DONE = "SELECT label, count(*) FROM runs WHERE experiment = ? AND status = 'done' AND current GROUP BY label"
PLANNED = "planned "  # start of the keys in meta: of an experiment, the number of runs of every agent


class UnfinishedAgent(NamedTuple):
    """An agent that has fewer finished runs in an experiment than the sweep has planned."""

    label: str
    title: str
    done: int
    planned: int


def unfinished_agents(store: Store, experiment: str) -> list[UnfinishedAgent]:
    """Return the agents of an experiment that lack runs; none if the file does not say what was planned."""
    rows = store.query("SELECT value FROM meta WHERE key = ?", (f"{PLANNED}{experiment}",))
    where = f"what is planned of {quoted(experiment)}"
    plan = store.columns.table(rows[0][0], where) if rows else {}
    done = dict(store.query(DONE, (experiment,)))
    counts = ((label, done.get(label, 0), store.columns.whole(n, where)) for label, n in plan.items())
    return [UnfinishedAgent(label, label, has, n) for label, has, n in counts if has < n]


def unfinished_experiments(store: Store, started: bool = True) -> list[str]:
    """Return a line for every experiment that lacks runs, e.g. "riverswim: 0 of 70 runs"; agents have their labels.

    ``started``: also experiments that have finished runs.
    """
    rows = store.query("SELECT key FROM meta WHERE key LIKE ? ORDER BY rowid", (f"{PLANNED}%",))
    found = []
    for key in (store.columns.text(row[0], "a key") for row in rows):
        name = key.removeprefix(PLANNED)
        agents = unfinished_agents(store, name)
        if agents and not store.query(DONE, (name,)):
            found.append(f"{name}: 0 of {sum(each.planned for each in agents):,} runs")
        elif agents and started:
            found.append(f"{name}: {unfinished_in_words(agents)}")
    return found


def unfinished_in_words(agents: Iterable[UnfinishedAgent]) -> str:
    """Return which runs are done, those of agents with the same numbers together.

    >>> unfinished_in_words([UnfinishedAgent("a", "A", 3, 10), UnfinishedAgent("b", "B", 3, 10)])
    '3 of 10 runs of A and of B'
    """
    titles: dict[tuple[int, int], list[str]] = defaultdict(list)
    for each in agents:
        titles[each.done, each.planned].append(each.title)
    parts = [f"{done:,} of {planned:,} runs of {' and of '.join(of)}" for (done, planned), of in titles.items()]
    return "; ".join(parts)
