r"""A patrol around a ring with two posts to guard: deterministic, with one exception.

Places are 0 to ``length`` - 1 in a ring. ``forward`` and ``back`` move by one place, ``stay`` stays. The exception is a
ford: from the last place, ``forward`` reaches place 0 with probability ``success`` only, and else stays.

The reward is 1 for staying at place 0. There are posts at a third and at two thirds of the ring; the costs ``first``
and ``second`` are 1 in every round in which the patrol does not stay at that post, so that a threshold of 1 - x asks
for a share x of the rounds.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP

FORWARD, BACK, WATCH = range(3)


def patrol(length: int = 9, success: float = 0.2, first: float = 0.8, second: float = 0.8) -> CMDP:
    """Maximise the time at one place of a ring under constraints on the rounds without a guard at two others.

    >>> patrol()
    CMDP(9 states, 3 actions, 2 constraints, dense)
    """
    if length < 3 or length != int(length):
        raise ModelError(f"length must be a whole number from 3 on; got {length}")
    if not 0.0 < success <= 1.0:
        raise ModelError(f"success must be a probability above 0; got {success}")
    n = int(length)
    need_dense(n, 3)
    places = np.arange(n)
    P = np.zeros((n, 3, n))
    P[places, FORWARD, (places + 1) % n] = 1.0
    P[places, BACK, places - 1] = 1.0
    P[places, WATCH, places] = 1.0
    P[n - 1, FORWARD, 0], P[n - 1, FORWARD, n - 1] = success, 1.0 - success
    reward = np.zeros((n, 3))
    reward[0, WATCH] = 1.0
    absent = np.ones((2, n, 3))
    absent[[0, 1], [n // 3, 2 * n // 3], WATCH] = 0.0
    return CMDP.from_rewards(
        P,
        reward,
        costs=list(absent),
        thresholds=[first, second],
        initial=0,
        state_names=[f"place {place}" for place in places],
        action_names=("forward", "back", "stay"),
        cost_names=("reward", "first", "second"),
    )
