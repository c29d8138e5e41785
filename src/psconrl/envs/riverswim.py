r"""Constrained RiverSwim: the exploration benchmark of Strehl and Littman (2008) with limited effort.

A swimmer moves in a chain of ``length`` positions. ``float`` drifts one position down. ``swim`` moves up with
probability 0.35 (0.6 from the bank), stays with 0.6 (0.4 from the bank), slips down with 0.05. Reward 0.005 for
floating at the bank, 1 for swimming at the far end. The cost ``effort`` is 1 for every stroke against the current.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP


def riverswim(length: int = 6, effort: float = 0.5) -> CMDP:
    """Maximise the reward of a swimmer who may swim only a fraction of the time.

    >>> riverswim()
    CMDP(6 states, 2 actions, 1 constraint, dense)
    """
    if length < 2 or int(length) != length:
        raise ModelError(f"length must be a whole number from 2 on; got {length}")
    S = int(length)
    need_dense(S, 2)
    P = np.zeros((S, 2, S))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        if s == 0:
            P[s, 1, 0], P[s, 1, 1] = 0.4, 0.6
        elif s == S - 1:
            P[s, 1, s - 1], P[s, 1, s] = 0.4, 0.6
        else:
            P[s, 1, s - 1], P[s, 1, s], P[s, 1, s + 1] = 0.05, 0.6, 0.35
    reward = np.zeros((S, 2))
    reward[0, 0], reward[S - 1, 1] = 0.005, 1.0
    strokes = np.tile([0.0, 1.0], (S, 1))
    return CMDP.from_rewards(
        P,
        reward,
        costs=[strokes],
        thresholds=[effort],
        state_names=[f"position {s}" for s in range(S)],
        action_names=("float", "swim"),
        cost_names=("reward", "effort"),
    )
