r"""Ledgers, each a virtual queue: plan below a threshold after overspending, and above it after underspending.

An agent that plans for the thresholds themselves meets them in the long run, but never makes up for what it overspent
while learning. A ledger keeps the balance :math:`V_i(t) = \sum_{s \le t} (c_i(s) - \tau_i)`, and plans the next episode
for

.. math:: \tau_i - \rho\, V_i(t)_+ / \sqrt t .

Episodes of PSConRL's own schedule last about :math:`\sqrt t` rounds, so that :math:`\rho` is about the share of the
debt that one of them pays back. If learning errors cost about :math:`1/\sqrt t` per round, the debt stays bounded in
mean, where it would otherwise grow like :math:`\sqrt t`. No horizon is needed. ``Repay`` leaves the threshold unchanged
if it has not been overspent; ``Balance`` also spends what is left over.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Floats
from psconrl.kernels.counts import widen
from psconrl.learning.checks import as_fraction, saved_floats
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Record

# If the model cannot pay back that fast, try a quarter: this finds at least a quarter of what is feasible.
LEDGER_TRIES = 8
QUARTER = 0.25
# A balance below this, per round and unit of costs and threshold, is rounding residue and no debt.
NOISE = 1e-12


class Ledger(Part):
    """The cumulative excess over each threshold, and the rule for the thresholds to plan for.

    ``share``, above 0 and at most 1: about the share of a debt that is paid back in the next episode.
    """

    kind: ClassVar[str] = "ledger"
    example: ClassVar[str] = "Repay(0.1)"
    may_be_missing: ClassVar[bool] = True

    def __init__(self, share: float = 0.1) -> None:
        self.share = as_fraction(share, "share")
        self.balance: Floats = np.zeros(0)
        self.extremes: Floats = np.zeros((2, 0))  # least and largest of observed costs and threshold, less the latter

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.balance = np.zeros(n_constraints)
        self.extremes = np.zeros((2, n_constraints))

    def enter(self, record: Record, thresholds: Floats) -> None:
        """Enter an episode. Underspending counts as well: it may be spent later."""
        self.balance += _excess(record, thresholds)
        widen(self.extremes, record.visits, record.cost_sums, thresholds)

    def begin_again(self, playing: Record | None, thresholds: Floats) -> None:
        """Reset the balance for new thresholds; the rounds of the present episode so far are exempt."""
        self.balance = np.zeros_like(self.balance)
        self.extremes = np.zeros_like(self.extremes)
        if playing is not None:
            self.balance -= _excess(playing, thresholds)

    @abstractmethod
    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds to try, in order, until a plan is feasible; the true ones come after these."""

    def _due(self, thresholds: Floats, rounds: int) -> Floats:
        """Return the share of every balance, over the root of the rounds; zero for mere rounding residue."""
        units = np.abs(thresholds) + self.extremes[1] - self.extremes[0]
        significant = np.abs(self.balance) > NOISE * rounds * units
        return np.where(significant, self.share * self.balance / np.sqrt(max(rounds, 1)), 0.0)

    def state(self) -> dict[str, Any]:
        """Return the balance and the extremes."""
        return {"balance": self.balance, "extremes": self.extremes}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        self.balance = saved_floats(state["balance"], self.balance.shape, "balance")
        self.extremes = saved_floats(state["extremes"], self.extremes.shape, "extremes")


class Repay(Ledger):
    """A ledger that pays back about a ``share`` of the debt, above 0 and at most 1, in the next episode."""

    name: ClassVar[str] = "repay"

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds less a share of the debts, less a quarter of it, and so on; for all, then for each."""
        cut = np.maximum(self._due(thresholds, rounds), 0.0)
        alone = [np.where(np.arange(cut.size) == i, cut, 0.0) for i in np.flatnonzero(cut)]
        # A constraint without slack must not keep the others from being repaid.
        for cuts in [cut, *alone] if len(alone) > 1 else alone:
            for k in range(LEDGER_TRIES):
                yield thresholds - cuts * QUARTER**k


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
        """Yield the thresholds plus capped credit, less a share of the debts, less a quarter of it, and so on."""
        due = self._due(thresholds, rounds)
        most = self.share * (self.extremes[1] - self.extremes[0])
        debt, credit = np.maximum(due, 0.0), np.maximum(np.minimum(due, 0.0), -most)
        if debt.any():
            for k in range(LEDGER_TRIES):
                yield thresholds - credit - debt * QUARTER**k
        if credit.any():
            yield thresholds - credit


def _excess(record: Record, thresholds: Floats) -> Floats:
    spent: Floats = record.cost_sums[1:].sum(axis=1)
    return spent - record.steps * thresholds


def promises(kind: str) -> bool:
    """True if an episode of this kind plays a plan that satisfies the constraints."""
    return kind == "optimal" or kind in Ledger.known
