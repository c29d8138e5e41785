"""The balance of a run: what it spent beyond each threshold, and the range of what it met."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import need_that, read_fields, reals
from psconrl.kernels.draws.counts import widen
from psconrl.learning.posterior.counts import LARGEST_SUM, Record


class KeepsBalance:
    r"""Base class of parts that keep the balance :math:`V_i(t) = \sum_{s \le t} (c_i(s) - \tau_i)` of a run."""

    balance: Floats  # (m,)
    extremes: Floats  # (2, m): least and largest of observed costs and threshold, less the latter

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

    def state(self) -> dict[str, Any]:
        """Return the balance and the extremes."""
        return {"balance": self.balance, "extremes": self.extremes}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        saved = read_fields(
            state,
            {name: reals(getattr(self, name).shape, -LARGEST_SUM, LARGEST_SUM) for name in ("balance", "extremes")},
        )
        self.balance, self.extremes = saved["balance"], saved["extremes"]
        need_that((self.extremes[0] <= self.extremes[1]).all(), "extremes must be the least and the largest")


def _excess(record: Record, thresholds: Floats) -> Floats:
    spent: Floats = record.cost_sums[1:].sum(axis=1)
    return spent - record.steps * thresholds
