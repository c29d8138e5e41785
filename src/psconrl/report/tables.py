"""The tables of a report as plain data: title, note, header, rows."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from psconrl.report.curves import Experiment
from psconrl.report.statistics import compare, growth_exponent, mean_interval

# Lines of a traceback that are shown.
TRACEBACK_LINES = 6


def final_table(experiment: Experiment) -> dict[str, Any]:
    """Final regret and violations of every agent."""
    names = experiment.cost_names[1:]
    prices = experiment.facts.get("prices", [])
    rows: list[list[Any]] = []
    for label, curves in experiment.curves.items():
        regret = curves.regret[:, -1]
        violations = [curves.violation(i + 1)[:, -1] for i in range(len(names))]
        priced = (
            [str(mean_interval(regret + sum(p * v for p, v in zip(prices, violations, strict=True))))] if prices else []
        )
        rows.append(
            [label, curves.runs, str(mean_interval(regret)), *(str(mean_interval(v)) for v in violations), *priced]
        )
    violation_titles = [f"violation ({name})" for name in names]
    return {
        "title": "Final regret and violation",
        "note": "Mean and 95% interval over runs, after the last round.",
        "header": ["agent", "runs", "regret", *violation_titles, *(["regret at shadow prices"] if prices else [])],
        "rows": rows,
    }


def comparison_table(experiment: Experiment) -> dict[str, Any]:
    """Every agent against every other."""
    rows = []
    for first, second in combinations(experiment.curves.values(), 2):
        result = compare(first, second)
        if not np.isfinite(result.difference.mean):
            continue
        better = result.first if result.difference.mean < 0 else result.second
        verdict = f"{better} has less" if result.clear else "not clear"
        rows.append([f"{result.first} - {result.second}", str(result.difference), verdict])
    return {
        "title": "Pairwise comparison of final regret",
        "note": "Difference over runs that met the same luck, with its 95% interval.",
        "header": ["agents", "difference", "verdict"],
        "rows": rows,
    }


def growth_table(experiment: Experiment) -> dict[str, Any]:
    """How regret grows with T, and how often the agents thought."""
    rows = []
    for label, curves in experiment.curves.items():
        episodes = np.array([s.get("episodes", np.nan) for s in curves.summaries], dtype=np.float64)
        exploring = np.array([s.get("rounds", {}).get("explore", 0) for s in curves.summaries])
        slope = growth_exponent(curves.rounds, curves.regret)
        rows.append(
            [
                label,
                "-" if np.isnan(slope.mean) else str(slope),
                f"{episodes.mean():,.0f}",
                f"{exploring.mean():,.0f}",
                f"{np.nanmean(curves.seconds):.3g}",
                f"{np.nanmean(curves.planning_seconds):.3g}",
            ]
        )
    return {
        "title": "Growth and timing",
        "note": "Exponent of the mean regret in T over the last decade; - where it is not positive throughout. "
        "Means over runs.",
        "header": ["agent", "growth exponent", "episodes", "rounds exploring", "seconds a run", "of which planning"],
        "rows": rows,
    }


def failures_table(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """The runs that failed, if any."""
    rows = [
        [e.name, label, replicate, "\n".join(error.strip().splitlines()[-TRACEBACK_LINES:])]
        for e in experiments
        for label, replicate, error in e.failures
    ]
    table = {
        "title": "Runs that failed",
        "note": "The end of each traceback; the results file has all of it. The same sweep again tries them again.",
        "header": ["experiment", "agent", "run", "error"],
        "rows": rows,
    }
    return [table] if rows else []
