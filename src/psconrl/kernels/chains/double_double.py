r"""Sums in double-double precision, for potentials that need more than one double per state.

Where a part of a model is left once in 1e12 steps, the potential h is of that size, and a double resolves it to 1e-4
only, which is too coarse within that part. So h is kept as an unevaluated sum of two doubles, ``high + low``, and
:math:`\sum_{s'} P(s'|s,a)\,(h(s') - h(s))` is summed with its rounding errors (Dekker 1971; Ogita, Rump and Oishi 2005,
algorithm Dot2).
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstTables,
    ConstVector,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.chains.policy_chain import gather_rows
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers, check_some_rows
from cython.cimports.psconrl.kernels.linear.elimination import solve_unichain

_EPS = cython.declare(cython.double, 2.0**-52)  # twice the largest relative error of a rounding
_UNDERFLOW = cython.declare(cython.double, 1e-321)  # more than products of tiny numbers lose
_SPLITTER = cython.declare(cython.double, 134217729.0)  # 2^27 + 1: splits a double into two halves of 26 bits


@cython.ccall
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def two_sum(a: cython.double, b: cython.double) -> tuple[cython.double, cython.double]:
    """Return the rounded sum and its rounding error (Knuth 1969)."""
    s: cython.double = a + b
    t: cython.double = s - a
    return s, (a - (s - t)) + (b - t)


@cython.ccall
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def two_product(a: cython.double, b: cython.double) -> tuple[cython.double, cython.double]:
    """Return the rounded product and its rounding error (Dekker 1971)."""
    p: cython.double = a * b
    t: cython.double = _SPLITTER * a
    a_high: cython.double = t - (t - a)
    a_low: cython.double = a - a_high
    t = _SPLITTER * b
    b_high: cython.double = t - (t - b)
    b_low: cython.double = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _add_move(
    total: cython.double,
    rest: cython.double,
    p: cython.double,
    high: cython.double,
    low: cython.double,
    high_here: cython.double,
    low_here: cython.double,
) -> tuple[cython.double, cython.double]:
    """Add p (h(j) - h(s)), h(j) before h(s), to a sum and its rounding errors."""
    difference, lost = two_sum(high, -high_here)
    product, more = two_product(p, difference)
    total, error = two_sum(total, product)
    return total, rest + (error + (more + p * (lost + (low - low_here))))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drift_of_row(
    row: ConstVector,
    s: cython.Py_ssize_t,
    high: ConstVector,
    low: ConstVector,
    total: cython.double,
    rest: cython.double,
) -> cython.double:
    """Add the expected change of h from state s, given by a dense row, to a sum and its rounding errors."""
    high_here, low_here = high[s], low[s]
    for j in range(row.shape[0]):
        if row[j] > 0.0 and j != s:
            total, rest = _add_move(total, rest, row[j], high[j], low[j], high_here, low_here)
    return total + rest


def drift_dense(P: ConstMatrix, high: ConstVector, low: ConstVector):
    """Return the expected change of h in every pair, (S, A), for dense P (S*A, S)."""
    S = high.shape[0]
    if S == 0 or P.shape[0] % S or P.shape[1] != S or low.shape[0] != S:
        raise ValueError("transitions (S*A, S) and both parts (S,) of a potential are needed")
    A = P.shape[0] // S
    result = np.empty((S, A))
    out: Matrix = result
    with cython.nogil:
        for s in range(S):
            for a in range(A):
                out[s, a] = _drift_of_row(P[s * A + a], s, high, low, 0.0, 0.0)
    return result


def drift_of_states(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    high: ConstVector,
    low: ConstVector,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    result: Matrix,
):
    """Compute the expected change of h for a CSR matrix and a range of states, into their rows of the result (S, A)."""
    S, A = result.shape[0], result.shape[1]
    if high.shape[0] != S or low.shape[0] != S or not 0 <= begin <= end <= S:
        raise ValueError("both parts (S,) of a potential and a range of states are needed")
    if indptr.shape[0] != S * A + 1:
        raise ValueError("transitions (S*A, S) in CSR form are needed")
    check_some_rows(indptr, indices, data.shape[0], begin * A, end * A, S)
    s: cython.Py_ssize_t
    a: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for s in range(begin, end):
            high_here, low_here = high[s], low[s]
            for a in range(A):
                total: cython.double = 0.0
                rest: cython.double = 0.0
                for k in range(indptr[s * A + a], indptr[s * A + a + 1]):
                    j = indices[k]
                    if j != s:
                        total, rest = _add_move(total, rest, data[k], high[j], low[j], high_here, low_here)
                result[s, a] = total + rest


def drift_sparse(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, high: ConstVector, low: ConstVector):
    """Return the expected change of h in every pair, (S, A), for a CSR matrix."""
    S = high.shape[0]
    result = np.empty((S, (indptr.shape[0] - 1) // max(S, 1)))
    drift_of_states(indptr, indices, data, high, low, 0, S, result)
    return result


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _add_term(
    total: cython.double,
    rest: cython.double,
    size: cython.double,
    factor: cython.double,
    left: cython.double,
    right: cython.double,
    low: cython.double,
) -> tuple[cython.double, cython.double, cython.double]:
    """Add factor (left - right + low) to a sum, its rounding errors, and the sum of the sizes of these errors."""
    difference, lost = two_sum(left, -right)
    product, more = two_product(factor, difference)
    total, error = two_sum(total, product)
    size += abs(error) + abs(more) + abs(factor) * (abs(lost) + abs(low))
    return total, rest + (error + (more + factor * (lost + low))), size


def precise_reduced_costs(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    high: ConstVector,
    low: ConstVector,
    costs: ConstTables,
    weights: ConstVector,
    bases: ConstVector,
    available: ConstFlagMatrix,
):
    """Return the sums of weights (q,) times costs minus bases (q,) plus the drift of h, (S, A), and their rounding.

    They are summed in double-double precision. The rounding (S, A) bounds the error of every entry. Pairs that are not
    available cost inf. Transitions are in CSR form.
    """
    q, S, A = costs.shape[0], costs.shape[1], costs.shape[2]
    if high.shape[0] != S or low.shape[0] != S or weights.shape[0] != q or bases.shape[0] != q:
        raise ValueError("both parts (S,) of a potential, and weights and bases (q,) of the costs are needed")
    if indptr.shape[0] != S * A + 1 or available.shape[0] != S or available.shape[1] != A:
        raise ValueError("transitions (S*A, S) in CSR form and the available pairs (S, A) are needed")
    check_some_rows(indptr, indices, data.shape[0], 0, S * A, S)
    result, errors = np.full((S, A), np.inf), np.zeros((S, A))
    reduced: Matrix = result
    rounding: Matrix = errors
    with cython.nogil:
        for s in range(S):
            for a in range(A):
                if not available[s, a]:
                    continue
                total: cython.double = 0.0
                rest: cython.double = 0.0
                size: cython.double = 0.0
                for i in range(q):
                    total, rest, size = _add_term(total, rest, size, weights[i], costs[i, s, a], bases[i], 0.0)
                for k in range(indptr[s * A + a], indptr[s * A + a + 1]):
                    j: cython.Py_ssize_t = indices[k]
                    if j != s:
                        total, rest, size = _add_term(total, rest, size, data[k], high[j], high[s], low[j] - low[s])
                terms: cython.double = q + indptr[s * A + a + 1] - indptr[s * A + a] + 8
                reduced[s, a] = total + rest
                rounding[s, a] = _EPS * abs(total + rest) + terms * (2.0 * _EPS * size + _UNDERFLOW)
    return result, errors


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _correct(
    gains: Vector,
    gains_low: Vector,
    high: Matrix,
    low: Matrix,
    more: ConstVector,
    correction: ConstMatrix,
    reference: cython.Py_ssize_t,
) -> cython.void:
    """Add the solution for the residual to gains and biases; the bias of the reference stays zero."""
    rest: cython.double
    for i in range(gains.shape[0]):
        gains[i], rest = two_sum(gains[i], more[i])
        gains_low[i] += rest
        base = correction[i, reference]
        for s in range(high.shape[1]):
            high[i, s], rest = two_sum(high[i, s], correction[i, s] - base)
            high[i, s], low[i, s] = two_sum(high[i, s], low[i, s] + rest)


def refined_unichain(
    P: ConstMatrix, rows: ConstInts, costs: ConstMatrix, reference: cython.Py_ssize_t, rounds: cython.Py_ssize_t
):
    r"""Return ``unichain`` of rows of P in two parts: reference, gains, high, low, stationary, slowest exit.

    Iterative refinement: the residual of a solution, :math:`r = c - g + P h - h`, summed in double-double precision, is
    taken as the cost of the same chain, whose gain and bias correct g and h. The reference is -1 if there are two
    closed classes.
    """
    S, q = rows.shape[0], costs.shape[0]
    if P.shape[1] != S or costs.shape[1] != P.shape[0] or not 0 <= reference < S:
        raise ValueError("transitions (S*A, S), costs (q, S*A) and one of the states are needed")
    check_numbers(rows, P.shape[0], "there is no such row")
    all_gains, all_high, all_low, distribution = np.zeros(q), np.zeros((q, S)), np.zeros((q, S)), np.zeros(S)
    gains: Vector = all_gains
    high: Matrix = all_high
    low: Matrix = all_low
    stationary: Vector = distribution
    chain: Matrix = np.empty((S, S))
    W: Matrix = np.empty((S, S))
    C: Matrix = np.empty((S, q + 1))
    cost: Matrix = np.empty((q, S))
    left: Matrix = np.empty((q, S))
    correction: Matrix = np.empty((q, S))
    more: Vector = np.empty(q)
    gains_low: Vector = np.zeros(q)
    other_stationary: Vector = np.empty(S)
    with cython.nogil:
        gather_rows(P, rows, costs, chain, cost)
        reference, slowest = solve_unichain(chain, cost, reference, W, C, gains, high, stationary)
        for _ in range(rounds if reference >= 0 else 0):
            for i in range(q):
                for s in range(S):
                    total, rest = two_sum(cost[i, s], -gains[i])
                    left[i, s] = _drift_of_row(chain[s], s, high[i], low[i], total, rest - gains_low[i])
            other, _exit = solve_unichain(chain, left, reference, W, C, more, correction, other_stationary)
            if other < 0:
                break
            _correct(gains, gains_low, high, low, more, correction, reference)
    return reference, all_gains, all_high, all_low, distribution, slowest


def combine(weights: ConstVector, high: ConstMatrix, low: ConstMatrix):
    """Return the weighted sum of layers (q, S), as a high and a low part (S,)."""
    q, S = high.shape[0], high.shape[1]
    if weights.shape[0] != q or low.shape[0] != q or low.shape[1] != S:
        raise ValueError("weights (q,) and both parts (q, S) of the layers are needed")
    sums, rests = np.zeros(S), np.zeros(S)
    total: Vector = sums
    rest: Vector = rests
    with cython.nogil:
        for i in range(q):
            w: cython.double = weights[i]
            if w == 0.0:
                continue
            for s in range(S):
                product, lost = two_product(w, high[i, s])
                total[s], error = two_sum(total[s], product)
                rest[s] += error + (lost + w * low[i, s])
        for s in range(S):
            total[s], rest[s] = two_sum(total[s], rest[s])
    return sums, rests
