r"""Stationary distribution of a sparse chain by GTH elimination with numbers of any size.

As ``sparse_elimination``, for chains with masses below 1e-300: in a queue of 10,000 places the states between an idle
and an overloaded regime may have masses of 1e-1000, which still determine how much time the chain spends in each. A
number is :math:`m \cdot 2^{512 e}` with a double m in :math:`[2^{-256}, 2^{256})` and an integer e.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstPlaces, ConstVector, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers, check_starts

_LARGE = cython.declare(cython.double, 2.0**256)
_SMALL = cython.declare(cython.double, 2.0**-256)
_UP = cython.declare(cython.double, 2.0**512)
_DOWN = cython.declare(cython.double, 2.0**-512)
_LOG_UP = cython.declare(cython.double, 512.0 * 0.6931471805599453)

Wide = cython.struct(m=cython.double, e=cython.int)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _wide(m: cython.double, e: cython.int) -> Wide:
    """Return a number whose m may be out of range by one factor of 2**512."""
    if m >= _LARGE:
        m *= _DOWN
        e += 1
    elif m < _SMALL and m > 0.0:
        m *= _UP
        e -= 1
    return Wide(m, e)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _sum(x: Wide, y: Wide) -> Wide:
    if x.m == 0.0 or (y.m > 0.0 and y.e > x.e):
        x, y = y, x
    if y.m == 0.0 or y.e < x.e - 1:
        return x
    return _wide(x.m + y.m if x.e == y.e else x.m + y.m * _DOWN, x.e)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _product(x: Wide, y: Wide) -> Wide:
    return _wide(x.m * y.m, x.e + y.e)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _ratio(x: Wide, y: Wide) -> Wide:
    return _wide(x.m / y.m, x.e - y.e)


@cython.cclass
class _Work:
    """An order, and numbers by position and entry of the order."""

    position: ConstInts
    state: ConstInts
    lower: ConstInts
    upper: ConstInts
    before: cython.const[cython.uint][::1]
    after: cython.const[cython.uint][::1]
    F: Wide[::1]
    U: Wide[::1]
    outs: Wide[::1]
    w: Wide[::1]
    leave: Wide[::1]

    def __init__(self, order):
        S = order.position.size
        self.position, self.state = order.position, order.state
        self.lower, self.before, self.upper, self.after = order.lower, order.before, order.upper, order.after
        check_numbers(self.position, S, "there is no such position")
        check_numbers(self.state, S, "there is no such state")
        if self.state.shape[0] != S or self.lower.shape[0] != S + 1 or self.upper.shape[0] != S + 1:
            raise ValueError("an order of S states is needed, and S + 1 beginnings of its rows")
        check_starts(self.lower, self.before.shape[0])
        check_starts(self.upper, self.after.shape[0])
        fits: cython.bint = True
        i: cython.Py_ssize_t
        e: cython.Py_ssize_t
        for i in range(S):
            for e in range(self.lower[i], self.lower[i + 1]):
                fits &= self.before[e] < i
            for e in range(self.upper[i], self.upper[i + 1]):
                fits &= i < self.after[e] < S
        if not fits:
            raise ValueError("the rows of an order must lead to positions before and after them")
        number = np.dtype([("m", np.float64), ("e", np.int32)], align=True)
        self.F, self.U = np.zeros(order.before.size, number), np.zeros(order.after.size, number)
        self.outs, self.w, self.leave = np.zeros(S, number), np.zeros(S, number), np.zeros(S, number)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _censor(work: _Work, i: cython.Py_ssize_t) -> cython.bint:
    """Absorb the earlier rows into a row, and store its later entries; return whether there are any."""
    nothing: Wide = _wide(0.0, 0)
    e: cython.Py_ssize_t
    k: cython.Py_ssize_t
    t: cython.Py_ssize_t
    for e in range(work.lower[i], work.lower[i + 1]):
        k = work.before[e]
        f: Wide = work.w[k]
        work.w[k] = nothing
        if f.m > 0.0:
            f = _ratio(f, work.outs[k])
            for t in range(work.upper[k], work.upper[k + 1]):
                work.w[work.after[t]] = _sum(work.w[work.after[t]], _product(f, work.U[t]))
            work.leave[i] = _sum(work.leave[i], _product(f, work.leave[k]))
        work.F[e] = f
    work.w[i] = nothing
    out: Wide = work.leave[i]
    for t in range(work.upper[i], work.upper[i + 1]):
        k = work.after[t]
        work.U[t] = work.w[k]
        work.w[k] = nothing
        out = _sum(out, work.U[t])
    work.outs[i] = out
    return out.m > 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_visits(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, reference: cython.Py_ssize_t, work: _Work
) -> cython.Py_ssize_t:
    """Compute the visits to all positions between two to the reference, in w; return -1, or a state in a trap."""
    S = work.position.shape[0]
    last = work.position[reference]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    t: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for i in range(S):
        if i == last:
            continue  # its entries stay zero
        s = work.state[i]
        for e in range(indptr[s], indptr[s + 1]):
            j = work.position[indices[e]]
            if j == last:
                work.leave[i] = _sum(work.leave[i], _wide(data[e], 0))
            else:
                work.w[j] = _sum(work.w[j], _wide(data[e], 0))
        if not _censor(work, i):
            return s
    for e in range(indptr[reference], indptr[reference + 1]):
        j = work.position[indices[e]]
        if j != last:
            work.w[j] = _sum(work.w[j], _wide(data[e], 0))
    for i in range(S):
        if work.w[i].m > 0.0:
            work.w[i] = _ratio(work.w[i], work.outs[i])
            for t in range(work.upper[i], work.upper[i + 1]):
                work.w[work.after[t]] = _sum(work.w[work.after[t]], _product(work.w[i], work.U[t]))
    work.w[last] = _wide(1.0, 0)
    for i in range(S - 1, -1, -1):
        if i != last:
            for e in range(work.lower[i], work.lower[i + 1]):
                j = work.before[e]
                work.w[j] = _sum(work.w[j], _product(work.w[i], work.F[e]))
    return -1


def log_masses(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, reference: cython.Py_ssize_t, order):
    """Return -1 and the logarithms of the stationary masses (S,) of a chain (S, S) with one closed class.

    If there are states from which the reference is not reached, the first value is one of them, and the masses are not
    computed. Entries as in the order, unsorted. The largest mass is one.
    """
    S = order.position.size
    if indptr.shape[0] != S + 1 or not 0 <= reference < S:
        raise ValueError("a chain and an order of S states, and one of the states, are needed")
    check_graph(indptr, indices, data.shape[0], S)
    work: _Work = _Work(order)
    with cython.nogil:
        stuck: cython.Py_ssize_t = _count_visits(indptr, indices, data, reference, work)
    mantissa, exponent = np.zeros(S), np.zeros(S)
    if stuck >= 0:
        return stuck, mantissa
    m: Vector = mantissa
    e: Vector = exponent
    s: cython.Py_ssize_t
    for s in range(S):
        x: Wide = work.w[work.position[s]]
        m[s] = x.m
        e[s] = x.e
    with np.errstate(divide="ignore"):
        logs = np.log(mantissa) + _LOG_UP * exponent
    return stuck, logs - logs.max()
