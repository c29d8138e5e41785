"""Metrics of an agent's runs for figures and tables, by name."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, unknown_name
from psconrl.report.curves import Curves, Experiment
from psconrl.report.priced_regret import has_score, regret_at_prices, score

# Windows of the paper's moving averages, in rounds, by environment.
WINDOWS = {"marsrover-4x4": 500, "marsrover-8x8": 1_000, "box": 9_000}

UNKNOWN = "A dash: not known for this agent."

Values = Callable[[Experiment, Curves, int], Floats]


@dataclass(frozen=True)
class Metric:
    """A quantity that every run has at every checkpoint."""

    title: str
    values: Values  # (experiment, curves, i) -> (runs, n); i is the index of the cost, 0 the objective
    of_limits: bool = False  # one for every constraint, or a single one
    needs: str = ""  # what the results must have: optimum, prices, score, or strong, which some agents may lack
    cumulative: bool = True  # sums over rounds, where zero means no loss
    own: str = ""  # the name of a metric of the spec
    deviation: bool = False  # shown with the standard deviation over runs, in place of an interval of the mean


def window_of(experiment: Experiment, curves: Curves) -> int:
    """Return the window of the paper's moving average in an experiment; elsewhere a twentieth of the run."""
    last = int(curves.rounds[-1])
    return min(WINDOWS.get(experiment.facts.get("env", ""), max(last // 20, 1)), last)


def _objective(experiment: Experiment, curves: Curves, _: int) -> Floats:
    return -curves.average(0) if experiment.facts.get("maximise") else curves.average(0)


METRICS = {
    "regret": Metric("regret", lambda e, c, i: c.regret, needs="optimum"),
    "violation": Metric("violation", lambda e, c, i: c.violation(i), of_limits=True),
    "priced": Metric("regret at shadow prices", lambda e, c, i: regret_at_prices(c, e.facts["prices"]), needs="prices"),
    "score": Metric("score", lambda e, c, i: score(c, e.facts), needs="score"),
    "objective": Metric("objective", _objective, cumulative=False),
    "cost": Metric("cost", lambda e, c, i: c.average(i), of_limits=True, cumulative=False),
    "strong-regret": Metric("strong regret", lambda e, c, i: c.strong[:, :, 0], needs="strong"),
    "strong-violation": Metric("strong violation", lambda e, c, i: c.strong[:, :, i], of_limits=True, needs="strong"),
    "largest-excess": Metric("largest running excess", lambda e, c, i: c.largest_excess[:, :, i], of_limits=True),
    "paper-regret": Metric(
        "regret, paper's metric", lambda e, c, i: c.paper_curve(0, window_of(e, c)), needs="optimum", deviation=True
    ),
    "paper-violation": Metric(
        "violation, paper's metric", lambda e, c, i: c.paper_curve(i, window_of(e, c)), of_limits=True, deviation=True
    ),
}


@dataclass(frozen=True)
class Measure:
    """A metric of one cost: a row of panels, a column of a table."""

    metric: Metric
    cost: int
    title: str
    only: str = ""  # the name of the cost, if it was chosen by name

    def applies_to(self, experiment: Experiment) -> bool:
        """Whether the experiment has this cost."""
        names = experiment.cost_names
        return self.cost < len(names) and self.only in ("", names[self.cost])

    def names(self, name: str, experiments: Sequence[Experiment]) -> list[str]:
        """Return the names under which it may be given, ``name`` being that of the metric, the most specific first."""
        of_costs = {e.cost_names[self.cost] for e in experiments if self.metric.of_limits and self.applies_to(e)}
        return [*(f"{_base(name)} ({cost})" for cost in sorted(of_costs)), name, _base(name)]

    def title_in(self, experiment: Experiment) -> str:
        """Return the title with the experiment's own name and unit of the cost; empty if it has no such cost."""
        return _title(self.metric, self.cost, [experiment]) if self.applies_to(experiment) else ""

    def known_of(self, experiment: Experiment, curves: Curves) -> bool:
        """Whether the experiment has this cost and the runs have what the metric needs."""
        if not self.applies_to(experiment):
            return False
        if self.metric.own:
            return self.metric.own in curves.own and bool(np.isfinite(self.values(experiment, curves)[:, -1]).all())
        if self.metric.needs == "strong":
            return bool(np.isfinite(self.values(experiment, curves)).all())
        return not _missing(self.metric, experiment)

    def missing_in(self, experiment: Experiment) -> str:
        """Return what is not known of an experiment to which the measure applies, in a few words for a figure."""
        if reason := _missing(self.metric, experiment):
            return re.split(r" \(|[,;]", reason)[0].removeprefix("has ")
        unknown = [c.title for c in experiment.curves.values() if not self.known_of(experiment, c)]
        return f"not known: {', '.join(unknown)}" if unknown else ""

    def values(self, experiment: Experiment, curves: Curves) -> Floats:
        """Return the values of every run at every checkpoint, (runs, n)."""
        return self.metric.values(experiment, curves, self.cost)


def measures(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Measure]:
    """Return the named metrics, those of constraints once for each constraint, or for one as "violation (risk)".

    Raises an error if no experiment has a metric.
    """
    found = []
    for name in names:
        metric, constraint = _found(name, experiments)
        missing = _lacking(name, metric, constraint, experiments)
        if experiments and len(missing) == len(experiments):
            raise ConfigError(missing[0])
        found += _for_each_limit(metric, experiments, constraint)
    return found


def lacking(name: str, experiments: Sequence[Experiment]) -> list[str]:
    """Return a message for every experiment that does not have a metric."""
    return _lacking(name, *_found(name, experiments), experiments)


def _lacking(name: str, metric: Metric, constraint: str, experiments: Sequence[Experiment]) -> list[str]:
    missing = [(e, _missing(metric, e) or _no_such(constraint, e)) for e in experiments]
    return [f"{name}: experiment {quoted(e.name)} {reason}" for e, reason in missing if reason]


def _found(name: str, experiments: Sequence[Experiment]) -> tuple[Metric, str]:
    """Return a metric, and the name of the constraint if it is given for one alone."""
    known = metrics_of(experiments)
    if name in known:
        return known[name], ""
    base = _base(name)
    if base == name or base not in known or not known[base].of_limits:
        raise ConfigError(unknown_name("metric", name, known))
    constraint = name[len(base) + 2 : -1]
    constraints = dict.fromkeys(cost for e in experiments for cost in e.cost_names[1:])
    if constraint not in constraints:
        raise ConfigError(f"{base}: {unknown_name('constraint', constraint, constraints)}")
    return known[base], constraint


def _base(name: str) -> str:
    """Return the name of a metric without that of a constraint.

    >>> _base("strong-violation (risk)"), _base("regret")
    ('strong-violation', 'regret')
    """
    found = re.fullmatch(r"(\S+) \(.+\)", name)
    return found[1] if found else name


def _no_such(constraint: str, experiment: Experiment) -> str:
    return (
        f"has no constraint {quoted(constraint)}" if constraint and constraint not in experiment.cost_names[1:] else ""
    )


def metrics_of(experiments: Sequence[Experiment]) -> dict[str, Metric]:
    """Return all metrics of some experiments, those of their specs included, by name."""
    own = {name: values.title for e in experiments for c in e.curves.values() for name, values in c.own.items()}
    for name in own:
        if name in METRICS:
            raise ConfigError(f"metric {quoted(name)} of the spec has the name of a known one; rename [metrics.{name}]")
    return METRICS | {name: _own_metric(name, title) for name, title in own.items()}


def _own_metric(name: str, title: str) -> Metric:
    return Metric(title, lambda e, c, i: c.own[name].values, own=name)


def available(experiment: Experiment, names: Sequence[str]) -> list[Measure]:
    """Return the named metrics that an experiment has."""
    return measures([experiment], [name for name in names if not _missing(metrics_of([experiment])[name], experiment)])


def _for_each_limit(metric: Metric, experiments: Sequence[Experiment], constraint: str = "") -> list[Measure]:
    if constraint:
        places = sorted({e.cost_names.index(constraint, 1) for e in experiments if not _no_such(constraint, e)})
        having = {i: [e for e in experiments if [constraint] == e.cost_names[i : i + 1]] for i in places}
        return [Measure(metric, i, _title(metric, i, having[i]), constraint) for i in places]
    most = max((len(e.cost_names) for e in experiments), default=1)
    costs = range(1, most) if metric.of_limits else [0]
    return [Measure(metric, i, _title(metric, i, experiments)) for i in costs]


def _title(metric: Metric, i: int, experiments: Sequence[Experiment]) -> str:
    """Return the title with the name and the unit of the cost, if they are the same in all experiments."""
    if metric.own:
        return metric.title
    called = {e.cost_names[i] for e in experiments if i < len(e.cost_names)}
    name = called.pop() if len(called) == 1 else ""
    counted = {unit_of(e, i, metric.cumulative) for e in experiments if i < len(e.cost_names)}
    unit = f", {counted.pop()}" if counted != {""} and len(counted) == 1 else ""
    if not metric.cumulative:
        return f"average {name or metric.title}{unit}"
    return f"{metric.title} ({name}){unit}" if metric.of_limits and name else f"{metric.title}{unit}"


def unit_of(experiment: Experiment, i: int, cumulative: bool) -> str:
    """Return the unit of a cost, of its sum or its average; empty if the model has none."""
    units, name = experiment.units, experiment.cost_names[i]
    return units.total(name) if cumulative else units.average(name)


def _missing(metric: Metric, experiment: Experiment) -> str:
    """Return the part that a metric needs and an experiment lacks; empty if it has all."""
    curves = experiment.curves.values()
    if metric.own and not any(Measure(metric, 0, metric.title).known_of(experiment, c) for c in curves):
        return f"has no values of it after the last round; a sweep of a spec with [metrics.{metric.own}] computes them"
    if metric.of_limits and len(experiment.cost_names) < 2:
        return "has no constraints"
    if metric.needs == "optimum" and not all(np.isfinite(c.optimum).all() for c in curves):
        return (
            "has no optimum to compare with (its constraints cannot be met, or it can only be played); "
            "use the metrics objective and cost"
        )
    if metric.needs in ("prices", "score") and not experiment.facts.get("prices"):
        return "has no shadow prices that all its runs share"
    if metric.needs == "score" and not has_score(experiment.facts):
        return "was run by an earlier version, without range prices; run the sweep again, which keeps its runs"
    if metric.needs == "strong":
        measured = Measure(metric, 1 if metric.of_limits else 0, metric.title)
        if not any(measured.known_of(experiment, c) for c in curves):
            return "has no exact evaluation of the policies played (evaluate = true, and an environment with a model)"
    return ""
