"""Columns of the compiled search (``search``): policies with their evaluations, and the best bound that they prove."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import Matrix
from cython.cimports.psconrl.kernels.search.master import Tableau
from cython.cimports.psconrl.kernels.search.transitions import Transitions

_INFINITE = cython.declare(cython.double, float("inf"))
# Number of successive improvements that may leave the costs unchanged.
_PATIENCE = cython.declare(cython.Py_ssize_t, 16)
# Factor between the prices of successive guesses.
_FACTOR = cython.declare(cython.double, 1.2)


@cython.cclass
class Columns:
    """The n columns of a search, of at most ``rows``.

    Gains (rows, q), and one more if there is only one; policies and stationary distributions (rows, S); biases (rows *
    q, S), q rows for each. ``base`` is the one that was improved last.
    """

    def __init__(self, transitions: Transitions, rows: cython.Py_ssize_t):
        S, q = transitions.S, transitions.q
        self.transitions = transitions
        self.policies = np.empty((rows, S), np.int64)
        large: Matrix = np.empty((rows * (q + 1), S))
        self.stationary, self.biases = large[:rows], large[rows:]
        small: Matrix = np.empty((rows + 3, max(q, 2)))
        self.gains = small[:rows]
        self.weights, self.best_weights, self.prices = small[rows, :q], small[rows + 1, :q], small[rows + 2, :q]
        if q > 2:
            self.table = Tableau(np.zeros(q - 1), rows)

    def empty(self):
        """Drop the columns of the last search; the first one is a guess of zeros."""
        q = self.transitions.q
        self.n = self.base = self.idle = self.proof = 0
        self.caution, self.lowest, self.best_bound = 1.0, _INFINITE, -_INFINITE
        self.transitions.off = 0.0
        for i in range(q):
            self.weights[i] = 1.0 / cython.cast(cython.double, q)
            self.best_weights[i] = self.prices[i] = 0.0
            for s in range(self.transitions.S):
                self.biases[i, s] = 0.0
        for i in range(self.gains.shape[1]):
            self.gains[0, i] = 0.0
        for s in range(self.transitions.S):
            self.policies[0, s] = 0
            self.stationary[0, s] = 0.0
        if q > 2:
            self.table.begin(self.thresholds)

    def biases_of(self, j):
        """Return the biases (q, S) of a column."""
        q = self.transitions.q
        return self.biases[j * q : (j + 1) * q]

    def keep(self, found, searching):
        """Keep the evaluated policy as a column, or in place of the base if that has the same averages.

        ``searching``: it is not one of the first policies.
        """
        q, at = found.q, self.n
        for i in range(1, q):
            self.prices[i] *= _FACTOR if found.gains[i] > self.thresholds[i - 1] else 1.0 / _FACTOR
        if searching:
            # A switch that makes things worse was due to rounding: require larger gains next time.
            cost: cython.double = self.weights[0] * found.gains[0]
            for i in range(1, q):
                cost += self.weights[i] * found.gains[i]
            if cost > self.lowest + 10.0 * self.same:
                self.caution *= 100.0
            elif cost < self.lowest - self.same:
                self.caution = 1.0
        # Only rarely visited states have changed, or nothing. If that continues, it is due to rounding.
        apart: cython.double = 0.0
        for i in range(q):
            apart = max(apart, abs(found.gains[i] - self.gains[self.base, i]))
        self.idle = self.idle + 1 if searching and apart <= self.same else 0
        if self.idle:
            at = self.base  # the better policy replaces it
            changed: cython.Py_ssize_t = 0
            for s in range(found.S):
                changed += found.policy[s] != self.policies[at, s]
            if self.idle > _PATIENCE or changed == 0:
                self.caution *= 100.0
            if self.proof == at:
                self.best_bound = -_INFINITE
        elif q > 2:
            self.table.put(found.gains)
        self.gains[at, 1] = -_INFINITE  # if there is no constraint
        for i in range(q):
            self.gains[at, i] = found.gains[i]
            for s in range(found.S):
                self.biases[at * q + i, s] = found.biases[i, s]
        for s in range(found.S):
            self.policies[at, s] = found.policy[s]
            self.stationary[at, s] = found.stationary[s]
        self.n = max(self.n, at + 1)

    def bounded(self, bound):
        """Keep the weights and the base if they bound the objective better than all before."""
        if bound > self.best_bound:
            self.best_bound, self.proof = bound, self.base
            self.best_weights[:] = self.weights

    def choose_base(self):
        """Choose the newest of the cheapest columns, up to rounding."""
        self.base, self.lowest = 0, _INFINITE
        for j in range(self.n):
            cost: cython.double = self.weights[0] * self.gains[j, 0]
            for i in range(1, self.weights.shape[0]):
                cost += self.weights[i] * self.gains[j, i]
            if cost <= self.lowest + self.same:
                self.base, self.lowest = j, min(cost, self.lowest)
