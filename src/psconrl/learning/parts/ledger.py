r"""The ledger: aim below a limit while more has been spent than it allows, and above while less has.

An agent that plans for the limits themselves keeps them in the long run, but what it overspent while it was learning is
never made up for. So keep a ledger: with :math:`V_i(t) = \sum_{s \le t} (c_i(s) - \tau_i)`, plan the next episode for

.. math:: \tau_i - \rho\, V_i(t)_+ / \sqrt t .

Episodes of PSConRL's own schedule last some :math:`\sqrt t` rounds, so that :math:`\rho` is about the share of the debt
that one of them pays back. If errors of learning cost some :math:`1/\sqrt t` a round, the debt stays bounded in mean
where it would have grown like :math:`\sqrt t`. It needs no horizon. ``Repay`` leaves a limit that has not been
overspent as it is; ``Balance`` spends what is left over, too.
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

# While a model cannot pay back that fast, try a quarter of it: so at least a quarter of what it can do is found.
TRIES = 8
QUARTER = 0.25
# Rounding errors of a sum, a round and a unit of the costs and the limit: no debt.
NOISE = 1e-12


class Ledger(Part):
    """What was spent beyond each limit so far, and the limits to plan for.

    ``share``, above 0 and at most 1: about the part of a debt that is paid back in the next episode.
    """

    kind: ClassVar[str] = "ledger"
    example: ClassVar[str] = "Repay(0.1)"
    may_be_missing: ClassVar[bool] = True

    def __init__(self, share: float = 0.1) -> None:
        self.share = as_fraction(share, "share")
        self.balance: Floats = np.zeros(0)
        self.extremes: Floats = np.zeros((2, 0))  # of the costs met so far and the limit, less the limit

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.balance = np.zeros(n_constraints)
        self.extremes = np.zeros((2, n_constraints))

    def enter(self, record: Record, thresholds: Floats) -> None:
        """Book an episode. What is left of a limit counts as well: it may be spent later."""
        self.balance += _excess(record, thresholds)
        widen(self.extremes, record.visits, record.cost_sums, thresholds)

    def begin_again(self, playing: Record | None, thresholds: Floats) -> None:
        """Forget all debts, since the limits are new; what is being played and not yet booked is exempt so far."""
        self.balance = np.zeros_like(self.balance)
        self.extremes = np.zeros_like(self.extremes)
        if playing is not None:
            self.balance -= _excess(playing, thresholds)

    @abstractmethod
    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """The limits to try, one after the other, until a plan meets them; after these come the true ones."""

    def _due(self, thresholds: Floats, rounds: int) -> Floats:
        """The share of every balance, over the root of the rounds; zero for what is rounding errors alone."""
        units = np.abs(thresholds) + self.extremes[1] - self.extremes[0]
        told = np.abs(self.balance) > NOISE * rounds * units
        return np.where(told, self.share * self.balance / np.sqrt(max(rounds, 1)), 0.0)

    def state(self) -> dict[str, Any]:
        """The balance, and the extremes."""
        return {"balance": self.balance, "extremes": self.extremes}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.balance = saved_floats(state["balance"], self.balance.shape, "balance")
        self.extremes = saved_floats(state["extremes"], self.extremes.shape, "extremes")


class Repay(Ledger):
    """Pay back about a ``share`` of the debt, above 0 and at most 1, in the next episode."""

    name: ClassVar[str] = "repay"

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """The limits less a share of the debts; then a quarter of it, and so on, for all limits and for each."""
        cut = np.maximum(self._due(thresholds, rounds), 0.0)
        alone = [np.where(np.arange(cut.size) == i, cut, 0.0) for i in np.flatnonzero(cut)]
        # A limit without room must not hold up the others.
        for cuts in [cut, *alone] if len(alone) > 1 else alone:
            for k in range(TRIES):
                yield thresholds - cuts * QUARTER**k


class Balance(Ledger):
    r"""Pay debts back and spend what is left over: plan for :math:`\tau_i - \rho\, V_i(t) / \sqrt t`, V of either sign.

    ``share``: :math:`\rho`, above 0 and at most 1. Where a limit leaves something unspent, the next plan may spend it:
    every limit is met over the whole run, not only in the long run.

    No more credit counts than an episode of :math:`\sqrt t` rounds could spend, :math:`\sqrt t\, (\max c_i - \min c_i)`
    over the costs met so far and the limit: no plan is for more than :math:`\tau_i + \rho\, (\max c_i - \min c_i)`.
    Without that, where it takes long to get from one way of life to another (RiverSwim), what was saved at the
    beginning is spent several times over before the agent has turned round.
    """

    name: ClassVar[str] = "balance"

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """The limits with the credit that counts, less a share of the debts, then less a quarter of it, and so on."""
        due = self._due(thresholds, rounds)
        most = self.share * (self.extremes[1] - self.extremes[0])
        debt, credit = np.maximum(due, 0.0), np.maximum(np.minimum(due, 0.0), -most)
        if debt.any():
            for k in range(TRIES):
                yield thresholds - credit - debt * QUARTER**k
        if credit.any():
            yield thresholds - credit


def _excess(record: Record, thresholds: Floats) -> Floats:
    spent: Floats = record.cost_sums[1:].sum(axis=1)
    return spent - record.steps * thresholds


def promises(kind: str) -> bool:
    """Does an episode of this kind play a plan that keeps the limits? Others promise less, or nothing."""
    return kind == "optimal" or kind in Ledger.known
