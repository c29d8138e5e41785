r"""A stock of several items that share one truck, under a limit on the lost sales of each.

State: how many of each item are on the shelf, 0 to ``room`` each. In a step a customer asks for an item with
probability ``demand``, most often for the first: with three items, for the first, second and third as 3 to 2 to 1. The
sale is lost if the shelf is empty. Actions: ``wait``, or send the truck with an item. The truck arrives with
probability ``delivery`` and then brings ``load``, as far as there is room, after the sale of the step.

Cost: ``holding`` per item on the shelf, and ``trip`` per step in which the truck is out. Limits: for each item the
share of its customers who find the shelf empty, at most ``lost``.
"""

import numpy as np

from psconrl.base.caps import need_sparse
from psconrl.envs.model_builder import at_most, model_builder
from psconrl.errors import ModelError
from psconrl.systems.categorical import Categorical
from psconrl.systems.noise import Bernoulli
from psconrl.systems.system import System

MOST_ITEMS = 10


def stock_system(
    items: int = 3,
    room: int = 11,
    demand: float = 0.6,
    delivery: float = 0.2,
    load: int = 6,
    holding: float = 1.0,
    trip: float = 2.0,
    lost: float = 0.1,
) -> System:
    """Minimise the costs of shelves and truck within limits on the lost sales of every item.

    >>> stock_system().model()
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
    need_sparse((room + 1) ** n, n + 1, 2 * n + 2)
    shelves = [f"item_{k + 1}" for k in range(n)]
    trips = [f"send item {k + 1}" for k in range(n)]
    asked = demand * np.arange(n, 0, -1) / (n * (n + 1) // 2)
    return System(
        state={shelf: range(room + 1) for shelf in shelves},
        action={"truck": ["wait", *trips]},
        noise={
            "asks": Categorical([*shelves, "none"], [*asked, 1 - demand]),
            "arrives": Bernoulli(delivery, when="truck != 'wait'"),
        },
        step={
            shelf: f"min(max({shelf} - (asks == '{shelf}'), 0) + {load} * (arrives == 1 and truck == '{sent}'), {room})"
            for shelf, sent in zip(shelves, trips, strict=True)
        },
        costs={"cost": f"{float(holding)} * ({' + '.join(shelves)}) + {float(trip)} * (truck != 'wait')"}
        | {f"lost_{k + 1}": f"{shelf} == 0" for k, shelf in enumerate(shelves)},
        start=dict.fromkeys(shelves, room),
        minimise="cost",
        limits=[at_most(f"lost_{k + 1}", lost) for k in range(n)],
        state_names=" ".join(f"{{{shelf}}}" for shelf in shelves) + " in stock",
        action_names="{truck}",
        cost_names={f"lost_{k + 1}": f"lost {k + 1}" for k in range(n)},
    )


stock = model_builder(stock_system, sparse=True)
