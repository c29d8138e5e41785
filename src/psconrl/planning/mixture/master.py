r"""The master problem: the cheapest convex combination of known policies that meets the thresholds.

.. math:: \min_w \sum_j w_j a_j \quad\text{s.t.}\quad \sum_j w_j b_j \le \tau,\ \sum_j w_j = 1,\ w \ge 0

over the averages :math:`(a_j, b_j)` of the policies found so far. Its dual gives the weights of the next question
to the oracle. While no combination is feasible, the largest excess over the thresholds is minimised instead.
"""

from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.planning.mixture._simplex import simplex
from psconrl.planning.tolerances import NO_EXCESS


@dataclass(frozen=True, eq=False, slots=True)
class MasterPoint:
    """Where the master stands."""

    feasible: bool
    weights: Floats  # (m+1,), of sum one: the question for the oracle
    mix: dict[int, float]  # column -> weight, of sum one
    value: float  # weighted cost of the mix minus that of the thresholds: the gap's upper end


class LineMaster:
    """At most one constraint: the lower convex hull of points (b, a), cut at tau. No solver needed."""

    def __init__(self, thresholds: Floats) -> None:
        self._tau = float(thresholds[0]) if thresholds.size else np.inf
        self._m = thresholds.size
        self._points: list[tuple[float, float]] = []

    def add(self, costs: Floats) -> None:
        """A new column with averages (m+1,)."""
        self._points.append((float(costs[1]) if self._m else -np.inf, float(costs[0])))

    def relax(self) -> None:
        """Raise the threshold to the least that is reachable: the excess is a rounding error."""
        self._tau = min(self._points)[0]

    def solve(self) -> MasterPoint:
        """The edge of the hull above the threshold, or its lowest point if that is allowed."""
        tau = self._tau
        hull = _lower_hull(self._points)
        at = [self._points[j] for j in hull]
        if at[0][0] > tau:
            return MasterPoint(False, np.array([0.0, 1.0]), {hull[0]: 1.0}, at[0][0] - tau)
        k = max(k for k, (b, _) in enumerate(at) if b <= tau)
        if k + 1 == len(hull) or at[k + 1][1] >= at[k][1]:
            lowest = min(range(k + 1), key=lambda k: at[k][1])
            return MasterPoint(True, np.eye(1, self._m + 1)[0], {hull[lowest]: 1.0}, at[lowest][1])
        (b, a), (b_next, a_next) = at[k], at[k + 1]
        share = (tau - b) / (b_next - b)
        price = (a - a_next) / (b_next - b)
        mix = {hull[k]: 1.0 - share, hull[k + 1]: share} if share > 0.0 else {hull[k]: 1.0}
        weights = np.array([1.0, price]) / (1.0 + price)
        return MasterPoint(True, weights, mix, (a + share * (a_next - a)) / (1.0 + price))


def _lower_hull(points: list[tuple[float, float]]) -> list[int]:
    """Indices of the lower convex hull, from left to right (Andrew 1979)."""
    hull: list[int] = []
    for j in sorted(range(len(points)), key=points.__getitem__):
        x, y = points[j]
        if hull and points[hull[-1]][0] == x:
            continue
        while len(hull) > 1:
            (x0, y0), (x1, y1) = points[hull[-2]], points[hull[-1]]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append(j)
    return hull


class SimplexMaster:
    """Any number of constraints: the simplex method on m+1 rows, from the last basis as columns arrive.

    Columns 0 to m-1 are what is left of each limit, column m the excess over all of them, the only cost of phase one;
    then come the policies.
    """

    def __init__(self, thresholds: Floats) -> None:
        m = thresholds.size
        self._right = np.append(thresholds.astype(np.float64), 1.0)
        self._columns = np.zeros((64, m + 1))
        self._columns[:m, :m] = np.eye(m)
        self._columns[m, :m] = -1.0
        self._costs = np.zeros(64)
        self._n = m + 1
        self._excess = m
        self._basis: Ints | None = None
        self._feasible = False

    def add(self, costs: Floats) -> None:
        """A new column with averages (m+1,)."""
        if self._n == len(self._costs):
            self._columns = np.vstack([self._columns, np.zeros_like(self._columns)])
            self._costs = np.append(self._costs, np.zeros_like(self._costs))
        self._columns[self._n] = np.append(costs[1:], 1.0)
        self._costs[self._n] = costs[0]
        self._n += 1

    def relax(self) -> None:
        """Leave the excess of phase one where it is, a rounding error, and go on to phase two."""
        self._enter_phase_two(self._run()[2])

    def solve(self) -> MasterPoint:
        """Solve by the simplex method, from the last basis."""
        x, dual, value = self._run()
        if not self._feasible and value <= NO_EXCESS:
            self._enter_phase_two(0.0)
            x, dual, value = self._run()
        assert self._basis is not None
        first = self._excess + 1
        mix = {int(j) - first: float(w) for j, w in zip(self._basis, x, strict=True) if j >= first and w > 0.0}
        total = sum(mix.values())
        mix = {j: w / total for j, w in mix.items()}
        weights = np.append(1.0 if self._feasible else 0.0, np.maximum(-dual[:-1], 0.0))
        size = weights.sum()
        return MasterPoint(self._feasible, weights / size, mix, value / size)

    def _first_basis(self) -> Ints:
        """The first policy alone, with what it leaves of every limit, or with its largest excess."""
        m = self._excess
        basis = np.append(np.arange(m), m + 1)
        over = self._columns[m + 1, :m] - self._right[:m]
        if over.max() > 0.0:
            basis[over.argmax()] = m
        return basis

    def _enter_phase_two(self, excess: float) -> None:
        self._feasible = True
        self._right[:-1] += excess
        assert self._basis is not None
        # At a level of zero the column of the excess may still be basic: any other with an entry there takes its place.
        at = np.flatnonzero(self._basis == self._excess)
        if at.size:
            rows = np.linalg.solve(self._columns[self._basis].T, self._columns[: self._n].T)[at[0]]
            rows[self._basis] = 0.0
            self._basis[at[0]] = int(np.abs(rows).argmax())

    def _run(self) -> tuple[Floats, Floats, float]:
        if self._basis is None:
            self._basis = self._first_basis()
        n, m = self._n, self._excess
        costs = self._costs[:n] if self._feasible else np.eye(1, n, m)[0]
        allowed = np.ones(n, dtype=bool)
        allowed[m] = not self._feasible
        try:
            ended, x, dual = simplex(self._columns[:n], costs, self._right, self._basis, allowed)
        except np.linalg.LinAlgError:
            ended = False
        if not ended:
            raise SolverError("rounding spoiled the master problem")
        return x, dual, float(x @ costs[self._basis])


def master_for(thresholds: Floats) -> LineMaster | SimplexMaster:
    """The simplest master for this number of constraints."""
    return LineMaster(thresholds) if thresholds.size <= 1 else SimplexMaster(thresholds)
