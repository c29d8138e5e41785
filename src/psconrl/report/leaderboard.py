"""All agents on all worlds: who is ahead where, and on the whole, and how sure that is.

The score of a run is its regret plus what it overspends, at twice the shadow prices: at the prices alone, breaking a
limit for ever is worth what it earns (``Curves.penalised``). What worlds have in common is uniform play: a
loss is a score in hundredths of that agent's.

Ranks are averages over worlds. Their intervals are from resampling the runs: they hold for these worlds. An agent is
unbeaten in a world if a paired t-test cannot tell it from the one with the least mean score, at 5%, corrected for all
tests of the board (Bonferroni). That is no praise: one that fails in some runs differs so much from run to run that ten
of them tell little. Of fewer than ten nothing is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from psconrl.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.experiment.spec import COSTS_SUFFIX
from psconrl.report.curves import Curves, Experiment
from psconrl.report.statistics import Estimate, compare, interval, mean_interval, resample_weights
from psconrl.report.tables import TAIL, verdict

REFERENCE = "uniform"  # whose score makes those of different worlds comparable


@dataclass(frozen=True, eq=False)
class Place:
    """An agent in a world. Losses in hundredths of the score of uniform play."""

    score: Estimate  # regret plus overspending at twice its price
    loss: float
    tail: float  # the same of the 90th percentile of runs
    worst_run: float  # and of the worst
    overspent: float  # the violations above 0 at their prices, in hundredths
    worst: float  # the same of the largest running excess
    strong: float  # the same of strong violations; nan if policies were not evaluated
    not_worse: bool | None  # not told from the one with the least mean score; None: too few runs to tell
    seconds: float  # a run, in the middle


@dataclass(frozen=True, eq=False)
class Standing:
    """An agent on the whole: averages over the worlds that it plays."""

    label: str
    title: str
    environments: int
    rank: Estimate  # among those who play a world, 1 the best
    not_worse: int | None  # in how many worlds
    loss: float
    tail: float
    worst_run: float
    overspent: float
    worst: float
    strong: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Board:
    """Standings, the best first, and the places by world and label."""

    environments: tuple[str, ...]
    standings: tuple[Standing, ...]
    places: Mapping[str, Mapping[str, Place]]


def short(environment: str) -> str:
    """The name of a world without what its whole board has in common.

    >>> short("queue (costs learned)")
    'queue'
    """
    return environment.partition(" (")[0]


def leaderboards(experiments: Sequence[Experiment]) -> dict[str, Board]:
    """A board for each of what costs are to agents, under the title of its chapter."""
    boards = {}
    for costs, suffix in COSTS_SUFFIX.items():
        others = tuple(other for other in COSTS_SUFFIX.values() if len(other) > len(suffix))
        own = [e for e in experiments if e.name.endswith(suffix) and not e.name.endswith(others)]
        if any(e.curves for e in own):
            boards[f"Costs {costs}"] = leaderboard(own)
    if not boards:
        raise ConfigError("a leaderboard needs finished runs; there are none")
    return boards


def leaderboard(experiments: Sequence[Experiment]) -> Board:
    """The board of some worlds."""
    environments = [e for e in experiments if e.curves]
    for experiment in environments:
        if REFERENCE not in experiment.curves or not experiment.facts.get("prices"):
            raise ConfigError(
                f"experiment {experiment.name!r} has no place on a leaderboard: it needs shadow prices, "
                f"and runs of {REFERENCE!r}"
            )
    if not environments:
        raise ConfigError("a leaderboard needs finished runs; there are none")
    tests = sum(len(e.curves) - 1 for e in environments)
    places = {e.name: _places(e, tests) for e in environments}
    titles = {label: c.title for e in environments for label, c in e.curves.items()}
    ranks = [_ranks(e) for e in environments]
    standings = [_standing(label, title, places, ranks) for label, title in titles.items()]
    ordered = sorted(standings, key=lambda s: (float(s.rank.mean), s.label))
    return Board(tuple(e.name for e in environments), tuple(ordered), places)


def _places(experiment: Experiment, tests: int) -> dict[str, Place]:
    prices = experiment.facts["prices"]

    def score(curves: Curves) -> Floats:
        return curves.penalised(prices)[:, -1]

    agents = experiment.curves
    best = min(agents.values(), key=lambda c: float(score(c).mean()))
    unit = float(score(agents[REFERENCE]).mean()) / 100
    found = {}
    for label, curves in agents.items():
        against = compare(best, curves, score)
        violations = np.column_stack([curves.violation(i)[:, -1] for i in range(1, len(prices) + 1)])
        found[label] = Place(
            score=mean_interval(score(curves)),
            loss=float(score(curves).mean()) / unit,
            overspent=float((np.maximum(violations, 0.0) @ prices).mean()) / unit,
            tail=float(np.quantile(score(curves), TAIL)) / unit,
            worst_run=float(score(curves).max()) / unit,
            worst=float((curves.largest_excess[:, -1, 1:] @ prices).mean()) / unit,
            strong=float((curves.strong[:, -1, 1:] @ prices).mean()) / unit,
            not_worse=None if np.isnan(against.p_value) else verdict(against, tests) != f"{best.label} has less",
            seconds=float(np.nanmedian(curves.seconds)),
        )
    return found


def _ranks(experiment: Experiment) -> dict[str, Floats]:
    """The rank of every agent by its mean score, then in every resample of the runs, (1 + resamples,)."""
    prices = experiment.facts["prices"]
    scores = [c.penalised(prices)[:, -1] for c in experiment.curves.values()]
    means = np.array([np.append(x.mean(), resample_weights(len(x)) @ x) for x in scores])
    return dict(zip(experiment.curves, rankdata(means, axis=0), strict=True))


def _standing(
    label: str, title: str, places: Mapping[str, Mapping[str, Place]], ranks: Sequence[Mapping[str, Floats]]
) -> Standing:
    own = [of_environment[label] for of_environment in places.values() if label in of_environment]
    told = [place.not_worse for place in own if place.not_worse is not None]
    averages = np.mean([of_environment[label] for of_environment in ranks if label in of_environment], axis=0)
    return Standing(
        label=label,
        title=title,
        environments=len(own),
        rank=Estimate(averages[0], *interval(averages[1:])),
        not_worse=sum(told) if told else None,
        loss=float(np.mean([place.loss for place in own])),
        overspent=float(np.mean([place.overspent for place in own])),
        tail=float(np.mean([place.tail for place in own])),
        worst_run=float(np.mean([place.worst_run for place in own])),
        worst=float(np.mean([place.worst for place in own])),
        strong=float(np.mean([place.strong for place in own])),
        seconds=float(np.mean([place.seconds for place in own])),
    )
