"""Trips between states: the rewards and rounds from the first visit of a state after another to the next of that one.

The tables (5, S, S), from a state to another, are the rewards of completed trips, their lengths in rounds and their
number, the round in which the trip in progress began, and the sum of rewards before it. ``last_visits`` (S,) has the
rounds of the last visits, -1 before the first.
"""

import cython
from cython.cimports.psconrl.kernels._types import ConstInts, ConstVector, Tables, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _arrive(
    state: cython.Py_ssize_t, now: cython.double, earned: cython.double, tables: Tables, last_visits: ConstVector
) -> cython.void:
    """End the trips to a state from all states visited since, and begin those back."""
    since: cython.double = last_visits[state]
    for other in range(last_visits.shape[0]):
        visited: cython.bint = last_visits[other] > since
        if visited:
            tables[0, other, state] += earned - tables[4, other, state]
            tables[1, other, state] += now - tables[3, other, state]
            tables[2, other, state] += 1.0
        if visited or since < 0.0:
            tables[3, state, other] = now
            tables[4, state, other] = earned


def follow(
    states: ConstInts,
    successors: ConstInts,
    rewards: ConstVector,
    tables: Tables,
    last_visits: Vector,
    rounds: cython.Py_ssize_t,
    earned: cython.double,
    awaited: cython.Py_ssize_t,
):
    """Add rounds (n,) in their order to the sums over completed trips; return the new rounds, earned and awaited.

    ``rounds``: the number of rounds before. ``earned``: the sum of their rewards. ``awaited``: their last successor; if
    the state was changed from outside, trips in progress do not count.
    """
    n, S = states.shape[0], last_visits.shape[0]
    if successors.shape[0] != n or rewards.shape[0] != n:
        raise ValueError("a successor and a reward of every round are needed")
    if tables.shape[0] != 5 or tables.shape[1] != S or tables.shape[2] != S:
        raise ValueError("five tables of all pairs of states are needed")
    check_numbers(states, S, "there is no such state")
    with cython.nogil:
        for i in range(n):
            state: cython.Py_ssize_t = states[i]
            if state != awaited:
                for other in range(S):
                    last_visits[other] = -1.0
            if last_visits[state] < 0.0 or last_visits[state] < rounds - 1:  # a stay ends and begins no trip
                _arrive(state, rounds, earned, tables, last_visits)
            last_visits[state] = rounds
            rounds += 1
            earned += rewards[i]
            awaited = successors[i]
    return rounds, earned, awaited
