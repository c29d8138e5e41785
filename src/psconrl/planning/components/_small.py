"""Compiled: policy iteration in all small end components of a model, one after the other.

For thousands of components of a few states, calls from Python would take longer than the planning.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._elimination import gathered, unichain
from psconrl.model._improvement import improve, rounding_of_bound
from psconrl.planning.mixture._leading import led_into_best
from psconrl.planning.tolerances import NEARLY_CLOSED, SEARCH_GAP, SWITCH_TOL, WORSE_TOL

SMALL = 64  # states of a component that is planned here
_MAX_ROUNDS = 200


@njit(cache=True)
def plan_small(
    indptr: Ints, indices: Ints, data: Floats, cost: Floats, inside: Bools, start: Ints, members: Ints, policy: Ints,
    bounds: Floats, potential: Floats, law: Floats,
) -> Bools:  # fmt: skip
    """The cheapest policy in each small component, from the one given: which are done, (K,).

    ``cost`` (S*A,) and ``inside`` (S*A,) of every pair; ``members[start[k] : start[k + 1]]`` are the states of
    component k. Filled in: policy (S,), what every policy costs at least, ``bounds`` (K,), the bias that shows it,
    ``potential`` (S,), and the stationary law (S,).
    """
    S = policy.size
    A = cost.size // S
    K = start.size - 1
    done = np.zeros(K, np.bool_)
    place = np.empty(S, np.int64)
    one = np.ones(1)
    for k in range(K):
        n = start[k + 1] - start[k]
        if n > SMALL:
            continue
        states = members[start[k] : start[k + 1]]
        if n == 1:
            s = states[0]
            best = np.inf
            for a in range(A):
                if inside[s * A + a] and cost[s * A + a] < best:
                    best = cost[s * A + a]
                    policy[s] = a
            bounds[k], potential[s], law[s], done[k] = best, 0.0, 1.0, True
            continue
        for i in range(n):
            place[states[i]] = i
        P, costs = np.zeros((n * A, n)), np.zeros((1, n * A))
        available, played = np.zeros((n, A), np.bool_), np.empty(n, np.int64)
        for i in range(n):
            s = states[i]
            played[i] = policy[s]
            for a in range(A):
                p = s * A + a
                if inside[p]:
                    available[i, a] = True
                    costs[0, i * A + a] = cost[p]
                    for e in range(indptr[p], indptr[p + 1]):
                        if data[e] > 0.0:
                            P[i * A + a, place[indices[e]]] += data[e]
        found, bound, played, h, mu = _howard(P, costs, one, available, played)
        if found:
            done[k], bounds[k] = True, bound
            for i in range(n):
                policy[states[i]], potential[states[i]], law[states[i]] = played[i], h[0, i], mu[i]
    return done


@njit(cache=True)
def _howard(
    P: Floats, costs: Floats, one: Floats, available: Bools, policy: Ints
) -> tuple[bool, float, Ints, Floats, Floats]:
    """Was the best policy found; a lower bound on the cost of all, the policy, its bias (1, n) and its law (n,)."""
    n, A = available.shape
    rows = np.empty(n, np.int64)
    reference, caution, lowest = 0, 1.0, np.inf
    h, mu = np.zeros((1, n)), np.zeros(n)
    for _ in range(_MAX_ROUNDS):
        for i in range(n):
            rows[i] = i * A + policy[i]
        chain, cost = gathered(P, rows, costs)
        found, g, h, mu, slowest = unichain(chain, cost, reference)
        if slowest < NEARLY_CLOSED:
            policy = led_into_best(P, costs, one, available, policy, reference, NEARLY_CLOSED)
            for i in range(n):
                rows[i] = i * A + policy[i]
            chain, cost = gathered(P, rows, costs)
            found, g, h, mu, slowest = unichain(chain, cost, max(found, 0))
        if found < 0:
            break
        reference = found
        if g[0] > lowest + WORSE_TOL:
            caution *= 100.0  # what made things worse was rounding
        lowest = min(lowest, g[0])
        bound, switched, new = improve(P, costs, one, available, policy, h, caution * SWITCH_TOL)
        bound -= rounding_of_bound(P, one, h)
        if g[0] - bound <= SEARCH_GAP:
            return True, bound, policy, h, mu
        if switched == 0:
            break
        policy = new
    return False, 0.0, policy, h, mu
