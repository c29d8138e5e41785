"""Passes over a table of costs: the scale of its entries, and the scaled costs.

``planning.scaling`` explains their use, and passes the constants. Costs (q, S, A) are finite; their values in
unavailable pairs do not matter.
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

_INFINITE = cython.declare(cython.double, float("inf"))
_NOTHING = cython.declare(cython.double, 1e-290)  # scales up to this size count as zero


def check_table(costs, thresholds, available):
    """Raise a ValueError unless the shapes of the arrays fit together."""
    if costs.shape[0] != thresholds.shape[0] + 1:
        raise ValueError("the objective and one cost for every threshold are needed")
    if costs.shape[1] != available.shape[0] or costs.shape[2] != available.shape[1]:
        raise ValueError("costs (q, S, A) and pairs (S, A) of one model are needed")
    return 0


def extent_of(costs, available):
    """Return the least, the largest, and the smallest absolute value of the costs (S, A) of available pairs."""
    low: cython.double = _INFINITE
    high: cython.double = -_INFINITE
    smallest: cython.double = _INFINITE
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            c: cython.double = costs[s, a]
            if c < low and available[s, a]:
                low = c
            if c > high and available[s, a]:
                high = c
            if abs(c) < abs(smallest) and available[s, a]:
                smallest = c
    return low, high, smallest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _select(values: Vector, n: cython.Py_ssize_t, k: cython.Py_ssize_t) -> cython.double:
    """Reorder the first n values so that the value of rank k is in its place, none before it larger; return it."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = n - 1
    while low < high:
        first, middle, last = values[low], values[(low + high) // 2], values[high]
        pivot: cython.double = max(min(first, middle), min(max(first, middle), last))
        i: cython.Py_ssize_t = low
        j: cython.Py_ssize_t = high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:  # all in between equal the pivot
            break
    return values[k]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ordinary_distance(
    costs: ConstMatrix,
    available: ConstFlagMatrix,
    middle: cython.double,
    few: cython.double,
    apart: cython.double,
    most: cython.Py_ssize_t,
    near: Vector,
) -> cython.double:
    """Compute ``ordinary_distance``, leaving out at most ``most``; if that is positive, ``near`` (2 (most + 1),)."""
    least: cython.double = _INFINITE
    n: cython.Py_ssize_t = 0
    # ``near`` holds the nearest entries, one more than may be left out, and some farther ones. When it is full the
    # farther ones are dropped, and nothing beyond the kept ones is added again.
    bound: cython.double = _INFINITE
    kept: cython.Py_ssize_t = 0
    for s in range(costs.shape[0]):
        for a in range(costs.shape[1]):
            away: cython.double = abs(costs[s, a] - middle)
            if away > 0.0 and available[s, a]:
                n += 1
                least = away if away < least else least
                if most > 0 and (away < bound or kept <= most):
                    near[kept] = away
                    kept += 1
                    if kept == 2 * (most + 1):
                        bound = _select(near, kept, most)
                        kept = most + 1
    if n == 0:
        return 1.0
    k = cython.cast(cython.Py_ssize_t, few * n)
    following: cython.double = least if k == 0 else _select(near, kept, k)
    return following if following <= apart * (k + 1) * least else least


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scale_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    usual_costs: cython.double,
    few: cython.double,
    largest: cython.double,
    most: cython.Py_ssize_t,
    near: Vector,
    shift: Vector,
    scale: Vector,
) -> cython.void:
    for i in range(costs.shape[0]):
        low, high, smallest = extent_of(costs[i], available)
        extent = high - low
        # A constant cost has no range of its own; its absolute value replaces it, so that 'equal to the threshold'
        # means the same.
        shift[i], scale[i] = low, extent if extent > 0.0 else abs(low)
        if scale[i] <= _NOTHING:
            scale[i] = 1.0
        if extent > 0.0:
            middle: cython.double = smallest if i == 0 else thresholds[i - 1]
            nearby = _ordinary_distance(costs[i], available, middle, few, usual_costs, most, near)
            usual: cython.double = max(usual_costs * nearby, _NOTHING, extent / largest)
            if scale[i] > usual:
                shift[i], scale[i] = middle, usual


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_share(few: cython.double) -> cython.int:
    """Raise a ValueError unless that is a share of all entries."""
    if not 0.0 <= few <= 1.0:
        raise ValueError("a share from 0 to 1 is needed")
    return 0


def scale_of(
    costs: ConstTables,
    thresholds: ConstVector,
    available: ConstFlagMatrix,
    usual_costs: cython.double,
    few: cython.double,
    largest: cython.double,
):
    """Return shift and scale (q,) of costs (q, S, A); see ``Scaling.of``."""
    check_table(costs, thresholds, available)
    _check_share(few)
    q = costs.shape[0]
    shifts, scales = np.empty(q), np.empty(q)
    shift: Vector = shifts
    scale: Vector = scales
    most = cython.cast(cython.Py_ssize_t, few * available.shape[0] * available.shape[1])
    near: Vector = np.empty(2 * (most + 1)) if most else scales
    _scale_of(costs, thresholds, available, usual_costs, few, largest, most, near, shift, scale)
    return shifts, scales


def ordinary_distance(
    costs: ConstMatrix, available: ConstFlagMatrix, middle: cython.double, few: cython.double, apart: cython.double
):
    """Return the distance from a value to the nearest of the available entries that differ; 1 if none does.

    A share of ``few`` is left out if entries of all sizes follow on it: then the next is farther by about their number.
    If it is ``apart`` times farther than that, the nearest are few, but of another size.
    """
    if costs.shape[0] != available.shape[0] or costs.shape[1] != available.shape[1]:
        raise ValueError("costs and pairs (S, A) of one model are needed")
    _check_share(few)
    most = cython.cast(cython.Py_ssize_t, few * available.shape[0] * available.shape[1])
    near: Vector = np.empty(2 * (most + 1))
    return _ordinary_distance(costs, available, middle, few, apart, most, near)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scaled_costs(
    costs: ConstTables, available: ConstFlagMatrix, shift: ConstVector, scale: ConstVector, scaled: Matrix
) -> cython.void:
    S, A = available.shape[0], available.shape[1]
    for i in range(costs.shape[0]):
        base: cython.double = shift[i]
        unit: cython.double = scale[i]
        for s in range(S):
            for a in range(A):
                scaled[i, s * A + a] = (costs[i, s, a] - base) / unit if available[s, a] else 0.0


def scaled_costs(
    costs: ConstTables, thresholds: ConstVector, available: ConstFlagMatrix, shift: ConstVector, scale: ConstVector
):
    """Return (c - shift) / scale for costs, (q, S*A), 0 where a pair is not available, and for thresholds, (q - 1,)."""
    q = costs.shape[0]
    check_table(costs, thresholds, available)
    if shift.shape[0] != q or scale.shape[0] != q:
        raise ValueError("a shift and a scale of every cost are needed")
    result, limits = np.empty((q, available.shape[0] * available.shape[1])), np.empty(q - 1)
    scaled: Matrix = result
    limit: Vector = limits
    _scaled_costs(costs, available, shift, scale, scaled)
    for i in range(q - 1):
        limit[i] = (thresholds[i] - shift[i + 1]) / scale[i + 1]
    return result, limits
