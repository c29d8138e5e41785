"""Choice of weights for the oracle when the master's weights would be extreme or converge slowly.

Both classes return None if the master's weights are as good. Prices are weights of constraints divided by the weight of
the objective.
"""

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.linear import lu
from psconrl.model.matrix_product import product
from psconrl.planning.tolerances import LEAST_GUESS, SAME_VERTEX


class NearGuess:
    """Weights near a guess while the master has few columns: its weights are extreme until it has both sides.

    The first query is at the guess. Later ones move towards the master's weights, by a larger factor each time.
    """

    FACTOR = 1.5  # by which prices may first differ from the last ones; the next time by its square
    MOST = 5  # queries away from the master's weights

    def __init__(self, near: Floats | None) -> None:
        self._prices: Floats | None = None
        if near is not None and near.size > 1 and near.min() >= 0.0 and near[0] > LEAST_GUESS * near.sum():
            self._prices = near[1:] / near[0] if near[1:].any() else None
        self._left, self._reach = self.MOST, 1.0

    def weights(self, master: Floats) -> Floats | None:
        """Return weights to use in place of the master's (m+1,), or None."""
        if self._prices is None:
            return None
        with np.errstate(divide="ignore"):  # if the master has found nothing feasible
            wanted = np.divide(master[1:], master[0], out=np.zeros_like(self._prices), where=master[1:] > 0.0)
        prices = np.clip(wanted, self._prices / self._reach, self._prices * self._reach)
        self._reach = max(self.FACTOR, self._reach**2)
        self._left -= 1
        self._prices = prices if self._left >= 0 and not np.array_equal(prices, wanted) else None
        return None if self._prices is None else _weights_of(self._prices)


class Secant:
    """Secant weights at which thresholds should be just met, if averages vary smoothly with prices (large models).

    The master's weights lie where tangents of the dual meet. For a smooth dual that is half way between the points of
    tangency, so each query halves the remaining interval. Interpolating the averages seen so far linearly in the prices
    gives a better estimate. It needs m + 1 of them for m priced constraints.
    """

    PAYS = 0.4  # largest share of the gap that a query may leave; otherwise the master's weights are next
    REPEATED = (
        1e-3  # prices that differ by less, relative to the largest, from those that left more are not tried again
    )
    FAR = 2.0  # largest step from the nearest average seen, in units of its distances from the others: beyond is noise
    REACH = 2.0  # largest factor between the new prices and those of the nearest average

    def __init__(self, thresholds: Floats) -> None:
        self._thresholds = thresholds
        self._reported: list[tuple[Floats, Floats]] = []  # weights and averages, (m+1,) each, since the last query
        self._seen: list[tuple[Floats, Floats]] = []  # prices and the excess of the best policy for them, (m,) each
        self._asked_at = np.inf  # gap before the last query, if it came from here,
        self._asked = np.empty(0)  # and the prices of that query
        self._in_vain: list[Floats] = []  # prices of queries that left too large a gap
        self._stale = 0  # number of latest answers that were not new
        self._failed = 0  # number of latest queries that left too large a gap

    def saw(self, weights: Floats, costs: Floats) -> None:
        """Record averages (m+1,) that are optimal, or nearly so, for these weights."""
        self._reported.append((weights, costs))

    def _read(self) -> None:
        """Compare what was recorded since the last query with what was seen before it."""
        for weights, costs in self._reported:
            if weights[0] > 0.0:
                excess = costs[1:] - self._thresholds
                new = all(np.abs(excess - other).max(initial=0.0) > SAME_VERTEX for _, other in self._seen)
                self._stale = 0 if new else self._stale + 1
                self._seen.append((weights[1:] / weights[0], excess))
        self._reported.clear()

    def weights(self, master: Floats, gap: float) -> Floats | None:
        """Return weights to use in place of the master's (m+1,) of a feasible mixture with this gap, or None."""
        self._read()
        if gap <= self.PAYS * self._asked_at:
            self._failed = 0
        else:
            self._failed += 1
            self._in_vain.append(self._asked)
        self._asked_at = np.inf
        if self._stale > 1 or self._failed > 1 or not self._seen:
            return None
        prices = master[1:] / master[0]
        if not prices.any():  # everything was feasible so far
            prices = self._seen[-1][0].copy()
        priced = prices > 0.0
        if not priced.any():
            return None
        newest_first = self._seen[::-1]
        seen = sorted(newest_first, key=lambda pair: float(np.abs(prices * pair[1]).max()))
        # A single threshold nearly met from one side needs a point close on the other side: overshoot by the same step.
        met = self._met(
            [(at[priced], excess[priced]) for at, excess in seen], beyond=self._failed if priced.sum() == 1 else 0
        )
        if met is None:
            return None
        prices[priced] = met
        if any(np.abs(prices - old).max() <= self.REPEATED * prices.max() for old in self._in_vain):
            return None
        self._asked_at, self._asked = gap, prices
        return _weights_of(prices)

    def _met(self, seen: list[tuple[Floats, Floats]], beyond: int) -> Floats | None:
        """Return the secant estimate of prices without excess, overshot by ``beyond`` steps; None if unreliable."""
        start, excess = seen[0]
        for k in range(1, len(seen) - start.size + 1):
            others = seen[k : k + start.size]
            moved = np.array([at - start for at, _ in others])
            turned = np.array([other - excess for _, other in others])
            steps = lu.solved(np.ascontiguousarray(turned.T), -excess[:, None])
            if steps is None or not np.abs(steps).max() <= self.FAR:
                continue
            met = start + (1 + beyond) * product(steps.ravel(), moved)
            if (met < self.REACH * start).all() and (start < self.REACH * met).all():
                return np.asarray(met)
        return None


def _weights_of(prices: Floats) -> Floats:
    """Return the weights (m+1,) of sum one for the given prices."""
    return np.asarray(np.append(1.0, prices) / (1.0 + prices.sum()))
