r"""A machine that wears out, breaks down and is repaired: the replacement problem (Derman 1970; Puterman 1994, 4.7.5).

Conditions are 0 (as new) to n - 1, with n = ``conditions``; the last state is ``broken``. Running ``fast`` makes one
piece a round. At condition k it breaks the machine down with probability ``breaking`` k / (n - 1); if not, it wears the
machine to the next condition with probability ``wearing``. Running ``slowly`` makes a quarter of a piece, breaks
nothing, and wears the machine with probability ``wearing`` / 2. A machine at condition n - 1 wears no further.
``repair`` makes nothing; it succeeds with probability ``repaired``, and then the machine is as new. A broken machine
can only be repaired: the other actions do nothing.

Reward: pieces. The cost ``damage`` is ``damage`` in every round in which the machine is broken, 0 in all others.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP

FAST, SLOWLY, REPAIR = range(3)


def machine(
    conditions: int = 6,
    wearing: float = 0.2,
    breaking: float = 0.2,
    repaired: float = 0.5,
    damage: float = 1.0,
    damaged: float = 0.05,
) -> CMDP:
    """Maximise the pieces that a machine makes under a constraint on the average damage of its breakdowns.

    >>> machine()
    CMDP(7 states, 3 actions, 1 constraint, dense)
    """
    if conditions < 2 or conditions != int(conditions):
        raise ModelError(f"conditions must be a whole number from 2 on; got {conditions}")
    for name, value in (("wearing", wearing), ("breaking", breaking), ("repaired", repaired)):
        if not 0.0 < value <= 1.0:
            raise ModelError(f"{name} must be a probability above 0; got {value}")
    n = int(conditions)
    need_dense(n + 1, 3)
    cells = np.arange(n)
    breaks = breaking * cells / (n - 1)
    P = np.zeros((n + 1, 3, n + 1))
    for action, wears, fails in ((FAST, wearing, breaks), (SLOWLY, wearing / 2, np.zeros(n))):
        worse = np.where(cells < n - 1, (1.0 - fails) * wears, 0.0)
        P[cells, action, np.minimum(cells + 1, n - 1)] = worse
        P[cells, action, cells] = 1.0 - fails - worse
        P[cells, action, n] = fails
    P[cells, REPAIR, cells] = 1.0 - repaired
    P[cells, REPAIR, 0] += repaired
    P[n, [FAST, SLOWLY], n] = 1.0
    P[n, REPAIR, 0], P[n, REPAIR, n] = repaired, 1.0 - repaired
    pieces, harm = np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    pieces[:n, FAST], pieces[:n, SLOWLY] = 1.0, 0.25
    harm[n] = damage
    return CMDP.from_rewards(
        P,
        pieces,
        costs=[harm],
        thresholds=[damaged],
        initial=0,
        state_names=[*(f"condition {k}" for k in cells), "broken"],
        action_names=("fast", "slowly", "repair"),
        cost_names=("pieces", "damage"),
    )
