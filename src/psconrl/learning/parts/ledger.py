r"""Ledgers, each a virtual queue: plan below a threshold after overspending, and above it after underspending.

An agent that plans for the thresholds themselves meets them in the long run, but never makes up for what it overspent
while learning. A ledger keeps the balance :math:`V_i(t) = \sum_{s \le t} (c_i(s) - \tau_i)`, and plans the next episode
for

.. math:: \tau_i - \rho\, V_i(t)_+ / \sqrt t .

Episodes of PSConRL's own schedule last about :math:`\sqrt t` rounds, so that :math:`\rho` is about the share of the
debt that one of them pays back. If learning errors cost about :math:`1/\sqrt t` per round, the debt stays bounded in
mean, where it would otherwise grow like :math:`\sqrt t`. No horizon is needed. ``Repay`` leaves the threshold unchanged
if it has not been overspent; ``Balance`` also spends what is left over; ``Gradual`` takes longer for both, and so keeps
strong regret low.
"""

from abc import abstractmethod
from collections.abc import Iterator
from math import sqrt
from typing import ClassVar

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.learning.argument_checks import as_fraction, as_positive
from psconrl.learning.part import Part
from psconrl.learning.parts.balance import KeepsBalance

# If the model cannot pay back that fast, try a quarter: this finds at least a quarter of what is feasible.
LEDGER_TRIES = 8
QUARTER = 0.25
# A balance below this, per round and unit of costs and threshold, is rounding residue and no debt.
NOISE = 1e-12


class Ledger(KeepsBalance, Part):
    """The cumulative excess over each threshold, and the rule for the thresholds to plan for.

    ``share``, above 0 and at most 1: about the share of a debt that is paid back in the next episode.
    """

    kind: ClassVar[str] = "ledger"
    example: ClassVar[str] = "Repay(0.1)"
    may_be_missing: ClassVar[bool] = True

    def __init__(self, share: float = 0.1) -> None:
        self.share = as_fraction(share, "share")
        self._prepare(0, 0, 0)

    @abstractmethod
    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds to try, in order, until a plan is feasible; the true ones come after these."""

    def spread(self, rounds: int) -> float:
        """Return the number of rounds in which a share of the balance is settled: the root of the rounds so far."""
        return sqrt(max(rounds, 1))

    def _due(self, thresholds: Floats, rounds: int) -> Floats:
        """Return what is due of every balance; zero for mere rounding residue."""
        units = np.abs(thresholds) + self.extremes[1] - self.extremes[0]
        significant = np.abs(self.balance) > NOISE * rounds * units
        return np.where(significant, self.share * self.balance / self.spread(rounds), 0.0)

    def _tried(self, debt: Floats) -> Iterator[Floats]:
        """Yield the debts that are due, a quarter of them, and so on; if there are several, then also for each alone.

        A constraint without slack must not keep the others from being repaid.
        """
        alone = [np.where(np.arange(debt.size) == i, debt, 0.0) for i in np.flatnonzero(debt)]
        for debts in [debt, *alone] if len(alone) > 1 else alone:
            for k in range(LEDGER_TRIES):
                yield debts * QUARTER**k


class Repay(Ledger):
    """A ledger that pays back about a ``share`` of the debt, above 0 and at most 1, in the next episode."""

    name: ClassVar[str] = "repay"

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds less a share of the debts, less a quarter of it, and so on; for all, then for each."""
        for debts in self._tried(np.maximum(self._due(thresholds, rounds), 0.0)):
            yield thresholds - debts


class Balance(Ledger):
    r"""A ledger that pays debts back and spends credit: plans are for :math:`\tau_i - \rho\, V_i(t) / \sqrt t`.

    V may have either sign. ``share``: :math:`\rho`, above 0 and at most 1. What a constraint leaves unspent, the next
    plan may spend: every constraint is met over the whole run, not only in the long run.

    Credit counts only up to what an episode of :math:`\sqrt t` rounds could spend,
    :math:`\sqrt t\, (\max c_i - \min c_i)` over the observed costs and the threshold, so that no plan is for more than
    :math:`\tau_i + \rho\, (\max c_i - \min c_i)`. Otherwise, where it takes long to move from one regime to another
    (RiverSwim), initial savings are spent several times over before the agent has turned round.
    """

    name: ClassVar[str] = "balance"

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds plus capped credit, less the debts as with ``Repay``; and then without debts."""
        due = self._due(thresholds, rounds)
        most = self.share * (self.extremes[1] - self.extremes[0])
        debt, credit = np.maximum(due, 0.0), np.maximum(np.minimum(due, 0.0), -most)
        for debts in self._tried(debt):
            yield thresholds - credit - debts
        if credit.any():
            yield thresholds - credit


class Gradual(Balance):
    r"""A balance that is settled over the next :math:`t / c` rounds: plans are for :math:`\tau_i - c\, V_i(t) / t`.

    ``share``: :math:`\rho`, above 0 and at most 1. ``pace``: c, positive. The rate is
    :math:`\min(\rho / \sqrt t,\, c / t)`, so that the first :math:`(c / \rho)^2` rounds are as with ``Balance``.

    Let :math:`\sigma^2` be the long-run variance of the constrained cost. The balance of the optimal policy itself has
    the standard deviation :math:`\sigma \sqrt t`. With ``Balance`` it is :math:`\sigma t^{1/4} / \sqrt{2 \rho}`, for
    which targets deviate from the threshold by :math:`\sigma \sqrt{\rho / 2}\, t^{-1/4}`: strong regret grows like
    :math:`T^{3/4}`. With this ledger it is :math:`\sigma \sqrt{t / (2 c + 1)}`, targets deviate by
    :math:`c\, \sigma / \sqrt{(2 c + 1)\, t}`, and strong regret grows like :math:`\sqrt T`. docs/theory.md shows that
    a ledger cannot have less of one without more of the other.
    """

    name: ClassVar[str] = "gradual"

    def __init__(self, share: float = 0.1, pace: float = 3.0) -> None:
        super().__init__(share)
        self.pace = as_positive(pace, "pace")

    def spread(self, rounds: int) -> float:
        """Return the root of the rounds so far, or the share of ``1 / pace`` of them, if that is more."""
        return max(super().spread(rounds), self.share * rounds / self.pace)


def promises(kind: str) -> bool:
    """True if an episode of this kind plays a plan that satisfies the constraints."""
    return kind == "optimal" or kind in Ledger.known
