"""Compiled: what the search asks of transitions, dense (an array) or sparse (``Rows``), each under one name.

Numba chooses by the type. Dense chains are eliminated without subtractions; so are sparse ones that have an order.
Others are solved by products alone, and where those do not get there, the search gives up.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model import _krylov
from psconrl.model._elimination import gathered as gathered_dense
from psconrl.model._elimination import unichain
from psconrl.model._improvement import improve, look_ahead, rounding_of_bound, weighted_bias
from psconrl.model._sparse_elimination import unichain as eliminated
from psconrl.model.chosen_rows import gathered
from psconrl.model.ordering import Order
from psconrl.planning.mixture._leading import led_into_best

_TOL = 0.1  # of a residual, relative to the largest bias, times what gains may be wrong by
_SWEEPS = 4  # of value iteration after each improvement


class Rows(NamedTuple):
    """Sparse transitions (S*A, S) in CSR form. Every step leads to a state with a chance, and else where they say."""

    indptr: Ints
    indices: Ints
    data: Floats
    state: int
    chance: float
    order: Order  # in which to eliminate; ``NO_ORDER`` for products,
    products: int  # of which so many may be tried for a chain...
    off: float  # ... until its gains are wrong by no more than this


class Evaluated(NamedTuple):
    """A policy's chain."""

    policy: Ints  # (S,), changed if it had to be led into the best of its parts
    reference: int  # a recurrent state; -1 if it could not be solved
    gains: Floats  # (q,)
    biases: Floats  # (q, S)
    law: Floats  # (S,); not yet, if the transitions are sparse
    off: float  # by how much the gains may be wrong


def evaluate(
    P: Any, costs: Floats, weights: Floats, available: Bools, policy: Ints, reference: int, guess: Floats,
    nearly_closed: float,
) -> Evaluated:  # fmt: skip
    """Solve the chain of a policy, from the biases (q, S) of another; it is led elsewhere if it nearly falls apart."""
    raise NotImplementedError


@overload(evaluate)
def _choose_evaluate(P, costs, weights, available, policy, reference, guess, nearly_closed):  # type: ignore[no-untyped-def]
    return _evaluate_dense if isinstance(P, types.Array) else _evaluate_sparse


def _evaluate_dense(P, costs, weights, available, policy, reference, guess, nearly_closed):  # type: ignore[no-untyped-def]
    rows = _rows_of(policy, available.shape[1])
    chain, cost = gathered_dense(P, rows, costs)
    found, g, h, mu, slowest = unichain(chain, cost, reference)
    if slowest < nearly_closed:
        led = led_into_best(P, costs, weights, available, policy, reference, nearly_closed)
        if not is_same(led, policy):
            policy = led
            rows = _rows_of(policy, available.shape[1])
            chain, cost = gathered_dense(P, rows, costs)
            found, g, h, mu, slowest = unichain(chain, cost, max(found, 0))
    return Evaluated(policy, found, g, h, mu, 0.0)


def _evaluate_sparse(P, costs, weights, available, policy, reference, guess, nearly_closed):  # type: ignore[no-untyped-def]
    S, q = policy.size, costs.shape[0]
    rows = _rows_of(policy, available.shape[1])
    if P.order.position.size:
        at = P.state if P.chance > 0.0 else reference
        stuck, g, h, mu = eliminated(P.indptr, P.indices, P.data, rows, costs, at, P.chance, P.order)
        if stuck >= 0 and P.chance == 0.0:  # in a closed class: if all leads there, it is the only one
            at = stuck
            stuck, g, h, mu = eliminated(P.indptr, P.indices, P.data, rows, costs, at, P.chance, P.order)
        return Evaluated(policy, at if stuck < 0 else -1, g, h, mu, 0.0)
    indptr, indices, data = gathered(P.indptr, P.indices, P.data, rows, P.state, P.chance)
    right, x = np.empty((q, S)), np.empty((q, S))
    for i in range(q):
        guessed, cost = 0.0, 0.0
        for s in range(S):
            right[i, s] = costs[i, rows[s]]
            guessed += guess[i, s]
            cost += right[i, s]
        for s in range(S):
            x[i, s] = guess[i, s] - guessed / S + cost / S
    off = _krylov.solve(indptr, indices, data, False, right, x, _TOL * P.off, 0.5 * P.off, P.products)
    gains = np.empty(q)
    for i in range(q):
        total, base = 0.0, x[i, reference]
        for s in range(S):
            total += x[i, s]
            x[i, s] -= base
        gains[i] = total / S
    return Evaluated(policy, reference if off <= P.off else -1, gains, x, np.empty(0), off)


def improved(
    P: Any, costs: Floats, weights: Floats, available: Bools, policy: Ints, biases: Floats, tolerance: float,
    gain: float, ahead: bool,
) -> tuple[float, int, Ints]:  # fmt: skip
    """A lower bound on the gain of every policy, how many states switch, and the better policy. See ``improve``.

    ``ahead``: look further than one step, where that is cheap.
    """
    raise NotImplementedError


@overload(improved)
def _choose_improved(P, costs, weights, available, policy, biases, tolerance, gain, ahead):  # type: ignore[no-untyped-def]
    return _improved_dense if isinstance(P, types.Array) else _improved_sparse


def _improved_dense(P, costs, weights, available, policy, biases, tolerance, gain, ahead):  # type: ignore[no-untyped-def]
    return improve(P, costs, weights, available, policy, biases, tolerance)


def _improved_sparse(P, costs, weights, available, policy, biases, tolerance, gain, ahead):  # type: ignore[no-untyped-def]
    h = weighted_bias(weights, biases)
    cost = np.zeros(costs.shape[1])
    for i in range(weights.size):
        for pair in range(cost.size):
            cost[pair] += weights[i] * costs[i, pair]
    bound, switched, new = _improve_sparse(P, cost, available, policy, h, tolerance)
    if switched and ahead:
        new = look_ahead(
            P.indptr, P.indices, P.data, P.state, P.chance, cost, available, new, h, gain, _SWEEPS, tolerance
        )
    return bound, switched, new


@njit(cache=True, fastmath={"contract", "nsz"})
def _improve_sparse(
    P: Rows, cost: Floats, available: Bools, policy: Ints, h: Floats, tolerance: float
) -> tuple[float, int, Ints]:
    """``improve`` for sparse transitions and one cost (S*A,)."""
    S, A = available.shape
    new = policy.copy()
    bound, switched = np.inf, 0
    for s in range(S):
        best, best_action, current = np.inf, -1, np.inf
        for a in range(A):
            if not available[s, a]:
                continue
            pair = s * A + a
            value = 0.0
            for e in range(P.indptr[pair], P.indptr[pair + 1]):
                value += P.data[e] * (h[P.indices[e]] - h[s])
            value = cost[pair] + (1.0 - P.chance) * value + P.chance * (h[P.state] - h[s])
            if value < best:
                best, best_action = value, a
            if a == policy[s]:
                current = value
        bound = min(bound, best)
        if current - best > tolerance * max(1.0, abs(h[s])):
            new[s] = best_action
            switched += 1
    return bound, switched, new


def rounding(P: Any, weights: Floats, biases: Floats) -> float:
    """By how much rounding may falsify the bound of ``improved``."""
    raise NotImplementedError


@overload(rounding)
def _choose_rounding(P, weights, biases):  # type: ignore[no-untyped-def]
    return _rounding_dense if isinstance(P, types.Array) else _rounding_sparse


def _rounding_dense(P, weights, biases):  # type: ignore[no-untyped-def]
    return rounding_of_bound(P, weights, biases)


def _rounding_sparse(P, weights, biases):  # type: ignore[no-untyped-def]
    h = weighted_bias(weights, biases)
    A = (P.indptr.size - 1) // h.size
    largest, longest = 0.0, 1
    for pair in range(P.indptr.size - 1):
        moved = P.chance * abs(h[P.state] - h[pair // A])
        for e in range(P.indptr[pair], P.indptr[pair + 1]):
            moved += P.data[e] * abs(h[P.indices[e]] - h[pair // A])
        largest = max(largest, moved)
        longest = max(longest, P.indptr[pair + 1] - P.indptr[pair])
    return (longest + 2) * 1.2e-16 * largest


def law(P: Any, policy: Ints, gains: Floats, costs: Floats, known: Floats) -> Floats:
    """The stationary law (S,) of a policy, if it is not known yet; all zero if it could not be solved for."""
    raise NotImplementedError


@overload(law)
def _choose_law(P, policy, gains, costs, known):  # type: ignore[no-untyped-def]
    return _law_known if isinstance(P, types.Array) else _law_sparse


def _law_known(P, policy, gains, costs, known):  # type: ignore[no-untyped-def]
    return known


def _law_sparse(P, policy, gains, costs, known):  # type: ignore[no-untyped-def]
    if P.order.position.size:
        return known
    S = policy.size
    rows = _rows_of(policy, (P.indptr.size - 1) // S)
    indptr, indices, data = gathered(P.indptr, P.indices, P.data, rows, P.state, P.chance)
    right, mu = np.full((1, S), 1.0 / S), np.full((1, S), 1.0 / S)
    _krylov.solve(indptr, indices, data, True, right, mu, _TOL * P.off, np.inf, 2 * P.products)
    found = np.maximum(mu[0], 0.0)
    found /= found.sum()
    for i in range(gains.size):  # the law and the biases are two ways to one number
        total = 0.0
        for s in range(S):
            total += found[s] * costs[i, rows[s]]
        if not abs(total - gains[i]) <= 10.0 * P.off:
            return np.zeros(S)
    return found


@njit(cache=True)
def is_same(one: Ints, other: Ints) -> bool:
    """Are two policies (S,) one?"""
    apart = 0
    for s in range(one.size):
        apart += one[s] != other[s]
    return apart == 0


@njit(cache=True)
def _rows_of(policy: Ints, n_actions: int) -> Ints:
    rows = np.empty(policy.size, np.int64)
    for s in range(policy.size):
        rows[s] = s * n_actions + policy[s]
    return rows
