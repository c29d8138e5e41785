r"""The master problem in rational numbers: shares of policies, by the revised simplex method with Bland's rule.

.. math:: \min \sum_k w_k x_{k0} \quad\text{subject to}\quad \sum_k w_k x_{ki} - t u_i \le \tau_i,\quad
          \sum_k w_k = 1, \quad w, t \ge 0.

Phase one minimises the excess t over all thresholds, in units u. Phase two keeps it at zero.
"""

from fractions import Fraction
from typing import NamedTuple

from psconrl.planning.exact.rational_model import UNITY, ZERO

EXCESS = -1  # index of t; slack i has index -2 - i, policies count from 0


class RationalPoint(NamedTuple):
    """An optimal point of the master over the policies it has."""

    excess: Fraction  # t
    shares: dict[int, Fraction]  # of policies, if positive
    weights: list[Fraction]  # (m+1,) of the costs: (1, prices), or (0, prices) in phase one
    least: Fraction  # weighted average below which a policy improves the point


class RationalMaster:
    """Columns and the present basis; ``solve`` continues from where it stopped."""

    def __init__(self, thresholds: list[Fraction], units: list[Fraction], first: list[Fraction]) -> None:
        self.m = len(thresholds)
        self.right, self.units = [*thresholds, UNITY], units
        self.points = [first]
        slacks = [-2 - i for i in range(self.m)]
        over = [(first[i + 1] - thresholds[i]) / units[i] for i in range(self.m)]
        if over and max(over) > 0:
            slacks[over.index(max(over))] = EXCESS
        self.basis = [*slacks, 0]

    def add(self, averages: list[Fraction]) -> None:
        """Add a policy with averages (m+1,)."""
        self.points.append(averages)

    def solve(self) -> RationalPoint:
        """Return the best point over all policies: of least excess if that is positive, else of least cost."""
        while True:
            values = solve_small(self._matrix(), [self.right])[0]
            excess = values[self.basis.index(EXCESS)] if EXCESS in self.basis else ZERO
            if EXCESS in self.basis and excess == 0:
                self._drop_excess()
                continue
            prices = self._prices(excess > 0)
            entering = self._entering(prices, excess > 0)
            if entering is None:
                shares = {j: x for j, x in zip(self.basis, values, strict=True) if j >= 0 and x > 0}
                weights = [ZERO if excess > 0 else UNITY, *(-y for y in prices[:-1])]
                return RationalPoint(excess, shares, weights, prices[-1])
            direction = solve_small(self._matrix(), [self._column(entering)])[0]
            ratios = [(values[k] / d, self.basis[k], k) for k, d in enumerate(direction) if d > 0]
            self.basis[min(ratios)[2]] = entering

    def _drop_excess(self) -> None:
        """Replace an excess of zero in the basis by a slack that is zero too."""
        place = self.basis.index(EXCESS)
        for i in range(self.m):
            if -2 - i not in self.basis and solve_small(self._matrix(), [self._column(-2 - i)])[0][place] != 0:
                self.basis[place] = -2 - i
                return
        raise AssertionError("slacks span the excess")

    def _prices(self, phase_one: bool) -> list[Fraction]:
        transposed = [list(row) for row in zip(*self._matrix(), strict=True)]
        return solve_small(transposed, [[self._cost(j, phase_one) for j in self.basis]])[0]

    def _entering(self, prices: list[Fraction], phase_one: bool) -> int | None:
        slacks = range(-1 - self.m, EXCESS)
        for j in [*slacks, *range(len(self.points))]:
            column = self._column(j)
            if j not in self.basis and self._cost(j, phase_one) < sum(
                (y * x for y, x in zip(prices, column, strict=True)), ZERO
            ):
                return j
        return None

    def _cost(self, j: int, phase_one: bool) -> Fraction:
        if phase_one:
            return UNITY if j == EXCESS else ZERO
        return self.points[j][0] if j >= 0 else ZERO

    def _column(self, j: int) -> list[Fraction]:
        if j >= 0:
            return [*self.points[j][1:], UNITY]
        if j == EXCESS:
            return [*(-u for u in self.units), ZERO]
        return [UNITY if i == -2 - j else ZERO for i in range(self.m + 1)]

    def _matrix(self) -> list[list[Fraction]]:
        return [list(row) for row in zip(*(self._column(j) for j in self.basis), strict=True)]


def solve_small(A: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    """Solve a few equations for several right-hand sides, by Gauss-Jordan elimination."""
    n = len(A)
    M = [[*row, *(b[k] for b in right)] for k, row in enumerate(A)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if M[i][k])
        M[k], M[pivot] = M[pivot], M[k]
        M[k] = [x / M[k][k] for x in M[k]]
        for i in range(n):
            if i != k and M[i][k]:
                factor = M[i][k]
                M[i] = [x - factor * y if y else x for x, y in zip(M[i], M[k], strict=True)]
    return [[row[n + c] for row in M] for c in range(len(right))]
