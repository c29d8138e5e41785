r"""Gamma and normal variates from uniform ones, with the same bits on every machine.

Gamma variates are returned as logarithms: with a shape of 0.001 most of them are below the smallest double.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import ConstVector, IntMatrix, Matrix, Vector
from cython.cimports.psconrl.kernels.arithmetic.special import exp, log, log1p, log_all

_INF = cython.declare(cython.double, float("inf"))
_INVERSE_E = cython.declare(cython.double, 0.36787944117144233)
# A variate below the exponential of this is accepted by all uniforms, which are multiples of 2^-53.
_SURE = cython.declare(cython.double, -36.8)
# Shapes most of whose variates are accepted like that; largest shapes for which the method GS is fastest.
_TINY = cython.declare(cython.double, 0.01)
_MEDIUM = cython.declare(cython.double, 0.2)

# Number of variates drawn together, so that the workspace fits a processor's cache.
_BLOCK = cython.declare(cython.Py_ssize_t, 4096)

# The ziggurat of Marsaglia and Tsang (2000): 256 layers of the same area under exp(-x^2/2), the lowest with the tail.
_LAYERS = cython.declare(cython.Py_ssize_t, 256)
_TAIL = cython.declare(cython.double, 3.654152885361008771645)
_AREA = cython.declare(cython.double, 0.004928673233974655347362)


@cython.cfunc
def _ziggurat():
    """Return the ends of the layers, (2, 257): x, descending, and the density there."""
    layers = np.empty((2, _LAYERS + 1))
    x: Matrix = layers
    x[1, 0] = exp(-0.5 * _TAIL * _TAIL)
    x[0, 0] = _AREA / x[1, 0]
    x[0, 1] = _TAIL
    x[1, 1] = x[1, 0]
    for i in range(2, _LAYERS):
        x[1, i] = _AREA / x[0, i - 1] + x[1, i - 1]
        x[0, i] = sqrt(-2.0 * log(x[1, i]))
    x[0, _LAYERS] = 0.0
    x[1, _LAYERS] = 1.0
    return layers


_EDGES = cython.declare(Matrix, _ziggurat())


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rare_normal(
    uniforms: ConstVector, k: cython.Py_ssize_t, layer: cython.Py_ssize_t, x: cython.double
) -> tuple[cython.double, cython.Py_ssize_t]:
    """Decide about a point of a layer that may not be under the density; 0 if it is not.

    Returns the accepted value, and the position of the next uniform; -1 if they are used up.
    """
    n = uniforms.shape[0]
    if layer == 0:
        while k + 2 <= n:
            beyond: cython.double = -log(1.0 - uniforms[k]) / _TAIL
            height: cython.double = -log(1.0 - uniforms[k + 1])
            k += 2
            if 2.0 * height > beyond * beyond:
                return _TAIL + beyond, k
        return 0.0, -1
    if k == n:
        return 0.0, -1
    y: cython.double = _EDGES[1, layer] + uniforms[k] * (_EDGES[1, layer + 1] - _EDGES[1, layer])
    return (x if y < exp(-0.5 * x * x) else 0.0), k + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _normal(uniforms: ConstVector, k: cython.Py_ssize_t) -> tuple[cython.double, cython.Py_ssize_t]:
    """Return a normal variate, and the position of the next uniform; -1 if they are used up."""
    while 0 <= k < uniforms.shape[0]:
        u: cython.double = 512.0 * uniforms[k]  # 8 bits for the layer, one for the sign, 44 for the position
        k += 1
        chosen: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, u)
        layer: cython.Py_ssize_t = chosen >> 1
        x: cython.double = (u - chosen) * _EDGES[0, layer]
        if x >= _EDGES[0, layer + 1]:
            x, k = _rare_normal(uniforms, k, layer, x)
            if x == 0.0:
                continue
        return x * (1 - 2 * (chosen & 1)), k
    return 0.0, -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _large(
    d: cython.double, c: cython.double, uniforms: ConstVector, k: cython.Py_ssize_t
) -> tuple[cython.double, cython.Py_ssize_t]:
    """Return a gamma variate of shape 1 or more, d + 1/3, by Marsaglia and Tsang (2000), with c = 1 / sqrt(9 d).

    Also returns the position of the next uniform; -1 if they are used up.
    """
    while True:
        x, k = _normal(uniforms, k)
        if k < 0 or k == uniforms.shape[0]:
            return 0.0, -1
        w: cython.double = uniforms[k]
        k += 1
        root: cython.double = 1.0 + c * x
        if root > 0.0:
            v: cython.double = root * root * root
            xx: cython.double = x * x
            if w < 1.0 - 0.0331 * xx * xx or log(w) < 0.5 * xx + d * (1.0 - v + log(v)):
                return d * v, k


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _under(x: cython.double) -> cython.double:
    """Return a number whose inverse is above exp(x), for x below 0; so 1 less its inverse is below exp(-exp(x))."""
    return 1.0 - x * (1.0 - x * (1.0 / 2.0 - x * (1.0 / 6.0)))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _small(
    a: cython.double,
    u: cython.double,
    log_rest: cython.double,
    w: cython.double,
    uniforms: ConstVector,
    k: cython.Py_ssize_t,
) -> tuple[cython.double, cython.Py_ssize_t]:
    """Return the logarithm of a gamma variate of shape a below 1, from uniforms u and w, and log(1 - u).

    The method GS of Ahrens and Dieter (1974), in which u decides between two bounds of the density. A candidate with
    acceptance probability exp(-z) is accepted if 1 - w is at most 1 - z, and rejected if it is above 1 - z + z^2/2.
    Also returns the position of the next uniform; -1 if they are used up.
    """
    inverse: cython.double = 1.0 / a
    while True:
        z: cython.double
        x: cython.double
        if u >= a:
            x = log_rest * inverse
            z = exp(x)
        else:
            v: cython.double = u * inverse
            y: cython.double = -log(v)
            x = log1p(a * (y - 1.0)) * inverse
            if (w + y) * v >= _INVERSE_E:  # z <= exp(y - 1) - y
                return x, k
            z = exp(x) - y
        if w >= z or (w >= z - 0.5 * z * z and 1.0 - w <= exp(-z)):
            return x, k
        if k + 2 > uniforms.shape[0]:
            return 0.0, -1
        u = uniforms[k]
        w = uniforms[k + 1]
        log_rest = log(1.0 - u)
        k += 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin(
    shape: ConstVector, u: ConstVector, log_rest: ConstVector, uniforms: ConstVector, logs: Vector, todo: IntMatrix
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t]:
    """Fill in the entries that are decided at once; note the others, each with the positions of its two uniforms.

    Returns the number of noted entries, the position of the next uniform, and the first entry for which there is none.
    """
    used: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 0
    last: cython.double = -1.0  # most shapes equal the one before: divide once for all of them
    inverse: cython.double = 0.0
    for i in range(shape.shape[0]):
        a: cython.double = shape[i]
        if a <= 0.0:
            logs[i] = -_INF
            continue
        if k == uniforms.shape[0] or (used == u.shape[0] and a < 1.0):
            return n, k, i
        todo[0, n] = i
        todo[1, n] = used
        todo[2, n] = k
        if a < _MEDIUM:
            if a != last:
                last = a
                inverse = 1.0 / a
            x: cython.double = log_rest[used] * inverse
            logs[i] = x
            if a > _TINY or x > _SURE or u[used] < a:
                n += (u[used] < a) | (_under(x) * uniforms[k] < 1.0)
                k += 1
            used += 1
        else:
            used += a < 1.0
            n += 1
    return n, k, shape.shape[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _finish(
    shape: ConstVector,
    u: ConstVector,
    log_rest: ConstVector,
    uniforms: ConstVector,
    k: cython.Py_ssize_t,
    logs: Vector,
    todo: IntMatrix,
    n: cython.Py_ssize_t,
    factors: Vector,
) -> cython.Py_ssize_t:
    """Fill in the n noted entries; return the first that is not done, or -1."""
    large: cython.Py_ssize_t = 0
    last: cython.double = -1.0
    d: cython.double = 0.0
    c: cython.double = 0.0
    stopped: cython.Py_ssize_t = -1
    for j in range(n):
        i: cython.Py_ssize_t = todo[0, j]
        used: cython.Py_ssize_t = todo[1, j]
        a: cython.double = shape[i]
        x: cython.double = 0.0
        if a < _MEDIUM:
            x, k = _small(a, u[used], log_rest[used], uniforms[todo[2, j]], uniforms, k)
        else:
            if a != last:
                last = a
                d = (a if a >= 1.0 else 1.0 + a) - 1.0 / 3.0
                c = 1.0 / sqrt(9.0 * d)
            if a < 1.0:
                x = log_rest[used] / a
            factors[large], k = _large(d, c, uniforms, k)
            todo[0, large] = i
            large += k >= 0
        if k < 0:
            stopped = i
            break
        logs[i] = x
    log_all(factors[:large], factors[:large])
    for j in range(large):
        logs[todo[0, j]] += factors[j]
    return stopped


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _log_gamma(
    shape: ConstVector,
    u: ConstVector,
    uniforms: ConstVector,
    logs: Vector,
    rest: Vector,
    factors: Vector,
    todo: IntMatrix,
) -> cython.Py_ssize_t:
    """Compute logarithms of gamma variates; return the first entry that is not done when the uniforms are used up.

    ``u``: one uniform for every shape below 1; ``uniforms``: further ones, used one after the other. The last three
    arrays are scratch.
    """
    for j in range(u.shape[0]):
        rest[j] = 1.0 - u[j]
    log_all(rest[: u.shape[0]], rest[: u.shape[0]])
    left, k, end = _begin(shape, u, rest, uniforms, logs, todo)
    stopped: cython.Py_ssize_t = _finish(shape, u, rest, uniforms, k, logs, todo, left, factors)
    return end if stopped < 0 else stopped


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _needs(shape: ConstVector) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Return the number of shapes below 1, and a safe number of further uniforms for all of them."""
    n = shape.shape[0]
    small: cython.Py_ssize_t = 0
    more: cython.double = 0.0
    run: cython.Py_ssize_t = 0  # of equal shapes
    for i in range(n):
        run += 1
        if i + 1 == n or shape[i + 1] != shape[i]:
            a: cython.double = shape[i]
            small += run if 0.0 < a < 1.0 else 0
            # One for a decision, which tiny shapes mostly need not, and an occasional retry; or one for a normal
            # variate, too.
            more += run * ((1.0 if a > _TINY else 37.0 * a) + 1.8 * a if a < _MEDIUM else 2.1)
            run = 0
    return small, cython.cast(cython.Py_ssize_t, more + 6.0 * sqrt(more)) + 64


def log_gamma_variates(shape: ConstVector, rng):
    """Return logarithms of gamma variates of these shapes, -inf for shape 0, from a NumPy generator's uniforms.

    Shapes below ``_MEDIUM``: by GS, which is fastest there. Others below 1: a variate of shape a + 1, times the root of
    order a of a uniform one. Those from 1 on: by Marsaglia and Tsang (2000).
    """
    n = shape.shape[0]
    logs = np.empty(n)
    out: Vector = logs
    size: cython.Py_ssize_t = min(n, _BLOCK)
    drawn = np.empty(4 * size + 512)
    uniforms: Vector = drawn
    rest: Vector = np.empty(size)
    factors: Vector = np.empty(size)
    todo: IntMatrix = np.empty((3, size + 1), np.int64)
    first: cython.Py_ssize_t = 0
    while first < n:
        end: cython.Py_ssize_t = min(first + size, n)
        with cython.nogil:
            small, more = _needs(shape[first:end])
        more = min(more, uniforms.shape[0] - small)
        rng.random(out=drawn[: small + more])
        with cython.nogil:
            first += _log_gamma(
                shape[first:end], uniforms[:small], uniforms[small : small + more], out[first:end], rest, factors, todo
            )
    return logs


def normal_variates(n: cython.Py_ssize_t, rng):
    """Return n standard normal variates, from the uniforms of a NumPy generator."""
    if n < 0:
        raise ValueError("a number of variates from 0 on is needed")
    variates = np.empty(n)
    out: Vector = variates
    done: cython.Py_ssize_t = 0
    while done < n:
        uniforms: ConstVector = rng.random(n - done + (n - done) // 32 + 8)
        k: cython.Py_ssize_t = 0
        with cython.nogil:
            while done < n:
                x, k = _normal(uniforms, k)
                if k < 0:
                    break
                out[done] = x
                done += 1
    return variates
