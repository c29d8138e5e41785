r"""One round of Triple-QA, inside the play loop.

Tables have an entry for the objective first, then one for every constraint.
"""

import cython
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels.play.rounds import RoundLearner


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
