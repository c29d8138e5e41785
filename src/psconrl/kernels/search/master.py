r"""Master problems: the cheapest feasible mixture of known policies, and the prices for the next pricing step.

With at most one constraint it is the edge of a convex hull. With several it is the simplex method on a handful of rows,

.. math:: \min_x c \cdot x \quad\text{s.t.}\quad \sum_j x_j A_j = b,\ x \ge 0

from the last basis as columns arrive (Dantzig 1963). Every step factorises the basis again, so that no errors build up;
while steps have length zero, Bland's rule (1977) prevents cycling. Phase one mixes the columns for the least excess
:math:`\varepsilon` over all thresholds,

.. math:: \sum_j w_j b_j + s - \varepsilon = \tau, \quad \sum_j w_j = 1, \qquad w, s, \varepsilon \ge 0,

phase two for the least cost with no excess. The dual prices of either are the weights of the next pricing step.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstMatrix, ConstVector, Ints, Vector
from cython.cimports.psconrl.kernels.linear.lu import factorise, solve, solve_transposed

_INFINITE = cython.declare(cython.double, float("inf"))
_PIVOT_TOL = cython.declare(cython.double, 1e-11)
_PRICE_TOL = cython.declare(cython.double, 1e-13)
_MAX_STEPS = cython.declare(cython.Py_ssize_t, 10_000)
_NO_EXCESS = cython.declare(cython.double, 1e-15)  # an excess up to this size is rounding


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _edge(
    gains: ConstMatrix, n: cython.Py_ssize_t, tau: cython.double
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, cython.double, cython.double]:
    """Return where the lower hull of n points (cost, constrained cost) crosses the threshold.

    Returns the column at or below it, -1 if there is none; the one above, -1 if one suffices; the share of the latter;
    and the price of the constraint: minus the slope.
    """
    safe: cython.Py_ssize_t = -1
    for i in range(n):
        if gains[i, 1] <= tau and (safe < 0 or gains[i, 0] < gains[safe, 0]):
            safe = i
    if safe < 0:
        return -1, -1, 0.0, 0.0
    below: cython.Py_ssize_t = safe
    above: cython.Py_ssize_t = -1
    best: cython.double = gains[safe, 0]
    price: cython.double = 0.0
    share: cython.double = 0.0
    for i in range(n):
        if gains[i, 1] > tau:
            continue
        for j in range(n):
            if gains[j, 1] <= tau or gains[j, 0] >= gains[safe, 0]:
                continue
            width: cython.double = gains[j, 1] - gains[i, 1]
            theta: cython.double = (tau - gains[i, 1]) / width
            value: cython.double = gains[i, 0] + theta * (gains[j, 0] - gains[i, 0])
            slope: cython.double = (gains[i, 0] - gains[j, 0]) / width
            if value < best or (value == best and slope > price):
                below, above, best, price, share = i, j, value, slope, theta
    return below, above, share, price


def mix_on_line(gains, n, tau, limit, weights, columns, shares):
    """Mix the first n points (cost, constrained cost) at the threshold; return feasibility and the weighted cost.

    If infeasible, uses the column of least excess over tau, and returns the excess. ``limit`` is tau, or its relaxed
    value. Weights (q,), columns (2,) and shares (2,) are written in place.
    """
    below, above, share, price = _edge(gains, n, limit)
    feasible: cython.bint = below >= 0
    value: cython.double
    if feasible:
        weights[0] = 1.0 / (1.0 + price)
        if weights.shape[0] > 1:
            weights[1] = price / (1.0 + price)
        value = gains[below, 0] * weights[0]
        if above >= 0:
            value += share * (gains[above, 0] - gains[below, 0]) * weights[0]
    else:
        below = 0
        for i in range(1, n):
            if gains[i, 1] < gains[below, 1]:
                below = i
        weights[0], weights[1] = 0.0, 1.0
        value = gains[below, 1] - tau
    columns[0], shares[0] = below, 1.0 - share
    columns[1], shares[1] = max(above, 0), share
    return feasible, value


@cython.cclass
class Tableau:
    """The master problem of several constraints. Column 0 is the excess, then the slacks, then the policies.

    ``columns`` is (m + 1 + capacity, m + 1), ``costs`` and ``excess``, those of phase one, (m + 1 + capacity,),
    ``right`` (m + 1,) and ``basis`` (m + 1,), of -1 before the first solve; n is the number of policies. ``feasible``:
    True once phase two has begun. The simplex method leaves the weights of the basic columns in x (m + 1,), and the
    dual prices of the rows in y (m + 1,). All else is overwritten by every step.
    """

    def __init__(self, thresholds: ConstVector, capacity: cython.Py_ssize_t):
        k = thresholds.shape[0] + 1
        self.columns = np.zeros((k + capacity, k))
        self.costs, self.excess = np.zeros(k + capacity), np.zeros(k + capacity)
        self.right, self.x, self.y, self.d, self.room = (np.empty(k) for _ in range(5))
        self.B = np.empty((k, k))
        self.basis, self.order = np.empty(k, np.int64), np.empty(k, np.int64)
        self.begin(thresholds)

    def begin(self, thresholds):
        """Discard all policies; the number of constraints stays the same."""
        m = thresholds.shape[0]
        self.n, self.feasible = 0, False
        self.excess[0] = 1.0
        for i in range(m):
            self.columns[0, i] = -1.0
            self.columns[i + 1, i] = 1.0
            self.right[i] = thresholds[i]
        self.right[m] = 1.0
        for i in range(m + 1):
            self.basis[i] = -1

    def put(self, averages):
        """Append a policy of averages (m + 1,); there must be room for it."""
        m = self.right.shape[0] - 1
        at = m + 1 + self.n
        for i in range(m):
            self.columns[at, i] = averages[i + 1]
        self.columns[at, m] = 1.0
        self.costs[at] = averages[0]
        self.n += 1

    def allow(self, excess):
        """Raise the thresholds by an excess that is rounding; phase two follows."""
        for i in range(self.right.shape[0] - 1):
            self.right[i] += excess
        self.feasible = True

    def _place(self, j):
        """Return the position of a column in the basis; -1 if it is not basic."""
        for i in range(self.basis.shape[0]):
            if self.basis[i] == j:
                return i
        return -1

    def _first_basis(self):
        """Start with the first policy alone, with its slacks, or with its largest excess."""
        m = self.right.shape[0] - 1
        largest: cython.double = 0.0
        over: cython.Py_ssize_t = -1
        for i in range(m):
            self.basis[i] = i + 1
            excess: cython.double = self.columns[m + 1, i] - self.right[i]
            if excess > largest:
                largest, over = excess, i
        self.basis[m] = m + 1
        if over >= 0:
            self.basis[over] = 0

    def _factorise(self):
        """Factorise the basis, one column of the program per row; return False if it is singular."""
        k = self.basis.shape[0]
        for i in range(k):
            for j in range(k):
                self.B[i, j] = self.columns[self.basis[i], j]
        return factorise(self.B, self.order)

    def _without_excess(self, at):
        """Replace the excess, which is zero, in the basis by the column with the largest entry there.

        Returns False if the basis is singular.
        """
        k = self.basis.shape[0]
        if not self._factorise():
            return False
        for i in range(k):
            self.room[i] = 0.0
        self.room[at] = 1.0
        solve(self.B, self.order, self.room, self.d)
        largest: cython.double = 0.0
        for j in range(1, k + self.n):  # basic columns have only rounding residue there
            entry: cython.double = 0.0
            for i in range(k):
                entry += self.d[i] * self.columns[j, i]
            if abs(entry) > largest:
                largest = abs(entry)
                self.basis[at] = j
        return True

    def _entering(self, costs, first, bland):
        """Return the column of lowest reduced cost from ``first`` on, or by Bland's rule; -1 if there is none."""
        k = self.basis.shape[0]
        entering: cython.Py_ssize_t = -1
        lowest: cython.double = 0.0
        for j in range(first, k + self.n):
            reduced: cython.double = costs[j]
            size: cython.double = 1.0 + abs(costs[j])
            for i in range(k):
                term: cython.double = self.columns[j, i] * self.y[i]
                reduced -= term
                size += abs(term)
            if reduced < -_PRICE_TOL * size and (reduced < lowest or entering < 0) and self._place(j) < 0:
                entering, lowest = j, reduced
                if bland:
                    break
        return entering

    def _leaving(self, bland):
        """Return the position in the basis that a column with entries d takes, or -1, and the length of the step."""
        leaving: cython.Py_ssize_t = -1
        step: cython.double = _INFINITE
        for i in range(self.basis.shape[0]):
            if self.d[i] > _PIVOT_TOL:
                ratio: cython.double = self.x[i] / self.d[i]
                nearer: cython.bint = ratio < step
                if ratio == step and leaving >= 0:
                    nearer = self.basis[i] < self.basis[leaving] if bland else self.d[i] > self.d[leaving]
                if nearer:
                    leaving, step = i, ratio
        return leaving, step

    def _simplex(self, costs, first):
        """Improve a feasible basis to an optimal one over the columns from ``first`` on; return if it converged."""
        k = self.basis.shape[0]
        idle: cython.Py_ssize_t = 0
        for _ in range(_MAX_STEPS):
            if not self._factorise():
                return False
            for i in range(k):
                self.room[i] = costs[self.basis[i]]
            solve(self.B, self.order, self.room, self.y)
            solve_transposed(self.B, self.order, self.right, self.x, self.room)
            for i in range(k):
                self.x[i] = max(self.x[i], 0.0)
            bland: cython.bint = idle > 2 * k
            entering = self._entering(costs, first, bland)
            if entering < 0:
                return True
            solve_transposed(self.B, self.order, self.columns[entering], self.d, self.room)
            leaving, step = self._leaving(bland)
            if leaving < 0:
                return False  # unbounded: not a master problem
            idle = idle + 1 if step == 0.0 else 0
            self.basis[leaving] = entering
        return False

    def mix(self, weights, mixed, shares):
        """Mix all policies, from the last basis; return convergence, and the weighted cost minus the thresholds'.

        If it did not converge, rounding has spoiled the basis. Weights, the mixed policies and their shares, all (m +
        1,), are written in place.
        """
        k = self.basis.shape[0]
        if self.basis[0] < 0:
            self._first_basis()
        ended: cython.bint = False
        while True:  # once, and again if phase two begins here
            at = self._place(0)
            if self.feasible and at >= 0 and not self._without_excess(at):
                return False, 0.0
            ended = self._simplex(self.costs, 1) if self.feasible else self._simplex(self.excess, 0)
            at = self._place(0)
            if not ended or self.feasible or (at >= 0 and self.x[at] > _NO_EXCESS):
                break
            self.feasible = True
        value: cython.double = 0.0
        total: cython.double = 0.0
        size: cython.double = 1.0 if self.feasible else 0.0
        weights[0] = size
        for i in range(k):
            j = self.basis[i]
            value += self.x[i] * (self.costs[j] if self.feasible else self.excess[j])
            mixed[i] = max(j - k, 0)
            shares[i] = self.x[i] if j >= k else 0.0
            total += shares[i]
            if i < k - 1:
                weights[i + 1] = max(-self.y[i], 0.0) + 0.0  # avoids -0.0
                size += weights[i + 1]
        if not (ended and total > 0.0 and 0.0 < size < _INFINITE):
            return False, 0.0
        for i in range(k):
            shares[i] /= total
            weights[i] /= size
        return True, value / size

    def add(self, averages: ConstVector):
        """Append a policy of averages (m + 1,); the tableau grows if it is full."""
        k = self.right.shape[0]
        if averages.shape[0] != k:
            raise ValueError("an average of the objective and of every limited cost is needed")
        if k + self.n == self.costs.shape[0]:
            self.columns = np.vstack([self.columns, np.zeros_like(self.columns)])
            self.costs = np.append(self.costs, np.zeros_like(self.costs))
            self.excess = np.append(self.excess, np.zeros_like(self.excess))
        self.put(averages)

    def relax(self, excess: cython.double):
        """Raise the thresholds by an excess that is rounding; phase two follows."""
        self.allow(excess)

    def solve(self):
        """Return feasibility, the value as in ``mix``, weights, policies and shares; None if it did not converge."""
        k = self.right.shape[0]
        if self.n == 0:
            raise ValueError("there is nothing to mix")
        weights, mixed, shares = np.empty(k), np.empty(k, np.int64), np.empty(k)
        w: Vector = weights
        columns: Ints = mixed
        parts: Vector = shares
        ended, value = self.mix(w, columns, parts)
        return (self.feasible, value, weights, mixed, shares) if ended else None
