r"""A random walk that can be steered a little (a controlled gambler's ruin with reflecting ends).

Positions are 0 to ``length`` - 1. In every round the position moves up or down by one, each with probability 1/2; at an
end, a move outwards stays there. ``push`` and ``pull`` change the probability of a move up to 1/2 + ``drift`` and
1/2 - ``drift``. The reward is 1 at the highest position, and the cost ``effort`` is 1 for pushing or pulling. Without
effort, the walk needs about ``length`` squared rounds from one end to the other.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP


def random_walk(length: int = 10, drift: float = 0.2, effort: float = 0.3) -> CMDP:
    """Maximise the time at the top of a random walk under a constraint on the effort.

    >>> random_walk()
    CMDP(10 states, 3 actions, 1 constraint, dense)
    """
    if length < 2 or length != int(length):
        raise ModelError(f"length must be a whole number from 2 on; got {length}")
    if not 0.0 < drift < 0.5:
        raise ModelError(f"drift must lie strictly between 0 and 1/2; got {drift}")
    n = int(length)
    need_dense(n, 3)
    cells = np.arange(n)
    P = np.zeros((n, 3, n))
    for action, up in enumerate((0.5, 0.5 + drift, 0.5 - drift)):
        P[cells, action, np.minimum(cells + 1, n - 1)] += up
        P[cells, action, np.maximum(cells - 1, 0)] += 1.0 - up
    reward = np.zeros((n, 3))
    reward[n - 1] = 1.0
    return CMDP.from_rewards(
        P,
        reward,
        costs=[np.tile([0.0, 1.0, 1.0], (n, 1))],
        thresholds=[effort],
        initial=0,
        state_names=[f"position {cell}" for cell in cells],
        action_names=("let go", "push", "pull"),
        cost_names=("reward", "effort"),
    )
