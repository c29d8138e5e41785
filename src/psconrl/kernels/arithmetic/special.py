r"""Exponentials, logarithms and the gamma function, with the same bits on every machine.

Those of C libraries and of NumPy differ in the last bit between systems and processors, after which a run of an agent
takes another course. Here are only additions, products and quotients, which IEEE 754 fixes, and scaling by powers of
two, which is exact. ``exp`` and ``log`` are off by less than one unit in the last place, ``expm1`` and ``log1p`` by
less than two, ``lgamma`` by less than five. Polynomials were fitted by Remez' algorithm.

The loops ``exp_all`` and ``log_all`` have no branches inside, so that they use vector instructions.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._bits import bits_of, with_bits
from cython.cimports.psconrl.kernels._lanes import row_sum
from cython.cimports.psconrl.kernels._types import ConstVector, Vector

_INF = cython.declare(cython.double, float("inf"))
_NAN = cython.declare(cython.double, float("nan"))
_LEAST = cython.declare(cython.double, 2.2250738585072014e-308)  # the smallest normal double
_LN2_INVERSE = cython.declare(cython.double, 1.4426950408889634)
# ln 2 in two parts: the first has enough trailing zeros that its product with an exponent is exact.
_LN2_HIGH = cython.declare(cython.double, 0.6931471805598903)
_LN2_LOW = cython.declare(cython.double, 5.497923018708371e-14)
# Bit patterns: of 1, of the root of 1/2, of 2^52, and the mask of a fraction.
_ONE = cython.declare(cython.ulonglong, 0x3FF0000000000000)
_ROOT = cython.declare(cython.ulonglong, 0x3FE6A09E667F3BCD)
_WHOLE = cython.declare(cython.ulonglong, 0x4330000000000000)
_FRACTION = cython.declare(cython.ulonglong, 0x000FFFFFFFFFFFFF)
_BIAS = cython.declare(cython.double, 4503599627371519.0)  # 2^52 + 1023: the offset of stored exponents, and 2^52
_HALF_LOG_2PI = cython.declare(cython.double, 0.9189385332046728)
_DIGAMMA_2 = cython.declare(cython.double, 0.42278433509846713)  # the slope of lgamma at 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _beyond_linear(r: cython.double) -> cython.double:
    r"""Return (exp(r) - 1 - r) / r^2 for :math:`|r| \le \ln(2)/2`, by a minimax polynomial (error 3e-18)."""
    rr: cython.double = r * r
    a: cython.double = (0.5000000000000012 + 0.166666666666667 * r) + rr * (
        0.04166666666651554 + 0.008333333333307226 * r
    )
    b: cython.double = (0.0013888888946980576 + 0.0001984126991733961 * r) + rr * (
        2.4801489981566638e-05 + 2.7557216340510207e-06 * r
    )
    c: cython.double = 2.7631265415077616e-07 + 2.5117848394383545e-08 * r
    return a + (rr * rr) * (b + (rr * rr) * c)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _exp(x: cython.double) -> cython.double:
    """Return the exponential: by the remainder after a multiple of ln 2, in two parts, and a polynomial."""
    x = 710.0 if x > 710.0 else x  # infinite as well
    some: cython.double = 0.0 if x < -746.0 else 1.0
    x = -700.0 if x < -746.0 else x  # the result is 0; most processors are slow on subnormal results
    # 1.5 * 2^52 rounds to whole numbers, and leaves them in the last bits; 2048 more, so that they are not negative.
    shifted: cython.double = x * _LN2_INVERSE + 6755399441057792.0
    k: cython.double = shifted - 6755399441057792.0
    high: cython.double = x - k * _LN2_HIGH
    low: cython.double = k * _LN2_LOW
    r: cython.double = high - low
    y: cython.double = 1.0 + (high + (r * r * _beyond_linear(r) - low))
    n: cython.ulonglong = bits_of(shifted) & 4095  # k + 2048
    half: cython.ulonglong = n >> 1
    # Powers of two with half the exponent each: their product would be out of range first.
    return (y * with_bits((half - 1) << 52)) * (some * with_bits(((n - half) - 1) << 52))


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def exp(x: cython.double) -> cython.double:
    """Return the exponential of x."""
    return _exp(x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _log(x: cython.double, bias: cython.double) -> cython.double:
    r"""Return the logarithm of a number of full precision, divided by 2 to the ``bias`` less ``_BIAS``.

    Its fraction 1 + f is taken from :math:`\sqrt{1/2}` to :math:`\sqrt 2`, the logarithm of that by s = f / (2 + f).
    """
    n: cython.ulonglong = bits_of(x) + (_ONE - _ROOT)  # exponents count from the root of 1/2
    f: cython.double = with_bits((n & _FRACTION) + _ROOT) - 1.0
    k: cython.double = with_bits((n >> 52) | _WHOLE) - bias
    s: cython.double = f / (2.0 + f)
    z: cython.double = s * s
    zz: cython.double = z * z
    odd: cython.double = 0.6666666666666734 + zz * (
        0.28571428741963456 + zz * (0.18183562513555143 + zz * 0.1479555113277148)
    )
    even: cython.double = 0.3999999999941692 + zz * (0.22222198611677027 + zz * 0.15314093273787052)
    square: cython.double = 0.5 * f * f
    return (((s * (square + (z * odd + zz * even)) + k * _LN2_LOW) - square) + f) + k * _LN2_HIGH


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def log(x: cython.double) -> cython.double:
    """Return the natural logarithm: -inf at 0, nan below."""
    if _LEAST <= x < _INF:
        return _log(x, _BIAS)
    if 0.0 < x < _LEAST:
        return _log(x * 18014398509481984.0, _BIAS + 54.0)  # times 2^54
    return -_INF if x == 0.0 else _NAN if x < 0.0 else x


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def expm1(x: cython.double) -> cython.double:
    """Return exp(x) - 1, accurate also where that is tiny."""
    if x == 0.0:
        return x
    x = 710.0 if x > 710.0 else x
    x = -60.0 if x < -60.0 else x  # result -1
    shifted: cython.double = x * _LN2_INVERSE + 6755399441057792.0
    k: cython.double = shifted - 6755399441057792.0
    high: cython.double = x - k * _LN2_HIGH
    low: cython.double = k * _LN2_LOW
    r: cython.double = high - low
    y: cython.double = high + (r * r * _beyond_linear(r) - low)
    if k == 0.0:
        return y
    n: cython.ulonglong = bits_of(shifted) & 4095
    half: cython.ulonglong = n >> 1
    one: cython.double = 1.0 - with_bits((3071 - n) << 52) if k < 1000.0 else 1.0  # 1 - 2^-k
    return ((one + y) * with_bits((half - 1) << 52)) * with_bits(((n - half) - 1) << 52)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def log1p(x: cython.double) -> cython.double:
    """Return log(1 + x), accurate also for tiny x: the rounding error of 1 + x is added again."""
    if x == 0.0 or not -1.0 < x < _INF:
        return log(1.0 + x) if x != 0.0 else x
    sum: cython.double = 1.0 + x
    # The smaller of two numbers is exact after the subtraction.
    lost: cython.double = x - (sum - 1.0) if x < 1.0 else 1.0 - (sum - x)
    return log(sum) + lost / sum


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def lgamma(x: cython.double) -> cython.double:
    """Return the logarithm of the gamma function of x > 0: by Stirling's series from 10 on, below around 2."""
    if not 0.0 < x < _INF:
        return _INF if x == 0.0 or x > 0.0 else _NAN
    if x >= 10.0:
        u: cython.double = 1.0 / x
        uu: cython.double = u * u
        series: cython.double = 1.0 / 1188.0 - uu * (691.0 / 360360.0 - uu * (1.0 / 156.0))
        series = u * (1.0 / 12.0 - uu * (1.0 / 360.0 - uu * (1.0 / 1260.0 - uu * (1.0 / 1680.0 - uu * series))))
        return (x - 0.5) * (log(x) - 1.0) + (series + (_HALF_LOG_2PI - 0.5))
    if x < 0.5:
        return _lgamma_2(x) - log(x * (1.0 + x))
    if x < 1.5:
        return _lgamma_2(x - 1.0) - log1p(x - 1.0)
    product: cython.double = 1.0
    while x >= 2.5:
        x -= 1.0
        product *= x
    return _lgamma_2(x - 2.0) + log(product)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _lgamma_2(t: cython.double) -> cython.double:
    """Return ``lgamma`` of 2 + t, t from -1/2 to 1/2: by a minimax polynomial (error 5e-19)."""
    tt: cython.double = t * t
    t4: cython.double = tt * tt
    a: cython.double = (0.32246703342411326 - 0.06735230105319816 * t) + tt * (
        0.020580808427780616 - 0.007385551028665223 * t
    )
    b: cython.double = (0.0028905103310244962 - 0.001192753912136619 * t) + tt * (
        0.0005096695156097773 - 0.0002231547477948164 * t
    )
    c: cython.double = (9.945767131613665e-05 - 4.492638631577842e-05 * t) + tt * (
        2.0505605618893828e-05 - 9.438214667377851e-06 * t
    )
    d: cython.double = (4.384646987012494e-06 - 2.045899731937362e-06 * t) + tt * (
        9.201724921526715e-07 - 4.2824368779650797e-07 * t
    )
    e: cython.double = 2.786367102052842e-07 - 1.360210698469734e-07 * t
    return t * (_DIGAMMA_2 + t * (a + t4 * (b + t4 * (c + t4 * (d + t4 * e)))))


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def cbrt(x: cython.double) -> cython.double:
    """Return the cube root of a number from 0 on; exact where that is a whole number."""
    if not 0.0 < x < _INF:
        return x
    root: cython.double = exp(log(x) / 3.0)
    return root - (root - x / (root * root)) / 3.0


def exp_all(x, out):
    """Compute ``exp`` of all entries; ``out`` may be x itself."""
    for i in range(x.shape[0]):
        out[i] = _exp(x[i])


def log_all(x, out):
    """Compute ``log`` of all entries; ``out`` may be x itself."""
    ordinary: cython.bint = True
    for i in range(x.shape[0]):
        ordinary = ordinary and _LEAST <= x[i] < _INF
    if ordinary:
        for i in range(x.shape[0]):
            out[i] = _log(x[i], _BIAS)
    else:
        for i in range(x.shape[0]):
            out[i] = log(x[i])


def softmax(logs, floor):
    """Turn logarithms into probabilities: the exponentials of every row, over their sum.

    Entries other than -inf are raised to at least ``floor`` relative to the largest of their row.
    """
    n = logs.shape[1]
    whole = n - n % 4
    for i in range(logs.shape[0]):
        a: cython.double = -_INF
        b: cython.double = -_INF
        c: cython.double = -_INF
        d: cython.double = -_INF
        for j in range(0, whole, 4):
            a = logs[i, j] if logs[i, j] > a else a
            b = logs[i, j + 1] if logs[i, j + 1] > b else b
            c = logs[i, j + 2] if logs[i, j + 2] > c else c
            d = logs[i, j + 3] if logs[i, j + 3] > d else d
        for j in range(whole, n):
            a = logs[i, j] if logs[i, j] > a else a
        top: cython.double = max(max(a, b), max(c, d))
        for j in range(n):
            x: cython.double = logs[i, j]
            lowered: cython.double = x - top
            lowered = lowered if lowered > floor else floor
            lowered = lowered if x > -_INF else -_INF
            logs[i, j] = _exp(lowered)
        total: cython.double = row_sum(logs, i, n)
        for j in range(n):
            logs[i, j] /= total


def exp_array(x):
    """Return ``exp`` of all entries of an array, as a new one.

    >>> exp_array([0.0, 1.0]).round(12).tolist()
    [1.0, 2.718281828459]
    """
    given = np.ascontiguousarray(x, dtype=np.float64)
    result = np.empty_like(given)
    read: ConstVector = given.ravel()
    written: Vector = result.ravel()
    exp_all(read, written)
    return result.reshape(np.shape(x))


def log_array(x):
    """Return ``log`` of all entries of an array, as a new one.

    >>> log_array([0.0, 1.0]).tolist()
    [-inf, 0.0]
    """
    given = np.ascontiguousarray(x, dtype=np.float64)
    result = np.empty_like(given)
    read: ConstVector = given.ravel()
    written: Vector = result.ravel()
    log_all(read, written)
    return result.reshape(np.shape(x))
