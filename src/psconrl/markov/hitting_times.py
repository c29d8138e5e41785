r"""Least expected hitting times between states, and the diameter of a model.

.. math:: T(s) = 1 + \min_a \sum_{s'} P(s'|s,a)\, T(s'), \qquad T(\text{target}) = 0, \qquad
          D = \max_{s \ne s'} \min_\pi T^\pi_{s \to s'}

(Provodin et al. 2024, section 2). They are computed by policy iteration from a policy that reaches the target with
probability one (Bertsekas 2012, section 3.4). The time is the total cost, at 1 per step, until the chain leaves the
other states.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.markov.chain import chain_of
from psconrl.markov.gain_bias import FALLS_APART
from psconrl.markov.structure import attractor_policy, is_communicating
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.transition import Transition

FASTER_TOL = 1e-12  # relative: an action must save more than rounding to be switched to


class ShortestPath(NamedTuple):
    """Least expected number of steps to a target, and a policy that attains it."""

    times: Floats  # (S,); inf where no policy reaches the target with probability one
    policy: Ints  # (S,)


def shortest_path(P: Transition, available: Bools, target: int) -> ShortestPath:
    """Return the fastest policy to a target state in transitions P of shape (S*A, S).

    >>> P = Transition.of(np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> shortest_path(P, np.ones((2, 2), bool), target=1)
    ShortestPath(times=array([2., 0.]), policy=array([0, 0]))
    """
    S, A = available.shape
    usable, sure = _sure_pairs(P, available, target)
    reached = ~sure
    reached[target] = True
    policy = attractor_policy(P, usable, reached, usable.argmax(axis=1))
    away = np.flatnonzero(sure & (np.arange(S) != target))
    times = np.where(sure, 0.0, np.inf)
    if not away.size:
        return ShortestPath(times, policy)
    T = np.zeros(S)
    step = np.ones((away.size, 1))
    while True:
        T[away] = chain_of(P, policy).collect(away, step)[:, 0]
        if not np.isfinite(T).all():
            raise SolverError(FALLS_APART)
        Q = np.where(usable.ravel(), 1.0 + P @ T, np.inf).reshape(S, A)[away]
        best = Q.argmin(axis=1)
        current = Q[np.arange(away.size), policy[away]]
        switch = current - Q[np.arange(away.size), best] > FASTER_TOL * np.maximum(1.0, current)
        if not switch.any():
            times[away] = T[away]
            return ShortestPath(times, policy)
        policy[away[switch]] = best[switch]


def hitting_times(cmdp: CMDP, target: int) -> Floats:
    """Return the least expected number of steps to the target from every state; inf where it is not surely reached."""
    return shortest_path(cmdp.transition, cmdp.available, target).times


def diameter(cmdp: CMDP) -> float:
    """Return the diameter: the largest of all least expected hitting times.

    The least expected hitting time of a state from another is that of the fastest policy. The diameter is infinite if
    the model ``cmdp`` is not communicating.

    >>> import psconrl
    >>> diameter(psconrl.load("marsrover-4x4"))
    6.0
    """
    need_model(cmdp, "diameter")
    if not is_communicating(cmdp):
        return float("inf")
    return max(float(hitting_times(cmdp, target).max()) for target in range(cmdp.n_states))


def _sure_pairs(P: Transition, available: Bools, target: int) -> tuple[Bools, Bools]:
    """Return masks of the pairs and states from which the target can be reached with probability one."""
    S, A = available.shape
    usable = available.copy()
    states, goal = np.ones(S, dtype=bool), np.arange(S) == target
    while True:
        _, reached = P.attract(usable, goal, usable.argmax(axis=1))
        if (reached == states).all():
            return usable, states
        states = reached
        leaves = (P @ (~states).astype(np.float64)).reshape(S, A) > 0
        usable &= ~leaves
