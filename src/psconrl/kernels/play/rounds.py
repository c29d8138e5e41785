r"""Agents that learn at every round: the interface of the play loop, recorders, and one round of Triple-QA.

Tables of Triple-QA have an entry for the objective first, then one for every constraint.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import ConstVector


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rate(tau: cython.double, chi: cython.double) -> cython.double:
    return (chi + 1.0) / (chi + tau)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bonus(tau: cython.double, kappa: cython.double, chi: cython.double, iota: cython.double) -> cython.double:
    return kappa * sqrt((chi + 1.0) * iota / (chi + tau))


def rate(tau: cython.double, chi: cython.double) -> float:
    r"""Return :math:`\alpha = (\chi + 1) / (\chi + \tau)`, at the :math:`\tau`-th visit in a frame."""
    return _rate(tau, chi)


def bonus(tau: cython.double, kappa: cython.double, chi: cython.double, iota: cython.double) -> float:
    r"""Return :math:`b = \kappa \sqrt{(\chi + 1)\, \iota / (\chi + \tau)}`."""
    return _bonus(tau, kappa, chi, iota)


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


@cython.cclass
class TripleQA(RoundLearner):
    """One round of Triple-QA, on arrays that belong to the agent.

    ``estimates`` Q and C, ``hats`` the least of them so far, (m+1, S, A); ``values`` (m+1, S) of the greedy action;
    ``visits`` (S, A) in this frame; ``totals`` (m,) of (1 - gamma) C-hat over the frame; ``queues`` (m,) Z; ``policy``
    (S, A), greedy; ``highest`` (m+1,) the cost that is a gain of 0, and ``units`` (m+1,) by how much a cost must be
    less for a gain of 1. Then the numbers of the paper; ``together``: True if hats follow only where the estimates of
    all gains fall.
    """

    def __init__(
        self, estimates, hats, values, visits, totals, queues, policy, highest, units, gamma, chi, iota, kappa, eta,
        together
    ) -> None:  # fmt: skip
        q, S, A = estimates.shape
        shapes = (hats.shape, values.shape, visits.shape, totals.shape, queues.shape, policy.shape)
        if shapes != ((q, S, A), (q, S), (S, A), (q - 1,), (q - 1,), (S, A)) or len(highest) != q or len(units) != q:
            raise ValueError("tables of different sizes")
        self.estimates, self.hats, self.values, self.visits = estimates, hats, values, visits
        self.totals, self.queues, self.policy, self.highest, self.units = totals, queues, policy, highest, units
        self.gamma, self.chi, self.iota, self.kappa, self.eta = gamma, chi, iota, kappa, eta
        self.together = together

    def fits(self, n_states, n_actions, n_costs):
        """Return whether the tables have an entry for every cost, state and action."""
        q, S, A = self.hats.shape[0], self.hats.shape[1], self.hats.shape[2]
        return n_costs == q and n_states <= S and n_actions <= A

    def learn_round(self, state, action, successor, costs):
        """Learn from one round, and choose the action of its state again."""
        i: cython.Py_ssize_t
        a: cython.Py_ssize_t
        n_tables: cython.Py_ssize_t = self.hats.shape[0]
        self.visits[state, action] += 1
        tau: cython.double = self.visits[state, action]
        alpha: cython.double = _rate(tau, self.chi)
        b: cython.double = _bonus(tau, self.kappa, self.chi, self.iota)
        fell: cython.bint = True
        for i in range(n_tables):
            gain: cython.double = (self.highest[i] - costs[i]) / self.units[i]
            target: cython.double = gain + self.gamma * self.values[i, successor] + b
            old: cython.double = self.estimates[i, state, action]
            new: cython.double = (1.0 - alpha) * old + alpha * target
            self.estimates[i, state, action] = new
            fell = fell and new <= self.hats[i, state, action]
        for i in range(n_tables):
            estimate: cython.double = self.estimates[i, state, action]
            if fell or (not self.together and estimate < self.hats[i, state, action]):
                self.hats[i, state, action] = estimate
            if i > 0:
                self.totals[i - 1] += (1.0 - self.gamma) * self.hats[i, state, action]
        best: cython.double = 0.0
        chosen: cython.Py_ssize_t = 0
        for a in range(self.hats.shape[2]):
            score: cython.double = self.hats[0, state, a]
            for i in range(1, n_tables):
                score += self.queues[i - 1] / self.eta * self.hats[i, state, a]
            if a == 0 or score > best:
                best, chosen = score, a
            self.policy[state, a] = 0.0
        self.policy[state, chosen] = 1.0
        for i in range(n_tables):
            self.values[i, state] = self.hats[i, state, chosen]
