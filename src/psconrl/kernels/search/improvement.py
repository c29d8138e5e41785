r"""One step of policy iteration: every state takes the action that is best for a weighted cost, given the biases.

The sum :math:`\sum_{s'} P(s'|s,a)\,(h(s') - h(s))` is taken over differences: where h is huge on a part of the chain
that is hard to leave, they are small exactly where the probabilities are not.

Sums over dense rows are taken in eight lanes that are added in a fixed order, so that vector instructions of any width
give the same result.
"""

import cython
import numpy as np

_INFINITE = cython.declare(cython.double, float("inf"))
_ROUNDING = cython.declare(cython.double, 1.2e-16)  # unit roundoff of a double


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def row_times(
    P: cython.const[cython.double][:, ::1],
    i: cython.Py_ssize_t,
    x: cython.const[cython.double][::1],
    n: cython.Py_ssize_t,
) -> cython.double:
    """Return the product of the first n entries of row i of P and of x, in eight lanes."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    e: cython.double = 0.0
    f: cython.double = 0.0
    g: cython.double = 0.0
    h: cython.double = 0.0
    whole = n - n % 8
    for j in range(0, whole, 8):
        a += P[i, j] * x[j]
        b += P[i, j + 1] * x[j + 1]
        c += P[i, j + 2] * x[j + 2]
        d += P[i, j + 3] * x[j + 3]
        e += P[i, j + 4] * x[j + 4]
        f += P[i, j + 5] * x[j + 5]
        g += P[i, j + 6] * x[j + 6]
        h += P[i, j + 7] * x[j + 7]
    rest: cython.double = 0.0
    for j in range(whole, n):
        rest += P[i, j] * x[j]
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_biases(
    weights: cython.const[cython.double][::1], biases: cython.const[cython.double][:, ::1], h: cython.double[::1]
) -> cython.void:
    """Write the bias (S,) of the weighted cost to h."""
    for s in range(h.shape[0]):
        h[s] = 0.0
    for i in range(biases.shape[0]):
        if weights[i] != 0.0:
            for s in range(h.shape[0]):
                h[s] += weights[i] * biases[i, s]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def improve_dense(
    P: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
    available: cython.const[cython.uchar][:, ::1],
    policy: cython.const[cython.Py_ssize_t][::1],
    h: cython.const[cython.double][::1],
    tol: cython.double,
    difference: cython.double[::1],
    new: cython.Py_ssize_t[::1],
) -> tuple[cython.double, cython.Py_ssize_t]:
    """Compute ``improve`` with the weighted bias h in given arrays (S,); the new policy is written to ``new``."""
    S, A, q = available.shape[0], available.shape[1], costs.shape[0]
    bound: cython.double = _INFINITE
    switched: cython.Py_ssize_t = 0
    for s in range(S):
        hs: cython.double = h[s]
        for j in range(S):
            difference[j] = h[j] - hs
        best: cython.double = _INFINITE
        current: cython.double = _INFINITE
        best_action: cython.Py_ssize_t = -1
        for a in range(A):
            if not available[s, a]:
                continue
            pair = s * A + a
            value: cython.double = row_times(P, pair, difference, S)
            for i in range(q):
                value += weights[i] * costs[i, pair]
            if value < best:
                best = value
                best_action = a
            if a == policy[s]:
                current = value
        if best < bound:
            bound = best
        new[s] = policy[s]
        if current - best > tol * max(1.0, abs(hs)):
            new[s] = best_action
            switched += 1
    return bound, switched


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def dense_rounding(
    P: cython.const[cython.double][:, ::1], h: cython.const[cython.double][::1], difference: cython.double[::1]
) -> cython.double:
    """Compute ``rounding_of_bound`` with the weighted bias h; ``difference`` (S,) is overwritten."""
    S = P.shape[1]
    A = P.shape[0] // S
    largest: cython.double = 0.0
    for s in range(S):
        for j in range(S):
            difference[j] = abs(h[j] - h[s])
        for a in range(A):
            largest = max(largest, row_times(P, s * A + a, difference, S))
    return S * _ROUNDING * largest


def weighted_bias(weights: cython.const[cython.double][::1], biases: cython.const[cython.double][:, ::1]):
    """Return the bias (S,) of the weighted cost, from those of every cost (q, S)."""
    if weights.shape[0] != biases.shape[0]:
        raise ValueError("a weight for each of the biases is needed")
    result = np.empty(biases.shape[1])
    h: cython.double[::1] = result
    weigh_biases(weights, biases, h)
    return result


def improve(
    P: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
    available: cython.const[cython.uchar][:, ::1],
    policy: cython.const[cython.Py_ssize_t][::1],
    biases: cython.const[cython.double][:, ::1],
    tol: cython.double,
):
    r"""Switch every state to its best action for the weighted cost, given the biases of the current policy.

    Returns the lower bound :math:`\min_{s,a} [c_w + P h - h(s)]` on the gain of any policy, the number of states that
    switched, and the new policy. A state switches if it gains more than rounding error can account for: ``tol`` times
    its own bias, which is zero at a frequently visited state. The span of h would not do: a corner that is left once in
    1e100 steps must not keep the rest from improving.
    """
    S, A, q = available.shape[0], available.shape[1], weights.shape[0]
    if P.shape[0] != S * A or P.shape[1] != S or costs.shape[1] != S * A or costs.shape[0] != q:
        raise ValueError("transitions (S*A, S) and costs (q, S*A) with q weights are needed")
    if policy.shape[0] != S or biases.shape[0] != q or biases.shape[1] != S:
        raise ValueError("a policy (S,) and biases (q, S) are needed")
    h, difference, new = np.empty(S), np.empty(S), np.empty(S, np.int64)
    h_view: cython.double[::1] = h
    room: cython.double[::1] = difference
    new_view: cython.Py_ssize_t[::1] = new
    with cython.nogil:
        weigh_biases(weights, biases, h_view)
        bound, switched = improve_dense(P, costs, weights, available, policy, h_view, tol, room, new_view)
    return bound, switched, new


def rounding_of_bound(
    P: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
    biases: cython.const[cython.double][:, ::1],
):
    r"""Return the rounding error of the bound of ``improve``: :math:`S\,u \max_{s,a} \sum P |h(s') - h(s)|`."""
    S = P.shape[1]
    if S == 0 or P.shape[0] % S or biases.shape[1] != S or biases.shape[0] != weights.shape[0]:
        raise ValueError("transitions (S*A, S) and biases (q, S) with q weights are needed")
    h, difference = np.empty(S), np.empty(S)
    h_view: cython.double[::1] = h
    room: cython.double[::1] = difference
    with cython.nogil:
        weigh_biases(weights, biases, h_view)
        found = dense_rounding(P, h_view, room)
    return found


def cheapest_for_one_step(costs: cython.const[cython.double][:, ::1], available: cython.const[cython.uchar][:, ::1]):
    """Return the action (S,) in every state with the least sum of all costs (q, S*A); the first among ties."""
    S, A, q = available.shape[0], available.shape[1], costs.shape[0]
    if costs.shape[1] != S * A:
        raise ValueError("costs (q, S*A) are needed")
    result = np.zeros(S, np.int64)
    policy: cython.Py_ssize_t[::1] = result
    with cython.nogil:
        for s in range(S):
            least: cython.double = _INFINITE
            for a in range(A):
                total: cython.double = 0.0
                for i in range(q):
                    total += costs[i, s * A + a]
                if available[s, a] and total < least:
                    least = total
                    policy[s] = a
    return result
