"""What may tell more about a round than its state and action do: rounds before, other columns, the time, the run."""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.data.checks.association import NO_LABEL, classes, mid_ranks
from psconrl.data.rounds.recorded import Recorded
from psconrl.data.tables.records import Records
from psconrl.systems.noise_base import variables_of

MOST_TESTED = 200_000  # that are tested; of a longer log, blocks that are spread over it
BLOCKS_TESTED = 20
LAGS = (1, 2, 3)  # rounds before of which the action is tested
MEMORY = 0.8  # weight of the mean of past results that is kept from round to round
RESULT_CLASSES = 4
COLUMN_CLASSES = 5  # of a column with many numbers
VALUES_AS_CLASSES = 30  # distinct values of a column up to which each is a class
COST_CLASSES = 8
PERIODS = 8
MOST_RUNS = 50
DAY, HOUR = 86400.0, 3600.0
THURSDAY = 3  # the first of January 1970, if Monday is 0
COLUMN, PAST, TIME, RUN = "column", "past", "time", "run"


@dataclass(frozen=True, eq=False)
class Suspect:
    """A label of every round, ``NO_LABEL`` where there is none."""

    kind: str
    name: str
    labels: Ints
    before: Ints | None = None  # of a column, its label in the round before


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is to be predicted, in classes, and the score of each class."""

    name: str
    classes: Ints
    scores: Floats


@dataclass(frozen=True, eq=False)
class Tested:
    """The rounds that are tested: their strata and outcomes, and all suspects."""

    strata: Ints
    outcomes: list[Outcome]
    suspects: list[Suspect]


def tested_rounds(log: Recorded) -> Tested:
    """Return the rounds of a log, or blocks of them, ready for tests."""
    some = _blocks(log)
    strata = log.states[some].astype(np.int64) * log.n_actions + log.actions[some]
    next_states = log.next_states[some].astype(np.int64)
    outcomes = [Outcome("the next state", next_states, np.arange(log.n_states, dtype=np.float64))]
    if log.costs is not None:
        for name, values in zip(log.cost_names, log.costs[some].T, strict=True):
            own = classes(values, COST_CLASSES)
            if own.max(initial=0) > 0 and (own >= 0).all():
                means = np.bincount(own, values) / np.maximum(np.bincount(own), 1)
                outcomes.append(Outcome(name, own, means))
    follows = log.follows[some] & np.append(False, np.diff(some) == 1)
    found = _past(log, some, strata, outcomes, follows)
    return Tested(strata, outcomes, found + _columns(log, some, follows) + _times(log, some))


def _blocks(log: Recorded) -> Ints:
    """Return the rounds to test."""
    n = log.n_rounds
    if n <= MOST_TESTED:
        return np.arange(n)
    starts = np.linspace(0, n - MOST_TESTED // BLOCKS_TESTED, BLOCKS_TESTED).astype(np.int64)
    return np.unique((starts[:, None] + np.arange(MOST_TESTED // BLOCKS_TESTED)).ravel())


def shifted(labels: Ints, follows: Bools, by: int = 1) -> Ints:
    """Return the labels some rounds before; ``NO_LABEL`` where these are of another run, or left out.

    >>> shifted(np.array([3, 1, 2]), np.array([False, True, False])).tolist()
    [-1, 3, -1]
    """
    for _ in range(by):
        labels = np.where(follows, np.append(NO_LABEL, labels[:-1])[: labels.size], NO_LABEL)
    return labels


def _past(log: Recorded, some: Ints, strata: Ints, outcomes: list[Outcome], follows: Bools) -> list[Suspect]:
    states, actions = log.states[some].astype(np.int64), log.actions[some].astype(np.int64)
    found = [Suspect(PAST, "the state one round before", shifted(states, follows))]
    for lag in LAGS:
        rounds = "one round" if lag == 1 else f"{lag} rounds"
        found.append(Suspect(PAST, f"the action {rounds} before", shifted(actions, follows, lag)))
    for outcome in outcomes:
        results = mid_ranks(strata, outcome.classes)
        mean = _past_mean(results, follows)
        if outcome is outcomes[0]:
            last = np.where(follows, np.append(np.nan, results[:-1])[: results.size], np.nan)
            found.append(Suspect(PAST, "the result of the round before", classes(last, RESULT_CLASSES)))
            found.append(Suspect(PAST, "the results of the last rounds", classes(mean, RESULT_CLASSES)))
        elif np.ptp(results) > 0.0:  # a cost that state and action do not decide
            found.append(
                Suspect(PAST, f"the results of the last rounds in {outcome.name}", classes(mean, RESULT_CLASSES))
            )
    return found


def _past_mean(results: Floats, follows: Bools) -> Floats:
    """Return the mean of the results of all rounds before in the same run, those long ago with less weight."""
    found = np.full(results.size, np.nan)
    mean = 0.0
    for k, (result, linked) in enumerate(zip(results.tolist(), follows.tolist(), strict=True)):
        if linked:
            found[k] = mean
        else:
            mean = 0.0
        mean = MEMORY * mean + (1.0 - MEMORY) * result
    return found


def _columns(log: Recorded, some: Ints, follows: Bools) -> list[Suspect]:
    """Return the columns that are not in the state, and are no noise of the system."""
    records = log.records
    assert isinstance(records, Records)
    noise = {variable for name in log.system.source.names for variable in variables_of(name)} if log.system else set()
    found = []
    for name in records:
        if name in noise or (log.system is not None and name in log.system.cost_names):
            continue
        column = records.labels(name)
        if column is not None and (len(column.values) <= VALUES_AS_CLASSES or not column.are_numbers):
            labels = column.codes[some].astype(np.int64)
        else:
            labels = classes(records[name][some], COLUMN_CLASSES)
        if np.unique(labels[labels >= 0]).size > 1:
            found.append(Suspect(COLUMN, name, labels, shifted(labels, follows)))
    return found


def _times(log: Recorded, some: Ints) -> list[Suspect]:
    """Return periods of the log, hour and weekday, and the run."""
    order = np.arange(log.n_rounds)[some].astype(np.float64) if log.times is None else log.times[some]
    found = [Suspect(TIME, "the period", classes(order, PERIODS))]
    if log.local_times is not None:
        local = log.local_times[some]
        days = np.floor(local / DAY)
        hours = np.floor((local - days * DAY) / HOUR).astype(np.int64)
        if np.unique(hours).size > 1:
            found.append(Suspect(TIME, "the hour", hours))
        if np.unique(days).size > 1:
            found.append(Suspect(TIME, "the weekday", (days.astype(np.int64) + THURSDAY) % 7))
    runs = log.run[some].astype(np.int64)
    if 2 <= np.unique(runs).size <= MOST_RUNS:
        found.append(Suspect(RUN, "the run", runs))
    return found
