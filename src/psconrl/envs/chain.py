r"""A chain with a trade-off between reward and score (Yu, Bae and Lee 2026, arXiv 2609.39093, section of experiments).

Positions are 0 to ``length`` - 1, then ``end``; the state ``prize`` may follow every position. ``score`` goes on to the
next position with probability 0.94, ``pass`` with 0.96; otherwise the prize comes. End and prize lead back to position
0. Reward: in the first half of the chain 0.4 for passing, in the second 0.4 for scoring; 1 for the prize.

The paper requires an average score of at least 0.7, over all rounds. Here that is a constraint on the rounds without a
score, ``missed``: at most 0.3. (There is no score in end and prize.)
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP


def chain(length: int = 6, missed: float = 0.3) -> CMDP:
    """Maximise the reward on a chain, scoring in all but a fraction of the rounds.

    >>> chain()
    CMDP(8 states, 2 actions, 1 constraint, dense)
    """
    if length < 2 or length % 2:
        raise ModelError(f"length must be an even number from 2 on; got {length}")
    n = int(length)
    end, prize = n, n + 1
    need_dense(n + 2, 2)
    scores = np.zeros((n + 2, 2))
    scores[:n, 1] = 1.0
    P = np.zeros((n + 2, 2, n + 2))
    for s in range(n):
        P[s, 0, s + 1], P[s, 0, prize] = 0.96, 0.04
        P[s, 1, s + 1], P[s, 1, prize] = 0.94, 0.06
    P[[end, prize], :, 0] = 1.0
    reward = np.zeros((n + 2, 2))
    reward[: n // 2, 0] = reward[n // 2 : n, 1] = 0.4
    reward[prize] = 1.0
    return CMDP.from_rewards(
        P,
        reward,
        costs=[1.0 - scores],
        thresholds=[missed],
        state_names=[*(f"position {s}" for s in range(n)), "end", "prize"],
        action_names=("pass", "score"),
        cost_names=("reward", "missed"),
    )
