r"""Two states in which the only optimal policy hardly moves, although the diameter is 1.

Staying costs (0, 1) in the first state and (1, 0) in the second, a move (1, 1), and the threshold is 1/2. So "stay,
stay" is the only optimal stationary policy. A leak takes it to the other state once in 1/leak rounds. From the second
state, its expected regret after T rounds is :math:`(1 - (1 - 2\,\mathrm{leak})^T) / (4\,\mathrm{leak})`, a fifth of all
rounds if the leak is 1/T. docs/theory.md shows that this refutes Theorem 4.1 of the PSConRL paper.
"""

from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP


def leaky_islands(leak: float = 0.01) -> CMDP:
    """Build a model of two states with actions stay and move; staying leaks to the other state.

    ``leak``: probability that staying fails. Moving always succeeds. The second state is the initial one.

    >>> leaky_islands().transition.toarray()[0].tolist()
    [0.99, 0.01]
    """
    if not 0.0 < leak < 0.5:
        raise ModelError(f"leak must be a probability above 0 and below 1/2; got {leak}")
    return CMDP(
        [[[1.0 - leak, leak], [0.0, 1.0]], [[leak, 1.0 - leak], [1.0, 0.0]]],
        [[[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]],
        [0.5],
        initial=1,
        state_names=("first", "second"),
        action_names=("stay", "move"),
        cost_names=("cost", "other"),
    )
