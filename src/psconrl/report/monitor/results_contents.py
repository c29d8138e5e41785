"""Contents of the monitor for a results file while a sweep writes it: progress, and means over the runs so far."""

from collections.abc import Callable
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.experiment.store import Store
from psconrl.experiment.user_titles import shown_titles
from psconrl.model.units import read_units
from psconrl.report.monitor.axis import clipped_range
from psconrl.report.page import packed_looks
from psconrl.report.style import looks_of

RESULTS_POINTS = 150  # points of a curve
# The number of finished runs of an experiment, and the means over them of the total and of the regret.
MEANS = """
SELECT r.label, c.cost, c.round, count(*), avg(c.total), avg(c.total - c.round * json_extract(r.optimum, '$[0]'))
FROM runs r JOIN checkpoints c ON c.run = r.id
WHERE r.experiment = ? AND r.status = 'done' AND r.current
GROUP BY r.label, c.cost, c.round ORDER BY r.label, c.cost, c.round
"""
COUNTS = """
SELECT experiment, label, sum(status = 'done'), sum(status = 'failed'), avg(CASE WHEN status = 'done' THEN seconds END)
FROM runs WHERE current GROUP BY experiment, label
"""


def results_contents(store: Store) -> dict[str, Any]:
    """Return everything that the page shows of a results file."""
    with store.snapshot(with_series=True), np.errstate(all="ignore"):
        return _contents(store)


def results_version(store: Store) -> object:
    """Return a value that changes when there is something new to show."""
    runs = store.query("SELECT count(*), max(id), sum(current) FROM runs")
    return runs, store.query("SELECT key, value FROM meta ORDER BY key")


def _contents(store: Store) -> dict[str, Any]:
    columns = store.columns
    meta = {columns.text(key, "a key"): value for key, value in store.query("SELECT key, value FROM meta")}
    counted: dict[str, dict[str, list[Any]]] = {}
    for name, label, *numbers in store.query(COUNTS):
        counted.setdefault(name, {})[label] = numbers
    facts = {
        name: columns.facts(text, f"facts of {quoted(name)}")
        for name, text in store.query("SELECT name, facts FROM experiments ORDER BY position")
    }
    names = dict.fromkeys([*facts, *(key.removeprefix("planned ") for key in meta if key.startswith("planned "))])
    names |= dict.fromkeys(counted)
    planned = {
        name: columns.table(meta.get(f"planned {name}", "{}"), f"what is planned of {quoted(name)}") for name in names
    }
    done, failed, wanted = 0, 0, 0
    sections = []
    labels = [str(label) for name in names for label in [*planned[name], *counted.get(name, {})]]
    titles = shown_titles(store, labels)
    for name in names:
        own, plan = counted.get(name, {}), planned[name]
        done += sum(numbers[0] for numbers in own.values())
        failed += sum(numbers[1] for numbers in own.values())
        wanted += sum(columns.whole(n, f"what is planned of {quoted(name)}") for n in plan.values())
        panels = _panels(store, name, facts.get(name, {}), [*plan, *own], titles) if own else []
        sections.append({"name": name, "panels": panels, "tables": [_progress(own, plan, titles)]})
    shown = [["runs", f"{done:,} of {wanted:,}" if wanted else f"{done:,}"]]
    if failed:
        shown.append(["failed", f"{failed:,}"])
    if wanted:
        shown.append(["state", "complete" if done >= wanted else f"{wanted - done - failed:,} to go"])
    return {
        "state": "results",
        "title": meta.get("title", ""),
        "looks": packed_looks(looks_of(titles.values())),
        "facts": shown,
        "notes": ["Curves are means over the finished runs; psconrl report has intervals and tests."],
        "sections": sections,
        "policy": None,
    }


def _progress(counted: dict[str, list[Any]], planned: dict[str, int], titles: dict[str, str]) -> dict[str, Any]:
    rows = []
    for label in dict.fromkeys([*planned, *counted]):
        done, failed, seconds = counted.get(label, [0, 0, None])
        rows.append([titles[str(label)], done, planned.get(label), failed, seconds])
    return {"title": "Progress", "header": ["agent", "done", "planned", "failed", "seconds per run"], "rows": rows}


def _panels(
    store: Store, name: str, facts: dict[str, Any], order: list[str], titles: dict[str, str]
) -> list[dict[str, Any]]:
    """Return one panel per unit: the regret, then the average of every cost."""
    table: dict[int, dict[str, Floats]] = {}  # by cost and agent: (n, 4) round, runs, total, regret
    rows: dict[tuple[int, str], list[Any]] = {}
    for label, cost, *numbers in store.query(MEANS, (name,)):
        if label in order:
            rows.setdefault((store.columns.whole(cost, "a cost"), label), []).append(numbers)
    for (cost, label), points in sorted(rows.items(), key=lambda item: order.index(item[0][1])):
        chosen = np.unique(np.linspace(0, len(points) - 1, RESULTS_POINTS).round().astype(np.int64))
        try:
            table.setdefault(cost, {})[titles[str(label)]] = np.array(points, dtype=np.float64)[chosen]
        except (TypeError, ValueError):
            store.columns.wrong(f"checkpoints of {quoted(name)}", "numbers")
    names = facts.get("cost_names") or ["objective", *(f"cost {i}" for i in range(1, len(table)))]
    sign, units = -1.0 if facts.get("maximise") else 1.0, read_units(facts.get("units"), tuple(names))
    panels = []
    if 0 in table and all(np.isfinite(points[:, 3]).all() for points in table[0].values()):
        unit = _words("cumulative, signed, mean over runs", units.total(names[0]))
        panels.append(_panel("Regret", unit, [], table[0], lambda p: p[:, 3]) | {"clip": True})
    for i, cost_name in enumerate(names):
        lines = [["optimum", sign * facts["optimum"][0]]] if i == 0 and "optimum" in facts else []
        lines += [["limit", facts["thresholds"][i - 1]]] if i > 0 and "thresholds" in facts else []
        unit, average = _words("so far, mean over runs", units.average(cost_name)), _average(sign if i == 0 else 1.0)
        shown = table.get(i, {})
        panel = _panel(f"Average {cost_name}", unit, lines, shown, average)
        panels.append(panel | {"range": clipped_range((p[:, 0], average(p)) for p in shown.values())})
    return panels


def _words(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _average(sign: float) -> Callable[[Floats], Floats]:
    return lambda points: sign * points[:, 2] / points[:, 0]


def _panel(
    title: str, unit: str, lines: list[Any], table: dict[str, Floats], measure: Callable[[Floats], Floats]
) -> dict[str, Any]:
    series = [
        {
            "agent": label,
            "runs": int(points[-1, 1]),
            "x": points[:, 0].astype(np.int64).tolist(),
            "mean": measure(points).tolist(),
        }
        for label, points in table.items()
    ]
    return {"title": title, "x": "round", "y": unit, "lines": lines, "series": series}
