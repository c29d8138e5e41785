r"""Howard's taxicab with a constraint on taxi stands (Howard 1960, Dynamic Programming and Markov Processes, ch. 5).

A driver in town A, B or C can ``cruise``, go to a taxi ``stand``, or wait for a call by ``radio``; every choice has its
probabilities of the next town and its fares. Town B has no radio: waiting for a call there is cruising. The optimal
policy goes to a stand in every town. The cost ``standing`` is 1 at a stand, and the threshold says in which share of
the rounds the stands may be used.
"""

import numpy as np

from psconrl.model.cmdp import CMDP

# By town and choice: numerators of the probabilities of A, B and C over 16, and the fares. Tables 5.1 and 5.2.
NEXT_TOWNS = (
    ((8, 4, 4), (1, 12, 3), (4, 2, 10)),
    ((8, 0, 8), (1, 14, 1), (8, 0, 8)),
    ((4, 4, 8), (2, 12, 2), (12, 1, 3)),
)
FARES = (
    ((10, 4, 8), (8, 2, 4), (4, 6, 4)),
    ((14, 0, 18), (8, 16, 8), (14, 0, 18)),
    ((10, 2, 8), (6, 4, 2), (4, 0, 8)),
)


def taxicab(stands: float = 0.5) -> CMDP:
    """Maximise the fares of a taxicab that may use taxi stands only a fraction of the time.

    >>> taxicab()
    CMDP(3 states, 3 actions, 1 constraint, dense)
    """
    P = np.array(NEXT_TOWNS) / 16.0
    standing = np.tile([0.0, 1.0, 0.0], (3, 1))
    return CMDP.from_rewards(
        P,
        np.einsum("sat,sat->sa", P, np.array(FARES, dtype=np.float64)),
        costs=[standing],
        thresholds=[stands],
        initial=0,
        state_names=("town A", "town B", "town C"),
        action_names=("cruise", "stand", "radio"),
        cost_names=("fares", "standing"),
    )
