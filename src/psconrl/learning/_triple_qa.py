r"""One round of Triple-QA, compiled. Tables have an entry for the objective first, then one for every limit."""

import math
from typing import NamedTuple

from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.learning.stepping import learns_with


class Constants(NamedTuple):
    """Numbers of the algorithm, by the names of the paper."""

    gamma: float  # discount
    chi: float  # of the learning rate
    iota: float  # log term of the bonus
    kappa: float  # bound on spans, scale of the bonus
    eta: float  # weight of the objective against the queues
    together: bool  # do hats follow only where the estimates of all gains fall?


class Memory(NamedTuple):
    """What a round changes, and what it needs to know."""

    estimates: Floats  # (m+1, S, A) Q and C
    hats: Floats  # (m+1, S, A) the least of them so far
    values: Floats  # (m+1, S) of the greedy action: V and W
    visits: Ints  # (S, A) in this frame
    totals: Floats  # (m,) of (1 - gamma) C-hat over the frame
    queues: Floats  # (m,) Z
    policy: Floats  # (S, A) greedy
    highest: Floats  # (m+1,) cost that is a gain of 0
    units: Floats  # (m+1,) by which a cost must be less for a gain of 1
    constants: Constants


@njit(cache=True, nogil=True)
def rate(tau: int, constants: Constants) -> float:
    r""":math:`\alpha = (\chi + 1) / (\chi + \tau)`, at the :math:`\tau`-th visit in a frame."""
    return (constants.chi + 1.0) / (constants.chi + tau)


@njit(cache=True, nogil=True)
def bonus(tau: int, constants: Constants) -> float:
    r""":math:`b = \kappa \sqrt{(\chi + 1)\, \iota / (\chi + \tau)}`."""
    return constants.kappa * math.sqrt((constants.chi + 1.0) * constants.iota / (constants.chi + tau))


@njit(cache=True, nogil=True)
def learn(memory: Memory, state: int, action: int, successor: int, costs: Floats) -> None:
    """Learn from one round, and choose the action of its state anew."""
    constants, hats, estimates = memory.constants, memory.hats, memory.estimates
    n_tables, _, A = hats.shape
    memory.visits[state, action] += 1
    tau = memory.visits[state, action]
    alpha, b = rate(tau, constants), bonus(tau, constants)
    fell = True
    for i in range(n_tables):
        gain = (memory.highest[i] - costs[i]) / memory.units[i]
        target = gain + constants.gamma * memory.values[i, successor] + b
        estimates[i, state, action] = (1.0 - alpha) * estimates[i, state, action] + alpha * target
        fell = fell and estimates[i, state, action] <= hats[i, state, action]
    for i in range(n_tables):
        if fell or (not constants.together and estimates[i, state, action] < hats[i, state, action]):
            hats[i, state, action] = estimates[i, state, action]
        if i:
            memory.totals[i - 1] += (1.0 - constants.gamma) * hats[i, state, action]
    best, chosen = 0.0, 0
    for a in range(A):
        score = hats[0, state, a]
        for i in range(1, n_tables):
            score += memory.queues[i - 1] / constants.eta * hats[i, state, a]
        if a == 0 or score > best:
            best, chosen = score, a
        memory.policy[state, a] = 0.0
    memory.policy[state, chosen] = 1.0
    for i in range(n_tables):
        memory.values[i, state] = hats[i, state, chosen]


learns_with(Memory, learn)
