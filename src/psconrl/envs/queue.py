r"""A single-server queue with control of service and admission (Altman 1999, chapter 1 and section 5.1).

State: the number of customers, 0 to ``capacity``. A step is one uniformised event time: a customer arrives with
probability ``arrival`` and is admitted or refused; the one in service leaves with the probability of the chosen speed.
Actions: every pair of a speed and a gate, the gates ``open`` and ``closed``.

Reward: customers admitted per step (throughput). Limits: ``delay``, the average number in the system, which Little's
formula turns into waiting time; ``power``, the average power of the chosen speed.
"""

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import need_dense
from psconrl.envs.model_builder import at_most
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.systems.noise import Bernoulli
from psconrl.systems.system import System


def queue(
    capacity: int = 9,
    arrival: float = 0.4,
    speeds: ArrayLike = (0.2, 0.5, 0.8),
    powers: ArrayLike = (0.1, 0.4, 1.0),
    delay: float = 2.0,
    power: float = 0.3,
) -> CMDP:
    """Maximise the throughput of a queue within limits on delay (customers) and power.

    ``speeds``: probability that the customer in service leaves in a step, one per speed; ``powers``: the power of each.

    >>> queue()
    CMDP(10 states, 6 actions, 2 constraints, dense)
    """
    rates, watts = _checked(capacity, arrival, speeds, powers)
    S, K = int(capacity) + 1, rates.size
    need_dense(S, 2 * K)
    P = np.zeros((S, 2 * K, S))
    reward = np.zeros((S, 2 * K))
    for n in range(S):
        for k, rate in enumerate(rates):
            serve = rate if n else 0.0
            for gate in (0, 1):  # open, closed
                a = 2 * k + gate
                # A departure makes room for an arrival in the same step.
                enter = 0.0 if gate else arrival
                up = enter * (1 - serve) if n < capacity else 0.0
                down = serve * (1 - enter)
                P[n, a, min(n + 1, S - 1)] += up
                P[n, a, max(n - 1, 0)] += down
                P[n, a, n] += 1 - up - down
                reward[n, a] = enter if n < capacity else enter * serve
    waiting = np.repeat(np.arange(S, dtype=float)[:, None], 2 * K, axis=1)
    consumed = np.repeat(np.repeat(watts, 2)[None, :], S, axis=0)
    return CMDP.from_rewards(
        P,
        reward,
        costs=[waiting, consumed],
        thresholds=[delay, power],
        state_names=[f"{n} waiting" for n in range(S)],
        action_names=[f"speed {k} {gate}" for k in range(K) for gate in ("open", "closed")],
        cost_names=("throughput", "delay", "power"),
        units=Units("step", counted={"throughput": "customers"}, levels={"delay": "customers"}),
    )


def queue_system(
    capacity: int = 9,
    arrival: float = 0.4,
    speeds: ArrayLike = (0.2, 0.5, 0.8),
    powers: ArrayLike = (0.1, 0.4, 1.0),
    delay: float = 2.0,
    power: float = 0.3,
) -> System:
    """Return the same queue as a system: arrivals, and departures at every speed, are noise.

    >>> queue_system().model()
    CMDP(10 states, 6 actions, 2 constraints, dense)
    """
    rates, watts = _checked(capacity, arrival, speeds, powers)
    n = int(capacity)
    need_dense(n + 1, 2 * rates.size)
    done = [f"done_{k}" for k in range(rates.size)]
    leaving = {
        name: Bernoulli(float(p), when=f"waiting > 0 and speed == {k}")
        for k, (name, p) in enumerate(zip(done, rates, strict=True))
    }
    left = f"waiting - {' - '.join(done)}"  # a departure makes room for an arrival in the same step
    return System(
        state={"waiting": range(n + 1)},
        action={"speed": range(rates.size), "gate": ["open", "closed"]},
        noise={"arrival": Bernoulli(arrival, when="gate == 'open'")} | leaving,
        step={"waiting": f"min({left} + arrival, {n})"},
        costs={
            "throughput": f"min(arrival, {n} - ({left}))",
            "delay": "waiting",
            "power": f"pick(speed, {', '.join(map(repr, watts.tolist()))})",
        },
        maximise="throughput",
        limits=[at_most("delay", delay), at_most("power", power)],
        units=Units("step", counted={"throughput": "customers"}, levels={"delay": "customers"}),
        state_names="{waiting} waiting",
        action_names="speed {speed} {gate}",
    )


def _checked(capacity: int, arrival: float, speeds: ArrayLike, powers: ArrayLike) -> tuple[Floats, Floats]:
    """Return the speeds and their powers after a check."""
    rates, watts = np.asarray(speeds, float), np.asarray(powers, float)
    if capacity < 1 or int(capacity) != capacity:
        raise ModelError(f"capacity must be a whole number from 1 on; got {capacity}")
    if not 0 < arrival < 1:
        raise ModelError(f"arrival must lie strictly between 0 and 1; got {arrival}")
    if rates.ndim != 1 or rates.shape != watts.shape or not ((rates > 0) & (rates < 1)).all():
        raise ModelError("speeds must lie strictly between 0 and 1, one power for each")
    return rates, watts
