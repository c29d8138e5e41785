"""Passes over a table of costs for certificates: units of deviations, and quantities that prove a bound.

``planning.proof.certify`` explains their use, and passes the constants.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstMatrix,
    ConstTables,
    ConstVector,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.chains.costs import check_table, extent_of

_INFINITE = cython.declare(cython.double, float("inf"))
_EPS = cython.declare(cython.double, 2.0**-52)  # twice the largest relative error of a rounding
_NOTHING = cython.declare(cython.double, 1e-290)  # units up to this size count as zero


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_numbers(costs: ConstTables, numbers: ConstMatrix, each: ConstVector) -> cython.int:
    """Raise a ValueError unless there is a number for every pair, and one for each cost."""
    if costs.shape[1] != numbers.shape[0] or costs.shape[2] != numbers.shape[1] or costs.shape[0] != each.shape[0]:
        raise ValueError("costs (q, S, A), numbers (S, A) of pairs and (q,) of costs are needed")
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _distances(
    costs: ConstMatrix, available: ConstFlagMatrix, occupancy: ConstMatrix, middle: cython.double
) -> tuple[cython.double, cython.double]:
    """Compute ``distances`` of arrays whose shapes are checked."""
    total: cython.double = 0.0
    nearest: cython.double = _INFINITE
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            away: cython.double = abs(costs[s, a] - middle)
            total += occupancy[s, a] * away
            if 0.0 < away < nearest and available[s, a]:
                nearest = away
    return total, nearest if nearest < _INFINITE else 1.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mean(costs: ConstMatrix, occupancy: ConstMatrix, base: cython.double) -> cython.double:
    """Return the mean of costs (S, A) relative to a base under frequencies (S, A), of any sum."""
    total: cython.double = 0.0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            total += (costs[s, a] - base) * occupancy[s, a]
    return total


def distances(costs: ConstMatrix, available: ConstFlagMatrix, occupancy: ConstMatrix, middle: cython.double):
    """Return the mean distance of costs (S, A) from a value under frequencies (S, A) of any sum, and the least one.

    The least is that of the available entries that differ; 1 if none does.
    """
    S, A = costs.shape[0], costs.shape[1]
    if available.shape[0] != S or available.shape[1] != A or occupancy.shape[0] != S or occupancy.shape[1] != A:
        raise ValueError("costs, pairs and frequencies (S, A) of one model are needed")
    return _distances(costs, available, occupancy, middle)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _units_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    occupancy: ConstMatrix,
    met_costs: cython.double,
    rounded: cython.double,
    largest: cython.double,
    unit: Vector,
) -> cython.void:
    total: cython.double = 0.0
    for s in range(occupancy.shape[0]):
        for a in range(occupancy.shape[1]):
            total += occupancy[s, a]
    if not total > 0.0:
        total = 1.0
    for i in range(costs.shape[0]):
        low, high, _ = extent_of(costs[i], available)
        extent = high - low
        if extent <= 0.0:
            unit[i] = abs(low) if abs(low) > _NOTHING else 1.0
            continue
        middle: cython.double = _mean(costs[0], occupancy, 0.0) / total if i == 0 else thresholds[i - 1]
        distance, nearest = _distances(costs[i], available, occupancy, middle)
        met = met_costs * (distance / total)
        unit[i] = max(rounded * abs(middle), min(extent, max(met, met_costs * nearest, extent / largest)))


def units_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    occupancy: ConstMatrix,
    met_costs: cython.double,
    rounded: cython.double,
    largest: cython.double,
):
    """Return the unit of deviations of every cost, (q,); see ``certificate.units``."""
    check_table(costs, thresholds, available)
    units = np.empty(costs.shape[0])
    unit: Vector = units
    _check_numbers(costs, occupancy, unit)
    _units_of(costs, thresholds, available, occupancy, met_costs, rounded, largest, unit)
    return units


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _excess_units_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    occupancy: ConstMatrix,
    unit: ConstVector,
    met_costs: cython.double,
    one_double: cython.double,
    allowed: Vector,
) -> cython.void:
    for i in range(thresholds.shape[0]):
        limit: cython.double = thresholds[i]
        distance, nearest = _distances(costs[i + 1], available, occupancy, limit)
        allowed[i] = min(unit[i + 1], max(met_costs * distance, abs(limit), one_double * nearest))


def excess_units_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    occupancy: ConstMatrix,
    unit: ConstVector,
    met_costs: cython.double,
    one_double: cython.double,
):
    """Return the unit of violations of every constraint, (m,); see ``certificate.excess_units``."""
    check_table(costs, thresholds, available)
    _check_numbers(costs, occupancy, unit)
    result = np.empty(thresholds.shape[0])
    allowed: Vector = result
    _excess_units_of(costs, thresholds, available, occupancy, unit, met_costs, one_double, allowed)
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _flow_residual(occupancy: ConstMatrix, arrivals: ConstVector) -> cython.double:
    """Return the L1 distance of frequencies (S, A) from a stationary distribution, given the mass after a step (S,)."""
    residual: cython.double = 0.0
    total: cython.double = 0.0
    for s in range(occupancy.shape[0]):
        mass: cython.double = 0.0
        for a in range(occupancy.shape[1]):
            mass += occupancy[s, a]
            residual += max(-occupancy[s, a], 0.0)
        residual += abs(arrivals[s] - mass)
        total += mass
    return residual + abs(total - 1.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _largest_error(
    costs: ConstTables, occupancy: ConstMatrix, averages: ConstVector, unit: ConstVector
) -> cython.double:
    """Return the largest distance of costs under frequencies from averages (q,), in units."""
    largest: cython.double = 0.0
    for i in range(costs.shape[0]):
        error = abs(_mean(costs[i], occupancy, averages[i])) / unit[i]
        if error > largest or error != error:  # nan stays nan
            largest = error
    return largest


def deviations(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    occupancy: ConstMatrix,
    arrivals: ConstVector,
    averages: ConstVector,
    met_costs: cython.double,
    rounded: cython.double,
    largest: cython.double,
    one_double: cython.double,
):
    """Return how far frequencies (S, A) are from stationarity, in L1, and from averages (q,), in units, and the units.

    The units are those of deviations (q,) and of violations (m,). ``arrivals`` (S,) is the distribution after one step.
    Costs are taken relative to the averages, so that no offset hides the differences.
    """
    check_table(costs, thresholds, available)
    _check_numbers(costs, occupancy, averages)
    if arrivals.shape[0] != occupancy.shape[0]:
        raise ValueError("arrivals (S,) are needed")
    units, excess_units = np.empty(costs.shape[0]), np.empty(thresholds.shape[0])
    unit: Vector = units
    allowed: Vector = excess_units
    _units_of(costs, thresholds, available, occupancy, met_costs, rounded, largest, unit)
    _excess_units_of(costs, thresholds, available, occupancy, unit, met_costs, one_double, allowed)
    policy_error = _largest_error(costs, occupancy, averages, unit)
    return _flow_residual(occupancy, arrivals), policy_error, units, excess_units


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _reduced_costs(
    costs: ConstTables,
    weights: ConstVector,
    start: cython.double,
    thresholds: ConstVector,
    moved: ConstMatrix,
    available: ConstFlagMatrix,
    reduced: Matrix,
    rounding: Matrix,
) -> cython.void:
    roundings: cython.double = (costs.shape[0] + 4) * _EPS  # of a difference, a product and a sum for every cost
    for s in range(costs.shape[1]):
        for a in range(costs.shape[2]):
            if available[s, a]:
                total: cython.double = weights[0] * (costs[0, s, a] - start)
                size: cython.double = abs(total) + abs(moved[s, a])
                for i in range(1, costs.shape[0]):
                    term: cython.double = weights[i] * (costs[i, s, a] - thresholds[i - 1])
                    total += term
                    size += abs(term)
                reduced[s, a] = total + moved[s, a]
                rounding[s, a] = roundings * size
            else:
                reduced[s, a], rounding[s, a] = _INFINITE, 0.0


def reduced_costs(
    costs: ConstTables,
    weights: ConstVector,
    start: cython.double,
    thresholds: ConstVector,
    moved: ConstMatrix,
    available: ConstFlagMatrix,
):
    """Return weighted costs (objective minus start, others minus thresholds) plus a drift, (S, A), and their rounding.

    The rounding (S, A) bounds the error of every entry, apart from that of the drift before it was rounded to a double.
    Pairs that are not available cost inf.
    """
    check_table(costs, thresholds, available)
    _check_numbers(costs, moved, weights)
    result, errors = np.empty((costs.shape[1], costs.shape[2])), np.empty((costs.shape[1], costs.shape[2]))
    reduced: Matrix = result
    rounding: Matrix = errors
    _reduced_costs(costs, weights, start, thresholds, moved, available, reduced, rounding)
    return result, errors


def least_of(reduced: ConstMatrix, rounding: ConstMatrix):
    """Return the least entry of a table (S, A), and the least one minus its rounding; NaN is less than every number."""
    if reduced.shape[0] != rounding.shape[0] or reduced.shape[1] != rounding.shape[1]:
        raise ValueError("entries and their rounding (S, A) are needed")
    least: cython.double = _INFINITE
    sure: cython.double = _INFINITE
    for s in range(reduced.shape[0]):
        for a in range(reduced.shape[1]):
            least = min(least, reduced[s, a]) if reduced[s, a] == reduced[s, a] else reduced[s, a]
            lowest: cython.double = reduced[s, a] - rounding[s, a]
            sure = min(sure, lowest) if lowest == lowest else lowest
    return least, sure


def drift_rounding(high: ConstVector, low: ConstVector) -> float:
    r"""Bound the error of ``double_double.drift`` of a potential high + low (S,) before it is rounded to one double.

    The errors that are summed up to the rest are at most eps times the potential for every move, and those of this sum
    at most eps times the rest for every move.
    """
    if high.shape[0] != low.shape[0]:
        raise ValueError("both parts (S,) of a potential are needed")
    largest: cython.double = 0.0
    rest: cython.double = 0.0
    for s in range(high.shape[0]):
        largest = max(largest, abs(high[s]))
        rest = max(rest, abs(low[s]))
    moves: cython.double = high.shape[0] + 8.0
    return 2.0 * moves * _EPS * (4.0 * moves * _EPS * largest + 2.0 * rest)
