"""Contents of the monitor for a log of episodes: averages against limits, exploration, planning time, the policy."""

import math
from collections import Counter
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.learning.runtime.logs import FLOOR, REWARD
from psconrl.learning.runtime.policy_cell import StatePolicy, read_policy_cell
from psconrl.report.monitor.axis import clipped_range
from psconrl.report.monitor.log_file import Episodes, LogFile, LoggedRatio
from psconrl.report.page import packed_looks
from psconrl.report.running_averages import recent_maximum, recent_mean, window_for
from psconrl.report.style import PALETTE, nth_look

LOG_POINTS = 240  # points of a curve
MOST_ALARMS = 3  # alarms shown, the latest ones
MOMENTS = 120  # moments at which the policy is shown
COLOURED = 7  # the most frequent actions have a colour; the others are grey, with their name in a tooltip
RECENT, SINCE_START, EXPECTED, LIMIT, LONGEST, ESTIMATED = (
    "running average", "since the start", "expected by the agent", "limit", "longest of them", "estimate",
)  # fmt: skip
SERIES = (RECENT, SINCE_START, EXPECTED, LIMIT, LONGEST, ESTIMATED)


def log_contents(log: LogFile) -> dict[str, Any]:
    """Return everything that the page shows of a log; its size is bounded for runs of any length."""
    if not len(log):
        return {"state": "waiting", "message": "The file exists, but no episode has ended yet."}
    episodes = log.episodes()
    window = window_for(int(episodes.ends[-1]))
    at = _shown(episodes.ends)
    warnings = [f"What the agent was given is wrong: {log.doubts}."] if log.doubts else []
    warnings += [f"Watchdog: {alarm}." for alarm in log.alarms()[-MOST_ALARMS:]]
    notes = [f"Running averages are over the last {window:,} rounds, in whole episodes."]
    panels = [*_panels(log, episodes, at, window), *_estimate_panels(log, episodes, at)]
    if any(panel["range"] for panel in panels):
        notes.append("Triangles mark spikes that are cut off; the line above the chart has their size.")
    if log.unread:
        notes.append(f"{log.unread:,} lines could not be read and are omitted.")
    return {
        "state": "log",
        "looks": packed_looks({name: nth_look(k) for k, name in enumerate(SERIES)}),
        "facts": _facts(log, episodes),
        "warnings": warnings,
        "notes": notes,
        "sections": [{"name": "", "panels": panels, "tables": []}],
        "policy": _policy(episodes),
    }


def bare(name: str) -> str:
    """Return the name of a cost without the mark of a reward or of a lower limit."""
    return name.removesuffix(REWARD).removesuffix(FLOOR)


def _shown(ends: Ints) -> Ints:
    """Return the episodes at which curves have points: all, or some spread evenly over the rounds."""
    if ends.size <= LOG_POINTS:
        return np.arange(ends.size)
    wanted = np.linspace(ends[0], ends[-1], LOG_POINTS)
    return np.unique(np.searchsorted(ends, wanted))


def _facts(log: LogFile, episodes: Episodes) -> list[list[str]]:
    rounds, length = int(episodes.ends[-1]), int(episodes.length[-1])
    facts = [
        ["rounds", f"{rounds:,}"],
        ["episodes", f"{int(episodes.number[-1]):,}"],
        ["last episode", f"{log.kinds[-1]}, {length:,} {'round' if length == 1 else 'rounds'}"],
        ["explored", f"{100 * episodes.explored[-1] / rounds:.3g}% of the rounds"],
    ]
    planned = episodes.planning_time[np.isfinite(episodes.planning_time)]
    if planned.size:
        facts.append(["planning time", f"{planned.sum():.3g} s in total, {planned.max():.2g} s at most"])
    expected = episodes.value[np.isfinite(episodes.value)]
    known = f" (expected {expected[-1]:.4g})" if expected.size else ""
    facts.append([bare(log.cost_names[0]), f"{_number(episodes.averages[-1, 0])}{known}"])
    ratios = _known_ratios(log)
    for i, name in enumerate(log.cost_names[1:], start=1):
        floor, average, limit = name.endswith(FLOOR), episodes.averages[-1, i], episodes.limits[-1, i - 1]
        if i in ratios:
            facts.append([ratios[i].name, _ratio_fact(ratios[i], floor)])
            continue
        missed = (", not reached" if average < limit else "") if floor else ", exceeded" if average > limit else ""
        shown = f"{_number(average)} ({'at least' if floor else 'limit'} {limit:.4g}{missed})"
        facts.append([bare(name), shown])
    return facts


def _known_ratios(log: LogFile) -> dict[int, LoggedRatio]:
    """Return the ratios that are shown in place of their linear limits: those whose denominators are known."""
    return {i: ratio for i, ratio in log.ratios.items() if np.isfinite([ratio.so_far[-1], ratio.limit[-1]]).all()}


def _ratio_fact(ratio: LoggedRatio, floor: bool) -> str:
    """Return a ratio since the start, beside its limit."""
    average, limit = float(ratio.so_far[-1]), float(ratio.limit[-1])
    missed = (", not reached" if average < limit else "") if floor else ", exceeded" if average > limit else ""
    shown, bound = (f"{100 * x:.4g}%" if ratio.percent else f"{x:.4g}" for x in (average, limit))
    return f"{shown} ({'at least' if floor else 'limit'} {bound}{missed})"


def _number(average: float) -> str:
    """Return an average as text; that of a cost that was not always known is nan."""
    return "unknown" if math.isnan(average) else f"{average:.4g}"


def _panels(log: LogFile, episodes: Episodes, at: Ints, window: int) -> list[dict[str, Any]]:
    """Return one panel per unit."""
    ratios = _known_ratios(log)
    length = episodes.length.astype(np.float64)

    def recent(values: Floats, weights: Floats = length) -> Floats:
        return recent_mean(values, weights, episodes.ends, at, window)

    panels = []
    for i, name in enumerate(log.cost_names):
        if i in ratios:
            panels.append(_ratio_panel(ratios[i], name.endswith(FLOOR), episodes, at, window))
            continue
        series = {RECENT: recent(episodes.costs[:, i]), SINCE_START: episodes.averages[at, i]}
        lines: list[Any] = []
        if i == 0:
            series[EXPECTED] = recent(episodes.value)
        elif (episodes.limits[:, i - 1] == episodes.limits[-1, i - 1]).all():
            lines = [[LIMIT, episodes.limits[-1, i - 1]]]
        else:
            series[LIMIT] = episodes.limits[at, i - 1]
        better = "more" if name.endswith(REWARD) else "less"
        limited = "average (at least its limit)" if name.endswith(FLOOR) else "average"
        unit = f"average ({better} is better)" if i == 0 else limited
        panels.append(_panel(bare(name), unit, lines, episodes.ends[at], series))
    shares = {
        RECENT: recent(episodes.exploring.astype(np.float64)),
        SINCE_START: (episodes.explored / episodes.ends)[at],
    }
    panels.append(_panel("Exploring", "share of the rounds", [], episodes.ends[at], shares))
    once = np.ones(length.size)
    times = {
        RECENT: recent(episodes.planning_time, once),
        LONGEST: recent_maximum(episodes.planning_time, episodes.ends, at, window),
    }
    panels.append(_panel("Planning time", "seconds per episode", [], episodes.ends[at], times, log=True))
    changes = {RECENT: recent(episodes.changed)}
    unit = "share of the rounds in which the previous policy would have acted differently"
    panels.append(_panel("Change of policy", unit, [], episodes.ends[at], changes))
    return [panel for panel in panels if panel["series"]]


def _ratio_panel(ratio: LoggedRatio, floor: bool, episodes: Episodes, at: Ints, window: int) -> dict[str, Any]:
    """Return the panel of a ratio: its running average is weighted with its denominator."""
    unit = 100.0 if ratio.percent else 1.0
    weights = np.where(np.isfinite(ratio.per_round), ratio.per_round, 0.0) * episodes.length.astype(np.float64)
    series = {
        RECENT: recent_mean(unit * ratio.episode, weights, episodes.ends, at, window),
        SINCE_START: unit * ratio.so_far[at],
    }
    lines: list[Any] = []
    if (ratio.limit == ratio.limit[-1]).all():
        lines = [[LIMIT, unit * float(ratio.limit[-1])]]
    else:
        series[LIMIT] = unit * ratio.limit[at]
    y = f"ratio of averages{', %' if ratio.percent else ''}{' (at least its limit)' if floor else ''}"
    return _panel(ratio.name, y, lines, episodes.ends[at], series)


def _estimate_panels(log: LogFile, episodes: Episodes, at: Ints) -> list[dict[str, Any]]:
    """Return one panel per unknown parameter of a system: its posterior mean over time."""
    found = (
        _panel(f"Estimate of {name}", "posterior mean", [], episodes.ends[at], {ESTIMATED: means[at]})
        for name, means in log.estimates.items()
    )
    return [panel for panel in found if panel["series"]]


def _panel(
    title: str, unit: str, lines: list[Any], rounds: Ints, series: dict[str, Floats], log: bool = False
) -> dict[str, Any]:
    """Return a chart without the series that have no known value."""
    return {
        "title": title,
        "x": "round",
        "y": unit,
        "log": log,
        "range": clipped_range(((rounds, values) for values in series.values()), log),
        "lines": lines,
        "series": [
            {"agent": name, "x": rounds.tolist(), "mean": values.tolist()}
            for name, values in series.items()
            if np.isfinite(values).any()
        ],
    }


def _policy(episodes: Episodes) -> dict[str, Any] | None:
    """Return the actions in the states visited most now, and those at some moments of the run."""
    if not episodes.policies:
        return None
    ends = np.array([end for end, _ in episodes.policies])
    start, last = float(episodes.ends[0] - episodes.length[0]), float(ends[-1])
    edges = np.linspace(start, last, MOMENTS + 1)
    found = np.searchsorted(ends, (edges[:-1] + edges[1:]) / 2)
    cells = {int(k): {c.state: c for c in read_policy_cell(episodes.policies[k][1])} for k in np.unique(found)}
    now = read_policy_cell(episodes.policies[-1][1])
    if not now:
        return None
    rows = [_state_policy(state_policy, [cells[int(k)].get(state_policy.state) for k in found]) for state_policy in now]
    taken = Counter(moment[0] for row in rows for moment in [[row["now"]], *filter(None, row["moments"])])
    actions = [[action, PALETTE[k] if k < COLOURED else ""] for k, (action, _) in enumerate(taken.most_common())]
    return {"start": start, "last": last, "actions": actions, "rows": rows}


def _state_policy(now: StatePolicy, moments: list[StatePolicy | None]) -> dict[str, Any]:
    words = ", ".join(f"{action} {100 * p:.3g}%" if p < 0.9995 else action for action, p in now.actions.items())
    return {
        "state": now.state,
        "share": now.share,
        "now": _likeliest(now)[0],
        "words": words,
        "moments": [None if then is None else list(_likeliest(then)) for then in moments],
    }


def _likeliest(state_policy: StatePolicy) -> tuple[str, float]:
    """Return the most probable action and its probability."""
    return max(state_policy.actions.items(), key=lambda item: item[1], default=("", 0.0))
