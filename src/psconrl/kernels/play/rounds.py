"""Learning at every round: the interface that the play loop calls, and recorders of rounds."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstVector


@cython.cclass
class RoundLearner:
    """Learns from every round, inside the play loop; this base class learns nothing."""

    def learn_round(self, state, action, successor, costs):
        """Learn from one round."""

    def fits(self, n_states, n_actions, n_costs):
        """Return whether it can learn from rounds of a model of this size."""
        return True

    def learn(
        self, state: cython.Py_ssize_t, action: cython.Py_ssize_t, successor: cython.Py_ssize_t, costs: ConstVector
    ):
        """Learn from one round, outside of the play loop."""
        if min(state, action, successor) < 0 or not self.fits(max(state, successor) + 1, action + 1, costs.shape[0]):
            raise ValueError("a round of another model")
        self.learn_round(state, action, successor, costs)


@cython.cclass
class LastRound(RoundLearner):
    """Remembers the last round, for an agent that learns from it in Python."""

    def __init__(self, n_costs: cython.Py_ssize_t) -> None:
        self.state = self.action = self.successor = -1
        self.costs = np.zeros(n_costs)

    def learn_round(self, state, action, successor, costs):
        """Remember one round."""
        i: cython.Py_ssize_t
        self.state, self.action, self.successor = state, action, successor
        for i in range(self.costs.shape[0]):
            self.costs[i] = costs[i]

    def fits(self, n_states, n_actions, n_costs):
        """Return whether there are as many costs as places for them."""
        return n_costs == self.costs.shape[0]

    def last(self):
        """Return state, action, successor and costs."""
        return self.state, self.action, self.successor, np.array(self.costs)


@cython.cclass
class Recorder(RoundLearner):
    """Records rounds in their order, on arrays that belong to the agent; rounds beyond their length are not recorded.

    ``pairs``, ``successors`` (n,) and ``costs`` (n, m+1): the rounds. ``length`` (1,): how many are recorded.
    ``n_states``, ``n_actions``: sizes of the model.
    """

    def __init__(self, pairs, successors, costs, length, n_states, n_actions) -> None:
        if len(pairs) != len(successors) or len(pairs) != len(costs) or len(length) != 1 or length[0] < 0:
            raise ValueError("records of different sizes")
        self.pairs, self.successors, self.costs, self.length = pairs, successors, costs, length
        self.n_states, self.n_actions = n_states, n_actions

    def fits(self, n_states, n_actions, n_costs):
        """Return whether the rounds are those of the model."""
        return n_costs == self.costs.shape[1] and n_states <= self.n_states and n_actions <= self.n_actions

    def learn_round(self, state, action, successor, costs):
        """Record one round."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.length[0]
        if n >= self.pairs.shape[0]:
            return
        self.pairs[n] = state * self.n_actions + action
        self.successors[n] = successor
        for i in range(self.costs.shape[1]):
            self.costs[n, i] = costs[i]
        self.length[0] = n + 1
