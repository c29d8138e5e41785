"""Blocks of optimistic value iteration with a regression of values on successors; see ``posterior.ridge``.

The regression is given in CSR form: by ``indptr`` into the successors of every pair and their shares. Sums over actions
are taken in the order in which NumPy adds up a row.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstMatrix, ConstPlaces, ConstVector, IntMatrix, Matrix, Vector
from cython.cimports.psconrl.kernels.arithmetic.special import exp_all
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix

_TOGETHER = cython.declare(cython.Py_ssize_t, 128)  # longer rows are halved, and each half is added up


@cython.cfunc
@cython.exceptval(-1, check=False)
def _n_actions(
    gains: ConstMatrix,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    shares: ConstVector,
    n_states: cython.Py_ssize_t,
    H: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return the number of actions, for gains (q, S*A) and a regression that match."""
    pairs = gains.shape[1]
    if n_states < 1 or pairs == 0 or pairs % n_states or indptr.shape[0] != pairs + 1 or H < 1:
        raise ValueError("gains and a row of the regression for every pair, and a block of some steps, are needed")
    check_matrix(indptr, successors, shares.shape[0], n_states)
    return pairs // n_states


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _expected(
    indptr: ConstPlaces,
    successors: ConstPlaces,
    shares: ConstVector,
    pair: cython.Py_ssize_t,
    values: ConstMatrix,
    i: cython.Py_ssize_t,
) -> cython.double:
    """Return the regression for a pair of the values in row i."""
    total: cython.double = 0.0
    for e in range(indptr[pair], indptr[pair + 1]):
        total += shares[e] * values[i, successors[e]]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _total(x: ConstVector, begin: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.double:
    """Return the sum of n entries from ``begin`` on, in the order of NumPy."""
    total: cython.double = 0.0
    if n < 8:
        for j in range(begin, begin + n):
            total += x[j]
        return total
    if n > _TOGETHER:
        half: cython.Py_ssize_t = n // 2
        half -= half % 8
        return _total(x, begin, half) + _total(x, begin + half, n - half)
    a: cython.double = x[begin]
    b: cython.double = x[begin + 1]
    c: cython.double = x[begin + 2]
    d: cython.double = x[begin + 3]
    e: cython.double = x[begin + 4]
    f: cython.double = x[begin + 5]
    g: cython.double = x[begin + 6]
    h: cython.double = x[begin + 7]
    end: cython.Py_ssize_t = begin + n - n % 8
    for j in range(begin + 8, end, 8):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
        e += x[j + 4]
        f += x[j + 5]
        g += x[j + 6]
        h += x[j + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for j in range(end, begin + n):
        total += x[j]
    return total


def clipped_block(
    gains: ConstMatrix,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    shares: ConstVector,
    n_states: cython.Py_ssize_t,
    H: cython.Py_ssize_t,
    clip: cython.double,
):
    """Return the greedy actions (H, S) for gains (1, S*A); no value is more than ``clip`` above the least one."""
    A = _n_actions(gains, indptr, successors, shares, n_states, H)
    if gains.shape[0] != 1:
        raise ValueError("one gain for every pair is needed")
    result = np.empty((H, n_states), np.int64)
    actions: IntMatrix = result
    values: Matrix = np.zeros((2, n_states))
    with cython.nogil:
        for h in range(H - 1, -1, -1):
            least: cython.double = 0.0
            for s in range(n_states):
                best: cython.double = 0.0
                for a in range(A):
                    pair: cython.Py_ssize_t = s * A + a
                    value: cython.double = gains[0, pair] + _expected(indptr, successors, shares, pair, values, 0)
                    if a == 0 or value > best:
                        best = value
                        actions[h, s] = a
                values[1, s] = best
                if s == 0 or best < least:
                    least = best
            for s in range(n_states):
                best = values[1, s] - least  # less a number that is the same for all states
                values[0, s] = clip if clip < best else best
    return result


def softmax_block(
    gains: ConstMatrix,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    shares: ConstVector,
    n_states: cython.Py_ssize_t,
    H: cython.Py_ssize_t,
    weights: ConstVector,
    sharpness: cython.double,
):
    """Return the softmax policy (H, S, A) of values weighted by (q,), and its values (q, S), for gains (q, S*A).

    No value of a pair is larger than H.
    """
    A = _n_actions(gains, indptr, successors, shares, n_states, H)
    q, pairs = gains.shape[0], gains.shape[1]
    if weights.shape[0] != q:
        raise ValueError("a weight for every kind of gains is needed")
    result, final = np.empty((H, n_states, A)), np.zeros((q, n_states))
    policy: Matrix = result.reshape(H, pairs)
    values: Matrix = final
    of_pairs: Matrix = np.empty((q, pairs))
    scores: Vector = np.empty(pairs)
    with cython.nogil:
        for h in range(H - 1, -1, -1):
            for i in range(q):
                for pair in range(pairs):
                    value: cython.double = gains[i, pair] + _expected(indptr, successors, shares, pair, values, i)
                    of_pairs[i, pair] = H if value > H else value
            for pair in range(pairs):
                scores[pair] = 0.0
            for i in range(q):
                if weights[i] != 0.0:
                    for pair in range(pairs):
                        scores[pair] += weights[i] * of_pairs[i, pair]
            for s in range(n_states):
                best: cython.double = 0.0
                for a in range(A):
                    scores[s * A + a] *= sharpness
                    if a == 0 or scores[s * A + a] > best:
                        best = scores[s * A + a]
                for a in range(A):
                    scores[s * A + a] -= best
            exp_all(scores, scores)
            for s in range(n_states):
                total: cython.double = _total(scores, s * A, A)
                for a in range(A):
                    policy[h, s * A + a] = scores[s * A + a] / total
            for i in range(q):
                for pair in range(pairs):
                    scores[pair] = policy[h, pair] * of_pairs[i, pair]
                for s in range(n_states):
                    values[i, s] = _total(scores, s * A, A)
    return result, final
