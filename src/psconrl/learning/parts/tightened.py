r"""Tightened thresholds: plan for thresholds that are lower by a vanishing margin.

.. math:: \tau_i - \epsilon_t, \qquad \epsilon_t = K\, u_i \sqrt{\ln t / t},

with t rounds played before the episode (Agarwal, Bai and Aggarwal 2022, PS-CURL and UC-CURL). Learning errors cost
about :math:`1/\sqrt t` per round; a margin of the same order compensates for them in advance, so that no violation is
left in the long run. Costs in the paper lie in [0, 1]; here :math:`u_i` is the range of the observed costs and the
threshold, so that K does not depend on units. In the paper's theory K depends on mixing times; the K used here, and
what is done if the margin is infeasible, are this library's choices.
"""

from collections.abc import Iterator
from math import sqrt
from typing import ClassVar

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic import special
from psconrl.learning.argument_checks import as_nonnegative
from psconrl.learning.parts.ledger import Ledger

# Number of margins to try, each half of the last, while the margin is infeasible.
MARGIN_TRIES = 6
HALF = 0.5


class Tightened(Ledger):
    r"""A ledger that plans for :math:`\tau_i - K u_i \sqrt{\ln t / t}`, regardless of the balance.

    ``K``, nonnegative: the margin, in ranges of the cost. If it is infeasible, half of it is tried, then a quarter, and
    so on down to a thirty-second; after that the thresholds themselves.
    """

    name: ClassVar[str] = "tightened"

    def __init__(self, K: float = 0.25) -> None:
        super().__init__()
        self.K = as_nonnegative(K, "K")

    def margin(self, rounds: int) -> Floats:
        """Return the margin below each threshold after ``rounds`` rounds, (m,)."""
        t = max(rounds, 1)
        units: Floats = self.extremes[1] - self.extremes[0]
        return self.K * sqrt(special.log(t) / t) * units

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """Yield the thresholds less the margin, less half of it, and so on."""
        margin = self.margin(rounds)
        if margin.any():
            for k in range(MARGIN_TRIES):
                yield thresholds - margin * HALF**k
