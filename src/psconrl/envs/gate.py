r"""A gate between two halves of a corridor, which a switch far away from it opens for a while.

Cells are 0 to ``length`` - 1, and the gate is in the middle. ``switch`` opens it at either end of the corridor, and
does nothing elsewhere; ``left`` and ``right`` move by one cell, but not through a closed gate. An open gate closes
with probability ``closing`` in every round in which it is not switched. The reward is 1 for opening the closed gate at
the right end. The cost ``open`` is 1 in every round with an open gate, and ``right`` is 1 in every round in the right
half, so that the agent has to come back, which takes another opening.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP

LEFT, RIGHT, SWITCH = range(3)


def gate(length: int = 8, closing: float = 0.2, opened: float = 0.2, right: float = 0.3) -> CMDP:
    """Maximise the reward behind a gate under constraints on the time that it is open, and on the time behind it.

    >>> gate()
    CMDP(16 states, 3 actions, 2 constraints, dense)
    """
    if length < 4 or length % 2:
        raise ModelError(f"length must be an even number from 4 on; got {length}")
    if not 0.0 < closing < 1.0:
        raise ModelError(f"closing must lie strictly between 0 and 1; got {closing}")
    n = int(length)
    need_dense(2 * n, 3)
    half = n // 2
    P = np.zeros((2 * n, 3, 2 * n))  # state: cell with the gate closed, or n + cell with the gate open
    for is_open in (False, True):
        for cell in range(n):
            for action in (LEFT, RIGHT, SWITCH):
                step = {LEFT: -1, RIGHT: 1, SWITCH: 0}[action]
                through = {cell, cell + step} == {half - 1, half}
                target = cell if through and not is_open else min(max(cell + step, 0), n - 1)
                switched = action == SWITCH and cell in (0, n - 1)
                stays_open = 1.0 if switched else (1.0 - closing) * is_open
                P[is_open * n + cell, action, n + target] = stays_open
                P[is_open * n + cell, action, target] = 1.0 - stays_open
    reward, is_on, behind = (np.zeros((2 * n, 3)) for _ in range(3))
    reward[n - 1, SWITCH] = 1.0
    is_on[n:] = 1.0
    behind[half:n] = behind[n + half :] = 1.0
    return CMDP.from_rewards(
        P,
        reward,
        costs=[is_on, behind],
        thresholds=[opened, right],
        initial=0,
        state_names=[f"cell {cell}, gate {word}" for word in ("closed", "open") for cell in range(n)],
        action_names=("left", "right", "switch"),
        cost_names=("reward", "open", "right"),
    )
