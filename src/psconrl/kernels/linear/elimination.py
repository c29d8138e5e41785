r"""GTH elimination of dense Markov chains: gains, biases, stationary distributions, absorption.

Chains that come from posterior samples have transition probabilities down to 1e-300. In ``I - P`` they are lost against
1, and Gaussian elimination then reports a connected chain as disconnected. The elimination of Grassmann, Taksar and
Heyman (1985) never subtracts: the pivot :math:`1 - P_{kk}` is taken as the sum of the other entries of the row. Every
quantity below except the bias is therefore accurate in each component, however rarely visited.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import row_dot, row_sum
from cython.cimports.psconrl.kernels._types import ConstMatrix, Matrix, Vector

# Chains with more states are censored in blocks of this size.
_UNBLOCKED = cython.declare(cython.Py_ssize_t, 128)
_BLOCK = cython.declare(cython.Py_ssize_t, 48)

# The bias is relative to a state with at least this share of the largest stationary mass.
_REFERENCE_SHARE = cython.declare(cython.double, 1e-2)


def eliminate(W, C):
    """Censor the states n-1, ..., 1 out of the chain W; return 0, or the first state without a transition downwards.

    Also returns the smallest probability with which a censored state leaves for the remaining ones. Four states are
    censored at a time, and large chains in blocks, whose effect on all other rows is one matrix product.
    """
    slowest: cython.double = 1.0
    out: cython.double
    end = W.shape[0]
    while end > 1 and (end % 4 or end == 4):
        out = _censor_one(W, C, end - 1, 0)
        if out <= 0.0:
            return end - 1, 0.0
        slowest = min(slowest, out)
        end -= 1
    while end > 1:
        begin = end - _BLOCK if end > _UNBLOCKED else 0
        for first in range(end - 4, begin - 1, -4):
            stuck, out = _censor_four(W, C, first, begin)
            if stuck > 0:
                return stuck, 0.0
            slowest = min(slowest, out)
        _add_block(W, begin, end)
        end = begin
    return 0, slowest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _censor_one(W: Matrix, C: Matrix, k: cython.Py_ssize_t, first: cython.Py_ssize_t) -> cython.double:
    """Censor state k out of the rows from ``first`` on; return the probability of leaving it for earlier states.

    On return it is on the diagonal of W, with the visits to the state above it. C holds the accumulated costs.
    """
    q = C.shape[1]
    out: cython.double = row_sum(W, k, k)
    if out <= 0.0:
        return 0.0
    W[k, k] = out
    for i in range(first, k):
        f: cython.double = W[i, k]
        if f > 0.0:
            f /= out
            W[i, k] = f
            for j in range(k):
                W[i, j] += f * W[k, j]
            for j in range(q):
                C[i, j] += f * C[k, j]
    return out


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _censor_four(
    W: Matrix, C: Matrix, k: cython.Py_ssize_t, begin: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.double]:
    """Censor the states k+3, ..., k, without state 0; return what ``eliminate`` does.

    Updates of rows before ``begin`` in columns before it are deferred. All numbers of states are multiples of four.
    """
    q = C.shape[1]
    slowest: cython.double = 1.0
    for s in range(k + 3, max(k, 1) - 1, -1):
        out = _censor_one(W, C, s, k)
        if out <= 0.0:
            return s, 0.0
        slowest = min(slowest, out)
    out0, out1, out2, out3 = W[k, k], W[k + 1, k + 1], W[k + 2, k + 2], W[k + 3, k + 3]
    w10, w20, w30 = W[k + 1, k], W[k + 2, k], W[k + 3, k]
    w21, w31, w32 = W[k + 2, k + 1], W[k + 3, k + 1], W[k + 3, k + 2]
    for i in range(k):  # separate from what follows, so that the divisions of many rows run in parallel
        f3 = W[i, k + 3] / out3
        f2 = (W[i, k + 2] + f3 * w32) / out2
        f1 = (W[i, k + 1] + (f3 * w31 + f2 * w21)) / out1
        W[i, k] = (W[i, k] + ((f3 * w30 + f2 * w20) + f1 * w10)) / out0
        W[i, k + 1], W[i, k + 2], W[i, k + 3] = f1, f2, f3
    for i in range(0, k, 2):
        a0, a1, a2, a3 = W[i, k], W[i, k + 1], W[i, k + 2], W[i, k + 3]
        b0, b1, b2, b3 = W[i + 1, k], W[i + 1, k + 1], W[i + 1, k + 2], W[i + 1, k + 3]
        if ((a0 + a1) + (a2 + a3)) + ((b0 + b1) + (b2 + b3)) > 0.0:
            for j in range(begin if i < begin else 0, k):
                W[i, j] += (a0 * W[k, j] + a1 * W[k + 1, j]) + (a2 * W[k + 2, j] + a3 * W[k + 3, j])
                W[i + 1, j] += (b0 * W[k, j] + b1 * W[k + 1, j]) + (b2 * W[k + 2, j] + b3 * W[k + 3, j])
            for j in range(q):
                C[i, j] += (a0 * C[k, j] + a1 * C[k + 1, j]) + (a2 * C[k + 2, j] + a3 * C[k + 3, j])
                C[i + 1, j] += (b0 * C[k, j] + b1 * C[k + 1, j]) + (b2 * C[k + 2, j] + b3 * C[k + 3, j])
    return 0, slowest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_block(W: Matrix, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
    """Add the deferred updates left of a block to the rows above it: two rows and four censored states at a time."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(0, begin, 2):
        for k in range(begin, end, 4):
            a0, a1, a2, a3 = W[i, k], W[i, k + 1], W[i, k + 2], W[i, k + 3]
            b0, b1, b2, b3 = W[i + 1, k], W[i + 1, k + 1], W[i + 1, k + 2], W[i + 1, k + 3]
            for j in range(begin):
                W[i, j] += (a0 * W[k, j] + a1 * W[k + 1, j]) + (a2 * W[k + 2, j] + a3 * W[k + 3, j])
                W[i + 1, j] += (b0 * W[k, j] + b1 * W[k + 1, j]) + (b2 * W[k + 2, j] + b3 * W[k + 3, j])


def stationary_distribution(W, stationary):
    """Compute the stationary distribution of an eliminated chain; return the state of largest mass."""
    n = stationary.shape[0]
    for i in range(n):
        stationary[i] = 0.0
    stationary[0] = 1.0
    mass = 0.0
    busiest: cython.Py_ssize_t = 0
    for i in range(n):
        mu = stationary[i]
        mass += mu
        if mu > stationary[busiest]:
            busiest = i
        if mu > 0.0:
            for k in range(i + 1, n):
                stationary[k] += mu * W[i, k]
    for i in range(n):
        stationary[i] /= mass
    return busiest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place(chain: ConstMatrix, costs: ConstMatrix, reference: cython.Py_ssize_t, W: Matrix, C: Matrix) -> cython.void:
    """Copy chain and costs with the reference and state 0, which is never censored, swapped."""
    n, q = chain.shape[0], costs.shape[0]
    for i in range(n):
        s = reference if i == 0 else 0 if i == reference else i
        for j in range(n):
            W[i, j] = chain[s, j]
        W[i, 0] = chain[s, reference]
        W[i, reference] = chain[s, 0]
        for j in range(q):
            C[i, j] = costs[j, s]
        C[i, q] = 1.0


def solve_unichain(chain, costs, reference, W, C, gains, biases, stationary):
    """Compute ``unichain`` in given arrays: W (S, S) and C (S, q + 1) are overwritten, the last three filled in.

    Returns the reference and the slowest exit.
    """
    n, q = chain.shape[0], costs.shape[0]
    tried, failed = False, False  # the reference is visited too rarely; the reference is not recurrent
    slowest = 1.0
    while True:
        _place(chain, costs, reference, W, C)
        k, slowest = eliminate(W, C)
        if k > 0:
            # State k lies in a closed class without the reference, so it is recurrent. A second failure
            # then means a second closed class.
            if failed:
                return -1, 0.0
            failed = True
            reference = 0 if k == reference else k
            continue
        busiest = stationary_distribution(W, stationary)
        # Relative to a rarely visited state, the bias is a small difference of large numbers.
        if tried or stationary[0] >= _REFERENCE_SHARE * stationary[busiest]:
            break
        tried = True
        reference = 0 if busiest == reference else busiest

    # State 0 remains, with one cycle: its expected costs C[0, :q] and its expected length C[0, q].
    for j in range(q):
        gains[j] = C[0, j] / C[0, q]
        biases[j, 0] = 0.0
    for k in range(1, n):
        for j in range(q):
            biases[j, k] = (C[k, j] - gains[j] * C[k, q] + row_dot(W, k, biases, j, k)) / W[k, k]
    stationary[0], stationary[reference] = stationary[reference], stationary[0]
    for j in range(q):
        biases[j, 0], biases[j, reference] = biases[j, reference], biases[j, 0]
    return reference, slowest


def unichain(chain: ConstMatrix, costs: ConstMatrix, reference: cython.Py_ssize_t):
    r"""Return gains, biases and stationary distribution of a chain (S, S) with costs (q, S).

    Solves :math:`g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s) h_i(s')` with :math:`h_i(r) = 0` for every cost i, O(S^3).

    The state ``reference`` must be recurrent; if it is not, the kernel finds one that is. Returns the reference used,
    ``gains (q,)``, ``biases (q, S)``, ``stationary (S,)``; the reference is -1 if there are two closed classes. The
    last value is the slowest exit: if it is tiny, a set of states without the reference is nearly closed, and biases
    are huge.
    """
    n, q = chain.shape[0], costs.shape[0]
    if chain.shape[1] != n or costs.shape[1] != n or not 0 <= reference < n:
        raise ValueError("a chain (S, S), costs (q, S) and one of the states are needed")
    gains, biases, stationary = np.zeros(q), np.zeros((q, n)), np.zeros(n)
    work, collected = np.empty((n, n)), np.empty((n, q + 1))
    W: Matrix = work
    C: Matrix = collected
    g: Vector = gains
    h: Matrix = biases
    mu: Vector = stationary
    with cython.nogil:
        reference, slowest = solve_unichain(chain, costs, reference, W, C, g, h, mu)
    return reference, gains, biases, stationary, slowest
