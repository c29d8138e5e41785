"""The tables of a report as plain data: title, note, header, rows."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import UNKNOWN, Measure, available
from psconrl.report.numbers import written
from psconrl.report.statistics import FEW_RUNS, Comparison, compare, final, final_cost, growth_exponent
from psconrl.report.style import title_of
from psconrl.report.theory import check_theory

# Lines of a traceback that are shown.
TRACEBACK_LINES = 6
NO_NUMBER = "-"
TAIL = 0.9  # the percentile that stands beside a mean


def final_table(experiment: Experiment) -> dict[str, Any]:
    """Final regret and violations of every agent."""
    return _finals(experiment, "Final regret and violation", ("regret", "violation", "priced"))


def strong_table(experiment: Experiment) -> dict[str, Any]:
    """What signed sums hide: strong regret and violations, largest running excesses. No rows if none is known."""
    return _finals(experiment, "Strong regret and violation", ("strong-regret", "strong-violation", "largest-excess"))


def spread_table(experiment: Experiment) -> dict[str, Any]:
    """How far runs lie apart: the worst one and the 90th percentile beside mean and median."""
    wanted = available(experiment, ("penalised",)) or available(experiment, ("regret",))
    rows = []
    for label, curves in experiment.curves.items() if wanted else ():
        ends = wanted[0].values(experiment, curves)[:, -1]
        numbers = (ends.mean(), np.median(ends), np.quantile(ends, TAIL), ends.max())
        rows.append([label, curves.runs, *(written(float(x)) for x in numbers)])
    return {
        "title": "Spread over runs",
        "note": f"Of the {wanted[0].title if wanted else 'regret'}, after the last round. What an agent loses in one "
        "run of ten shows in the last two columns.",
        "header": ["agent", "runs", "mean", "median", "90th percentile", "worst run"],
        "rows": rows,
    }


def _finals(experiment: Experiment, title: str, names: Sequence[str]) -> dict[str, Any]:
    """Metrics after the last round, those that some agent has."""
    wanted = available(experiment, names)
    rows = [
        [label, curves.runs, *(_cell(measure, experiment, curves) for measure in wanted)]
        for label, curves in experiment.curves.items()
    ]
    note = "Mean and 95% interval over runs, after the last round."
    if any(NO_NUMBER in row for row in rows):
        note = f"{note} {UNKNOWN}"
    return {
        "title": title,
        "note": note,
        "header": ["agent", "runs", *(measure.title for measure in wanted)],
        "rows": rows if wanted else [],
    }


def _cell(measure: Measure, experiment: Experiment, curves: Curves) -> str:
    return str(final(measure, experiment, curves)) if measure.known_of(experiment, curves) else NO_NUMBER


def comparison_table(experiment: Experiment) -> dict[str, Any]:
    """Every agent against every other, at shadow prices if they are known."""
    prices = experiment.facts.get("prices", [])
    results = [compare(a, b, lambda c: final_cost(c, prices)) for a, b in combinations(experiment.curves.values(), 2)]
    what = "regret at shadow prices" if prices else "regret"
    return {
        "title": f"Pairwise comparison of final {what}",
        "note": f"Difference over runs that met the same luck, with its 95% interval. Verdicts: paired t-tests at 5%, "
        f"corrected for the number of pairs ({len(results)}); none below {FEW_RUNS} runs.",
        "header": ["agents", "runs", "difference", "verdict"],
        "rows": [
            [f"{r.first} - {r.second}", r.runs, str(r.difference), verdict(r, len(results))]
            for r in results
            if np.isfinite(r.difference.mean)
        ],
    }


def verdict(result: Comparison, pairs: int) -> str:
    """Who is ahead, if that can be told."""
    if np.isnan(result.p_value):
        return "too few runs"
    if result.p_value * pairs > 0.05:
        return "not told apart"
    return f"{result.first if result.difference.mean < 0 else result.second} has less"


def bounds_table(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """What theory bounds: the agents of which it does, where their policies were evaluated."""
    evaluated = [replace(e, curves={x: c for x, c in e.curves.items() if _is_bounded(c)}) for e in experiments]
    rows = [
        [
            c.experiment, title_of(c.agent), c.states, written(c.diameter), str(c.regret), str(c.slope), str(c.signed),
            f"{c.episodes:,.0f}", written(c.episodes_ratio, 2), f"{c.exploring:,.0f}", written(c.exploring_ratio, 2),
        ]
        for c in check_theory(evaluated)
    ]  # fmt: skip
    table = {
        "title": "Against the theory",
        "note": "Strong regret: exact excess of every policy played, positive parts, added up. Ratios: largest over "
        "runs, to the bounds on episodes (that of the schedule) and 2 D S sqrt(A T) + 1 on rounds spent exploring. The "
        "second holds only once T is large against the slack of the limits; above 1 it says that T is not.",
        "header": [
            "experiment", "agent", "S", "D", "strong regret", "its exponent in T", "signed regret", "episodes",
            "/ bound", "rounds exploring", "/ bound",
        ],
        "rows": rows,
    }  # fmt: skip
    return [table] if rows else []


def _is_bounded(curves: Curves) -> bool:
    """Does theory bound its episodes, is the diameter known, and the strong regret?"""
    has_bounds = all("most_episodes" in s and "diameter" in s for s in curves.summaries)
    return has_bounds and bool(np.isfinite(curves.strong[:, :, 0]).all())


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
                written(float(np.nanmean(curves.seconds))),
                written(float(np.nanmean(curves.planning_seconds))),
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
