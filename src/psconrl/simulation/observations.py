"""Statistics of play: counts of transitions, and their costs.

Costs are kept by outcome (s, a, s'), as means and sums of squared deviations (Welford 1962), so that a cost that is a
function of the outcome has a deviation of exactly 0.
"""

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints

FIRST_ROOM = 64  # initial capacity for outcomes; doubled when full


class Observations:
    """Table of the outcomes met, in order of first appearance, for states and actions numbered from 0 on.

    >>> seen = Observations(n_states=2, n_actions=2, n_costs=1)
    >>> for cost in (3.0, 5.0):
    ...     seen.note(state=0, action=1, next_state=1, costs=np.array([cost]))
    >>> seen.pairs.tolist(), seen.successors.tolist(), seen.times.tolist()
    ([1], [1], [2])
    >>> seen.means.tolist(), seen.deviations.tolist(), seen.visits[0].tolist()
    ([[4.0]], [[2.0]], [0, 2])
    """

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.visits: Ints = np.zeros((n_states, n_actions), dtype=np.int64)
        self.allowed: Bools = np.ones((n_states, n_actions), dtype=bool)  # as reported by the environment so far
        self._places: dict[int, int] = {}
        self._where: Ints = np.empty((FIRST_ROOM, 2), dtype=np.int64)
        self._times: Ints = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._costs: Floats = np.zeros((FIRST_ROOM, 2, n_costs))

    def note(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Add one round."""
        pair = state * self.n_actions + action
        place = self._places.setdefault(pair * self.n_states + next_state, len(self._places))
        if place == len(self._times):
            self._where, self._times, self._costs = (
                np.concatenate([part, np.zeros_like(part)]) for part in (self._where, self._times, self._costs)
            )
        self._where[place] = pair, next_state
        self.visits[state, action] += 1
        self._times[place] += 1
        mean, deviation = self._costs[place]
        before = costs - mean
        mean += before / self._times[place]
        deviation += before * (costs - mean)

    @property
    def pairs(self) -> Ints:
        """Pair ``s * A + a`` of every outcome, (n,)."""
        return np.asarray(self._where[: len(self._places), 0])

    @property
    def successors(self) -> Ints:
        """Next state of every outcome, (n,)."""
        return np.asarray(self._where[: len(self._places), 1])

    @property
    def times(self) -> Ints:
        """Count of every outcome, (n,)."""
        return np.asarray(self._times[: len(self._places)])

    @property
    def means(self) -> Floats:
        """Mean of every cost, the objective first, (n, m+1)."""
        return np.asarray(self._costs[: len(self._places), 0])

    @property
    def deviations(self) -> Floats:
        """Sum of squared deviations of every cost from its mean, (n, m+1)."""
        return np.asarray(self._costs[: len(self._places), 1])
