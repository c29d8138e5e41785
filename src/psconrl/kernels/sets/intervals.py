r"""Ends of confidence intervals that hold uniformly over time; ``posterior/confidence_intervals.py`` defines them.

After n observations in [0, 1] with sum k an end p solves :math:`k \ln p + (n-k) \ln(1-p) = \ell`. The left-hand side is
concave, so that Newton's steps from outside the interval never enter it.
"""

import cython
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import ConstInts, ConstPlaces, ConstVector, Vector
from cython.cimports.psconrl.kernels.arithmetic.special import exp, expm1, lgamma, log, log1p
from cython.cimports.psconrl.kernels.graphs.successors import check_rows

_INF = cython.declare(cython.double, float("inf"))
_STEPS = cython.declare(cython.Py_ssize_t, 100)  # at most; most ends take less than ten
_SMALLEST = cython.declare(cython.double, 1e-12)  # least step worth taking, relative to the distance from the mean


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _odds(k: cython.double, n: cython.double, p: cython.double) -> cython.double:
    """Return the log-probability of k successes in n when each has probability p."""
    value: cython.double = 0.0
    if k > 0.0:
        value += k * log(p) if p > 0.0 else -_INF
    if n > k:
        value += (n - k) * log1p(-p) if p < 1.0 else -_INF
    return value


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def end_of_interval(
    k: cython.double, n: cython.double, log_inverse: cython.double, outer: cython.double
) -> cython.double:
    """Return the end of the interval towards ``outer``, 0 or 1; rounded outwards."""
    least: cython.double = lgamma(k + 1.0) + lgamma(n - k + 1.0) - lgamma(n + 2.0) - log_inverse
    if n <= 0.0 or _odds(k, n, outer) > least:
        return outer
    mean: cython.double = k / n
    # Two points outside: where one term alone is as small as the right-hand side, and one by Pinsker's inequality.
    p: cython.double = exp(least / k) if outer == 0.0 else -expm1(least / (n - k))
    p = _outside(k, n, least, p, outer)
    most: cython.double = _odds(k, n, mean) if 0.0 < mean < 1.0 else 0.0
    width: cython.double = sqrt(0.5 * (most - least) / n)
    near: cython.double = mean - width if outer == 0.0 else mean + width
    if abs(near - mean) < abs(p - mean) and _odds(k, n, near) <= least:
        p = near
    for _ in range(_STEPS):
        if not 0.0 < p < 1.0:
            break
        step: cython.double = (least - _odds(k, n, p)) / (k / p - (n - k) / (1.0 - p))
        onward: cython.double = _outside(k, n, least, p + step, p)
        if abs(onward - p) <= _SMALLEST * abs(onward - mean):
            break
        p = onward
    return p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _outside(
    k: cython.double, n: cython.double, least: cython.double, p: cython.double, back: cython.double
) -> cython.double:
    """Return a point outside the interval except for rounding, moved by ``back`` just enough to make it so."""
    shift: cython.double = 1e-16
    while _odds(k, n, p) > least:
        if shift > 1.0:
            return back
        p += shift * (back - p)
        shift *= 8.0
    return p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    indptr: ConstPlaces,
    times: ConstInts,
    visits: ConstInts,
    log_inverse: cython.double,
    low: Vector,
    high: Vector,
    unseen: Vector,
) -> cython.void:
    """Compute ``fill_intervals`` for arrays whose shapes fit."""
    for pair in range(visits.shape[0]):
        n: cython.double = visits[pair]
        unseen[pair] = end_of_interval(0.0, n, log_inverse, 1.0)
        for entry in range(indptr[pair], indptr[pair + 1]):
            k: cython.double = times[entry]
            low[entry] = end_of_interval(k, n, log_inverse, 0.0)
            high[entry] = end_of_interval(k, n, log_inverse, 1.0)


def fill_intervals(
    indptr: ConstPlaces,
    times: ConstInts,
    visits: ConstInts,
    log_inverse: cython.double,
    low: Vector,
    high: Vector,
    unseen: Vector,
):
    """Compute the bounds of every observed transition, and of the unobserved ones."""
    pairs, entries = visits.shape[0], times.shape[0]
    if indptr.shape[0] != pairs + 1 or unseen.shape[0] != pairs or indptr[0] != 0 or indptr[pairs] != entries:
        raise ValueError("every pair has its transitions, and a bound for others")
    if low.shape[0] != entries or high.shape[0] != entries:
        raise ValueError("every transition has two bounds")
    check_rows(indptr, entries)
    with cython.nogil:
        _fill(indptr, times, visits, log_inverse, low, high, unseen)


def fill_ends(sums: ConstVector, visits: ConstInts, log_inverse: cython.double, out: Vector):
    """Compute the upper bound of every mean of observations in [0, 1]."""
    pairs = visits.shape[0]
    if sums.shape[0] != pairs or out.shape[0] != pairs:
        raise ValueError("every pair has visits, a sum and a bound")
    with cython.nogil:
        for pair in range(pairs):
            n: cython.double = visits[pair]
            out[pair] = end_of_interval(min(max(sums[pair], 0.0), n), n, log_inverse, 1.0)
