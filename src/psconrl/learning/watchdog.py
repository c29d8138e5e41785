r"""A watchdog that raises an alarm when constraints are violated although every plan promises to satisfy them.

After 2,000, 4,000, 8,000, ... rounds it checks the second half of them; the first 1,000 rounds are learning. It raises
an alarm for a constraint if

- plans that satisfy the constraints were played in at least 90% of these rounds, in ten episodes or more,
- the average so far was above the threshold when the window began, so that no plan in it was to spend a credit,
- the average in the window is above the threshold by more than a tenth of it, and by more than five standard errors.

The standard error is that of a ratio, with episodes of lengths :math:`n_k` and excesses :math:`x_k` over the threshold
as independent observations: :math:`\hat r = \sum x_k / \sum n_k` has
:math:`\frac{K}{K-1} \sum (x_k - \hat r n_k)^2 / (\sum n_k)^2`. If they were independent and normal, a constraint that
is satisfied would cause an alarm once in 2,700 windows of ten episodes (Student's t with nine degrees of freedom), and
once in three million windows of many episodes.

A constraint whose costs were unknown in some rounds, as may happen to an agent that was made for a system, cannot be
checked; the watchdog says so once.

An agent that was made for a system also tests every cost against its rule; see ``posterior.cost_check``.
"""

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import AgentError, ConstraintWarning
from psconrl.learning.parts.ledger import promises
from psconrl.learning.runtime.events import EpisodeEvent

FIRST = 1000  # rounds of learning, which are not checked
PLANNED = 0.9  # smallest share of rounds played by plans
FEWEST_EPISODES = 10  # smallest number of episodes in a window
BEYOND = 0.1  # tolerated excess, relative to the threshold
ERRORS = 5.0  # tolerated excess, in standard errors


class Alarm(NamedTuple):
    """A constraint that was violated although plans promised to satisfy it."""

    name: str
    first: int  # the window begins after this round
    last: int  # and ends with this one
    average: float  # nan if its costs were unknown in some rounds, so that it cannot be checked
    threshold: float

    def __str__(self) -> str:
        if np.isnan(self.average):
            return (
                f"{self.name} cannot be checked: its costs were unknown in some of the first {self.last:,} rounds; "
                "report the costs, or what you saw of the noise, with observe"
            )
        return (
            f"{self.name} was {self.average:.4g} on average in rounds {self.first + 1:,} to {self.last:,}, while plans "
            f"promised {self.threshold:.4g}: either the limit cannot be kept, or the agent does not know the system yet"
        )


class Watchdog:
    """Callback for ``agent.watch`` that compares observed average costs with those that plans promise.

    ``names``: names of the constraints. ``tell``: called with every ``Alarm``, which by default becomes a
    ``ConstraintWarning``. ``at_least``: names of the constraints that are lower bounds, as in ``CMDP``. ``alarms``: all
    alarms so far.

    >>> import psconrl
    >>> agent = psconrl.PSConRL(2, 2, [0.5], seed=0)
    >>> agent.watch(psconrl.Watchdog(["shortage"]))
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        tell: Callable[[Alarm], object] | None = None,
        at_least: Collection[str] = (),
    ) -> None:
        self.names, self.at_least, self.alarms = tuple(names), frozenset(at_least), list[Alarm]()
        self._tell = tell or _warn
        self._unknown: set[int] = set()  # constraints that are known to be uncheckable
        self._begin(0, None)

    def _begin(self, rounds: int, event: EpisodeEvent | None) -> None:
        self._first, self._planned = rounds, 0
        self._next = max(FIRST, 2 * rounds)
        self._lengths, self._excesses = list[int](), list[Floats]()
        self._in_debt = None if event is None else event.averages[1:] > event.thresholds  # None while all is learning

    def __call__(self, event: EpisodeEvent) -> None:
        """Note an episode, and check the window if it is complete."""
        if self.names and len(self.names) != event.thresholds.size:
            raise AgentError(f"a watchdog for {len(self.names)} limits watches an agent of {event.thresholds.size}")
        self._lengths.append(event.length)
        self._excesses.append(event.length * (event.costs[1:] - event.thresholds))
        if promises(event.kind):
            self._planned += event.length
        if event.round >= self._next:
            for i in np.flatnonzero(np.isnan(event.averages[1:])).tolist():
                if i not in self._unknown:
                    self._unknown.add(i)
                    self._raise(i, 0, event, np.nan)
            self._look_back(event)
            self._begin(event.round, event)

    def _look_back(self, event: EpisodeEvent) -> None:
        lengths, excesses = np.array(self._lengths, dtype=np.float64), np.array(self._excesses)
        total = lengths.sum()
        if len(lengths) < FEWEST_EPISODES or self._planned < PLANNED * total or self._in_debt is None:
            return
        rate, error = ratio(excesses, lengths)
        beyond = np.maximum(BEYOND * np.abs(event.thresholds), ERRORS * error)
        for i in np.flatnonzero(self._in_debt & (rate > beyond)):
            self._raise(int(i), self._first, event, float(event.thresholds[i]) + float(rate[i]))

    def _raise(self, i: int, first: int, event: EpisodeEvent, average: float) -> None:
        """Raise an alarm for a constraint, given its average as a cost."""
        name = self.names[i] if self.names else f"limited cost {i + 1}"
        sign = -1.0 if name in self.at_least else 1.0
        alarm = Alarm(name, first, event.round, sign * average, sign * float(event.thresholds[i]))
        self.alarms.append(alarm)
        self._tell(alarm)


def ratio(excesses: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Return the sum of (K, m) excesses over that of (K,) lengths, and its standard error, (m,) each.

    >>> rate, error = ratio(np.array([[1.0], [3.0]]), np.array([1.0, 1.0]))
    >>> rate.tolist(), error.tolist()
    ([2.0], [1.0])
    """
    K, total = len(lengths), lengths.sum()
    rate = excesses.sum(axis=0) / total
    apart = excesses - rate * lengths[:, None]
    return rate, np.sqrt(K / (K - 1) * (apart**2).sum(axis=0)) / total


def _warn(alarm: Alarm) -> None:
    warnings.warn(str(alarm), ConstraintWarning, stacklevel=2)
