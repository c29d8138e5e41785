"""Policies as probabilities (S, A), from their long-run frequencies and from actions."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstMatrix, Ints, Matrix

from psconrl.base.arrays import Floats

_INFINITE = cython.declare(cython.double, float("inf"))


def policy_into(occupancy, otherwise, least, policy):
    """Compute ``policy_from_occupancy`` in a given array, which may be ``otherwise``."""
    S, A = occupancy.shape[0], occupancy.shape[1]
    for s in range(S):
        mass: cython.double = 0.0
        for a in range(A):
            mass += occupancy[s, a]
        if mass > least:
            for a in range(A):
                policy[s, a] = occupancy[s, a] / mass
        else:
            for a in range(A):
                policy[s, a] = otherwise[s, a]


def policy_from_occupancy(occupancy: ConstMatrix, otherwise: ConstMatrix, least: cython.double) -> Floats:
    r"""Return the policy :math:`\pi(a|s) = \mu(s,a) / \sum_a \mu(s,a)`, (S, A).

    States of mass at most ``least`` take the row of ``otherwise`` (S, A).

    >>> policy_from_occupancy(np.array([[0.25, 0.75], [0.0, 0.0]]), np.eye(2), 0.0).tolist()
    [[0.25, 0.75], [0.0, 1.0]]
    """
    S, A = occupancy.shape[0], occupancy.shape[1]
    if otherwise.shape[0] != S or otherwise.shape[1] != A:
        raise ValueError("frequencies and a policy (S, A) of one model are needed")
    result = np.empty((S, A))
    policy: Matrix = result
    policy_into(occupancy, otherwise, least, policy)
    return result


def add_frequencies(
    actions: cython.const[cython.Py_ssize_t][:],
    distribution: cython.const[cython.double][:],
    share: cython.double,
    occupancy: Matrix,
) -> None:
    """Add the frequencies of a deterministic policy (S,) with a stationary distribution (S,) to others (S, A)."""
    S, A = occupancy.shape[0], occupancy.shape[1]
    if actions.shape[0] != S or distribution.shape[0] != S:
        raise ValueError("a policy and a distribution (S,), and frequencies (S, A), are needed")
    for s in range(S):
        a: cython.Py_ssize_t = actions[s]
        if not 0 <= a < A:
            raise ValueError(f"actions must lie in 0..{A - 1}; got {a}")
        occupancy[s, a] += share * distribution[s]


def randomised_in(policy: ConstMatrix, occupancy: ConstMatrix):
    """Return the states with positive frequencies in which a policy (S, A) has several actions, sorted.

    >>> randomised_in(np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]), np.array([[0.0, 0.0], [0.4, 0.4], [0.0, 0.2]]))
    array([1])
    """
    S, A = policy.shape[0], policy.shape[1]
    if occupancy.shape[0] != S or occupancy.shape[1] != A:
        raise ValueError("a policy and frequencies (S, A) of one model are needed")
    found = np.empty(S, np.int64)
    states: Ints = found
    n: cython.Py_ssize_t = 0
    for s in range(S):
        mass: cython.double = 0.0
        played: cython.Py_ssize_t = 0
        for a in range(A):
            mass += occupancy[s, a]
            played += policy[s, a] > 0.0
        if played > 1 and mass > 0.0:
            states[n] = s
            n += 1
    return found[:n]


def least_positive(shares: ConstMatrix) -> float:
    """Return the least positive entry; inf if there is none.

    >>> least_positive(np.array([[0.25, 0.75], [0.0, 1.0]]))
    0.25
    """
    least: cython.double = _INFINITE
    for s in range(shares.shape[0]):
        for a in range(shares.shape[1]):
            if 0.0 < shares[s, a] < least:
                least = shares[s, a]
    return least


def one_hot(actions: cython.const[cython.Py_ssize_t][:], n_actions: cython.Py_ssize_t) -> Floats:
    """Return a deterministic policy (S,) as probabilities (S, A).

    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    result = np.zeros((actions.shape[0], n_actions))
    policy: Matrix = result
    for s in range(actions.shape[0]):
        a: cython.Py_ssize_t = actions[s]
        if not 0 <= a < n_actions:
            raise ValueError(f"actions must lie in 0..{n_actions - 1}; got {a}")
        policy[s, a] = 1.0
    return result
