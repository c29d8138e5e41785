r"""Example 1 of the paper: two states in which posterior sampling without exploration never learns.

In s0 the action ``stay`` stays, ``go`` moves to s1 with probability :math:`\theta`; from s1 every action returns to s0.
Reward and cost are both 1 in s0 and 0 in s1. So the reward favours staying and the constraint forbids it: the least
average cost is :math:`1 / (1 + \theta)`.

In the paper's text s1 is absorbing and the first action leaves s0; then neither its argument nor its assumption holds.
"""

from psconrl.model.cmdp import CMDP


def counterexample(theta: float = 0.9, threshold: float = 0.5275) -> CMDP:
    """Build the two-state model with the paper's numbers.

    >>> counterexample().transition.toarray()[1].round(3).tolist()
    [0.1, 0.9]
    """
    in_s0 = [[1.0, 1.0], [0.0, 0.0]]
    return CMDP.from_rewards(
        [[[1.0, 0.0], [1.0 - theta, theta]], [[1.0, 0.0], [1.0, 0.0]]],
        rewards=in_s0,
        costs=[in_s0],
        thresholds=[threshold],
        state_names=("s0", "s1"),
        action_names=("stay", "go"),
        cost_names=("reward", "cost"),
    )
