r"""Column generation compiled as a whole, for dense transitions and for sparse ones.

The loop of ``column_generation`` with the oracle ``Howard``, for what a learning loop does thousands of times. With one
limit it is Newton's method on the concave, piecewise linear dual. The tests hold it to the general one.

Numba caches this file by its own date: after a change to the kernels it calls, touch it. Arrays are copied entry by
entry: an assignment of slices compiles a message about their shapes, for seconds.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints
from psconrl.planning.mixture._laws import Rows, evaluate, improved, is_same, law, rounding
from psconrl.planning.mixture._line import mix_on_line
from psconrl.planning.mixture._tableau import add_column, mix_in_tableau, new_tableau, relax
from psconrl.planning.policy_from_occupancy import one_hot, policy_from_occupancy
from psconrl.planning.tolerances import LEAST_GUESS

OPTIMAL, INFEASIBLE, GIVE_UP = 1, 0, -1

# More columns than the search ever needs with one limit, and how many more with each further one; beyond, the general
# loop takes over.
_CAPACITY = 64
_CAPACITY_A_LIMIT = 32
# How many improvements in a row may not show in the costs.
_PATIENCE = 16
# Guesses that are asked for before the master's own weights, and the factor between their prices.
_GUESSES, _FACTOR = 4, 1.2


class Found(NamedTuple):
    """What the search ended with. An outcome is a claim: whoever uses it looks at the gap.

    Policies, gains and chains: first those of the mixture, last those of the policy whose biases carry the bound.
    """

    outcome: int  # OPTIMAL, INFEASIBLE or GIVE_UP
    shares: Floats  # (k,) of the mixture, all positive
    policies: Ints  # (k + 1, S)
    gains: Floats  # (k + 1, q)
    chains: Floats  # (k + 1, q + 1, S): biases, and last the law of the states
    policy: Floats  # (S, A) with the frequencies of the mixture; where it has no mass, its heaviest column is followed
    value: float  # the average of the objective
    weights: Floats  # (q,) dual weights of the best bound
    gap: float  # what rounding may hide included
    evaluated: int  # policies


@njit(cache=True)
def _is_usable(near: Floats) -> bool:
    """Are these weights ones from which prices can be guessed?"""
    total = 0.0
    for weight in near:
        if not weight >= 0.0:
            return False
        total += weight
    return bool(near[0] > LEAST_GUESS * total)


@njit(cache=True)
def _some_positive(values: Floats) -> bool:
    largest = 0.0
    for value in values:
        largest = max(largest, value)
    return largest > 0.0


@njit(cache=True)
def _copy(source: Floats, target: Floats) -> None:
    for i in range(source.size):
        target[i] = source[i]


@njit(cache=True)
def _priced(weights: Floats, averages: Floats) -> float:
    """The weighted cost."""
    cost = weights[0] * averages[0]
    for i in range(1, weights.size):
        cost += weights[i] * averages[i]
    return float(cost)


@njit(cache=True)
def _without_zeros(mixed: Ints, shares: Floats) -> int:
    """Move the columns with a share to the front; how many these are."""
    k = 0
    for i in range(shares.size):
        if shares[i] > 0.0:
            mixed[k], shares[k] = mixed[i], shares[i]
            k += 1
    return k


@njit(cache=True)
def _played(
    mixed: Ints, shares: Floats, policies: Ints, laws: Floats, gains: Floats, n_actions: int
) -> tuple[Floats, float]:
    """The stationary policy (S, A) with the frequencies of a mixture, and its average objective."""
    S = laws.shape[1]
    frequencies = np.zeros((S, n_actions))
    heaviest, value = 0, 0.0
    for i in range(mixed.size):
        j = mixed[i]
        value += shares[i] * gains[j, 0]
        if shares[i] > shares[heaviest]:
            heaviest = i
        for s in range(S):
            frequencies[s, policies[j, s]] += shares[i] * laws[j, s]
    if mixed.size == 0:
        return frequencies, value
    guide = one_hot(policies[mixed[heaviest]], n_actions)
    return guide if mixed.size == 1 else policy_from_occupancy(frequencies, guide, 0.0), value


@njit(cache=True)
def _gathered(kept: Ints, policies: Ints, gains: Floats, biases: Floats, laws: Floats) -> tuple[Ints, Floats, Floats]:
    """Policies, gains and chains of some columns, as ``Found`` has them."""
    q, S = biases.shape[1:]
    chosen, averages, chains = (
        np.empty((kept.size, S), np.int64),
        np.empty((kept.size, q)),
        np.empty((kept.size, q + 1, S)),
    )
    for i in range(kept.size):
        j = kept[i]
        for c in range(q):
            averages[i, c] = gains[j, c]
            for s in range(S):
                chains[i, c, s] = biases[j, c, s]
        for s in range(S):
            chains[i, q, s] = laws[j, s]
            chosen[i, s] = policies[j, s]
    return chosen, averages, chains


@njit(cache=True, nogil=True)
def newton(
    P: Floats | Rows,
    costs: Floats,
    thresholds: Floats,
    available: Bools,
    start: Ints,
    near: Floats,
    least_excess: bool,
    closed: float,
    switch: float,
    feasible_within: float,
    same: float,
    nearly_closed: float,
) -> Found:
    """Plan from the deterministic policies ``start`` (k, S), k >= 1, until a gap is ``closed`` so far.

    The last four arguments are ``tolerances.SEARCH``.

    ``near``: weights (q,) close to which those of the optimum are thought to lie, or none. Then the first questions are
    asked there, on either side: a master that has seen one side only asks extreme ones.
    """
    S, A = available.shape
    q = costs.shape[0]
    capacity = _CAPACITY + _CAPACITY_A_LIMIT * max(q - 2, 0) + start.shape[0]
    gains = np.zeros((capacity, max(q, 2)))
    biases = np.zeros((capacity, q, S))
    policies = np.empty((capacity, S), np.int64)
    laws = np.empty((capacity, S))
    weights = np.full(q, 1.0 / q)
    best_weights = np.zeros(q)
    best_bound, proof = -np.inf, 0
    outcome, gap = GIVE_UP, np.inf
    mixed, shares = np.zeros(max(q, 2) + 1, np.int64), np.zeros(max(q, 2))
    tau = thresholds[0] if q > 1 else np.inf  # for the master of one limit
    limit = tau
    table = new_tableau(thresholds, capacity if q > 2 else 0)  # the master of several
    feasible = capacity < 0  # no; but for a constant Numba would compile the master once more
    prices, guesses = np.zeros(q), 0  # of the limits, in the guess
    if near.size > 1 and _is_usable(near):
        for i in range(q):
            prices[i] = near[i] / near[0]
        guesses = _GUESSES if _some_positive(prices[1:]) else 0
    pending = start.shape[0]
    n = 0
    reference = 0
    caution, lowest, base, idle = 1.0, np.inf, 0, 0
    new = start[0]
    evaluated, off = 0, 0.0
    while evaluated < 4 * capacity and n < capacity:
        evaluated += 1
        # Phase 1: evaluate a policy, led into the best of its parts if it nearly falls apart.
        if pending:
            new = start[n]
            pending -= 1
        chain = evaluate(P, costs, weights, available, new, reference, biases[base], nearly_closed)
        new, g, h = chain.policy, chain.gains, chain.biases
        off = max(off, chain.off)
        if chain.reference < 0:
            break
        reference = chain.reference
        for i in range(1, q):
            prices[i] *= _FACTOR if g[i] > thresholds[i - 1] else 1.0 / _FACTOR
        if n >= start.shape[0]:
            # A switch that makes things worse was rounding: next time only larger gains count.
            cost = _priced(weights, g)
            if cost > lowest + 10.0 * same:
                caution *= 100.0
            elif cost < lowest - same:
                caution = 1.0
        # Phase 2: keep it as a column, or in the place of one with the same averages.
        at = n
        # Nothing but states that are hardly visited has changed, or nothing at all. If that continues, it is rounding.
        apart = abs(g[0] - gains[base, 0])
        for i in range(1, q):
            apart = max(apart, abs(g[i] - gains[base, i]))
        idle = idle + 1 if n >= start.shape[0] and apart <= same else 0
        if idle:
            at = base  # the better policy takes its place
            if idle > _PATIENCE or is_same(new, policies[base]):
                caution *= 100.0
            if proof == base:
                best_bound = -np.inf
        elif q > 2:
            add_column(table, n, g)
        gains[at, 1] = -np.inf  # if there is no limit
        for i in range(q):
            gains[at, i] = g[i]
        for s in range(S):
            policies[at, s] = new[s]
            for i in range(q):
                biases[at, i, s] = h[i, s]
        for s in range(chain.law.size):
            laws[at, s] = chain.law[s]
        n = max(n, at + 1)
        if pending:
            continue

        # Phase 3: the master gives the prices, and the cheapest column is improved for them.
        finished = False
        while True:  # once, and once more after the limits were moved to the boundary
            if q > 2:
                ended, feasible, value = mix_in_tableau(table, n, feasible, weights, mixed, shares)
                if not ended:
                    finished = True  # and nothing found
                    break
            else:
                feasible, value = mix_on_line(gains, n, tau, limit, weights, mixed, shares)
            guessing = guesses > 0 and not (feasible and _some_positive(weights[1:]))
            if guessing:
                total = 0.0
                for i in range(q):
                    total += prices[i]
                for i in range(q):
                    weights[i] = prices[i] / total
            else:
                guesses = 0
            base, lowest = 0, np.inf
            for i in range(n):
                cost = _priced(weights, gains[i])
                if cost <= lowest + same:  # the newest of the cheapest, up to rounding
                    base, lowest = i, min(cost, lowest)
            bound, switched, new = improved(
                P, costs, weights, available, policies[base], biases[base], switch * caution, lowest, caution == 1.0
            )
            lower = bound
            for i in range(1, q):
                lower -= weights[i] * thresholds[i - 1]
            done = switched == 0 or value - lower <= closed
            if guessing:
                guesses = guesses - 1 if switched else 0
                if lower / weights[0] > best_bound:
                    best_bound, proof = lower / weights[0], base
                    _copy(weights, best_weights)
                if not switched:
                    continue
            elif feasible:
                if lower / weights[0] > best_bound:
                    best_bound, proof = lower / weights[0], base
                    _copy(weights, best_weights)
                if done:
                    outcome, gap, finished = OPTIMAL, value / weights[0] - best_bound, True
            elif lower > feasible_within:
                if done or not least_excess:
                    outcome, gap, proof, finished = INFEASIBLE, -lower, base, True
                    _copy(weights, best_weights)
            elif done:
                if value > 2.0 * feasible_within:
                    finished = True  # and nothing found
                    break
                limit = gains[mixed[0], 1]
                if q > 2:
                    relax(table, value)
                    feasible = True
                continue
            break
        if finished:
            break
    k = 0
    if outcome != GIVE_UP:
        gap += (rounding(P, best_weights, biases[proof]) + off) / (best_weights[0] if outcome == OPTIMAL else 1.0)
        k = _without_zeros(mixed, shares)
        for j in mixed[:k]:
            found = law(P, policies[j], gains[j, :q], costs, laws[j])
            for s in range(S):
                laws[j, s] = found[s]
            if not _some_positive(found):
                outcome, k = GIVE_UP, 0
                break
    mixed[k] = proof
    policy, value = _played(mixed[:k], shares, policies, laws, gains, A)
    chosen, averages, chains = _gathered(mixed[: k + 1], policies, gains, biases, laws)
    return Found(outcome, shares[:k], chosen, averages, chains, policy, value, best_weights, gap, evaluated)
