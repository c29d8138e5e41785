r"""Paying back: aim below a limit while more than the limit has been spent.

An agent that plans for the limits themselves keeps them in the long run, but what it overspent while it was learning is
never made up for. So keep a ledger: with :math:`V_i(t) = \sum_{s \le t} (c_i(s) - \tau_i)`, plan the next episode for

.. math:: \tau_i - \rho\, V_i(t)_+ / \sqrt t .

Episodes last some :math:`\sqrt t` rounds, so that :math:`\rho` is the share of the debt which one of them pays back. As
learning errors cost some :math:`1/\sqrt t` a round, the debt stays bounded where it would have grown like
:math:`\sqrt t`. It needs no horizon. A limit that has not been overspent is left as it is.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.learning.counts import Record

# While a model cannot pay back that fast, try a quarter of it.
TRIES = 4
QUARTER = 0.25


class Ledger:
    """What was spent beyond each limit so far, and the limits to plan for."""

    def __init__(self, n_limits: int) -> None:
        self.balance: Floats = np.zeros(n_limits)
        self.rounds = 0

    def enter(self, record: Record, thresholds: Floats) -> None:
        """Book an episode. What is left of a limit counts as well: it may be spent later."""
        self.balance += record.cost_sums[1:].sum(axis=1) - record.steps * thresholds
        self.rounds += record.steps

    def targets(self, thresholds: Floats, share: float) -> Iterator[Floats]:
        """The limits to try, one after the other, until a plan meets them; the true ones last."""
        debt = self.balance.clip(min=0.0)
        if share > 0 and debt.any():
            cut = share * debt / np.sqrt(self.rounds)
            for k in range(TRIES):
                yield thresholds - cut * QUARTER**k
        yield thresholds

    def state(self) -> dict[str, Any]:
        """To be saved with its agent."""
        return {"balance": self.balance, "rounds": self.rounds}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.balance = np.array(state["balance"], dtype=np.float64)
        self.rounds = int(state["rounds"])
