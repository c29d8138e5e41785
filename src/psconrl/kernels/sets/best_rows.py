"""The best distributions in a box of models for an order of the states, kept from one order to the next.

They depend only on the first states of the order, in which they differ from the lower bounds. Between two steps of
value or policy iteration the order of these states hardly ever changes.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import row_times
from cython.cimports.psconrl.kernels._types import ConstMatrix
from cython.cimports.psconrl.kernels.sets.boxes import leave_over

_INFINITE = cython.declare(cython.double, float("inf"))


@cython.final
@cython.cclass
class BestRows:
    """A box (S*A, S), with the distribution of every pair that has the most mass on the first states of an order.

    ``rows`` (S*A, S): the distributions, see ``boxes.pour``. ``poured`` (S*A,): how many states of the order have
    decided each of them.
    """

    def __init__(self, low: ConstMatrix, high: ConstMatrix):
        pairs, S = low.shape[0], low.shape[1]
        if S == 0 or pairs == 0 or pairs % S or high.shape[0] != pairs or high.shape[1] != S:
            raise ValueError("bounds (S*A, S) are needed")
        self.low, self.high, self.S, self.A = low, high, S, pairs // S
        self.left = np.empty(pairs)
        leave_over(low, self.left)
        self.rows = np.array(low)
        self.poured, self.order = np.zeros(pairs, np.int64), np.arange(S)
        for pair in range(pairs):
            self._pour(pair, self.order)

    def _pour(self, pair, order):
        """Add the mass of a pair that is left over to its lower bounds."""
        left: cython.double = self.left[pair]
        k: cython.Py_ssize_t = 0
        while k < self.S and left > 0.0:
            at: cython.Py_ssize_t = order[k]
            room: cython.double = self.high[pair, at] - self.low[pair, at]
            if room > 0.0:
                step: cython.double = min(room, left)
                self.rows[pair, at] += step
                left -= step
            k += 1
        self.poured[pair] = k

    def follow(self, order):
        """Compute the distributions for another order."""
        same: cython.Py_ssize_t = 0
        while same < self.S and order[same] == self.order[same]:
            same += 1
        if same == self.S:
            return
        for pair in range(self.S * self.A):
            if self.poured[pair] > same:
                for k in range(self.poured[pair]):
                    self.rows[pair, self.order[k]] = self.low[pair, self.order[k]]
                self._pour(pair, order)
        for k in range(same, self.S):
            self.order[k] = order[k]

    def hope_for(self, state, x, cost):
        """Return the least cost (S*A,) plus mean of x (S,) in a state, and its action.

        The present order must be that of increasing x.
        """
        best: cython.double = _INFINITE
        action: cython.Py_ssize_t = 0
        for a in range(self.A):
            pair: cython.Py_ssize_t = state * self.A + a
            value: cython.double = row_times(self.rows, pair, x, self.S) + cost[pair]
            if value < best:
                best, action = value, a
        return best, action
