r"""The master problem: the cheapest convex combination of known policies that meets the thresholds.

.. math:: \min_w \sum_j w_j a_j \quad\text{s.t.}\quad \sum_j w_j b_j \le \tau,\ \sum_j w_j = 1,\ w \ge 0

over the averages :math:`(a_j, b_j)` of the policies found so far. Its dual gives the weights of the next query to the
oracle. While no combination is feasible, the largest excess over the thresholds is minimised instead.
"""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels.search.master import Tableau

_FIRST_CAPACITY = 64  # initial columns of a tableau, which grows


@dataclass(frozen=True, eq=False, slots=True)
class MasterPoint:
    """Solution of the master problem."""

    feasible: bool
    weights: Floats  # (m+1,), of sum one: the query for the oracle
    mix: dict[int, float]  # column -> weight, of sum one
    value: float  # weighted cost of the mix minus that of the thresholds: the upper end of the gap


class LineMaster:
    """Master for at most one constraint: the lower convex hull of points (b, a), cut at tau, without a solver."""

    def __init__(self, thresholds: Floats) -> None:
        self._tau = float(thresholds[0]) if thresholds.size else np.inf
        self._m = thresholds.size
        self._points: list[tuple[float, float]] = []

    def add(self, costs: Floats) -> None:
        """Add a column with averages (m+1,)."""
        self._points.append((float(costs[1]) if self._m else -np.inf, float(costs[0])))

    def relax(self) -> None:
        """Raise the threshold to the least average found, since the excess is a rounding error."""
        self._tau = min(self._points)[0]

    def solve(self) -> MasterPoint:
        """Return the point of the hull at the threshold, or its lowest point if that is feasible."""
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
    """Return the indices of the lower convex hull, from left to right (Andrew 1979)."""
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
    """Master for any number of constraints: the simplex method on m+1 rows, warm-started from the last basis."""

    def __init__(self, thresholds: Floats) -> None:
        self._table = Tableau(thresholds.astype(np.float64), _FIRST_CAPACITY)

    def add(self, costs: Floats) -> None:
        """Add a column with averages (m+1,)."""
        self._table.add(np.ascontiguousarray(costs, dtype=np.float64))

    def relax(self) -> None:
        """Accept the excess of phase one, a rounding error, and go on to phase two."""
        self._table.relax(self.solve().value)

    def solve(self) -> MasterPoint:
        """Solve by the simplex method, from the last basis."""
        found = self._table.solve()
        if found is None:
            raise SolverError("rounding spoiled the master problem")
        feasible, value, weights, columns, shares = found
        mix = {int(j): float(w) for j, w in zip(columns, shares, strict=True) if w > 0.0}
        return MasterPoint(bool(feasible), weights, mix, value)


def master_for(thresholds: Floats) -> LineMaster | SimplexMaster:
    """Return the simplest master for this number of constraints."""
    return LineMaster(thresholds) if thresholds.size <= 1 else SimplexMaster(thresholds)
