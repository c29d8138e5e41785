"""Long-run frequencies of a mixture, and the stationary policy that has them, once for all planners."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints


@njit(cache=True)
def policy_from_occupancy(occupancy: Floats, otherwise: Floats, least: float) -> Floats:
    r"""The policy :math:`\pi(a|s) = \mu(s,a) / \sum_a \mu(s,a)`, (S, A); where a state has no more mass than ``least``,
    the row of ``otherwise`` (S, A).

    >>> policy_from_occupancy(np.array([[0.25, 0.75], [0.0, 0.0]]), np.eye(2), 0.0).tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """
    S, A = occupancy.shape
    policy = np.empty((S, A))
    for s in range(S):
        mass = 0.0
        for a in range(A):
            mass += occupancy[s, a]
        for a in range(A):
            policy[s, a] = occupancy[s, a] / mass if mass > least else otherwise[s, a]
    return policy


class Played(Protocol):
    """A deterministic policy and the law of the states where it is played."""

    @property
    def policy(self) -> Ints: ...  # noqa: D102
    @property
    def stationary(self) -> Floats: ...  # noqa: D102


def mixed_occupancy(columns: Sequence[Played], shares: Floats, n_actions: int) -> Floats:
    """The long-run frequencies (S, A) of a mixture."""
    occupancy = np.zeros((columns[0].policy.size, n_actions))
    states = np.arange(len(occupancy))
    for column, share in zip(columns, shares, strict=True):
        occupancy[states, column.policy] += share * column.stationary
    return occupancy


@njit(cache=True)
def one_hot(actions: Ints, n_actions: int) -> Floats:
    """A deterministic policy (S,) as probabilities (S, A).

    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    policy = np.zeros((actions.size, n_actions))
    for s in range(actions.size):
        policy[s, actions[s]] = 1.0
    return policy
