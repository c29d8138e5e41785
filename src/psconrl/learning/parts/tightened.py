r"""Tightened limits: plan for less than is allowed, by a margin that vanishes.

.. math:: \tau_i - \epsilon_t, \qquad \epsilon_t = K\, u_i \sqrt{\ln t / t},

with t rounds played before the episode (Agarwal, Bai and Aggarwal 2022, PS-CURL and UC-CURL). Errors of learning cost
some :math:`1/\sqrt t` a round; a margin of the same order, planned for beforehand, makes up for them, so that no
violation is left in the long run. Their costs lie in [0, 1]; here :math:`u_i` is the range of the costs met so far
and of the limit, so that K does not depend on units. The paper's theory has a K made of mixing times; the one used
here and what is done where nobody can keep the margin are this library's choices.
"""

from collections.abc import Iterator
from math import sqrt
from typing import ClassVar

from psconrl.arrays import Floats
from psconrl.kernels import special
from psconrl.learning.checks import as_number
from psconrl.learning.parts.ledger import Ledger

# While no policy keeps the margin, try half of it, so often.
TRIES = 6
HALF = 0.5


class Tightened(Ledger):
    r"""Plan for :math:`\tau_i - K u_i \sqrt{\ln t / t}`, whatever was spent so far.

    ``K``, from 0 on: the margin, in ranges of the cost. If no policy keeps it, half of it is tried, then a quarter, and
    so on down to a thirty-second; after that the limits themselves.
    """

    name: ClassVar[str] = "tightened"

    def __init__(self, K: float = 0.25) -> None:
        super().__init__()
        self.K = as_number(K, "K", "a number from 0 on", lambda x: x >= 0)

    def margin(self, rounds: int) -> Floats:
        """How far below each limit to plan after so many rounds, (m,)."""
        t = max(rounds, 1)
        units: Floats = self.extremes[1] - self.extremes[0]
        return self.K * sqrt(special.log(t) / t) * units

    def targets(self, thresholds: Floats, rounds: int) -> Iterator[Floats]:
        """The limits less the margin, less half of it, and so on."""
        margin = self.margin(rounds)
        if margin.any():
            for k in range(TRIES):
                yield thresholds - margin * HALF**k
