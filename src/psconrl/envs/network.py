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

from psconrl.base.caps import need_sparse
from psconrl.envs.model_builder import at_most, model_builder
from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.model.validation import as_floats
from psconrl.systems.events import Event
from psconrl.systems.system import System

ACTIONS = ("first", "second", "refuse", "fast")


def network_system(
    side: int = 50,
    arrival: float = 1.2,
    service: ArrayLike = (0.6, 0.5),
    fast: ArrayLike = (0.7, 0.6),
    onward: float = 0.2,
    earn: float = 1.0,
    price: float = 0.15,
    waiting: float = 12.0,
) -> System:
    """Maximise the earnings of a network of two stations within a limit on the customers waiting.

    >>> network_system().model()
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
    need_sparse(side * side, len(ACTIONS), 6)
    full = side - 1
    shorter = {"first": "first <= second", "second": "first > second"}
    arrives = {
        station: f"min({station} + (to == '{station}' or (to == 'fast' and {condition})), {full})"
        for station, condition in shorter.items()
    }
    events = {"arrival": Event(float(arrival), arrives, when="to != 'refuse'")}
    for mark, when, rates in (("", "to != 'fast'", usual), ("_fast", "to == 'fast'", hurried)):
        of_first, of_second = f"{when} and first > 0", f"{when} and second > 0"
        goes_on = {"first": "first - 1", "second": f"min(second + 1, {full})"}
        events |= {
            f"first_served{mark}": Event(
                float(rates[0] * (1 - onward)), {"first": "first - 1"}, when=of_first, costs={"earned": float(earn)}
            ),
            f"first_goes_on{mark}": Event(float(rates[0] * onward), goes_on, when=of_first),
            f"second_served{mark}": Event(
                float(rates[1]), {"second": "second - 1"}, when=of_second, costs={"earned": float(earn)}
            ),
        }
    return System(
        state={"first": range(side), "second": range(side)},
        action={"to": ACTIONS},
        events=events,
        clock=float(arrival + hurried.sum()),
        costs={"earned": f"-{float(price)} * (to == 'fast')", "waiting": "first + second"},
        maximise="earned",
        limits=[at_most("waiting", waiting)],
        units=Units(levels={"waiting": "customers"}),
        state_names="{first} and {second} waiting",
        action_names="{to}",
    )


network = model_builder(network_system, sparse=True)
