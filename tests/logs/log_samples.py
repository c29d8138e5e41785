"""Systems and logs that several tests share, written by simulators that use nothing of the library."""

import numpy as np

from psconrl import System
from psconrl.systems import Gamma, Poisson


def shop():
    return System(
        state={"shelf": range(6)},
        action={"order": range(4)},
        noise={"demand": Poisson(Gamma(2, 1), most=9)},
        step={"shelf": "min(max(shelf - demand, 0) + order, 5)"},
        costs={"holding": "shelf", "lost": "max(demand - shelf, 0)", "buy": "order"},
        minimise="holding + 2 * buy",
        limits=["lost <= 0.3"],
    )


def shop_rows(rounds, seed=0, rate=1.7):
    """Columns of a log of the shop."""
    rng = np.random.default_rng(seed)
    shelf, rows = 3, []
    for _ in range(rounds):
        order, demand = int(rng.integers(4)), int(rng.poisson(rate))
        rows.append((shelf, order, demand, max(demand - shelf, 0)))
        shelf = min(max(shelf - demand, 0) + order, 5)
    return dict(zip(("shelf", "order", "demand", "lost"), np.array(rows).T, strict=True))
