"""Schedules: when to stop and think again. The limits of an episode, from the counts and the length of the last one."""

from abc import abstractmethod
from math import ceil, log, log2, sqrt
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Ints
from psconrl.learning.checks import as_count
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime.contract import NO_CAP

# Of a run, that end an episode each (SquareRoot). With 500 in place of 1,000 a ward of 1,980 pairs loses a tenth, with
# none a grid of 64 pairs loses half as much again: benchmarks/RESULTS.md.
ENDING_FIRST_VISITS = 1000


class Schedule(Part):
    """Limits of the next episode: its steps, and the visits of every pair (S, A) or None."""

    kind: ClassVar[str] = "schedule"
    example: ClassVar[str] = "Doubling()"

    @abstractmethod
    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """The limits of the episode that begins now."""

    def ended(self, steps: int) -> None:
        """An episode of this length has ended."""

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        """The most episodes that there can be in so many rounds, as its theory has it."""
        return float(rounds)


class Ouyang(Schedule):
    r"""Stop once :math:`t > t_k + T_{k-1}` or :math:`N_t(s,a) > 2 N_{t_k}(s,a)` for some pair (Ouyang et al. 2017).

    So an episode is at most one step longer than the last, and a first visit ends it. The paper on PSConRL writes
    ``>=`` and turns the other sign round; taken literally that gives empty episodes at N = 0.
    """

    name: ClassVar[str] = "ouyang"
    last_length: int = 1  # T_0

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.last_length = 1

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """One step more than the last episode had, and one visit more than there were so far."""
        return self.last_length + 1, counts.pairs + 1

    def ended(self, steps: int) -> None:
        """Remember the length."""
        self.last_length = steps

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`\sqrt{2 S A T \ln T}` (Ouyang et al. 2017, Lemma 1)."""
        return min(float(rounds), max(2.0, sqrt(2 * n_states * n_actions * rounds * log(max(rounds, 1)))))

    def state(self) -> dict[str, Any]:
        """The length of the last episode."""
        return {"last_length": self.last_length}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.last_length = as_count(state["last_length"], "last_length")


class Doubling(Schedule):
    r"""Stop once a pair has been visited :math:`\max(1, N_{t_k}(s,a))` times (Jaksch et al. 2010)."""

    name: ClassVar[str] = "doubling"

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """As many visits as there were so far."""
        return NO_CAP, counts.pairs.clip(min=1)

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`S A \log_2 (8 T / S A)` from T = SA on (Jaksch et al. 2010, Proposition 18)."""
        return min(float(rounds), _most_doublings(n_states * n_actions, rounds))


class Steady(Schedule):
    r"""Stop episode k after k rounds, or once a pair has been visited :math:`\max(1, N_{t_k}(s,a))` times.

    As ``Doubling``, but no episode is long before there were many: where a wrong policy never visits what would correct
    it, doubling alone may stay with it for ever.
    """

    name: ClassVar[str] = "steady"
    number: int = 1  # k

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.number = 1

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """As many steps as there were episodes, and as many visits as there were so far."""
        return self.number, counts.pairs.clip(min=1)

    def ended(self, steps: int) -> None:
        """One more."""
        self.number += 1

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`\sqrt{2 T} + S A \log_2 (8 T / S A)`: those that no pair has ended last 1, 2, ... rounds or more."""
        return min(float(rounds), sqrt(2 * rounds) + _most_doublings(n_states * n_actions, rounds))

    def state(self) -> dict[str, Any]:
        """The number of the episode."""
        return {"number": self.number}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.number = as_count(state["number"], "number")


class SquareRoot(Schedule):
    r"""Stop after :math:`\sqrt t` rounds, t of them having been played before, or once a pair has been visited
    :math:`\max(1, N_{t_k}(s,a))` times; once 1,000 pairs have been tried, :math:`\max(2, N_{t_k}(s,a))` times.

    As ``Steady``, whose episodes may soon be several times as long: where mistakes are dear, that costs more than it
    saves elsewhere. In a model of thousands of pairs nearly every round is a first visit, and would be an episode; a
    pair that is tried again in the same episode still ends it, since the plan was wrong about where it leads.
    """

    name: ClassVar[str] = "square-root"

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """The root of the rounds so far, rounded up, and as many visits as there were so far."""
        least = 1 if np.count_nonzero(counts.pairs) < ENDING_FIRST_VISITS else 2
        return max(1, ceil(sqrt(int(counts.pairs.sum())))), counts.pairs.clip(min=least)

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`2 \sqrt T + S A \log_2 (8 T / S A)`: from one square number to the next there are two at most that no
        pair has ended."""
        return min(float(rounds), 2 * sqrt(rounds) + _most_doublings(n_states * n_actions, rounds))


class EveryRound(Schedule):
    """Stop after each step, as in the paper's Example 1."""

    name: ClassVar[str] = "every-round"

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """One step."""
        return 1, None


class Published(Schedule):
    r"""The rule of the authors' published code: stop once a pair has been visited :math:`3 (1 + N_{t_k})` times."""

    name: ClassVar[str] = "published"

    def limits(self, counts: Counts) -> tuple[int, Ints | None]:
        """Three times as many visits as there were so far, and three."""
        return NO_CAP, 3 * (1 + counts.pairs)


def _most_doublings(pairs: int, rounds: int) -> float:
    return pairs * log2(8 * rounds / pairs) if rounds >= pairs else float(rounds)
