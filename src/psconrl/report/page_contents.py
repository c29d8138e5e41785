"""Contents of the report page from a results file: panels, tables, maps, provenance, caveats."""

import io
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.extras import has_matplotlib
from psconrl.errors import PsconrlError
from psconrl.experiment.provenance import provenance_rows
from psconrl.experiment.store import GROUP, Store
from psconrl.planning.planner import plan_model
from psconrl.planning.proof.certificate import Status
from psconrl.report.claims_table import claims_table
from psconrl.report.curves import Experiment, read_experiments
from psconrl.report.headline import headline
from psconrl.report.metrics import available, unit_of
from psconrl.report.number_format import format_number
from psconrl.report.page_tables import (
    bounds_table,
    comparison_table,
    failures_table,
    final_table,
    growth_table,
    spread_table,
    strong_table,
    user_metrics_table,
)
from psconrl.report.statistics import MeanInterval, mean_interval
from psconrl.report.theory_growth import growth_tables

# Headings of groups of experiments in their order, by the shipped spec that they belong to.
HEADINGS = {"": "Yours", "paper": "The paper's", "theory": "Theory"}
MAP_STATES = 2_000
PANEL_POINTS = 150

# Subtitles of the charts of two metrics, by their titles.
MEANING = {"strong violation": "of the policies played, exact", "largest running excess": "of all rounds so far"}
CAVEATS = (
    "Regret and violation are signed and cumulative: an agent may be ahead of the optimum by breaking a limit, so read "
    "the two together. The score has both in one number: the regret plus the positive violations, each at twice its "
    "shadow price, but at least at its range price. It compares agents; where there are no prices, the regret does.",
    "In a signed violation, earlier savings pay for later overspending. Strong violation adds up, round by round, the "
    "exact long-run excess of the policy being played over the limit, and nothing is ever paid back. The largest "
    "running excess is how far the run was over its budget at its worst moment.",
    "Bands are 95% intervals of the mean over runs (Student's t), pointwise; fewer than three runs have none. They are "
    "exact for normal values, and cover less if values are skewed.",
    "Runs with the same number have the same environment seed for all agents, so comparisons are paired.",
    "Growth exponents are fitted to the last decade of a run; finite horizons prove nothing about rates.",
)


def build(store: Store) -> dict[str, Any]:
    """Return everything that the page shows."""
    with store.snapshot(), np.errstate(all="ignore"):  # a damaged total may be any number, and the curve shows it
        return _build(store)


def _build(store: Store) -> dict[str, Any]:
    meta = dict(store.query("SELECT key, value FROM meta"))
    grouped = [(_heading(meta, e), e) for e in read_experiments(store)]
    grouped.sort(key=lambda pair: list(HEADINGS.values()).index(pair[0]))
    experiments = [e for _, e in grouped]
    runs, failed = (
        store.query(f"SELECT count(*) FROM runs WHERE current AND status = '{status}'")[0][0]
        for status in ("done", "failed")
    )
    hours = store.query("SELECT total(seconds) FROM runs WHERE current")[0][0] / 3600
    summary = [f"{runs:,} runs in {len(experiments)} experiments, {format_number(60 * hours)} minutes of computing."]
    if meta.get("shortened"):
        summary.append(f"Short form of the experiments. {meta['shortened']}.")
    if failed:
        summary.append(f"{failed} runs failed; see the table of failures.")
    return {
        "title": meta.get("title", "psconrl"),
        "subtitle": "psconrl: planning and learning in constrained Markov decision processes",
        "created": store.query("SELECT max(json_extract(provenance, '$.finished')) FROM runs")[0][0] or "",
        "summary": summary,
        "caveats": list(CAVEATS),
        "opens": _first_grid(experiments),
        "experiments": [_experiment(e) | {"group": heading} for heading, e in grouped],
        "tables": [
            *claims_table([e for heading, e in grouped if heading == HEADINGS["paper"]]),
            *bounds_table(experiments),
            *growth_tables([e for heading, e in grouped if heading == HEADINGS["theory"]]),
            *failures_table(experiments),
        ],
        "provenance": provenance_rows(store),
    }


def _heading(meta: dict[Any, Any], experiment: Experiment) -> str:
    """Return the heading of the group of an experiment."""
    return HEADINGS.get(meta.get(f"{GROUP} {experiment.name}", ""), HEADINGS[""])


def _first_grid(experiments: list[Experiment]) -> str:
    """Return the experiment that the page opens with: the first with a map, else the first."""
    on_map = [e.name for e in experiments if e.model is not None and e.model.layout is not None]
    return next(iter([*on_map, *(e.name for e in experiments)]), "")


def _experiment(experiment: Experiment) -> dict[str, Any]:
    tables = [
        f(experiment)
        for f in (final_table, spread_table, strong_table, user_metrics_table, comparison_table, growth_table)
    ]
    return {
        "name": experiment.name,
        "description": _description(experiment.facts),
        "finding": headline(experiment),
        "facts": _facts(experiment),
        "panels": _panels(experiment) if experiment.curves else [],
        "tables": [table for table in tables if table["rows"]],
        "maps": _maps(experiment),
    }


def _description(facts: dict[str, Any]) -> str:
    if facts.get("drawn"):
        return f"{facts['env']}: a different model for every run"
    if "infeasibility" in facts:
        return f"{facts['env']}: no policy meets the limits. {facts['infeasibility']}"
    return f"{facts['env']}: {facts['states']} states, {facts['actions']} actions"


def _facts(experiment: Experiment) -> list[list[str]]:
    facts = experiment.facts
    shown = []
    names = experiment.cost_names
    sign = -1.0 if facts.get("maximise") else 1.0
    with_unit = experiment.units.with_unit
    for key, title in (("optimum", "optimal"), ("fastest", "unlimited"), ("safest", "safest")):
        if key in facts:
            value = facts[key][0] if key == "optimum" else facts[key]
            shown.append([f"{title} {names[0]}", with_unit(format_number(sign * value, 6), names[0])])
    for name, threshold, price in zip(names[1:], facts.get("thresholds", []), facts.get("prices", []), strict=False):
        shown += [
            [f"limit on {name}", with_unit(format_number(threshold, 6), name)],
            [f"shadow price of {name}", format_number(price, 4)],
        ]
    for name, price in zip(names[1:], facts.get("range_prices", []), strict=False):
        shown.append([f"range price of {name}", format_number(price, 4)])
    if "gap" in facts:
        proof = "proven" if facts["certified"] else "unproven"
        shown.append(["optimality gap", f"{format_number(abs(facts['gap']), 1)} ({proof})"])
    return shown


def _panels(experiment: Experiment) -> list[dict[str, Any]]:
    facts, names = experiment.facts, experiment.cost_names
    sign = -1.0 if facts.get("maximise") else 1.0
    optimum = [["optimum", sign * facts["optimum"][0]]] if "optimum" in facts else []
    lines = optimum + [
        [name, sign * facts[key]] for name, key in (("safe", "safest"), ("fast", "fastest")) if key in facts
    ]

    def added_up(i: int) -> str:
        return ", ".join(filter(None, ("cumulative, signed", unit_of(experiment, i, cumulative=True))))

    def so_far(i: int) -> str:
        return ", ".join(filter(None, ("average so far", unit_of(experiment, i, cumulative=False))))

    panels = []
    if all(np.isfinite(curves.optimum).all() for curves in experiment.curves.values()):
        panels.append(_panel("Regret", added_up(0), None, experiment, lambda c: c.regret))
    for i, name in enumerate(names[1:], start=1):
        panels.append(_panel(f"Violation: {name}", added_up(i), None, experiment, lambda c, i=i: c.violation(i)))
    for measure in available(experiment, ("strong-violation", "largest-excess")):
        unit = unit_of(experiment, measure.cost, cumulative=True)
        title = f"{measure.metric.title.capitalize()}: {names[measure.cost]}"
        said = ", ".join(filter(None, (MEANING[measure.metric.title], unit)))
        known = replace(
            experiment, curves={x: c for x, c in experiment.curves.items() if measure.known_of(experiment, c)}
        )
        panels.append(_panel(title, said, None, known, partial(measure.values, experiment)))
    panels.append(_panel(f"Average {names[0]}", so_far(0), lines, experiment, lambda c: sign * c.average(0)))
    for i, name in enumerate(names[1:], start=1):
        limit = [["limit", facts["thresholds"][i - 1]]] if "thresholds" in facts else []
        panels.append(_panel(f"Average {name}", so_far(i), limit, experiment, lambda c, i=i: c.average(i)))
    if all(curves.probe.size for curves in experiment.curves.values()):
        panels.append(_panel("Sampled probability", "value in the present sample", [], experiment, lambda c: c.probe))
    return panels


def _panel(title: str, y: str, lines: list[Any] | None, experiment: Experiment, measure: Any) -> dict[str, Any]:
    """Return a chart; if ``lines`` is None, zero is the reference line and outlying agents may be cut off."""
    series = []
    for curves in experiment.curves.values():
        values: Floats = measure(curves)
        shown = curves.spread_over(PANEL_POINTS)
        estimate: MeanInterval = mean_interval(values[:, shown])
        series.append(
            {
                "agent": curves.title,
                "runs": curves.runs,
                "x": curves.rounds[shown].tolist(),
                "mean": estimate.mean.tolist(),
                "low": estimate.low.tolist(),
                "high": estimate.high.tolist(),
            }
        )
    return {"title": title, "x": "round", "y": y, "lines": lines or [], "clip": lines is None, "series": series}


def _maps(experiment: Experiment) -> list[dict[str, str]]:
    """Return the figure of the optimal policy, on a map or as a table of shares; empty if it cannot be drawn."""
    cmdp = experiment.model
    if cmdp is None or cmdp.n_states > MAP_STATES or not has_matplotlib():
        return []
    from psconrl.report.policy_figure import policy_figure

    try:
        best = plan_model(cmdp)
    except PsconrlError:  # the model may have been damaged
        return []
    if best.status is Status.INFEASIBLE:
        return []
    buffer = io.StringIO()
    policy_figure(cmdp, best).savefig(buffer, format="svg", bbox_inches="tight")
    return [{"title": "The optimal policy", "svg": buffer.getvalue()}]
