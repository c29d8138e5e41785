r"""Number of rounds until the averages of a policy are close to their long-run values.

With the gain g and the bias h of a cost, :math:`h + g = c + P h`, the expected average over the first T rounds is

.. math:: g + \frac{\beta h - E\,h(s_T)}{T}

from the initial distribution :math:`\beta`. So its error is at most
:math:`\max(\beta h - \min h, \max h - \beta h) / T`.
"""

import numpy as np

from psconrl.kernels.chains import policy_evaluation
from psconrl.markov.evaluation import Evaluation
from psconrl.model.cmdp import CMDP

SETTLED = 0.01  # of the range of a cost


def rounds_to_settle(cmdp: CMDP, exact: Evaluation) -> float:
    """Return the rounds until every average since the start is within 1% of its cost's range of its long-run value."""
    biases = np.ascontiguousarray(exact.biases)
    rounds: float = policy_evaluation.rounds_to_settle(cmdp.costs, cmdp.available, cmdp.initial, biases, SETTLED)
    return rounds if rounds == rounds else np.inf  # biases beyond the range of doubles
