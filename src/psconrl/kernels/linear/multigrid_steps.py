"""Operations of a multigrid method on one level: sweeps, residuals, and the steps of its Krylov method.

A level is a chain without its diagonal: transition rates W in CSR form, and their row sums D. Its equation is :math:`D
h - W h = r`. See ``markov.multigrid``.
"""

import cython
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._lanes import weighted_dot
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstPlaces, ConstVector, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix, check_numbers

_INFINITE = cython.declare(cython.double, float("inf"))
_NO_NUMBER = cython.declare(cython.double, float("nan"))
_NEAR = cython.declare(cython.Py_ssize_t, 1024)  # this many entries stay in the cache while they are used twice


@cython.cfunc
def _check_moves(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, n: cython.Py_ssize_t, shortest: cython.Py_ssize_t
):
    """Raise unless these are the transitions of n states, and the vectors are as long."""
    if indptr.shape[0] != n + 1 or shortest < n:
        raise ValueError("moves and vectors of the same number of states are needed")
    check_matrix(indptr, indices, data.shape[0], n)


def first_sweep(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, inverse: ConstVector, r: ConstVector, z: Vector
):
    """Run a forward Gauss-Seidel sweep from z = 0."""
    _check_moves(indptr, indices, data, r.shape[0], min(inverse.shape[0], z.shape[0]))
    s: cython.Py_ssize_t
    t: cython.Py_ssize_t
    with cython.nogil:
        for s in range(r.shape[0]):
            v: cython.double = r[s]
            for e in range(indptr[s], indptr[s + 1]):
                t = indices[e]
                if t < s:
                    v += data[e] * z[t]
            z[s] = v * inverse[s]


def sweep(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    inverse: ConstVector,
    r: ConstVector,
    gain: cython.double,
    z: Vector,
    down: cython.bint,
):
    """Run a Gauss-Seidel sweep for D z - W z = r - gain, forwards or backwards, in place."""
    _check_moves(indptr, indices, data, r.shape[0], min(inverse.shape[0], z.shape[0]))
    n = r.shape[0]
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            s = n - 1 - i if down else i
            v: cython.double = r[s] - gain
            for e in range(indptr[s], indptr[s + 1]):
                v += data[e] * z[indices[e]]
            z[s] = v * inverse[s]


def sweep_distribution(
    t_indptr: ConstPlaces,
    t_indices: ConstPlaces,
    t_data: ConstVector,
    inverse: ConstVector,
    x: Vector,
    down: cython.bint,
):
    """Run a Gauss-Seidel sweep for x D = x W, in place; a state that is never left keeps its mass."""
    _check_moves(t_indptr, t_indices, t_data, x.shape[0], inverse.shape[0])
    n = x.shape[0]
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            s = n - 1 - i if down else i
            if inverse[s] > 0.0:
                v: cython.double = 0.0
                for e in range(t_indptr[s], t_indptr[s + 1]):
                    v += t_data[e] * x[t_indices[e]]
                x[s] = v * inverse[s]


def imbalance(t_indptr: ConstPlaces, t_indices: ConstPlaces, t_data: ConstVector, leaving: ConstVector, x: ConstVector):
    """Return the mass of a distribution that is out of balance (net inflow or outflow) in one step."""
    _check_moves(t_indptr, t_indices, t_data, x.shape[0], leaving.shape[0])
    total: cython.double = 0.0
    with cython.nogil:
        for s in range(x.shape[0]):
            v: cython.double = -leaving[s] * x[s]
            for e in range(t_indptr[s], t_indptr[s + 1]):
                v += t_data[e] * x[t_indices[e]]
            total += abs(v)
    return total


def drift(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    leaving: ConstVector,
    z: ConstVector,
    gain: cython.double,
    out: Vector,
):
    """Compute D z - W z + gain."""
    _check_moves(indptr, indices, data, z.shape[0], min(leaving.shape[0], out.shape[0]))
    with cython.nogil:
        for s in range(z.shape[0]):
            v: cython.double = leaving[s] * z[s] + gain
            for e in range(indptr[s], indptr[s + 1]):
                v -= data[e] * z[indices[e]]
            out[s] = v


def lowered(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    leaving: ConstVector,
    r: ConstVector,
    z: ConstVector,
    share: ConstVector,
    group: ConstInts,
    out: Vector,
):
    """Compute the residual r - (D z - W z), restricted to groups by weighted sums over their members."""
    _check_moves(indptr, indices, data, z.shape[0], min(leaving.shape[0], r.shape[0], share.shape[0], group.shape[0]))
    check_numbers(group, out.shape[0], "there is no such group")
    with cython.nogil:
        for a in range(out.shape[0]):
            out[a] = 0.0
        for s in range(z.shape[0]):
            v: cython.double = r[s] - leaving[s] * z[s]
            for e in range(indptr[s], indptr[s + 1]):
                v += data[e] * z[indices[e]]
            out[group[s]] += share[s] * v


def raised(group: ConstInts, share: ConstVector, e: ConstVector, z: Vector):
    """Add to every state its share of the correction of its group."""
    if min(group.shape[0], share.shape[0]) < z.shape[0]:
        raise ValueError("a group and a share are needed for every state")
    check_numbers(group, e.shape[0], "there is no such group")
    with cython.nogil:
        for s in range(z.shape[0]):
            z[s] += share[s] * e[group[s]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _orthogonalise(
    weights: ConstVector,
    basis: ConstMatrix,
    found: ConstMatrix,
    gains: ConstVector,
    k: cython.Py_ssize_t,
    v: Vector,
    c: Vector,
    gain: cython.double,
) -> cython.double:
    """Compute ``against``."""
    n = v.shape[0]
    for i in range(k):
        b: cython.double = weighted_dot(weights, basis[i], v, 0, n)
        gain -= b * gains[i]
        for s in range(n):
            v[s] -= b * basis[i, s]
            c[s] -= b * found[i, s]
    length: cython.double = weighted_dot(weights, v, v, 0, n)
    if not length > 0.0:
        return _NO_NUMBER
    scale: cython.double = 1.0 / sqrt(length)
    for s in range(n):
        v[s] *= scale
        c[s] *= scale
    return gain * scale


def against(
    weights: ConstVector,
    basis: ConstMatrix,
    found: ConstMatrix,
    gains: ConstVector,
    k: cython.Py_ssize_t,
    v: Vector,
    c: Vector,
    gain: cython.double,
):
    """Orthonormalise v against the first k rows of the basis, and update c and the gain with it; return the gain.

    Inner products are weighted by the weights of states.
    """
    n = v.shape[0]
    if weights.shape[0] != n or c.shape[0] != n or basis.shape[1] != n or found.shape[1] != n:
        raise ValueError("weights, basis and vectors must have the same number of states")
    if not 0 <= k <= min(basis.shape[0], found.shape[0], gains.shape[0]):
        raise ValueError("the basis has fewer than k rows")
    with cython.nogil:
        gain = _orthogonalise(weights, basis, found, gains, k, v, c, gain)
    return gain


def step_along(weights: ConstVector, v: ConstVector, c: ConstVector, r: Vector, x: Vector):
    """Remove the part of r along v, and add as much of c to x; return that amount, and the norm of the rest."""
    n = v.shape[0]
    if weights.shape[0] != n or c.shape[0] != n or r.shape[0] != n or x.shape[0] != n:
        raise ValueError("weights and vectors must have the same number of states")
    left: cython.double = 0.0
    with cython.nogil:
        a: cython.double = weighted_dot(weights, v, r, 0, n)
        begin: cython.Py_ssize_t = 0
        while begin < n:
            end: cython.Py_ssize_t = min(begin + _NEAR, n)
            for s in range(begin, end):
                x[s] += a * c[s]
                r[s] -= a * v[s]
            left += weighted_dot(weights, r, r, begin, end)
            begin = end
    return a, sqrt(left)


def largest(r: ConstVector):
    """Return the largest absolute entry; infinite if one is NaN."""
    worst: cython.double = 0.0
    with cython.nogil:
        for s in range(r.shape[0]):
            size: cython.double = abs(r[s])
            if not size < _INFINITE:
                worst = _INFINITE
                break
            worst = max(worst, size)
    return worst
