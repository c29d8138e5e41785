r"""Column generation for dense models with at most one constraint, compiled as a whole.

The loop of ``column_generation`` with the master ``LineMaster`` and the oracle ``Howard``, for the case that a learning
loop meets thousands of times: Newton's method on the concave, piecewise linear dual. The tests hold it to the general
one.

Numba caches this file by its own date: after a change to the kernels it calls, touch it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.model._elimination import unichain
from psconrl.model._improvement import improve, rounding_of_bound
from psconrl.planning.mixture._leading import led_into_best
from psconrl.planning.policy_from_occupancy import one_hot, policy_from_occupancy

OPTIMAL, INFEASIBLE, GIVE_UP = 1, 0, -1

# More columns than Newton's method ever needs; beyond, the general loop takes over.
_CAPACITY = 64
# How many improvements in a row may not show in the costs.
_PATIENCE = 16


class Edge(NamedTuple):
    """Where the lower hull of the columns crosses the limit."""

    below: int  # the column at or below the limit; -1 if there is none
    above: int  # the one above it; -1 if one suffices
    share: float  # of the latter
    price: float  # of the limit: minus the slope


class Found(NamedTuple):
    """What the search ended with. An outcome is a claim: whoever uses it looks at the gap."""

    outcome: int  # OPTIMAL, INFEASIBLE or GIVE_UP
    below: int  # the columns of the mixture, as in ``Edge``
    above: int
    share: float
    weights: Floats  # (q,) dual weights of the best bound
    proof: int  # the column whose biases carry it
    gap: float  # what rounding may hide included
    evaluated: int  # policies
    gains: Floats  # (columns, 2)
    biases: Floats  # (columns, q, S)
    policies: Ints  # (columns, S)
    laws: Floats  # (columns, S)
    occupancy: Floats  # (S, A) of the mixture
    policy: Floats  # (S, A) that has it; where there is no mass, the heavier column is followed


@njit(cache=True)
def _edge(gains: Floats, n: int, tau: float) -> Edge:
    """The two columns that make up the lower hull at tau."""
    safe = -1
    for i in range(n):
        if gains[i, 1] <= tau and (safe < 0 or gains[i, 0] < gains[safe, 0]):
            safe = i
    if safe < 0:
        return Edge(-1, -1, 0.0, 0.0)
    below, above, best, price, share = safe, -1, gains[safe, 0], 0.0, 0.0
    for i in range(n):
        if gains[i, 1] > tau:
            continue
        for j in range(n):
            if gains[j, 1] <= tau or gains[j, 0] >= gains[safe, 0]:
                continue
            width = gains[j, 1] - gains[i, 1]
            theta = (tau - gains[i, 1]) / width
            value = gains[i, 0] + theta * (gains[j, 0] - gains[i, 0])
            slope = (gains[i, 0] - gains[j, 0]) / width
            if value < best or (value == best and slope > price):
                below, above, best, price, share = i, j, value, slope, theta
    return Edge(below, above, share, price)


@njit(cache=True)
def newton(
    P: Floats,
    costs: Floats,
    tau: float,
    available: Bools,
    start: Ints,
    least_excess: bool,
    switch: float,
    closed: float,
    feasible_within: float,
    same: float,
    nearly_closed: float,
) -> Found:
    """Plan from the deterministic policies ``start`` (k, S), k >= 1; without a constraint tau is inf.

    The last five are ``tolerances.SEARCH``.
    """
    S, A = available.shape
    q = costs.shape[0]
    capacity = _CAPACITY + start.shape[0]
    gains = np.zeros((capacity, 2))
    biases = np.empty((capacity, q, S))
    policies = np.empty((capacity, S), np.int64)
    laws = np.empty((capacity, S))
    occupancy = np.zeros((S, A))
    weights = np.full(q, 1.0 / q)
    best_weights = np.zeros(q)
    best_bound, proof = -np.inf, 0
    outcome, below, above, share, gap = GIVE_UP, 0, -1, 0.0, np.inf
    rows = np.empty(S, np.int64)
    pending = start.shape[0]
    n = 0
    reference = 0
    caution, lowest, base, idle = 1.0, np.inf, 0, 0
    new = start[0]
    limit = tau
    evaluated = 0
    while evaluated < 4 * capacity and n < capacity:
        evaluated += 1
        # Phase 1: evaluate a policy, led into the best of its parts if it nearly falls apart.
        if pending:
            new = start[n]
            pending -= 1
        for s in range(S):
            rows[s] = s * A + new[s]
        favoured = reference
        reference, g, h, mu, slowest = unichain(P, rows, costs, reference)
        if slowest < nearly_closed:
            led = led_into_best(P, costs, weights, available, new, favoured, nearly_closed)
            if (led != new).any():
                new = led
                for s in range(S):
                    rows[s] = s * A + new[s]
                reference, g, h, mu, slowest = unichain(P, rows, costs, max(reference, 0))
        if reference < 0:
            break
        if n >= start.shape[0]:
            # A switch that makes things worse was rounding: next time only larger gains count.
            cost = weights[0] * g[0]
            if q > 1:
                cost += weights[1] * g[1]
            if cost > lowest + 10.0 * same:
                caution *= 100.0
            elif cost < lowest - same:
                caution = 1.0
        # Phase 2: keep it as a column, or in the place of one with the same averages.
        at = n
        # Nothing but states that are hardly visited has changed, or nothing at all. If that continues, it is rounding.
        apart = abs(g[0] - gains[base, 0])
        if q > 1:
            apart = max(apart, abs(g[1] - gains[base, 1]))
        idle = idle + 1 if n >= start.shape[0] and apart <= same else 0
        if idle:
            at = base  # the better policy takes its place
            if idle > _PATIENCE or (new == policies[base]).all():
                caution *= 100.0
            if proof == base:
                best_bound = -np.inf
        gains[at, 0] = g[0]
        gains[at, 1] = g[1] if q > 1 else -np.inf
        biases[at], policies[at], laws[at] = h, new, mu
        n = max(n, at + 1)
        if pending:
            continue

        # Phase 3: the edge of the lower hull at the limit gives the price, and the cheapest column is improved for it.
        finished = False
        while True:  # once, and once more after the limit was moved to the boundary
            below, above, share, price = _edge(gains, n, limit)
            feasible = below >= 0
            if feasible:
                weights[0] = 1.0 / (1.0 + price)
                if q > 1:
                    weights[1] = price / (1.0 + price)
                value = gains[below, 0] * weights[0]
                if above >= 0:
                    value += share * (gains[above, 0] - gains[below, 0]) * weights[0]
            else:
                below = 0
                for i in range(1, n):
                    if gains[i, 1] < gains[below, 1]:
                        below = i
                weights[0], weights[1] = 0.0, 1.0
                value = gains[below, 1] - tau
            base, lowest = 0, np.inf
            for i in range(n):
                cost = weights[0] * gains[i, 0]
                if q > 1:
                    cost += weights[1] * gains[i, 1]
                if cost <= lowest + same:  # the newest of the cheapest, up to rounding
                    base, lowest = i, min(cost, lowest)
            bound, switched, new = improve(P, costs, weights, available, policies[base], biases[base], switch * caution)
            lower = bound - weights[1] * tau if q > 1 else bound
            done = switched == 0 or value - lower <= closed
            if feasible:
                if lower / weights[0] > best_bound:
                    best_bound, proof = lower / weights[0], base
                    best_weights[:] = weights
                if done:
                    outcome, gap, finished = OPTIMAL, value / weights[0] - best_bound, True
            elif lower > feasible_within:
                if done or not least_excess:
                    outcome, gap, proof, finished = INFEASIBLE, -lower, base, True
                    best_weights[:] = weights
            elif done:
                if value > 2.0 * feasible_within:
                    finished = True  # and nothing found
                    break
                limit = gains[below, 1]
                continue
            break
        if finished:
            break
    # What was found: its gap, its frequencies, its policy.
    policy = occupancy
    if outcome != GIVE_UP:
        gap += rounding_of_bound(P, best_weights, biases[proof]) / (best_weights[0] if outcome == OPTIMAL else 1.0)
        mixed = above >= 0 and share > 0.0
        for s in range(S):
            occupancy[s, policies[below, s]] += (1.0 - share) * laws[below, s]
            if above >= 0:
                occupancy[s, policies[above, s]] += share * laws[above, s]
        policy = one_hot(policies[above if mixed and share > 0.5 else below], A)
        if mixed:
            policy = policy_from_occupancy(occupancy, policy, 0.0)
    return Found(
        outcome, below, above, share, best_weights, proof, gap, evaluated, gains, biases, policies, laws, occupancy,
        policy,
    )  # fmt: skip
