r"""Number of rounds until the averages of a policy are close to their long-run values.

With the gain g and the bias h of a cost, :math:`h + g = c + P h`, the expected average over the first T rounds is

.. math:: g + \frac{\beta h - E\,h(s_T)}{T}

from the initial distribution :math:`\beta`. So its error is at most
:math:`\max(\beta h - \min h, \max h - \beta h) / T`.
"""

import numpy as np

from psconrl.arrays import Floats
from psconrl.markov.evaluation import Evaluation
from psconrl.model.cmdp import CMDP
from psconrl.products import product

SETTLED = 0.01  # of the range of a cost


def rounds_to_settle(cmdp: CMDP, exact: Evaluation) -> float:
    """Return the rounds until every average since the start is within 1% of its cost's range of its long-run value."""
    ranges: Floats = np.array([np.ptp(cost[cmdp.available]) for cost in cmdp.costs])
    start = product(exact.biases, cmdp.initial)
    apart = np.maximum(start - exact.biases.min(axis=1), exact.biases.max(axis=1) - start)
    varied = ranges > 0.0
    return float((apart[varied] / (SETTLED * ranges[varied])).max(initial=0.0))
