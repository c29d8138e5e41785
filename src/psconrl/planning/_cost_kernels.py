"""Compiled passes over a table of costs: what they are scaled by, what a deviation is judged by, what proves a bound.

``scaling`` and ``certificate`` say what for, and hand in the constants.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats


@njit(cache=True)
def extent_of(costs: Floats, available: Bools) -> tuple[float, float, float]:
    """Least, largest, and smallest in size of the costs (S, A) of available pairs."""
    low, high, smallest = np.inf, -np.inf, np.inf
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            if available[s, a]:
                c = costs[s, a]
                low, high = min(low, c), max(high, c)
                if abs(c) < abs(smallest):
                    smallest = c
    return low, high, smallest


@njit(cache=True)
def nearest(costs: Floats, available: Bools, middle: float) -> float:
    """How far the nearest of the available entries (S, A) that differs is from a value; 1 if none does."""
    distance = np.inf
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            away = abs(costs[s, a] - middle)
            if available[s, a] and 0.0 < away < distance:
                distance = away
    return distance if distance < np.inf else 1.0


@njit(cache=True)
def ordinary_distance(costs: Floats, available: Bools, middle: float, few: float, apart: float) -> float:
    """How far the nearest of the available entries that differ are from a value; 1 if none does.

    A share of ``few`` is left out if entries of all sizes follow on it: then the next is farther by about their number.
    If it is ``apart`` times farther than that, the nearest are few, but of another size.
    """
    away = np.empty(costs.size)
    n = 0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            distance = abs(costs[s, a] - middle)
            if available[s, a] and distance > 0.0:
                away[n] = distance
                n += 1
    if n == 0:
        return 1.0
    k = int(few * n)
    least, next_one = away[:n].min(), np.partition(away[:n], k)[k]
    return float(next_one if next_one <= apart * (k + 1) * least else least)


@njit(cache=True)
def mean_distance(costs: Floats, occupancy: Floats, middle: float) -> float:
    """The mean distance of costs (S, A) from a value under frequencies (S, A), of whatever sum."""
    total = 0.0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            total += occupancy[s, a] * abs(costs[s, a] - middle)
    return total


@njit(cache=True)
def scale_of(
    costs: Floats, thresholds: Floats, available: Bools, usual_costs: float, few: float, largest: float
) -> tuple[Floats, Floats]:
    """Shift and scale (q,) of costs (q, S, A); see ``Scaling.of``."""
    q = costs.shape[0]
    shift, scale = np.empty(q), np.empty(q)
    for i in range(q):
        low, high, smallest = extent_of(costs[i], available)
        extent = high - low
        # A constant cost has no extent of its own; its size stands in, so that 'equal to the limit' means the same.
        shift[i], scale[i] = low, extent if extent > 0.0 else abs(low)
        if scale[i] <= 1e-290:
            scale[i] = 1.0
        if extent > 0.0:
            middle = smallest if i == 0 else thresholds[i - 1]
            nearby = ordinary_distance(costs[i], available, middle, few, usual_costs)
            usual = max(usual_costs * nearby, 1e-290, extent / largest)
            if scale[i] > usual:
                shift[i], scale[i] = middle, usual
    return shift, scale


@njit(cache=True)
def units_of(
    costs: Floats, thresholds: Floats, available: Bools, occupancy: Floats, met_costs: float, rounded: float,
    largest: float,
) -> Floats:  # fmt: skip
    """What a deviation of every cost is measured by, (q,); see ``certificate.units``."""
    q = costs.shape[0]
    unit = np.empty(q)
    S, A = occupancy.shape
    total = 0.0
    for s in range(S):
        for a in range(A):
            total += occupancy[s, a]
    share = np.empty((S, A))
    for s in range(S):
        for a in range(A):
            share[s, a] = occupancy[s, a] / total if total > 0.0 else occupancy[s, a]
    for i in range(q):
        low, high, _ = extent_of(costs[i], available)
        extent = high - low
        if extent <= 0.0:
            unit[i] = abs(low) if abs(low) > 1e-290 else 1.0
            continue
        middle = 0.0
        if i == 0:
            for s in range(S):
                for a in range(A):
                    middle += costs[0, s, a] * share[s, a]
        else:
            middle = thresholds[i - 1]
        met = met_costs * mean_distance(costs[i], share, middle)
        unit[i] = extent
        if extent > met:
            ordinary = met_costs * nearest(costs[i], available, middle)
            unit[i] = min(extent, max(met, ordinary, rounded * abs(middle), extent / largest))
    return unit


@njit(cache=True)
def excess_units_of(
    costs: Floats, thresholds: Floats, available: Bools, occupancy: Floats, unit: Floats, met_costs: float,
    one_double: float,
) -> Floats:  # fmt: skip
    """What an excess over every limit is measured by, (m,); see ``certificate.excess_units``."""
    allowed = np.empty(thresholds.size)
    for i in range(thresholds.size):
        met = met_costs * mean_distance(costs[i + 1], occupancy, thresholds[i])
        double = one_double * nearest(costs[i + 1], available, thresholds[i])
        allowed[i] = min(unit[i + 1], max(met, abs(thresholds[i]), double))
    return allowed


@njit(cache=True)
def deviations(
    costs: Floats, occupancy: Floats, arrivals: Floats, averages: Floats, unit: Floats
) -> tuple[float, float]:
    """How far frequencies (S, A) are from a stationary law, in L1, and from the averages (q,) of a policy, in units.

    ``arrivals`` (S,) is where the frequencies lead. Costs are counted from the averages, so that no offset drowns what
    is compared.
    """
    q, S, A = costs.shape
    residual, total = 0.0, 0.0
    for s in range(S):
        mass = 0.0
        for a in range(A):
            mass += occupancy[s, a]
            residual += max(-occupancy[s, a], 0.0)
        residual += abs(arrivals[s] - mass)
        total += mass
    largest = 0.0
    for i in range(q):
        apart = 0.0
        for s in range(S):
            for a in range(A):
                apart += (costs[i, s, a] - averages[i]) * occupancy[s, a]
        error = abs(apart) / unit[i]
        if error > largest or error != error:  # nan stays nan
            largest = error
    return residual + abs(total - 1.0), largest


@njit(cache=True)
def scaled_costs(costs: Floats, available: Bools, shift: Floats, scale: Floats) -> Floats:
    """(c - shift) / scale, (q, S*A); 0 where a pair is not available."""
    q, S, A = costs.shape
    scaled = np.zeros((q, S * A))
    for i in range(q):
        for s in range(S):
            for a in range(A):
                if available[s, a]:
                    scaled[i, s * A + a] = (costs[i, s, a] - shift[i]) / scale[i]
    return scaled


@njit(cache=True)
def reduced_costs(
    costs: Floats, weights: Floats, start: float, thresholds: Floats, moved: Floats, available: Bools
) -> Floats:
    """Weighted costs, the objective from a start, the others from their limits, plus a drift, (S, A); inf if masked."""
    q, S, A = costs.shape
    reduced = np.full((S, A), np.inf)
    for s in range(S):
        for a in range(A):
            if available[s, a]:
                total = weights[0] * (costs[0, s, a] - start)
                for i in range(1, q):
                    total += weights[i] * (costs[i, s, a] - thresholds[i - 1])
                reduced[s, a] = total + moved[s, a]
    return reduced
