r"""Inventory control (Puterman 1994, section 3.2), under limits on lost sales and on orders.

State: items on the shelf at the start of a day, 0 to ``capacity``. Action: how many to order; an order beyond the free
capacity is cut to fit. It arrives at once; then the day's demand, binomial with ``customers`` trials of probability
``buying``, is served as far as the stock goes.

Cost: ``holding`` per item left over at night. Limits: ``lost``, the average number of sales lost per day; ``orders``,
the average number of orders per day, since each needs a delivery.
"""

from math import comb

from psconrl.base.caps import need_dense
from psconrl.envs.model_builder import at_most, model_builder
from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.systems.categorical import Categorical
from psconrl.systems.system import System

MOST_CUSTOMERS = 1000  # binomial coefficients of more overflow doubles


def inventory_system(
    capacity: int = 8,
    customers: int = 5,
    buying: float = 0.5,
    holding: float = 1.0,
    lost: float = 0.3,
    orders: float = 0.4,
) -> System:
    """Minimise the holding cost of a stock within limits on lost sales and orders per day.

    >>> inventory_system().model()
    CMDP(9 states, 9 actions, 2 constraints, dense)
    """
    if capacity < 1 or int(capacity) != capacity or customers < 1 or int(customers) != customers:
        raise ModelError(f"capacity and customers must be whole numbers from 1 on; got {capacity} and {customers}")
    if customers > MOST_CUSTOMERS:
        raise ModelError(f"customers must be at most {MOST_CUSTOMERS}; got {customers:g}")
    if not 0 < buying < 1:
        raise ModelError(f"buying must lie strictly between 0 and 1; got {buying}")
    n, k = int(capacity), int(customers)
    need_dense(n + 1, n + 1)
    shelf = f"min(stock + order, {n})"
    return System(
        state={"stock": range(n + 1)},
        action={"order": range(n + 1)},
        noise={"demand": Categorical({d: comb(k, d) * buying**d * (1 - buying) ** (k - d) for d in range(k + 1)})},
        step={"stock": f"max({shelf} - demand, 0)"},
        costs={
            "holding": f"{float(holding)} * next_stock",
            "lost": f"max(demand - {shelf}, 0)",
            "orders": f"{shelf} > stock",
        },
        start={"stock": n},
        minimise="holding",
        limits=[at_most("lost", lost), at_most("orders", orders)],
        units=Units("day", counted={"holding": "euro", "lost": "sales", "orders": "orders"}),
        state_names="{stock} in stock",
        action_names="order {order}",
    )


inventory = model_builder(inventory_system, sparse=False)
