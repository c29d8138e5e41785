r"""Inventory control (Puterman 1994, section 3.2), under limits on lost sales and on orders.

State: items on the shelf at the start of a day, 0 to ``capacity``. Action: how many to order; an order beyond the free
capacity is cut to fit. It arrives at once; then the day's demand, binomial with ``customers`` trials of probability
``buying``, is served as far as the stock goes.

Cost: ``holding`` per item left over at night. Limits: ``lost``, the average number of sales lost per day; ``orders``,
the average number of orders per day, since each needs a delivery.
"""

from math import comb

import numpy as np

from psconrl.caps import need_dense
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units

MOST_CUSTOMERS = 1000  # binomial coefficients of more overflow doubles


def inventory(
    capacity: int = 8,
    customers: int = 5,
    buying: float = 0.5,
    holding: float = 1.0,
    lost: float = 0.3,
    orders: float = 0.4,
) -> CMDP:
    """Minimise the holding cost of a stock within limits on lost sales and orders per day.

    >>> inventory()
    CMDP(9 states, 9 actions, 2 constraints, dense)
    """
    if capacity < 1 or int(capacity) != capacity or customers < 1 or int(customers) != customers:
        raise ModelError(f"capacity and customers must be whole numbers from 1 on; got {capacity} and {customers}")
    if customers > MOST_CUSTOMERS:
        raise ModelError(f"customers must be at most {MOST_CUSTOMERS}; got {customers:g}")
    if not 0 < buying < 1:
        raise ModelError(f"buying must lie strictly between 0 and 1; got {buying}")
    capacity, customers = int(capacity), int(customers)
    demand = np.array([comb(customers, d) * buying**d * (1 - buying) ** (customers - d) for d in range(customers + 1)])
    S = A = capacity + 1
    need_dense(S, A)
    P = np.zeros((S, A, S))
    kept, missed, ordered = np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))
    for stock in range(S):
        for order in range(A):
            shelf = min(stock + order, capacity)
            ordered[stock, order] = float(shelf > stock)
            for d, p in enumerate(demand):
                rest = max(shelf - d, 0)
                P[stock, order, rest] += p
                kept[stock, order] += p * holding * rest
                missed[stock, order] += p * max(d - shelf, 0)
    return CMDP(
        P,
        [kept, missed, ordered],
        [lost, orders],
        initial=capacity,
        state_names=[f"{n} in stock" for n in range(S)],
        action_names=[f"order {n}" for n in range(A)],
        cost_names=("holding", "lost", "orders"),
        units=Units("day", counted={"holding": "euro", "lost": "sales", "orders": "orders"}),
    )
