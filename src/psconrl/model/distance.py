r"""How far apart states are: least expected hitting times, and the diameter.

.. math:: T(s) = 1 + \min_a \sum_{s'} P(s'|s,a)\, T(s'), \qquad T(\text{target}) = 0, \qquad
          D = \max_{s \ne s'} \min_\pi T^\pi_{s \to s'}

(Provodin et al. 2024, section 2). Policy iteration from a policy that reaches the target surely (Bertsekas 2012,
section 3.4). A path to the target is a chain with cost 1 a step that is absorbed there: its bias is the time.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Bools, Floats, Ints, Matrix
from psconrl.errors import SolverError
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import approach, is_communicating
from psconrl.model.unichain import FALLS_APART, hitting_solve, solve_dense

Evaluator = Callable[[Ints, Ints], Floats]  # pairs played in the states away from the target -> times

SWITCH_TOL = 1e-12  # relative: an action must save more than rounding to be switched to


class ShortestPath(NamedTuple):
    """Least expected steps to a target, and the actions that achieve them."""

    times: Floats  # (S,); inf where no policy surely arrives
    policy: Ints  # (S,)


def shortest_path(P: Matrix, available: Bools, target: int) -> ShortestPath:
    """The fastest policy towards a state in transitions P of shape (S*A, S).

    >>> P = np.array([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> shortest_path(P, np.ones((2, 2), bool), target=1)
    ShortestPath(times=array([2., 0.]), policy=array([0, 0]))
    """
    S, A = available.shape
    usable, sure = _sure_pairs(P, available, target)
    reached = ~sure
    reached[target] = True
    policy = approach(P, usable, reached, usable.argmax(axis=1))
    away = np.flatnonzero(sure & (np.arange(S) != target))
    times = np.where(sure, 0.0, np.inf)
    if not away.size:
        return ShortestPath(times, policy)
    # States that cannot surely arrive are left where they are; nothing that matters leads to them.
    settled = np.setdiff1d(np.arange(S), away)
    evaluate = _dense_evaluator(P, settled, target) if isinstance(P, np.ndarray) else _sparse_evaluator(P)
    while True:
        T = evaluate(away * A + policy[away], away)
        if not np.isfinite(T).all():
            raise SolverError(FALLS_APART)
        Q = np.where(usable.ravel(), 1.0 + P @ T, np.inf).reshape(S, A)[away]
        best = Q.argmin(axis=1)
        current = Q[np.arange(away.size), policy[away]]
        switch = current - Q[np.arange(away.size), best] > SWITCH_TOL * np.maximum(1.0, current)
        if not switch.any():
            times[away] = T[away]
            return ShortestPath(times, policy)
        policy[away[switch]] = best[switch]


def hitting_times(cmdp: CMDP, target: int) -> Floats:
    """Least expected number of steps to the target from every state; inf where no policy surely arrives."""
    return shortest_path(cmdp.transition, cmdp.available, target).times


def diameter(cmdp: CMDP) -> float:
    """The longest of all shortest paths; inf if the model is not communicating.

    >>> import psconrl
    >>> diameter(psconrl.load("marsrover-4x4"))
    6.0
    """
    if not is_communicating(cmdp):
        return float("inf")
    return max(float(hitting_times(cmdp, target).max()) for target in range(cmdp.n_states))


def _sure_pairs(P: Matrix, available: Bools, target: int) -> tuple[Bools, Bools]:
    """Pairs and states from which the target can be reached with probability one."""
    S, A = available.shape
    usable = available.copy()
    states = np.ones(S, dtype=bool)
    while True:
        reached = np.zeros(S, dtype=bool)
        reached[target] = True
        while True:
            grown = reached | (((P @ reached.astype(np.float64)).reshape(S, A) > 0) & usable).any(axis=1)
            if (grown == reached).all():
                break
            reached = grown
        if (reached == states).all():
            return usable, states
        states = reached
        leaves = (P @ (~states).astype(np.float64)).reshape(S, A) > 0
        usable &= ~leaves


def _dense_evaluator(P: Floats, settled: Ints, target: int) -> Evaluator:
    S, n_pairs = P.shape[1], P.shape[0]
    stay = np.zeros(S)
    stay[target] = 1.0
    extended = np.vstack([P, stay])
    costs = np.ones((1, n_pairs + 1))
    costs[0, -1] = 0.0
    rows = np.empty(S, dtype=np.int64)

    def evaluate(pairs: Ints, away: Ints) -> Floats:
        rows[settled] = n_pairs
        rows[away] = pairs
        chain = solve_dense(extended, rows, costs, target)
        if chain is None:  # the target absorbs everything, but products of probabilities may vanish
            raise SolverError(FALLS_APART)
        times: Floats = chain.biases[0]
        return times

    return evaluate


def _sparse_evaluator(P: csr_array) -> Evaluator:
    def evaluate(pairs: Ints, away: Ints) -> Floats:
        times = np.zeros(P.shape[1])
        arrived = np.ones(P.shape[1])
        arrived[away] = 0.0
        rows = P[pairs]
        times[away] = hitting_solve(rows[:, away], np.ones((1, away.size)), rows @ arrived)[:, 0]
        return times

    return evaluate
