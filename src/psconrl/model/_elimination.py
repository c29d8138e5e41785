r"""Compiled linear algebra of a single Markov chain: plain arrays in, plain arrays out.

Chains that come from posterior samples have transition probabilities down to 1e-300. In ``I - P`` they are lost
against 1, and Gaussian elimination then reports a connected chain as disconnected. The elimination of Grassmann,
Taksar and Heyman (1985) never subtracts: the pivot :math:`1 - P_{kk}` is taken as the sum of the other entries of
the row. Every quantity below except the bias is therefore accurate in each component, however rarely visited.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints

# Sums may be re-associated so that they use vector instructions; nothing here relies on the order of a sum.
_FAST = {"reassoc", "contract", "nsz"}

# Chains of more states are censored in blocks of this many.
_UNBLOCKED, _BLOCK = 128, 48

# The bias is counted from a state with at least this share of the largest stationary mass.
_REFERENCE_SHARE = 1e-2


@njit(cache=True, fastmath=_FAST)
def _eliminate(W: Floats, C: Floats) -> tuple[int, float]:
    """Censor the states n-1, ..., 1 out of the chain W; returns 0, or the first state with no way down.

    Also the smallest probability with which a censored state leaves for those that are left. Large chains are censored
    in blocks, whose effect on all other rows is one product of matrices.
    """
    slowest = 1.0
    end = len(W)
    while end > 0:
        begin = end - _BLOCK if end > _UNBLOCKED else 0
        stuck, out = _eliminate_block(W, C, begin, end)
        if stuck > 0:
            return stuck, 0.0
        slowest = min(slowest, out)
        if begin > 0:
            gained = np.dot(W[:begin, begin:end].copy(), W[begin:end, :begin].copy())
            for i in range(begin):
                for j in range(begin):
                    W[i, j] += gained[i, j]
        end = begin
    return 0, slowest


@njit(cache=True, fastmath=_FAST)
def _eliminate_block(W: Floats, C: Floats, begin: int, end: int) -> tuple[int, float]:
    """Censor the states end-1, ..., begin, but leave what rows above them gain left of the block for later."""
    q = C.shape[1]
    slowest = 1.0
    for k in range(end - 1, max(begin, 1) - 1, -1):
        row = W[k]
        out = 0.0
        for j in range(k):
            out += row[j]
        if out <= 0.0:
            return k, 0.0
        slowest = min(slowest, out)
        row[k] = out
        for i in range(begin, k):
            f = W[i, k]
            if f > 0.0:
                f /= out
                target = W[i]
                target[k] = f
                for j in range(k):
                    target[j] += f * row[j]
                for j in range(q):
                    C[i, j] += f * C[k, j]
        inside = row[begin:k]
        for i in range(begin):
            f = W[i, k]
            if f > 0.0:
                f /= out
                W[i, k] = f
                target = W[i, begin:k]
                for j in range(inside.size):
                    target[j] += f * inside[j]
                for j in range(q):
                    C[i, j] += f * C[k, j]
    return 0, slowest


@njit(cache=True, fastmath=_FAST)
def _stationary_law(W: Floats, stationary: Floats) -> int:
    """The stationary law of an eliminated chain; returns the state of largest mass."""
    n = stationary.size
    for i in range(n):
        stationary[i] = 0.0
    stationary[0] = 1.0
    mass = 0.0
    busiest = 0
    for i in range(n):
        mu = stationary[i]
        mass += mu
        if mu > stationary[busiest]:
            busiest = i
        if mu > 0.0:
            row = W[i]
            for k in range(i + 1, n):
                stationary[k] += mu * row[k]
    for i in range(n):
        stationary[i] /= mass
    return busiest


@njit(cache=True)
def gathered(P: Floats, rows: Ints, costs: Floats) -> tuple[Floats, Floats]:
    """The chain (S, S) made of the given rows of P, and its costs (q, S) out of those of all rows."""
    S, q = rows.size, costs.shape[0]
    chain, cost = np.empty((S, S)), np.empty((q, S))
    for s in range(S):
        source, target = P[rows[s]], chain[s]
        for j in range(S):
            target[j] = source[j]
        for i in range(q):
            cost[i, s] = costs[i, rows[s]]
    return chain, cost


@njit(cache=True, nogil=True, fastmath=_FAST)
def unichain(chain: Floats, costs: Floats, reference: int) -> tuple[int, Floats, Floats, Floats, float]:
    r"""Gains, biases and stationary law of a chain (S, S) with costs (q, S).

    Solves :math:`g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s) h_i(s')` with :math:`h_i(r) = 0` for every cost i, O(S^3).

    The state ``reference`` must be recurrent; if it is not, the kernel finds one that is. Returns the reference used,
    ``gains (q,)``, ``biases (q, S)``, ``stationary (S,)``; the reference is -1 if there are two closed classes. Last
    comes the slowest exit: if it is tiny, a set of states without the reference is nearly closed, and biases are huge.
    """
    q, n = costs.shape
    W = np.empty((n, n))
    C = np.empty((n, q + 1))
    gains = np.zeros(q)
    biases = np.zeros((q, n))
    stationary = np.zeros(n)
    tried = -1  # a reference that proved to be visited too rarely
    failed = False
    while True:
        # The reference trades places with state 0, the one that is never censored.
        for i in range(n):
            s = i
            if i == 0:
                s = reference
            elif i == reference:
                s = 0
            source = chain[s]
            target = W[i]
            for j in range(n):
                target[j] = source[j]
            target[0] = source[reference]
            target[reference] = source[0]
            for j in range(q):
                C[i, j] = costs[j, s]
            C[i, q] = 1.0
        k, slowest = _eliminate(W, C)
        if k > 0:
            # State k lies in a closed class without the reference, so it is recurrent. A second failure
            # then means a second closed class.
            if failed:
                return -1, gains, biases, stationary, 0.0
            failed = True
            reference = 0 if k == reference else k
            continue
        busiest = _stationary_law(W, stationary)
        # The bias is a small difference of large numbers if it is counted from a state that is hardly visited.
        if stationary[0] >= _REFERENCE_SHARE * stationary[busiest] or tried >= 0:
            break
        tried = reference
        reference = 0 if busiest == reference else busiest

    # What is left at state 0 is one cycle: its expected costs C[0, :q] and its expected length C[0, q].
    for j in range(q):
        gains[j] = C[0, j] / C[0, q]
    for k in range(1, n):
        row = W[k]
        for j in range(q):
            h = biases[j]
            total = C[k, j] - gains[j] * C[k, q]
            for i in range(k):
                total += row[i] * h[i]
            h[k] = total / row[k]
    stationary[0], stationary[reference] = stationary[reference], stationary[0]
    for j in range(q):
        h = biases[j]
        h[0], h[reference] = h[reference], h[0]
    return reference, gains, biases, stationary, slowest


@njit(cache=True, nogil=True, fastmath=_FAST)
def transient(W: Floats, C: Floats, exits: Floats) -> Floats:
    r"""Solve :math:`x = C + W x` for states that surely leave, given for each the total probability of leaving.

    W (n, n) are the transitions among the states, C (n, q) what is collected in each, exits (n,) one minus the row
    sums of W but known without subtraction. W, C and exits are overwritten; x is returned in C. O(n^3).
    """
    n, q = C.shape
    for k in range(n - 1, -1, -1):
        row = W[k]
        out = exits[k]
        for j in range(k):
            out += row[j]
        row[k] = out
        for i in range(k):
            f = W[i, k] / out
            if f > 0.0:
                target = W[i]
                for j in range(k):
                    target[j] += f * row[j]
                for j in range(q):
                    C[i, j] += f * C[k, j]
                exits[i] += f * exits[k]
    for k in range(n):
        row = W[k]
        for j in range(q):
            total = C[k, j]
            for i in range(k):
                total += row[i] * C[i, j]
            C[k, j] = total / row[k]
    return C


@njit(cache=True)
def centred(biases: Floats, stationary: Floats) -> Floats:
    """Biases (q, S) less their means under the stationary law."""
    result = np.empty(biases.shape)
    for i in range(biases.shape[0]):
        mean = 0.0
        for s in range(stationary.size):
            mean += stationary[s] * biases[i, s]
        for s in range(stationary.size):
            result[i, s] = biases[i, s] - mean
    return result


@njit(cache=True)
def mixed_rows(P: Floats, policy: Floats) -> Floats:
    """The chain (S, S) of a policy (S, A) under dense transitions (S*A, S)."""
    S, A = policy.shape
    chain = np.zeros((S, S))
    for s in range(S):
        for a in range(A):
            p = policy[s, a]
            if p > 0.0:
                row = P[s * A + a]
                for j in range(S):
                    chain[s, j] += p * row[j]
    return chain


@njit(cache=True)
def mixed_costs(costs: Floats, policy: Floats) -> tuple[Floats, Floats]:
    """The costs (q, S) of a policy (S, A), counted from the smallest in size, and what that is, (q,)."""
    q, S, A = costs.shape
    result = np.zeros((q, S))
    base = np.empty(q)
    for i in range(q):
        for s in range(S):
            for a in range(A):
                result[i, s] += policy[s, a] * costs[i, s, a]
        base[i] = result[i, 0]
        for s in range(S):
            if abs(result[i, s]) < abs(base[i]):
                base[i] = result[i, s]
        for s in range(S):
            result[i, s] -= base[i]
    return result, base
