r"""Averages of a policy in many models at once, by GTH elimination; of small chains, eight are the lanes of one.

Draws from a posterior are chains of the same size, so that eight of them can be eliminated together, entry by entry,
with one vector instruction where a single chain would need one for each. Rows are completed from the last one on, each
absorbing the states that were censored before it,

.. math:: w_{ij} = P_{ij} + \sum_{k > \max(i,j)} f_{ik} w_{kj}, \qquad
          f_{ik} = w_{ik} / o_k, \qquad o_k = \sum_{j<k} w_{kj},

and its costs alike. What remains is one cycle of the reference state: its expected costs, divided by its expected
length, are the averages (``kernels.linear.elimination`` has the reasons for never subtracting). Chains whose lanes do
not fit into a fast cache are eliminated one by one.

A draw that has a closed class without the reference, or whose numbers leave the range of doubles, is reported, so that
the caller may evaluate it by itself.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstMatrix,
    ConstPlaces,
    ConstTables,
    ConstVector,
    Flags,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix
from cython.cimports.psconrl.kernels.linear.elimination import eliminate

_LANES = cython.declare(cython.Py_ssize_t, 8)
# Larger chains are eliminated one by one.
_LANE_STATES = cython.declare(cython.Py_ssize_t, 24)
_LARGEST = cython.declare(cython.double, 1e300)


@cython.cclass
class _Draws:
    """Models drawn, the reference state, and the results."""

    indptr: ConstPlaces
    indices: ConstPlaces
    data: ConstVector
    costs: ConstTables
    policies: ConstTables
    reference: cython.Py_ssize_t
    averages: Matrix
    computed: Flags


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_products(
    f: ConstVector,
    columns: Matrix,
    j: cython.Py_ssize_t,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    i: cython.Py_ssize_t,
) -> cython.void:
    """Add the sum of f times a column, over a range of states, to its entry i, in every lane."""
    at: cython.Py_ssize_t = 8 * i
    a0: cython.double = columns[j, at]
    a1: cython.double = columns[j, at + 1]
    a2: cython.double = columns[j, at + 2]
    a3: cython.double = columns[j, at + 3]
    a4: cython.double = columns[j, at + 4]
    a5: cython.double = columns[j, at + 5]
    a6: cython.double = columns[j, at + 6]
    a7: cython.double = columns[j, at + 7]
    for k in range(8 * begin, 8 * end, 8):
        a0 += f[k] * columns[j, k]
        a1 += f[k + 1] * columns[j, k + 1]
        a2 += f[k + 2] * columns[j, k + 2]
        a3 += f[k + 3] * columns[j, k + 3]
        a4 += f[k + 4] * columns[j, k + 4]
        a5 += f[k + 5] * columns[j, k + 5]
        a6 += f[k + 6] * columns[j, k + 6]
        a7 += f[k + 7] * columns[j, k + 7]
    columns[j, at], columns[j, at + 1], columns[j, at + 2], columns[j, at + 3] = a0, a1, a2, a3
    columns[j, at + 4], columns[j, at + 5], columns[j, at + 6], columns[j, at + 7] = a4, a5, a6, a7


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _eliminate_lanes(W: Matrix, C: Matrix, outs: Vector, f: Vector) -> cython.void:
    """Censor all states but the first out of eight chains; ``outs`` is 0 where a state has no transition downwards.

    Column j of the chains is row j of W, and a cost a row of C.
    """
    n = W.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(n - 1, -1, -1):
            _add_products(f, W, j, max(i, j) + 1, n, i)
            if j > i:
                for lane in range(8):
                    out: cython.double = outs[8 * j + lane]
                    f[8 * j + lane] = W[j, 8 * i + lane] / out if out > 0.0 else 0.0
        for c in range(C.shape[0]):
            _add_products(f, C, c, i + 1, n, i)
        for lane in range(8):
            outs[8 * i + lane] = 0.0
        for j in range(i):
            for lane in range(8):
                outs[8 * i + lane] += W[j, 8 * i + lane]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _position(s: cython.Py_ssize_t, reference: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the position of a state: the reference and state 0, which is never censored, are swapped."""
    return 0 if s == reference else reference if s == 0 else s


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place(
    draws: _Draws,
    draw: cython.Py_ssize_t,
    policy: ConstMatrix,
    W: Matrix,
    C: Matrix,
    lanes: cython.bint,
    lane: cython.Py_ssize_t,
) -> cython.void:
    """Add the chain of a policy in one draw, and its costs: to a lane, or as rows, with one column for each cost."""
    S, A, q = policy.shape[0], policy.shape[1], draws.costs.shape[1]
    of = draw if draws.costs.shape[0] > 1 else 0
    for s in range(S):
        i = _position(s, draws.reference)
        if lanes:
            C[q, 8 * i + lane] = 1.0
        else:
            C[i, q] = 1.0
        for a in range(A):
            share = policy[s, a]
            if share > 0.0:
                for c in range(q):
                    if lanes:
                        C[c, 8 * i + lane] += share * draws.costs[of, c, s * A + a]
                    else:
                        C[i, c] += share * draws.costs[of, c, s * A + a]
                row = (draw * S + s) * A + a
                for e in range(draws.indptr[row], draws.indptr[row + 1]):
                    j = _position(draws.indices[e], draws.reference)
                    if lanes:
                        W[j, 8 * i + lane] += share * draws.data[e]
                    else:
                        W[i, j] += share * draws.data[e]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _in_lanes(draws: _Draws, W: Matrix, C: Matrix, outs: Vector, f: Vector) -> cython.void:
    """Compute the averages of eight draws at a time."""
    n, q = draws.averages.shape[0], draws.averages.shape[1]
    for begin in range(0, n, 8):
        W[:, :] = 0.0
        C[:, :] = 0.0
        for lane in range(8):
            draw = min(begin + lane, n - 1)
            _place(draws, draw, draws.policies[draw if draws.policies.shape[0] > 1 else 0], W, C, True, lane)
        _eliminate_lanes(W, C, outs, f)
        for lane in range(min(_LANES, n - begin)):
            good: cython.bint = True
            for i in range(1, W.shape[0]):
                good &= outs[8 * i + lane] > 0.0
            length: cython.double = C[q, lane]
            good &= 0.0 < length < _LARGEST
            for c in range(q):
                draws.averages[begin + lane, c] = C[c, lane] / length if good else 0.0
            draws.computed[begin + lane] = good


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _one_by_one(draws: _Draws, W: Matrix, C: Matrix) -> cython.void:
    """Compute the averages of one draw after the other."""
    n, q = draws.averages.shape[0], draws.averages.shape[1]
    for draw in range(n):
        W[:, :] = 0.0
        C[:, :] = 0.0
        _place(draws, draw, draws.policies[draw if draws.policies.shape[0] > 1 else 0], W, C, False, 0)
        stuck, _ = eliminate(W, C)
        length: cython.double = C[0, q]
        good: cython.bint = stuck == 0 and 0.0 < length < _LARGEST
        for c in range(q):
            draws.averages[draw, c] = C[0, c] / length if good else 0.0
        draws.computed[draw] = good


def drawn_averages(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    costs: ConstTables,
    policies: ConstTables,
    reference: cython.Py_ssize_t,
):
    """Return the averages (n, q) in n draws, and whether each has been computed, (n,).

    The transitions of all draws, (n*S*A, S) in CSR form, entries in any order; costs (n, q, S*A), or (1, q, S*A) if
    they are the same in all draws; policies (n, S, A) or (1, S, A). ``reference``: a state that is recurrent.
    """
    S, A, q = policies.shape[1], policies.shape[2], costs.shape[1]
    rows = indptr.shape[0] - 1
    if S < 1 or A < 1 or rows < 1 or rows % (S * A) or costs.shape[2] != S * A or not 0 <= reference < S:
        raise ValueError("transitions (n*S*A, S), costs (q, S*A), policies (S, A) and one of the states are needed")
    n = rows // (S * A)
    if costs.shape[0] not in (1, n) or policies.shape[0] not in (1, n):
        raise ValueError("costs and policies of every draw are needed, or one for all")
    check_matrix(indptr, indices, data.shape[0], S)
    averages, done = np.zeros((n, q)), np.zeros(n, np.bool_)
    draws: _Draws = _Draws()
    draws.indptr, draws.indices, draws.data = indptr, indices, data
    draws.costs, draws.policies, draws.reference = costs, policies, reference
    draws.averages, draws.computed = averages, done
    small: cython.bint = S <= _LANE_STATES
    W: Matrix = np.empty((S, _LANES * S if small else S))
    C: Matrix = np.empty((q + 1, _LANES * S) if small else (S, q + 1))
    outs: Vector = np.empty(_LANES * S)
    f: Vector = np.empty(_LANES * S)
    with cython.nogil:
        if small:
            _in_lanes(draws, W, C, outs, f)
        else:
            _one_by_one(draws, W, C)
    return averages, done
