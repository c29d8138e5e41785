r"""Two stations with routing: an arrival is sent to one of them or refused (see Stidham and Weber 1993).

State: the customers at either station, 0 to ``side - 1`` each. Customers arrive at rate ``arrival``; the stations serve
at the rates ``service``. A customer served at the first goes on to the second with probability ``onward``, and is lost
if that is full; all other served customers leave. A step is one uniformised event time: at most one of these happens.
The actions ``first``, ``second`` and ``refuse`` say where an arrival goes. Under ``fast`` it goes to the shorter queue,
the first if equal, and both stations serve at the rates ``fast``. A full station admits no customer.

Reward: ``earn`` per customer served, less ``price`` per unit of time of fast service. Limit: ``waiting``, the average
number of customers in the network. All are paid as rates, so that averages are per unit of time.
"""

import numpy as np
from numpy.typing import ArrayLike

from psconrl.caps import need_sparse
from psconrl.envs.event_transitions import transitions
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.model.validation import as_floats

ACTIONS = ("first", "second", "refuse", "fast")


def network(
    side: int = 50,
    arrival: float = 1.2,
    service: ArrayLike = (0.6, 0.5),
    fast: ArrayLike = (0.7, 0.6),
    onward: float = 0.2,
    earn: float = 1.0,
    price: float = 0.15,
    waiting: float = 12.0,
) -> CMDP:
    """Maximise the earnings of a network of two stations within a limit on the customers waiting.

    >>> network()
    CMDP(2500 states, 4 actions, 1 constraint, sparse)
    """
    usual, hurried = as_floats(service, "service"), as_floats(fast, "fast")
    if not 2 <= side < np.inf or int(side) != side:
        raise ModelError(f"side must be a whole number from 2 on; got {side}")
    if not 0 < arrival < np.inf:
        raise ModelError(f"arrival must be positive and finite; got {arrival}")
    if not usual.shape == hurried.shape == (2,) or not ((usual > 0) & (hurried >= usual) & np.isfinite(hurried)).all():
        raise ModelError("service and fast must be two positive rates each, fast ones no slower")
    if not 0 <= onward <= 1:
        raise ModelError(f"onward must lie in [0, 1]; got {onward}")
    side = int(side)
    S, A = side * side, len(ACTIONS)
    need_sparse(S, A, 6)
    first, second = (n.reshape(S, 1) for n in np.divmod(np.arange(S), side))
    last = side - 1
    sent = np.hstack([np.broadcast_to([0, 1, -1], (S, 3)), first > second])  # destination by action; -1 is refused
    rate = np.stack([usual, usual, usual, hurried])  # service rates by action
    done_first, done_second = (first > 0) * rate[:, 0], (second > 0) * rate[:, 1]
    total = arrival + hurried.sum()
    here = np.arange(S)[:, None]
    events = [
        ((sent == 0) * arrival / total, np.where(first < last, here + side, here)),
        ((sent == 1) * arrival / total, np.where(second < last, here + 1, here)),
        (done_first * (1 - onward) / total, np.maximum(here - side, 0)),
        (done_first * onward / total, np.maximum(np.where(second < last, here - side + 1, here - side), 0)),
        (done_second / total, np.maximum(here - 1, 0)),
    ]
    served = done_first * (1 - onward) + done_second
    return CMDP.from_rewards(
        transitions(S, A, events),
        earn * served - price * np.array([0.0, 0.0, 0.0, 1.0]),
        costs=[np.broadcast_to(first + second, (S, A))],
        thresholds=[waiting],
        state_names=[f"{n} and {m} waiting" for n in range(side) for m in range(side)],
        action_names=ACTIONS,
        cost_names=("earned", "waiting"),
        units=Units(levels={"waiting": "customers"}),
    )
