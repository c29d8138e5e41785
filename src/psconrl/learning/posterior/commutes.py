r"""Rewards on the way between two states, from which differences of the optimal bias are estimated.

A trip from s to s' begins with the first visit of s after s' and ends with the next visit of s'. With the optimal gain
g and bias h of rewards, the rewards R of a trip of optimal actions satisfy :math:`\sum (R - g) = h(s) - h(s')` in
expectation. So trips in both directions, with opposite signs, estimate the difference (Boone and Zhang 2024, after
Zhang and Ji 2019).
"""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import Kind, integer, need_that, read_fields, real, reals
from psconrl.kernels.agents.trips import follow

TABLES = ("rewards", "lengths", "trips", "began", "earned_before")  # (S, S) each


class Commutes:
    """Sums over the completed trips between every two states.

    >>> commutes = Commutes(2)
    >>> commutes.add(np.array([0, 0, 1, 0]), np.array([0, 1, 0, 1]), np.array([1.0, 0.5, 0.25, 1.0]))
    >>> commutes.trips.tolist(), commutes.rewards.tolist(), commutes.lengths.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.5], [0.25, 0.0]], [[0.0, 2.0], [1.0, 0.0]])
    """

    def __init__(self, n_states: int) -> None:
        self._tables: Floats = np.zeros((len(TABLES), n_states, n_states))  # as in the kernel
        self.rewards: Floats = self._tables[0]  # of completed trips from s to s'
        self.lengths: Floats = self._tables[1]  # rounds of these trips
        self.trips: Floats = self._tables[2]  # their number
        self.began: Floats = self._tables[3]  # the round in which the trip in progress began,
        self.earned_before: Floats = self._tables[4]  # and the sum of rewards before it
        self.last_visits: Floats = np.full(n_states, -1.0)  # -1 before the first
        self.rounds = 0
        self.earned = 0.0  # sum of all rewards
        self.awaited = -1  # the successor of the last round

    def add(self, states: Ints, successors: Ints, rewards: Floats) -> None:
        """Add rounds (n,) in their order. If the state was changed from outside, trips in progress do not count."""
        before = (self.rounds, self.earned, self.awaited)
        after = follow(states, successors, rewards, self._tables, self.last_visits, *before)
        self.rounds, self.earned, self.awaited = after

    def differences(self) -> Floats:
        """Return estimates (S, S) of h(s) - h(s'), with the mean reward as gain; 0 where there was no trip.

        >>> commutes = Commutes(2)
        >>> commutes.add(np.array([0, 0, 1, 0]), np.array([0, 1, 0, 1]), np.array([1.0, 0.5, 0.0, 0.5]))
        >>> commutes.differences().tolist()  # the mean reward is 0.5
        [[0.0, 0.5], [-0.5, 0.0]]
        """
        gain = self.earned / max(self.rounds, 1)
        surplus = self.rewards - gain * self.lengths
        return np.asarray((surplus - surplus.T) / np.maximum(self.both_ways(), 1.0))

    def both_ways(self) -> Floats:
        """Return the number of completed trips (S, S) between two states, in both directions."""
        return self.trips + self.trips.T

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        tables = {name: getattr(self, name) for name in TABLES}
        scalars = {"rounds": self.rounds, "earned": self.earned, "awaited": self.awaited}
        return tables | {"last_visits": self.last_visits} | scalars

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        n_states = self.last_visits.size
        rounds = read_fields(state, {"rounds": integer()})["rounds"]
        described: dict[str, Kind] = {name: reals((n_states, n_states)) for name in TABLES}
        described |= {name: reals((n_states, n_states), 0.0, rounds) for name in ("lengths", "trips", "began")}
        last_visits = {"last_visits": reals((n_states,), -1.0, max(rounds, 1) - 1.0)}
        saved = read_fields(state, described | last_visits | {"earned": real(), "awaited": integer(-1, n_states - 1)})
        need_that((saved["trips"] <= saved["lengths"]).all(), "trips must be at most lengths")
        for name in TABLES:
            getattr(self, name)[...] = saved[name]
        self.last_visits, self.rounds, self.earned = saved["last_visits"], rounds, saved["earned"]
        self.awaited = saved["awaited"]
