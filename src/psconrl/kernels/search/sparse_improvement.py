"""Policy iteration steps and value iteration sweeps on sparse transitions. See ``improvement``."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlagMatrix, ConstInts, ConstPlaces, ConstVector, Ints, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph

_INFINITE = cython.declare(cython.double, float("inf"))
_ROUNDING = cython.declare(cython.double, 1.2e-16)  # unit roundoff of a double


def improve_sparse(indptr, indices, data, state, restart, cost, available, policy, h, tol, new):
    """Compute ``improve`` for sparse transitions that restart in ``state``, and one cost (S*A,)."""
    S, A = available.shape[0], available.shape[1]
    bound: cython.double = _INFINITE
    switched: cython.Py_ssize_t = 0
    for s in range(S):
        hs: cython.double = h[s]
        best: cython.double = _INFINITE
        current: cython.double = _INFINITE
        best_action: cython.Py_ssize_t = -1
        for a in range(A):
            if not available[s, a]:
                continue
            pair = s * A + a
            value: cython.double = 0.0
            for e in range(indptr[pair], indptr[pair + 1]):
                value += data[e] * (h[indices[e]] - hs)
            value = cost[pair] + (1.0 - restart) * value + restart * (h[state] - hs)
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


def sparse_rounding(indptr, indices, data, state, restart, h):
    """Return ``rounding_of_bound`` for sparse transitions."""
    n, S = indptr.shape[0] - 1, h.shape[0]
    A = n // S
    largest: cython.double = 0.0
    longest: cython.Py_ssize_t = 1
    for s in range(S):
        hs: cython.double = h[s]
        for pair in range(s * A, (s + 1) * A):
            moved: cython.double = restart * abs(h[state] - hs)
            for e in range(indptr[pair], indptr[pair + 1]):
                moved += data[e] * abs(h[indices[e]] - hs)
            largest = max(largest, moved)
            longest = max(longest, indptr[pair + 1] - indptr[pair])
    return (longest + 2) * _ROUNDING * largest


def sweep_ahead(indptr, indices, data, state, restart, cost, available, h, gain, sweeps, tol, policy):
    """Compute ``look_ahead`` in place: h and policy (S,) are overwritten."""
    S, A = available.shape[0], available.shape[1]
    for _ in range(sweeps):
        switched: cython.bint = False
        for s in range(S):
            best: cython.double = _INFINITE
            kept: cython.double = _INFINITE
            action: cython.Py_ssize_t = -1
            for a in range(A):
                if not available[s, a]:
                    continue
                pair = s * A + a
                value: cython.double = 0.0
                for e in range(indptr[pair], indptr[pair + 1]):
                    value += data[e] * h[indices[e]]
                value = cost[pair] - gain + (1.0 - restart) * value + restart * h[state]
                if value < best:
                    best = value
                    action = a
                if a == policy[s]:
                    kept = value
            if kept - best > tol * max(1.0, abs(h[s])):
                policy[s] = action
                switched = True
            h[s] = best
        if not switched:
            break


def look_ahead(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    state: cython.Py_ssize_t,
    restart: cython.double,
    cost: ConstVector,
    available: ConstFlagMatrix,
    policy: ConstInts,
    h: ConstVector,
    gain: cython.double,
    sweeps: cython.Py_ssize_t,
    tol: cython.double,
):
    r"""Return the policy after some sweeps of value iteration, from the bias h (S,) of a policy and its gain.

    :math:`h(s) \leftarrow \min_a [c(s,a) - g + \sum P(s'|s,a) h(s')]` for one state after the other, using values
    already updated in the sweep (Gauss-Seidel), until no action changes. Sparse transitions, which restart in a state
    with a probability; ``cost`` (S*A,).
    """
    S, A = available.shape[0], available.shape[1]
    if indptr.shape[0] != S * A + 1 or cost.shape[0] != S * A or policy.shape[0] != S or h.shape[0] != S:
        raise ValueError("transitions and a cost for every pair, a policy (S,) and a bias (S,) are needed")
    if not 0 <= state < S:
        raise ValueError("there is no such state to restart in")
    check_graph(indptr, indices, data.shape[0], S)
    bias, new = np.array(h), np.array(policy)
    h_view: Vector = bias
    new_view: Ints = new
    with cython.nogil:
        sweep_ahead(indptr, indices, data, state, restart, cost, available, h_view, gain, sweeps, tol, new_view)
    return new
