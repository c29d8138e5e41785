"""Schedules: when to end an episode and plan again, from the counts and the length of the last episode."""

from abc import abstractmethod
from math import ceil, log, log2, sqrt
from typing import Any, ClassVar

import numpy as np

from psconrl.base.arrays import Ints
from psconrl.base.saved_fields import integer, read_fields
from psconrl.kernels.arithmetic import special
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime.contract import NO_CAP

# Number of first visits in a run that each end an episode (SquareRoot). With 500 instead of 1,000, a ward of 1,980
# pairs loses a tenth; with none, a grid of 64 pairs loses half as much again: benchmarks/RESULTS.md.
ENDING_FIRST_VISITS = 1000
GROWTH = 10  # an episode of Growing is at least one part in this many of the rounds before it


class Schedule(Part):
    """The stopping rule of episodes: a cap on the steps, and one on the visits of every pair (S, A), or None."""

    kind: ClassVar[str] = "schedule"
    example: ClassVar[str] = "Doubling()"

    @abstractmethod
    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return the caps on steps and visits for the next episode."""

    def ended(self, steps: int) -> None:
        """Record that an episode of this length has ended."""

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        """Return an upper bound on the number of episodes in ``rounds`` rounds, from theory."""
        return float(rounds)


class Ouyang(Schedule):
    r"""Stop once :math:`t > t_k + T_{k-1}` or :math:`N_t(s,a) > 2 N_{t_k}(s,a)` for some pair (Ouyang et al. 2017).

    So an episode is at most one step longer than the last, and a first visit ends it. The PSConRL paper writes ``>=``
    and reverses the other sign; taken literally, that gives empty episodes at N = 0.
    """

    name: ClassVar[str] = "ouyang"
    last_length: int = 1  # T_0

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.last_length = 1

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return one step more than the last episode had, and one visit more than there were so far."""
        return self.last_length + 1, counts.pairs + 1

    def ended(self, steps: int) -> None:
        """Record the length of the episode."""
        self.last_length = steps

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`\sqrt{2 S A T \ln T}` (Ouyang et al. 2017, Lemma 1)."""
        return min(float(rounds), max(2.0, sqrt(2 * n_states * n_actions * rounds * log(max(rounds, 1)))))

    def state(self) -> dict[str, Any]:
        """Return the length of the last episode."""
        return {"last_length": self.last_length}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        self.last_length = read_fields(state, {"last_length": integer(1)})["last_length"]


class Doubling(Schedule):
    r"""Stop once a pair has been visited :math:`\max(1, N_{t_k}(s,a))` times (Jaksch et al. 2010)."""

    name: ClassVar[str] = "doubling"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return no cap on steps, and as many visits as there were so far."""
        return NO_CAP, counts.pairs.clip(min=1)

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`S A \log_2 (8 T / S A)` from T = SA on (Jaksch et al. 2010, Proposition 18)."""
        return min(float(rounds), _most_doublings(n_states * n_actions, rounds))


class Steady(Schedule):
    r"""Stop episode k after k rounds, or once a pair has been visited :math:`\max(1, N_{t_k}(s,a))` times.

    Like ``Doubling``, but early episodes are short: if a wrong policy never visits the pairs that would correct it,
    doubling alone may keep it for ever.
    """

    name: ClassVar[str] = "steady"
    number: int = 1  # k

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.number = 1

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return as many steps as there were episodes, and as many visits as there were so far."""
        return self.number, counts.pairs.clip(min=1)

    def ended(self, steps: int) -> None:
        """Count the episode."""
        self.number += 1

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`\sqrt{2 T} + S A \log_2 (8 T / S A)`: episodes not ended by a pair last at least 1, 2, ... rounds."""
        return min(float(rounds), sqrt(2 * rounds) + _most_doublings(n_states * n_actions, rounds))

    def state(self) -> dict[str, Any]:
        """Return the number of the episode."""
        return {"number": self.number}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        self.number = read_fields(state, {"number": integer(1, NO_CAP)})["number"]


class SquareRoot(Schedule):
    r"""Stop after :math:`\sqrt t` rounds, with t the rounds played before, or once a pair has been visited
    :math:`\max(1, N_{t_k}(s,a))` times; once 1,000 pairs have been tried, :math:`\max(2, N_{t_k}(s,a))` times.

    Like ``Steady``, whose episodes soon may be several times as long: if mistakes are expensive, that costs more than
    it saves elsewhere. In a model of thousands of pairs nearly every round is a first visit, and would be an episode; a
    pair that is tried again in the same episode still ends it, since the plan was wrong about its successors.
    """

    name: ClassVar[str] = "square-root"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return the root of the rounds so far, rounded up, and as many visits as there were so far."""
        least = 1 if np.count_nonzero(counts.pairs) < ENDING_FIRST_VISITS else 2
        return root_of_rounds(counts), counts.pairs.clip(min=least)

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`2 \sqrt T + S A \log_2 (8 T / S A)`: between two square numbers at most two episodes are not ended by
        a pair."""
        return min(float(rounds), 2 * sqrt(rounds) + _most_doublings(n_states * n_actions, rounds))


class CubeRoot(Schedule):
    r"""Stop after :math:`\lceil t^{1/3} \rceil` rounds, with t the rounds before, or once a pair has been visited
    :math:`\max(1, N_{t_k}(s,a))` times.

    For agents that learn multipliers from the excess of every episode: if episodes are this short, the squares
    of all excesses add up to :math:`T^{4/3}` only.
    """

    name: ClassVar[str] = "cube-root"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return the cube root of the rounds so far, rounded up, and as many visits as there were so far."""
        return ceil_of_cube_root(int(counts.pairs.sum())), counts.pairs.clip(min=1)

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`1 + (3 n^2 - n) / 2 + S A \log_2 (8 T / S A)` with :math:`n = \lceil T^{1/3} \rceil`: from
        :math:`(j-1)^3` to :math:`j^3` begin at most 3j - 2 episodes that are not ended by a pair."""
        n = ceil_of_cube_root(rounds)
        return min(float(rounds), 1 + (3 * n * n - n) / 2 + _most_doublings(n_states * n_actions, rounds))


class LengthOnly(Schedule):
    r"""Stop after :math:`\sqrt t` rounds, with t the rounds played before, whatever was visited.

    For a belief in which every round informs about all pairs, such as that over the noise of a system: no visit of a
    pair tells enough to plan again at once, and the number of episodes does not grow with that of the pairs.
    """

    name: ClassVar[str] = "length-only"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return the root of the rounds so far, rounded up, and no caps on visits."""
        return root_of_rounds(counts), None

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`2 \sqrt T`: between two square numbers there are at most two episodes."""
        return min(float(rounds), 2 * sqrt(rounds))


class Growing(Schedule):
    r"""Stop after a tenth of the rounds played before, or after their root, if that is more.

    For agents whose plans are expensive and whose policies are valid for ever: the data have to grow by a tenth before
    a new plan is worth its time, and after 100 rounds the number of episodes is that of a logarithm.
    """

    name: ClassVar[str] = "growing"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return the length, rounded up, and no caps on visits."""
        return max(root_of_rounds(counts), ceil(int(counts.pairs.sum()) / GROWTH)), None

    def most_episodes(self, n_states: int, n_actions: int, rounds: int) -> float:
        r""":math:`2 \sqrt T` up to 100 rounds, and :math:`21 + \log (T / 100) / \log 1.1` after that."""
        least = GROWTH**2  # rounds from which on a tenth is more than the root
        if rounds <= least:
            return min(float(rounds), 2 * sqrt(rounds))
        return 2 * GROWTH + 1 + log(rounds / least) / log(1 + 1 / GROWTH)


class EveryRound(Schedule):
    """Stop after each step, as in the paper's Example 1."""

    name: ClassVar[str] = "every-round"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return one step, and no caps on visits."""
        return 1, None


class Published(Schedule):
    r"""The rule of the authors' published code: stop once a pair has been visited :math:`3 (1 + N_{t_k})` times."""

    name: ClassVar[str] = "published"

    def caps(self, counts: Counts) -> tuple[int, Ints | None]:
        """Return three times as many visits as there were so far, plus three."""
        return NO_CAP, 3 * (1 + counts.pairs)


def root_of_rounds(counts: Counts) -> int:
    r"""Return :math:`\lceil \sqrt t \rceil`, with t the rounds so far; at least 1."""
    return max(1, ceil(sqrt(int(counts.pairs.sum()))))


def ceil_of_cube_root(number: int) -> int:
    r"""Return :math:`\lceil n^{1/3} \rceil`, exactly; at least 1.

    >>> [ceil_of_cube_root(n) for n in (0, 1, 2, 8, 9, 10**12, 10**12 + 1)]
    [1, 1, 2, 2, 3, 10000, 10001]
    """
    near = max(1, round(special.cbrt(float(number))))
    return near + (near**3 < number)


def _most_doublings(pairs: int, rounds: int) -> float:
    return pairs * log2(8 * rounds / pairs) if rounds >= pairs else float(rounds)
