"""Compiled parts of the Dirichlet sampler and of the counts: plain arrays in, plain arrays out."""

import math

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def posterior_parameters(prior: Floats, transitions: Ints) -> Floats:
    """Prior plus counts, (S*A, S)."""
    return prior + transitions


@njit(cache=True, nogil=True)
def tally(shape: Floats) -> tuple[int, int]:
    """How many shapes are positive, and how many are 1 or more."""
    positive = large = 0
    for a in shape:
        positive += a > 0.0
        large += a >= 1.0
    return positive, large


@njit(cache=True, nogil=True)
def log_gamma(shape: Floats, first: int, e: Floats, u: Floats, z: Floats, logs: Floats) -> int:
    r"""Logarithms of gamma variates by rejection, from entry ``first`` on; -inf where the shape is 0.

    Returns the first entry that is not done when the exponentials e, uniforms u or normals z are used up.

    Shapes below 1: the method GS of Ahrens and Dieter (1974). With E = exp(-e): if :math:`E \le 1 - a`, X = E^(1/a) is
    accepted with probability exp(-X), else :math:`Y = -\log((1 - E)/a)` and X = (1 - a + a Y)^(1/a) with probability
    exp(Y - X). Cheap bounds spare most of the transcendental functions. Other shapes: Marsaglia and Tsang (2000).
    """
    tried = normals = 0
    last, inverse = 1.0, 1.0  # most shapes equal the one before: divide once for all of them
    for i in range(first, shape.size):
        a = shape[i]
        if a == 0.0:
            logs[i] = -np.inf
            continue
        if a != last:
            last, inverse = a, 1.0 / a
        accepted = False
        while not accepted:
            if tried == u.size or (a >= 1.0 and normals == z.size):
                return i
            w = u[tried]
            if a >= 1.0:
                d = a - 1.0 / 3.0
                x = z[normals]
                normals += 1
                root = 1.0 + x / math.sqrt(9.0 * d)
                if root > 0.0:
                    v = root * root * root
                    squeeze = w < 1.0 - 0.0331 * x * x * x * x
                    accepted = squeeze or math.log(w) < 0.5 * x * x + d * (1.0 - v + math.log(v))
                    logs[i] = math.log(d * v)
            elif e[tried] * (1.0 - a) >= a or (e[tried] > a and e[tried] >= -math.log1p(-a)):
                # a <= -log(1 - a) <= a / (1 - a)
                t = e[tried] * inverse
                logs[i] = -t
                # exp(-X) >= 1 - X, and X = exp(-t) <= 1 / (1 + t + t^2/2)
                accepted = (1.0 - w) * (1.0 + t + 0.5 * t * t) >= 1.0 or w <= math.exp(-math.exp(-t))
            else:
                y = -math.log(-math.expm1(-e[tried]) / a)
                logs[i] = math.log(1.0 - a + a * y) * inverse
                accepted = w <= math.exp(y - math.exp(logs[i]))
            tried += 1
    return int(shape.size)


@njit(cache=True, nogil=True)
def lower_by_row_maximum(logs: Floats, floor: float) -> None:
    """Subtract the largest entry of every row from it, down to a floor; -inf stays."""
    for row in logs:
        top = row[0]
        for x in row:
            top = max(top, x)
        for j in range(row.size):
            if row[j] > -np.inf:
                row[j] = max(row[j] - top, floor)


@njit(cache=True, nogil=True)
def normalise_rows(rows: Floats) -> None:
    """Divide every row by its sum."""
    for row in rows:
        total = 0.0
        for x in row:
            total += x
        for j in range(row.size):
            row[j] /= total


@njit(cache=True, nogil=True)
def add_pairs(visits: Ints, cost_sums: Floats, new_visits: Ints, new_sums: Floats) -> None:
    """Add new statistics to old ones. A short episode visits few pairs: only theirs are touched."""
    for pair in range(visits.size):
        if new_visits[pair]:
            visits[pair] += new_visits[pair]
            for i in range(cost_sums.shape[0]):
                cost_sums[i, pair] += new_sums[i, pair]


@njit(cache=True, nogil=True)
def update_likelihood(
    likelihood: Floats, seen: Ints, visits: Ints, numbers: Ints, times: Ints, stored: Ints, weights: Floats,
    rest: Floats, total: Floats, grid: Floats, n_states: int,
) -> None:  # fmt: skip
    """Bring log-likelihoods (rows, K) of Dirichlet-multinomial counts up to date, where there are new visits.

    A mass is shared out by weights: those that are stored, and ``rest`` over all states. What has none and was seen
    nevertheless tells nothing of the mass.
    """
    share = np.empty(n_states)
    for row in range(visits.size):
        if visits[row] == seen[row]:
            continue
        seen[row] = visits[row]
        low, high = np.searchsorted(numbers, row * n_states), np.searchsorted(numbers, (row + 1) * n_states)
        k = int(np.searchsorted(stored, row * n_states))
        n = 0
        for e in range(low, high):
            while k < stored.size and stored[k] < numbers[e]:
                k += 1
            share[e - low] = rest[row] / n_states
            if k < stored.size and stored[k] == numbers[e]:
                share[e - low] += weights[k]
            if share[e - low] > 0.0:
                n += times[e]
        for k in range(grid.size):
            mass = grid[k]
            unit = mass / total[row]
            last, base = -1.0, 0.0
            likelihood[row, k] = math.lgamma(mass) - math.lgamma(mass + n)
            for e in range(low, high):
                if share[e - low] > 0.0:
                    alpha = unit * share[e - low]
                    if alpha != last:
                        last, base = alpha, math.lgamma(alpha)
                    likelihood[row, k] += math.lgamma(alpha + times[e]) - base


@njit(cache=True, nogil=True)
def draw_indices(logs: Floats, uniforms: Floats) -> Ints:
    """An index for every row, with probability proportional to the exponentials of its entries."""
    drawn = np.empty(logs.shape[0], np.int64)
    for row in range(logs.shape[0]):
        top = logs[row].max()
        rest = uniforms[row] * np.exp(logs[row] - top).sum()
        k = 0
        while k < logs.shape[1] - 1:
            rest -= math.exp(logs[row, k] - top)
            if rest < 0.0:
                break
            k += 1
        drawn[row] = k
    return drawn


@njit(cache=True, nogil=True)
def add_rows(groups: Ints, rows: Floats, n_groups: int) -> Floats:
    """The sums (n_groups, K) of the rows of every group."""
    total = np.zeros((n_groups, rows.shape[1]))
    for row in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            total[groups[row], k] += rows[row, k]
    return total


@njit(cache=True, nogil=True)
def spread_mass(unit: Floats, weights: Floats, transitions: Ints) -> Floats:
    """Parameters of a posterior: the counts, and in every row its unit times the weights."""
    alpha = transitions.astype(np.float64)
    for row in range(alpha.shape[0]):
        for j in range(alpha.shape[1]):
            alpha[row, j] += unit[row] * weights[row, j]
    return alpha


@njit(cache=True, nogil=True)
def widen(extremes: Floats, visits: Ints, cost_sums: Floats, thresholds: Floats) -> None:
    """Take note of the least and the largest average cost of a pair, less the limits (2, m)."""
    for i in range(thresholds.size):
        for pair in range(visits.size):
            if visits[pair]:
                over = cost_sums[i + 1, pair] / visits[pair] - thresholds[i]
                extremes[0, i] = min(extremes[0, i], over)
                extremes[1, i] = max(extremes[1, i], over)
