"""Tables of a report as plain data: title, note, header, rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import growth_exponent
from psconrl.report.metrics import UNKNOWN, Measure, available, metrics_of
from psconrl.report.number_format import format_number
from psconrl.report.priced_regret import final_score, has_score, score
from psconrl.report.statistics import FEW_RUNS, INTERVAL_RUNS, Comparison, compare, final, without_reason
from psconrl.report.theory import check_theory

# Number of lines of a traceback that are shown.
TRACEBACK_LINES = 6
NO_NUMBER = "-"
TAIL = 0.9  # the quantile shown next to a mean
LEAST_P = 0.001  # smaller p-values are not shown


def final_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of final regret, violations and score of every agent."""
    return _finals(experiment, "Final regret and violation", ("regret", "violation", "score"))


def strong_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of what signed sums hide: strong regret and violations, and largest running excesses.

    It has no rows if none is known.
    """
    return _finals(experiment, "Strong regret and violation", ("strong-regret", "strong-violation", "largest-excess"))


def user_metrics_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of the metrics of the spec; it has no rows if there are none."""
    own = [name for name, metric in metrics_of([experiment]).items() if metric.own]
    return _finals(experiment, "Metrics of the spec", own)


def spread_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of the spread over runs: mean, median, 90th percentile and worst run."""
    wanted = available(experiment, ("score",)) or available(experiment, ("regret",))
    rows = []
    for curves in experiment.curves.values() if wanted else ():
        ends = wanted[0].values(experiment, curves)[:, -1]
        numbers = (ends.mean(), np.median(ends), np.quantile(ends, TAIL), ends.max())
        rows.append([curves.title, curves.runs, *(format_number(float(x)) for x in numbers)])
    return {
        "title": "Spread over runs",
        "note": f"The {wanted[0].title if wanted else 'regret'} after the last round. The last two columns show what "
        "an agent loses in one run of ten.",
        "header": ["agent", "runs", "mean", "median", "90th percentile", "worst run"],
        "rows": rows,
    }


def _finals(experiment: Experiment, title: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the table of metrics after the last round, for those that some agent has."""
    wanted = available(experiment, names)
    rows = [
        [curves.title, curves.runs, *(_cell(measure, experiment, curves) for measure in wanted)]
        for curves in experiment.curves.values()
    ]
    reason = without_reason(c.runs for c in experiment.curves.values())
    note = f"Mean and 95% interval (Student's t) over runs, after the last round. {reason}".rstrip()
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
    """Return the table of all pairs of agents, compared by score, or by regret if they have none."""
    what, final_of = criterion(experiment)
    results = [compare(a, b, final_of) for a, b in combinations(experiment.curves.values(), 2)]
    return {
        "title": f"Pairwise comparison of final {what}",
        "note": "Difference over runs with the same environment seed, with its 95% interval (Student's t) from "
        f"{INTERVAL_RUNS} runs on. Verdicts: paired t-tests at 5%; p-values are corrected for the number of pairs "
        f"({len(results)}); none below {FEW_RUNS} runs.",
        "header": ["agents", "runs", "difference", "p", "verdict"],
        "rows": [
            [
                f"{r.first} - {r.second}",
                r.runs,
                str(r.difference),
                p_text(adjusted_p(r, len(results))),
                verdict(r, len(results)),
            ]
            for r in results
            if np.isfinite(r.difference.mean)
        ],
    }


def criterion(experiment: Experiment) -> tuple[str, Callable[[Curves], Floats]]:
    """Return by what agents are compared, and the function that returns it for every run, (runs,)."""
    if has_score(experiment.facts):
        return "score", lambda curves: final_score(curves, experiment.facts)
    return "regret", lambda curves: curves.regret[:, -1]


def adjusted_p(result: Comparison, pairs: int) -> float:
    """Return the p-value corrected for the number of comparisons (Bonferroni); nan if there are too few runs."""
    return min(result.p_value * pairs, 1.0) if np.isfinite(result.p_value) else np.nan


def p_text(p_value: float) -> str:
    """Return a p-value for a table.

    >>> p_text(0.0312), p_text(0.00001), p_text(np.nan)
    ('0.031', '< 0.001', '-')
    """
    if np.isnan(p_value):
        return NO_NUMBER
    return f"< {LEAST_P:g}" if p_value < LEAST_P else f"{p_value:.2g}"


def verdict(result: Comparison, pairs: int) -> str:
    """Return which agent has less, if the difference is significant."""
    if np.isnan(result.p_value):
        return "too few runs"
    if adjusted_p(result, pairs) > 0.05:
        return "no significant difference"
    return f"{result.first if result.difference.mean < 0 else result.second} has less"


def bounds_table(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """Return the table of runs against the bounds of the theory, for agents with bounds and evaluated policies."""
    evaluated = [replace(e, curves={x: c for x, c in e.curves.items() if _is_bounded(c)}) for e in experiments]
    rows = [
        [
            c.experiment, title_of(c.agent), c.states, format_number(c.diameter), str(c.regret), str(c.slope),
            str(c.signed), f"{c.episodes:,.0f}", format_number(c.episodes_ratio, 2), f"{c.exploring:,.0f}",
            format_number(c.exploring_ratio, 2),
        ]
        for c in check_theory(evaluated)
    ]  # fmt: skip
    table = {
        "title": "Against the theory",
        "note": "Strong regret: sum of the positive parts of the exact excess of every policy played. Ratios: largest "
        "over runs, to the schedule's bound on episodes and to 2 D S sqrt(A T) + 1 on rounds spent exploring. The "
        "second bound holds only once T is large relative to the slack of the limits; a ratio above 1 says that T is "
        "not.",
        "header": [
            "experiment", "agent", "S", "D", "strong regret", "its exponent in T", "signed regret", "episodes",
            "/ bound", "rounds exploring", "/ bound",
        ],
        "rows": rows,
    }  # fmt: skip
    return [table] if rows else []


def _is_bounded(curves: Curves) -> bool:
    """Whether the theory bounds the agent's episodes, and its diameter and strong regret are known."""
    has_bounds = all("most_episodes" in s and "diameter" in s for s in curves.summaries)
    return has_bounds and bool(np.isfinite(curves.strong[:, :, 0]).all())


def growth_table(experiment: Experiment) -> dict[str, Any]:
    """Return the table of the growth of the score (or the regret) with T, the number of episodes, and the times."""
    scored = has_score(experiment.facts)
    rows = []
    for curves in experiment.curves.values():
        episodes = np.array([s.get("episodes", np.nan) for s in curves.summaries], dtype=np.float64)
        exploring = np.array([s.get("rounds", {}).get("explore", 0) for s in curves.summaries])
        slope = growth_exponent(curves.rounds, score(curves, experiment.facts) if scored else curves.regret)
        rows.append(
            [
                curves.title,
                "-" if np.isnan(slope.mean) else str(slope),
                f"{episodes.mean():,.0f}",
                f"{exploring.mean():,.0f}",
                format_number(float(np.nanmean(curves.seconds))),
                format_number(float(np.nanmean(curves.planning_seconds))),
            ]
        )
    return {
        "title": "Growth and timing",
        "note": f"Exponent of the mean {'score' if scored else 'regret'} in T over the last decade; - where it is not "
        "positive throughout. Means over runs.",
        "header": ["agent", "growth exponent", "episodes", "rounds exploring", "seconds per run", "of which planning"],
        "rows": rows,
    }


def failures_table(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """Return the table of the runs that failed, if any."""
    rows = [
        [e.name, label, replicate, "\n".join(error.strip().splitlines()[-TRACEBACK_LINES:])]
        for e in experiments
        for label, replicate, error in e.failures
    ]
    table = {
        "title": "Runs that failed",
        "note": "The end of each traceback; the results file has all of it. Run the sweep again to retry them.",
        "header": ["experiment", "agent", "run", "error"],
        "rows": rows,
    }
    return [table] if rows else []
