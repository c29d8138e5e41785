r"""Likelihoods of what was seen of a noise, for the tests of its structure.

A test divides the probability that an alternative gave to everything that was seen by the largest one that the
description allows. Both are functions of the numbers of the rows seen (``noise_sightings``):

- ``largest``: :math:`\sup_\theta \sum_r n_r \log p_\theta(r)` over the parameter, whether it is known or not, and
  ``as_given``: the same at a known parameter.
- ``log_mixture``: :math:`\log \frac1M \sum_k \prod_r p_{\theta_k}(r)^{n_r}` over M parameters on a grid.

The grid of a probability is uniform in :math:`\arcsin\sqrt\theta`, the midpoints of Jeffreys' prior: for fewer than M
observations of yes and no the mixture is exactly that of Krichevsky and Trofimov. The grid of a rate is uniform in its
root. A noise whose parameter is an expression is tilted instead,
:math:`p_\eta(x) \propto p_0(x)\, e^{\eta x}` with :math:`\eta` on a grid. Values of free probability, as those of
``Categorical``, have the Krichevsky-Trofimov mixture, a Dirichlet prior with weights of one half, in every view.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.noise_sightings import SightedRow
from psconrl.model.matrix_product import product
from psconrl.systems.categorical import Categorical
from psconrl.systems.events import EventClock
from psconrl.systems.noise_base import Noise
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.randomness import Randomness, RoundNoise

POINTS = 128  # of a grid, at most
FEWEST_POINTS = 16
MOST_NUMBERS = 4_000_000  # in the tables of a grid
LEAST_LOG = -745.0  # logarithms of probabilities below, and of 0, are raised to this
BEYOND_GRID = 100.0  # a largest likelihood is sought up to this multiple of the largest rate or tilt of the grid
STEPS_OF_FREE_SEARCH, ENOUGH = 200, 1e-3  # of the search for free probabilities; a proven gap at which it ends


class Family(ABC):
    """The distributions that a noise may have, as likelihoods of the numbers of rows seen."""

    @abstractmethod
    def add(self, rows: Sequence[SightedRow]) -> None:
        """Note the rows that have been seen for the first time; they follow those before."""

    @abstractmethod
    def log_mixture(self, counts: Floats) -> Floats:
        """Return the logarithm of the mixture, (n,), given numbers of rows (n, R)."""

    @abstractmethod
    def largest(self, counts: Floats, *, search: bool = True) -> float:
        """Return the largest log-likelihood of one parameter in all rounds; without a search, a lower bound of it."""

    @abstractmethod
    def as_given(self, counts: Floats) -> float | None:
        """Return the log-likelihood of a parameter that is known; None if it is unknown."""

    def ends(self, counts: Floats, log_inverse: float) -> list[Floats]:
        """Return parameters that span a confidence set: all not less likely than the mixture, by 1 over alpha."""
        return []

    def estimates(self, counts: Floats) -> Floats | None:
        """Return the most likely parameters (n,) of the grid, given numbers of rows (n, R); None if there is none."""
        return None


class GridFamily(Family):
    """Distributions with one number as parameter.

    ``tables``: returns the probabilities (G, W) of all values, given the parameter; None stands for the description
    itself. ``known``: the description's parameter, None if it is unknown. ``bounds``: of the parameter.
    """

    def __init__(
        self,
        tables: Callable[[float], Floats],
        points: Floats,
        bounds: tuple[float, float],
        known: float | None,
        *,
        means_something: bool = True,
    ) -> None:
        self._tables, self._points, self._bounds, self._known = tables, points, bounds, known
        self._means_something = means_something  # whether the parameter is one that the description has
        self._rows: list[SightedRow] = []
        self._logs: Floats = np.empty((0, points.size))
        self._known_logs: Floats = np.empty(0)

    def add(self, rows: Sequence[SightedRow]) -> None:
        """Note rows, and find their probabilities at all points of the grid."""
        if not rows:
            return
        grid = self.grid
        self._logs = np.ascontiguousarray(np.concatenate([self._logs, _row_logs(grid, rows)]))
        if self._known is not None:
            self._known_logs = np.append(self._known_logs, self._logs_at(self._known, rows))
        self._rows += rows

    @cached_property
    def grid(self) -> Floats:
        """The probabilities (M, G, W) at all points of the grid."""
        return np.array([self._tables(float(point)) for point in self._points])

    def _logs_at(self, parameter: float, rows: Sequence[SightedRow]) -> Floats:
        return _row_logs(self._tables(parameter)[None], rows)[:, 0]

    def as_given(self, counts: Floats) -> float | None:
        """Return the log-likelihood of a known parameter."""
        return None if self._known is None else float(product(counts, self._known_logs))

    def log_mixture(self, counts: Floats) -> Floats:
        """Return the logarithm of the mixture over the grid."""
        return log_mean_exp(np.asarray(product(counts, self._logs)))

    def largest(self, counts: Floats, *, search: bool = True) -> float:
        """Return the largest log-likelihood, near the best of the grid and all that are better than their neighbours.

        There may be several: whether one of two trials succeeds is as probable under 1 - p.
        """
        on_grid = np.asarray(product(counts, self._logs))
        best = int(on_grid.argmax())
        if not search:
            return float(on_grid[best])
        seen = np.flatnonzero(counts)
        rows, times = [self._rows[i] for i in seen], counts[seen]

        def loss(parameter: float) -> float:
            return -float(product(times, self._logs_at(parameter, rows)))

        largest = float(on_grid[best])
        padded = np.concatenate([[-np.inf], on_grid, [-np.inf]])
        for place in np.flatnonzero((on_grid > padded[:-2]) & (on_grid >= padded[2:])).tolist():
            low = self._bounds[0] if place == 0 else float(self._points[place - 1])
            high = self._bounds[1] if place == self._points.size - 1 else float(self._points[place + 1])
            found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-7 * (high - low)})
            largest = max(largest, -float(found.fun), -loss(low), -loss(high))
        return largest

    def ends(self, counts: Floats, log_inverse: float) -> list[Floats]:
        """Return the two ends of the interval, widened to the next points of the grid."""
        if not self._rows:
            return [np.array([end]) for end in self._bounds]
        least = float(self.log_mixture(counts[None, :])[0]) - log_inverse
        inside = np.flatnonzero(product(counts, self._logs) >= least)
        if not inside.size:  # the grid is too coarse: around its best point
            inside = np.array([int(product(counts, self._logs).argmax())])
        low, high = int(inside[0]) - 1, int(inside[-1]) + 1
        return [
            np.array([self._bounds[0] if low < 0 else self._points[low]]),
            np.array([self._bounds[1] if high == self._points.size else self._points[high]]),
        ]

    def estimates(self, counts: Floats) -> Floats | None:
        """Return the points of the grid with the largest likelihoods."""
        return self.best_points(np.asarray(product(counts, self._logs)))

    def best_points(self, logs: Floats) -> Floats | None:
        """Return the points with the largest of some logarithms (n, M); None if points are tilts."""
        return np.asarray(self._points[logs.argmax(axis=1)]) if self._means_something else None


class FreeFamily(Family):
    """Values of free probability, the same in every context; or known ones, if ``known`` (G, W) is given."""

    def __init__(self, size: int, known: Floats | None = None) -> None:
        self._size, self._known = size, known
        self._rows: list[SightedRow] = []
        self._log_known: Floats = np.empty(0)
        self._view_of: Ints = np.empty(0, dtype=np.int64)  # of every row
        self._sizes: list[int] = []  # number of sets of every view
        self._views: dict[tuple[int, tuple[int, ...]], int] = {}

    def add(self, rows: Sequence[SightedRow]) -> None:
        """Note rows, and the views that they belong to."""
        for row in rows:
            place = self._views.setdefault((row.context, row.view), len(self._views))
            if place == len(self._sizes):
                self._sizes.append(len(set(row.view) - {-1}) or self._size)
            self._view_of = np.append(self._view_of, place)
        if self._known is not None:
            known = np.array([self._known[row.context, list(row.values)].sum() for row in rows])
            self._log_known = np.append(self._log_known, raised_logs(known))
        self._rows += rows

    def as_given(self, counts: Floats) -> float | None:
        """Return the log-likelihood of known probabilities."""
        return None if self._known is None else float(product(counts, self._log_known))

    def log_mixture(self, counts: Floats) -> Floats:
        """Return the sum of the Krichevsky-Trofimov mixtures of all views."""
        total = np.zeros(len(counts))
        half = log_rising(0.5, int(counts.max(initial=0.0)))
        for view, size in enumerate(self._sizes):
            own = counts[:, self._view_of == view].astype(np.int64)
            each = np.cumsum(half[own], axis=1)[:, -1]
            n = own.sum(axis=1)
            total += each - log_rising(0.5 * size, int(n.max(initial=0)))[n]
        return total

    def largest(self, counts: Floats, *, search: bool = True) -> float:
        """Return an upper bound of the largest log-likelihood: it is concave, so its gradient gives one.

        At probabilities p, :math:`\\log L(p^*) \\le \\log L(p) + \\max_j g_j - n`, with gradient g and n observations.
        """
        seen = np.flatnonzero(counts)
        sets = np.zeros((seen.size, self._size))
        for place, i in enumerate(seen):
            sets[place, list(self._rows[i].values)] = 1.0
        times, n = counts[seen], float(counts.sum())
        p, bound = np.full(self._size, 1.0 / self._size), np.inf
        for _ in range(STEPS_OF_FREE_SEARCH):
            shares = np.asarray(product(sets, p))
            gradient = product(np.ascontiguousarray(sets.T), times / np.maximum(shares, 1e-300))
            value = float(product(times, special.log_array(np.maximum(shares, 1e-300))))
            bound = min(bound, value + float(gradient.max(initial=0.0)) - n)
            if not search or bound - value < ENOUGH:
                return value if not search else bound
            p = p * gradient / n
        return bound

    def ends(self, counts: Floats, log_inverse: float) -> list[Floats]:
        """Return corners of a set around the empirical probabilities: each value more probable by half a radius.

        By Pinsker's inequality the distance in L1 from them is at most :math:`\\sqrt{2 L / n}`, where L is the largest
        log-likelihood less the least of the set. Where sets of values were seen, nothing is known.
        """
        empirical, alone = np.zeros(self._size), True
        for row, times in zip(self._rows, counts, strict=True):
            alone &= len(row.values) == 1 or times == 0.0
            empirical[row.values[0]] += times
        n = float(empirical.sum())
        half = 1.0
        if alone and n > 0.0:
            least = float(self.log_mixture(counts[None, :])[0]) - log_inverse
            half = min(1.0, float(np.sqrt(max(self.largest(counts) - least, 0.0) / (2.0 * n))))
        mean = empirical / n if n > 0.0 else np.full(self._size, 1.0 / self._size)
        return [(1.0 - half) * mean + half * corner for corner in np.eye(self._size)]


def family_of(randomness: Randomness, place: int, name: str) -> Family:
    """Return the distributions that a noise, or an event, may have."""
    if isinstance(randomness, EventClock):
        return _event_family(randomness, place)
    assert isinstance(randomness, RoundNoise)
    noise, arguments, key = randomness.noises[name], randomness.arguments[name], randomness.keys.get(name)
    table = randomness.own_table(name, randomness.initial())
    if key is None and noise.known is None:  # an expression
        return tilted_family(table)
    if isinstance(noise, Categorical):
        return FreeFamily(table.shape[1], None if key is not None else table)
    points, bounds = _points(noise, float(np.max(1.0 / _positive(arguments["times"]))), _number(table.size))
    known = None if key is not None or noise.known is None else float(noise.known[0])

    def tables(parameter: float) -> Floats:
        return noise.table(np.array([parameter]), arguments, len(table))

    return GridFamily(tables, points, bounds, known)


def _event_family(clock: EventClock, event: int) -> Family:
    """Return the distributions of whether an event happens in a round, whose rate is known or not."""
    factors = clock.factors[:, event] / clock.clock
    most = 1.0 / float(factors.max()) if factors.max() > 0.0 else 1.0
    known = None if event in clock.keys else float(clock.rates[event])

    def tables(rate: float) -> Floats:
        p = np.minimum(rate * factors, 1.0)
        return np.column_stack([1.0 - p, p])

    return GridFamily(tables, most * _arcsine(_number(2 * len(factors))), (0.0, most), known)


def tilted_family(table: Floats) -> GridFamily:
    """Return the tilts of distributions (G, W), of which a tilt of 0 is the description."""
    places = np.arange(table.shape[1], dtype=np.float64)
    means = product(table, places)
    spread = float(np.sqrt(max(float((product(table, places**2) - means**2).mean()), 1e-12)))
    arcsine = _arcsine(_number(table.size))
    odds = special.log_array(arcsine) - special.log_array(1.0 - arcsine)
    logs = raised_logs(table)

    def tables(tilts: Floats) -> Floats:
        tilted = np.where(table > 0.0, logs + tilts[:, None, None] * places, -np.inf)
        below_best = np.maximum(tilted - tilted.max(axis=2, keepdims=True), LEAST_LOG)
        weights = special.exp_array(np.ascontiguousarray(below_best))
        weights = np.where(table > 0.0, weights, 0.0)
        return np.asarray(weights / weights.sum(axis=2, keepdims=True))

    def one(tilt: float) -> Floats:
        return np.asarray(tables(np.array([tilt]))[0])

    tilts = odds / (2.0 * spread)
    bounds = BEYOND_GRID * tilts[0], BEYOND_GRID * tilts[-1]
    family = GridFamily(one, tilts, bounds, 0.0, means_something=False)
    family.grid = tables(tilts)
    return family


def _points(noise: Noise, longest: float, number: int) -> tuple[Floats, tuple[float, float]]:
    """Return the grid of a parameter, and its bounds; ``longest``: exposure is one over this at least."""
    if noise.prior_type is Beta:
        return _arcsine(number), (0.0, 1.0)
    assert noise.prior_type is Gamma
    most = float(vars(noise)["most"])
    top = longest * (most + 4.0 * most**0.5 + 4.0)
    return top * ((np.arange(number) + 0.5) / number) ** 2, (0.0, BEYOND_GRID * top)


def _positive(values: object) -> Floats:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return given[given > 0.0] if (given > 0.0).any() else np.ones(1)


def _number(size: int) -> int:
    """Return the number of points of a grid whose tables have that size."""
    return int(np.clip(MOST_NUMBERS // max(size, 1), FEWEST_POINTS, POINTS))


def _arcsine(number: int) -> Floats:
    """Return the midpoints of Jeffreys' prior of a probability."""
    return np.sin(np.pi * (np.arange(number) + 0.5) / (2.0 * number)) ** 2


def _row_logs(tables: Floats, rows: Sequence[SightedRow]) -> Floats:
    r"""Return the log-probabilities (R, M) of rows under some tables (M, G, W).

    In continuous time an event of rate r does not happen for a time t with probability :math:`e^{-rt}`; a tick of a
    sojourn has the logarithm of this.
    """
    shares = np.array([tables[:, row.context, list(row.values)].sum(axis=1) for row in rows])
    logs = raised_logs(shares)
    for place, row in enumerate(rows):
        if not row.values:
            logs[place] = -tables[:, row.context, 1]
    return logs


def raised_logs(probabilities: Floats) -> Floats:
    """Return logarithms, of which those of 0 are finite."""
    return np.maximum(special.log_array(np.ascontiguousarray(probabilities)), LEAST_LOG)


def log_mean_exp(logs: Floats) -> Floats:
    """Return the logarithm of the mean of exponentials in every row.

    >>> log_mean_exp(np.array([[0.0, 0.0]])).tolist()
    [0.0]
    """
    top = logs.max(axis=1)
    parts = special.exp_array(np.ascontiguousarray(logs - top[:, None]))
    return np.asarray(top + special.log_array(product(parts, np.ones(logs.shape[1])) / logs.shape[1]))


def log_rising(a: float, most: int) -> Floats:
    r"""Return :math:`\log (\Gamma(a + n) / \Gamma(a))` for n from 0 to the most.

    >>> special.exp_array(log_rising(1.0, 3)).round(9).tolist()
    [1.0, 1.0, 2.0, 6.0]
    """
    return np.concatenate([[0.0], np.cumsum(special.log_array(a + np.arange(most, dtype=np.float64)))])
