"""Events for watching an agent learn: one per episode, whichever loop plays it.

``agent.watch(callback)`` calls back after every episode, in the compiled loop, on a Gymnasium environment and on a
user's own system alike. By then the agent has learned from the episode and is between two episodes, so a failing
callback cannot corrupt it: the exception reaches the caller, and playing may continue. Callbacks are not saved.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import AgentError
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.runtime.policy_cell import Names

# Kinds of episodes played while the agent plans in the background: the last policy, which may have been exploring.
INTERIM, EXPLORING_INTERIM = "interim", "exploring interim"
# Kinds of episodes that gather experience, because no plan satisfies the constraints.
EXPLORING = ("explore", "uniform", "unsettled", EXPLORING_INTERIM)


class EventNames(NamedTuple):
    """The names of states, actions and costs, of an agent that was made for a system."""

    states: Names
    actions: Names
    costs: tuple[str, ...]  # the objective first
    maximise: bool
    at_least: tuple[str, ...]  # costs that are the negative of the named quantity, which has a lower limit


class RatioAverage(NamedTuple):
    """A ratio of averages that has a limit; nan where its denominator is zero or unknown."""

    row: int  # the cost that is planned for it, from 1 on
    name: str
    percent: bool  # whether it is stated in percent
    episode: float  # in this episode
    so_far: float
    limit: float
    per_round: float  # average of its denominator in this episode


@dataclass(frozen=True, eq=False)
class EpisodeEvent:
    """An episode, and totals so far. The objective comes first among the costs, as a cost.

    ``agent.watch`` gives episodes that have ended, ``agent.unfinished_event()`` the one in progress.
    """

    round: int  # rounds the agent has played, including this episode
    episode: int  # number of the episode, from 1 on
    kind: str  # "optimal", "explore", ...
    length: int  # number of rounds
    costs: Floats  # (m+1,) averages in this episode; nan of a cost that is unknown in some rounds
    averages: Floats  # (m+1,) averages of all rounds so far, likewise
    thresholds: Floats  # (m,) in force now
    value: float  # the average objective that the agent expected of this policy, as a cost; nan if none
    explored: int  # rounds so far in episodes that explored
    planning_time: float = math.nan  # seconds spent planning this episode; nan if unknown
    changed: float = math.nan  # share of rounds in which the previous policy would have acted differently; nan if none
    policy: Floats | None = None  # policy played, (S, A) or (H, S, A), read-only
    visits: Ints | None = None  # (S,) rounds so far in every state
    doubts: tuple[str, ...] | None = None  # what is wrong with the structure of a system; None if none was given
    names: EventNames | None = None  # those of the system, if the agent was made for one
    estimates: Mapping[str, float] | None = None  # posterior means of a system's unknown parameters, by name
    ratios: tuple[RatioAverage, ...] = ()  # those that a system limits
    plan: EpisodePlan | None = None  # what it was planned with; None if unknown, as after loading a file
    finished: bool = True  # False of an episode in progress


Watcher = Callable[[EpisodeEvent], object]


def share_changed(before: Floats, now: Floats, visits: Ints) -> float:
    r"""Return the share of rounds in which one policy would have acted differently from another.

    .. math:: \sum_s \frac{n(s)}{n} \frac12 \sum_a |\pi(a|s) - \pi'(a|s)|

    with n(s) = ``visits``. A policy that changes from step to step enters by its mean over the steps.

    >>> share_changed(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 3]))
    0.625
    """
    seen = np.flatnonzero(visits)
    old, new = (policy[..., seen, :].reshape(-1, seen.size, policy.shape[-1]).mean(axis=0) for policy in (before, now))
    return float(visits[seen] @ np.abs(new - old).sum(axis=1) / (2.0 * visits.sum()))


class Watchers:
    """The callbacks of an agent, in the order in which they were added."""

    def __init__(self) -> None:
        self._callbacks: list[Watcher] = []

    def __len__(self) -> int:
        return len(self._callbacks)

    def add(self, callback: Watcher) -> None:
        """Call ``callback(event)`` from now on."""
        if not callable(callback):
            raise AgentError(f"watch needs a function of one event; got {type(callback).__name__}")
        self._callbacks.append(callback)

    def remove(self, callback: Watcher) -> None:
        """Stop calling ``callback``."""
        if callback not in self._callbacks:
            raise AgentError("unwatch: this callback is not watching")
        self._callbacks.remove(callback)

    def notify(self, event: EpisodeEvent) -> None:
        """Call every watcher, then raise the first exception, if any."""
        failures: list[Exception] = []
        for watcher in tuple(self._callbacks):
            try:
                watcher(event)
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
