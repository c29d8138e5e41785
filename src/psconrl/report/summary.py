"""From a results file to the contents of the page: panels, tables, maps, provenance, caveats."""

import io
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import PsconrlError
from psconrl.experiment.store import Store
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.figures import policy_figure
from psconrl.report.statistics import FEW_RUNS, NOTHING, Estimate, compare, final_cost, mean_interval
from psconrl.report.tables import (
    bounds_table,
    comparison_table,
    failures_table,
    final_table,
    growth_table,
    verdict,
)  # fmt: skip

MAP_STATES = 150
PANEL_POINTS = 150

CAVEATS = (
    "Regret and violation are signed and cumulative: an agent may be ahead of the optimum by breaking a limit, so that "
    "the two must be read together. 'Regret at shadow prices' adds the violation at what it is worth.",
    "Bands are 95% bootstrap intervals of the mean over runs; with fewer than ten runs they are too narrow.",
    "Agents meet the same luck of the environment in runs of the same number: comparisons are paired.",
    "Growth exponents are fitted to the last decade of a run; finite horizons prove nothing about rates.",
)


def build(store: Store) -> dict[str, Any]:
    """Everything that the page shows."""
    with np.errstate(all="ignore"):  # a damaged total may be any number: its curve then shows it
        return _build(store)


def _build(store: Store) -> dict[str, Any]:
    experiments = read_experiments(store)
    meta = dict(store.query("SELECT key, value FROM meta"))
    runs, failed = (store.query(f"SELECT count(*) FROM runs WHERE current AND status = '{status}'")[0][0]
                    for status in ("done", "failed"))  # fmt: skip
    hours = store.query("SELECT total(seconds) FROM runs WHERE current")[0][0] / 3600
    summary = [f"{runs:,} runs in {len(experiments)} experiments, {60 * hours:.3g} minutes of computing."]
    if failed:
        summary.append(f"{failed} runs failed; see the table of failures.")
    return {
        "title": meta.get("title", "psconrl"),
        "subtitle": "psconrl: planning and learning in constrained Markov decision processes",
        "created": store.query("SELECT max(json_extract(provenance, '$.finished')) FROM runs")[0][0] or "",
        "summary": summary + [line for e in experiments for line in _findings(e)],
        "caveats": list(CAVEATS),
        "experiments": [_experiment(e) for e in experiments],
        "tables": [*bounds_table(experiments), *failures_table(experiments)],
        "provenance": _provenance(store),
    }


def _experiment(experiment: Experiment) -> dict[str, Any]:
    tables = [final_table(experiment), comparison_table(experiment), growth_table(experiment)]
    return {
        "name": experiment.name,
        "description": _description(experiment.facts),
        "facts": _facts(experiment),
        "panels": _panels(experiment) if experiment.curves else [],
        "tables": [table for table in tables if table["rows"]],
        "maps": _maps(experiment),
    }


def _description(facts: dict[str, Any]) -> str:
    if facts.get("drawn"):
        return f"{facts['env']}: a model of its own for every run"
    if "infeasibility" in facts:
        return f"{facts['env']}: no policy meets the limits. {facts['infeasibility']}"
    return f"{facts['env']}: {facts['states']} states, {facts['actions']} actions"


def _facts(experiment: Experiment) -> list[list[str]]:
    facts = experiment.facts
    shown = []
    names = experiment.cost_names
    sign = -1.0 if facts.get("maximise") else 1.0
    for key, title in (("optimum", "optimal"), ("fastest", "unlimited"), ("safest", "safest")):
        if key in facts:
            value = facts[key][0] if key == "optimum" else facts[key]
            shown.append([f"{title} {names[0]}", f"{sign * value:.6g}"])
    for name, threshold, price in zip(names[1:], facts.get("thresholds", []), facts.get("prices", []), strict=False):
        shown += [[f"limit on {name}", f"{threshold:g}"], [f"shadow price of {name}", f"{price:.4g}"]]
    if "gap" in facts:
        shown.append(["optimality gap", f"{abs(facts['gap']):.0e} ({'proven' if facts['certified'] else 'unproven'})"])
    return shown


def _panels(experiment: Experiment) -> list[dict[str, Any]]:
    facts, names = experiment.facts, experiment.cost_names
    sign = -1.0 if facts.get("maximise") else 1.0
    optimum = [["optimum", sign * facts["optimum"][0]]] if "optimum" in facts else []
    lines = optimum + [
        [name, sign * facts[key]] for name, key in (("safe", "safest"), ("fast", "fastest")) if key in facts
    ]
    panels = []
    if all(np.isfinite(curves.optimum).all() for curves in experiment.curves.values()):
        panels.append(_panel("Regret", "cumulative, signed", [], experiment, lambda c: c.regret))
    for i, name in enumerate(names[1:], start=1):
        panels.append(_panel(f"Violation: {name}", "cumulative, signed", [], experiment, lambda c, i=i: c.violation(i)))
    panels.append(_panel(f"Average {names[0]}", "average so far", lines, experiment, lambda c: sign * c.average(0)))
    for i, name in enumerate(names[1:], start=1):
        limit = [["limit", facts["thresholds"][i - 1]]] if "thresholds" in facts else []
        panels.append(_panel(f"Average {name}", "average so far", limit, experiment, lambda c, i=i: c.average(i)))
    if all(curves.probe.size for curves in experiment.curves.values()):
        panels.append(_panel("Sampled probability", "value in the present sample", [], experiment, lambda c: c.probe))
    return panels


def _panel(title: str, y: str, lines: list[Any], experiment: Experiment, measure: Any) -> dict[str, Any]:
    series = []
    for label, curves in experiment.curves.items():
        values: Floats = measure(curves)
        shown = np.unique(np.linspace(0, curves.rounds.size - 1, PANEL_POINTS).round().astype(np.int64))
        estimate: Estimate = mean_interval(values[:, shown])
        series.append(
            {
                "agent": label,
                "runs": curves.runs,
                "x": curves.rounds[shown].tolist(),
                "mean": estimate.mean.tolist(),
                "low": estimate.low.tolist(),
                "high": estimate.high.tolist(),
            }
        )
    return {"title": title, "x": "round", "y": y, "lines": lines, "series": series}


def _maps(experiment: Experiment) -> list[dict[str, str]]:
    """The optimal policy: arrows on a map, or a table of shares."""
    cmdp = experiment.model
    if cmdp is None or cmdp.n_states > MAP_STATES:
        return []
    try:
        best = plan(cmdp)
    except PsconrlError:  # the model may have been damaged
        return []
    if best.status is Status.INFEASIBLE:
        return []
    buffer = io.StringIO()
    policy_figure(cmdp, best).savefig(buffer, format="svg", bbox_inches="tight")
    return [{"title": "The optimal policy", "svg": buffer.getvalue()}]


def _findings(experiment: Experiment) -> list[str]:
    """Who has the least regret at shadow prices, what it paid in violation, and from whom it is not told apart."""
    prices = experiment.facts.get("prices")
    curves = list(experiment.curves.values())
    if not prices or len(curves) < 2:
        return []
    means = [float(final_cost(c, prices).mean()) for c in curves]
    if max(means) - min(means) < NOTHING:
        return [f"{experiment.name}: all agents tie at shadow prices; see regret and violation apart."]
    best = min(curves, key=lambda c: float(final_cost(c, prices).mean()))
    others = [c for c in curves if c is not best]
    verdicts = {c.label: verdict(compare(best, c, prices), len(others)) for c in others}
    doubtful = [label for label, result in verdicts.items() if result != f"{best.label} has less"]
    paid = ", ".join(
        f"violation of {name} {best.violation(i)[:, -1].mean():,.0f}"
        for i, name in enumerate(experiment.cost_names[1:], start=1)
    )
    ahead = f", not told apart from {', '.join(doubtful)}" if doubtful else ""
    if best.runs < FEW_RUNS:
        ahead = ", too few runs for a verdict"
    return [
        f"{experiment.name}: {best.label} has the least mean regret at shadow prices over {best.runs} runs "
        f"(regret {best.regret[:, -1].mean():,.0f}, {paid}){ahead}."
    ]


def _provenance(store: Store) -> list[list[str]]:
    found = store.query("SELECT DISTINCT provenance FROM runs WHERE current")
    records = [store.columns.table(row[0], "provenance of a run") for row in found]
    keys = ("psconrl", "commit", "code", "numpy", "scipy", "numba", "highspy", "python", "host")
    seen = {key: sorted({str(r[key]) for r in records if r.get(key)}) for key in keys}
    return [[key, ", ".join(values)] for key, values in seen.items() if values]
