"""The leaderboard: ranks of all agents on all environments, with intervals and tests.

The score of a run is its regret plus a charge for positive violations (``priced_regret.Charge``): twice the shadow
price of each, but at least its range price. At the shadow prices alone, a permanent violation would cost just what it
gains, and nothing if its constraint does not bind. A loss is a score in percent of the score of
uniform play, which makes environments comparable.

Ranks are averages over environments. Their intervals come from draws of the mean scores from their t distributions, so
they hold for these environments only. An agent is not significantly worse in an environment if a paired t-test at 5%,
corrected for all tests of the board (Bonferroni), finds no difference from the agent with the least mean score. This
need not mean that it is good: an agent that fails in some runs varies so much between runs that ten of them show
little. With fewer than ten runs there is no test.

A board may be in parts, groups of environments with standings of their own: those on which an agent was designed say
less about it than those that its authors have not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.stats import rankdata

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE
from psconrl.experiment.spec import COSTS_SUFFIX, OTHERS_TITLE, EnvironmentGroup
from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import growth_of_score
from psconrl.report.page_tables import TAIL, verdict
from psconrl.report.priced_regret import AT_PRICES, USUAL_CHARGE, Charge, final_score, need_score, score
from psconrl.report.statistics import (
    INTERVAL_RUNS,
    MEAN_DRAWS,
    MeanInterval,
    compare,
    interval,
    mean_interval,
    mean_weights,
)

NEGLIGIBLE_SHARE = 1e-9  # violations worth a smaller percentage are errors of rounding
STRUCTURE_SUFFIX = " (structure known)"  # of environments in which some agents know all but the noise


@dataclass(frozen=True, eq=False, kw_only=True)
class Losses:
    """Losses of an agent, in percent of the score of uniform play: in an environment, or on average over several."""

    loss: float
    tail: float  # loss of the 90th percentile of runs
    worst_run: float  # loss of the worst run
    overspent: float  # charge for positive violations at their prices
    worst: float  # charge for the largest running excesses at their prices
    strong: float  # charge for the strong violations at their prices; nan if policies were not evaluated
    growth: float  # exponent of the score between T/16 and T, not in percent; nan if the score is not positive
    seconds: float  # median over runs


@dataclass(frozen=True, eq=False, kw_only=True)
class Place(Losses):
    """Results of an agent in an environment."""

    score: MeanInterval
    not_worse: bool | None  # not significantly worse than the agent with the least mean score; None: too few runs


@dataclass(frozen=True, eq=False, kw_only=True)
class Standing(Losses):
    """Overall results of an agent: averages over the environments that it plays."""

    label: str
    title: str
    environments: int
    rank: MeanInterval  # among the agents that play an environment; 1 is the best
    not_worse: int | None  # number of environments in which it is not significantly worse


@dataclass(frozen=True, eq=False)
class BoardPart:
    """Standings in a group of the environments, the best first."""

    title: str
    description: str
    environments: tuple[str, ...]
    standings: tuple[Standing, ...]


@dataclass(frozen=True, eq=False)
class Board:
    """Standings, the best first, and the places by environment and label."""

    environments: tuple[str, ...]
    standings: tuple[Standing, ...]
    places: Mapping[str, Mapping[str, Place]]
    parts: tuple[BoardPart, ...] = ()  # none if all environments are of one group


def short(environment: str) -> str:
    """Return the name of an environment without the suffix that its whole board shares.

    >>> short("queue (costs learned)")
    'queue'
    """
    return environment.partition(" (")[0]


def positions_by_label(board: Board | BoardPart) -> dict[str, int]:
    """Return the position of every agent; agents with the same mean rank share it."""
    ranks = {standing.label: float(standing.rank.mean) for standing in board.standings}
    return {label: 1 + sum(other < rank for other in ranks.values()) for label, rank in ranks.items()}


def leaderboards(
    experiments: Sequence[Experiment], charge: Charge = USUAL_CHARGE, groups: Sequence[EnvironmentGroup] = ()
) -> dict[str, Board]:
    """Return one board for each kind of costs (known, learned, noisy), and one for known structure, by its title."""
    suffixes = {f"Costs {costs}": suffix for costs, suffix in COSTS_SUFFIX.items()}
    suffixes["Structure known"] = STRUCTURE_SUFFIX
    boards = {}
    for title, suffix in suffixes.items():
        others = tuple(other for other in suffixes.values() if len(other) > len(suffix))
        own = [e for e in experiments if e.name.endswith(suffix) and not e.name.endswith(others)]
        if any(e.curves for e in own):
            boards[title] = leaderboard(own, charge, groups)
    if not boards:
        raise ConfigError("a leaderboard needs finished runs; there are none")
    return boards


def leaderboard(
    experiments: Sequence[Experiment], charge: Charge = USUAL_CHARGE, groups: Sequence[EnvironmentGroup] = ()
) -> Board:
    """Return the board of several environments.

    ``charge``: what positive violations cost. ``groups``: environments that get standings of their own, in addition to
    those over all. Environments in no group are a part of their own if there are others.
    """
    environments = [e for e in experiments if e.curves]
    for experiment in environments:
        if REFERENCE not in experiment.curves or not experiment.facts.get("prices"):
            raise ConfigError(
                f"experiment {quoted(experiment.name)} has no place on a leaderboard: it needs shadow prices, "
                f"and runs of {quoted(REFERENCE)}"
            )
        need_score(experiment)
    if not environments:
        raise ConfigError("a leaderboard needs finished runs; there are none")
    tests = sum(len(e.curves) - 1 for e in environments)
    places = {e.name: _places(e, tests, charge) for e in environments}
    titles = {label: c.title for e in environments for label, c in e.curves.items()}
    ranks = {e.name: _ranks(e, charge) for e in environments}

    def standings(names: Sequence[str]) -> tuple[Standing, ...]:
        chosen = {name: places[name] for name in names}
        played = {label for of_environment in chosen.values() for label in of_environment}
        own = [
            _standing(label, title, chosen, [ranks[name] for name in names])
            for label, title in titles.items()
            if label in played
        ]
        return tuple(sorted(own, key=lambda s: (float(s.rank.mean), s.label)))

    every = tuple(e.name for e in environments)
    grouped = {name for group in groups for name in group.experiments}
    others = EnvironmentGroup(OTHERS_TITLE, "", tuple(name for name in every if name not in grouped))
    members = [(group, tuple(name for name in every if name in group.experiments)) for group in (*groups, others)]
    parts = [BoardPart(group.title, group.description, names, standings(names)) for group, names in members if names]
    return Board(every, standings(every), places, tuple(parts) if len(parts) > 1 else ())


def _places(experiment: Experiment, tests: int, charge: Charge) -> dict[str, Place]:
    facts = experiment.facts

    def final(curves: Curves) -> Floats:
        return final_score(curves, facts, charge)

    def worth(violations: Floats) -> float:
        share = float(AT_PRICES.of(violations, facts).mean()) / unit
        return 0.0 if share <= NEGLIGIBLE_SHARE else share

    agents = experiment.curves
    best = min(agents.values(), key=lambda c: float(final(c).mean()))
    unit = float(final(agents[REFERENCE]).mean()) / 100
    found = {}
    for label, curves in agents.items():
        against = compare(best, curves, final)
        violations = np.column_stack([curves.violation(i)[:, -1] for i in range(1, len(facts["prices"]) + 1)])
        found[label] = Place(
            score=mean_interval(final(curves)),
            loss=float(final(curves).mean()) / unit,
            overspent=worth(violations),
            tail=float(np.quantile(final(curves), TAIL)) / unit,
            worst_run=float(final(curves).max()) / unit,
            worst=worth(curves.largest_excess[:, -1, 1:]),
            strong=worth(curves.strong[:, -1, 1:]),
            growth=growth_of_score(curves.rounds, score(curves, facts, charge)),
            not_worse=None if np.isnan(against.p_value) else verdict(against, tests) != f"{best.title} has less",
            seconds=float(np.nanmedian(curves.seconds)),
        )
    return found


def _ranks(experiment: Experiment, charge: Charge) -> dict[str, Floats]:
    """Return the rank of every agent by its mean score, then in every draw of the means, (1 + draws,).

    With an agent of too few runs for an interval, the draws are nan.
    """
    scores = [final_score(c, experiment.facts, charge) for c in experiment.curves.values()]
    ranks = np.full((len(scores), 1 + MEAN_DRAWS), np.nan)
    ranks[:, 0] = rankdata([x.mean() for x in scores])
    if min(map(len, scores)) >= INTERVAL_RUNS:
        ranks[:, 1:] = rankdata([mean_weights(len(x)) @ x for x in scores], axis=0)
    return dict(zip(experiment.curves, ranks, strict=True))


def _standing(
    label: str, title: str, places: Mapping[str, Mapping[str, Place]], ranks: Sequence[Mapping[str, Floats]]
) -> Standing:
    own = [of_environment[label] for of_environment in places.values() if label in of_environment]
    tested = [place.not_worse for place in own if place.not_worse is not None]
    averages = np.mean([of_environment[label] for of_environment in ranks if label in of_environment], axis=0)
    losses = {f.name: float(np.mean([getattr(place, f.name) for place in own])) for f in fields(Losses)}
    growing = [place.growth for place in own if not np.isnan(place.growth)]
    return Standing(
        label=label,
        title=title,
        environments=len(own),
        rank=MeanInterval(averages[0], *interval(averages[1:])),
        not_worse=sum(tested) if tested else None,
        **losses | {"growth": float(np.mean(growing)) if growing else float("nan")},
    )
