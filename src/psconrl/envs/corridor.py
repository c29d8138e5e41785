r"""Environments whose optimum alternates between two distant places.

An optimal stationary policy may then leave either place only once in thousands of rounds, and an agent that plans again
before that happens stays where it is. docs/theory.md has the argument.
"""

import numpy as np

from psconrl.base.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP


def corridor(length: int = 8, used: float = 0.25, success: float = 1.0) -> CMDP:
    """Walk left or right; the far end pays, but may be used only a fraction of the time.

    A round costs 1, but nothing for going right at the far end. ``used``: the fraction of rounds in which that is
    allowed. ``success``: probability that a step to the right succeeds in the middle of the corridor; all other steps
    do.

    >>> corridor()
    CMDP(8 states, 2 actions, 1 constraint, dense)
    """
    if length < 2 or length != int(length):
        raise ModelError(f"length must be a whole number from 2 on; got {length}")
    if not 0.0 < success <= 1.0:
        raise ModelError(f"success must be a probability above 0; got {success}")
    n = int(length)
    need_dense(n, 2)
    cells = np.arange(n)
    P = np.zeros((n, 2, n))
    P[cells, 0, np.maximum(cells - 1, 0)] = 1.0
    P[cells, 1, np.minimum(cells + 1, n - 1)] = 1.0
    middle = (n - 1) // 2
    P[middle, 1, middle + 1] = success
    P[middle, 1, middle] = 1.0 - success
    cost, use = np.ones((n, 2)), np.zeros((n, 2))
    cost[n - 1, 1], use[n - 1, 1] = 0.0, 1.0
    return CMDP(
        P,
        [cost, use],
        [used],
        initial=0,
        state_names=[f"cell {cell}" for cell in cells],
        action_names=("left", "right"),
        cost_names=("cost", "use"),
    )


def islands(threshold: float = 0.5, success: float = 1.0) -> CMDP:
    """Build a model of two states with actions stay and move.

    Each state is free in one cost and expensive in the other, and moving is expensive in both. No stationary policy
    attains the optimum, one half: it is the limit of ever rarer moves. ``success``: probability that moving succeeds;
    with 0.02 it is like waiting for a ferry that comes once in fifty rounds, which is the diameter.

    >>> islands()
    CMDP(2 states, 2 actions, 1 constraint, dense)
    """
    if not 0.0 < success <= 1.0:
        raise ModelError(f"success must be a probability above 0; got {success}")
    return CMDP(
        [[[1.0, 0.0], [1.0 - success, success]], [[0.0, 1.0], [success, 1.0 - success]]],
        [[[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]],
        [threshold],
        state_names=("first", "second"),
        action_names=("stay", "move"),
        cost_names=("cost", "other"),
    )
