r"""A stock of several items that share one truck, under a limit on the lost sales of each.

State: how many of each item are on the shelf, 0 to ``room`` each. In a step a customer asks for an item with
probability ``demand``, most often for the first: with three items, for the first, second and third as 3 to 2 to 1. The
sale is lost if the shelf is empty. Actions: ``wait``, or send the truck with an item. The truck arrives with
probability ``delivery`` and then brings ``load``, as far as there is room, after the sale of the step.

Cost: ``holding`` per item on the shelf, and ``trip`` per step in which the truck is out. Limits: for each item the
share of its customers who find the shelf empty, at most ``lost``.
"""

import numpy as np

from psconrl.caps import need_sparse
from psconrl.envs.event_transitions import transitions
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP

MOST_ITEMS = 10


def stock(
    items: int = 3,
    room: int = 11,
    demand: float = 0.6,
    delivery: float = 0.2,
    load: int = 6,
    holding: float = 1.0,
    trip: float = 2.0,
    lost: float = 0.1,
) -> CMDP:
    """Minimise the costs of shelves and truck within limits on the lost sales of every item.

    >>> stock()
    CMDP(1728 states, 4 actions, 3 constraints, sparse)
    """
    for name, given in (("items", items), ("room", room), ("load", load)):
        if not 1 <= given < np.inf or int(given) != given:
            raise ModelError(f"{name} must be a whole number from 1 on; got {given}")
    if items > MOST_ITEMS:
        raise ModelError(f"items must be at most {MOST_ITEMS}; got {items}")
    for name, probability in (("demand", demand), ("delivery", delivery)):
        if not 0 < probability < 1:
            raise ModelError(f"{name} must lie strictly between 0 and 1; got {probability}")
    n, room = int(items), int(room)
    load = min(int(load), room)  # the excess stays on the truck
    S, A = (room + 1) ** n, n + 1
    need_sparse(S, A, 2 * n + 2)
    levels = np.indices((room + 1,) * n).reshape(n, S).T
    place = (room + 1) ** np.arange(n)[::-1]  # place value of an item in the number of a state
    asked = demand * np.arange(n, 0, -1) / (n * (n + 1) // 2)
    brings = np.eye(A, n, -1, dtype=np.int64) * load  # delivered by each action: nothing, or one item
    comes = np.append(0.0, np.full(n, delivery))
    events = []
    for k in range(n + 1):  # the requested item; n is none
        p = asked[k] if k < n else 1 - demand
        left = np.maximum(levels - (np.arange(n) == k), 0)
        filled = np.minimum(left[:, None, :] + brings, room)
        events.append((p * comes, filled @ place))
        events.append((p * (1 - comes), (left @ place)[:, None]))
    out = np.arange(A) > 0
    return CMDP(
        transitions(S, A, events),
        [
            holding * levels.sum(axis=1)[:, None] + trip * out,
            *(np.broadcast_to((levels[:, k] == 0)[:, None], (S, A)) for k in range(n)),
        ],
        np.full(n, lost),
        initial=S - 1,
        state_names=[" ".join(map(str, row)) + " in stock" for row in levels.tolist()],
        action_names=["wait", *(f"send item {k + 1}" for k in range(n))],
        cost_names=("cost", *(f"lost {k + 1}" for k in range(n))),
    )
