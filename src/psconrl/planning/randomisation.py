r"""Fewest randomised states: among all optimal plans under m constraints, one that randomises in at most m states.

One constraint: take two policies that are optimal for the same multiplier. Any policy that takes each state's action
from one or the other is optimal too. So switch half of the states in which they differ and keep the pair that still
straddles the threshold. After log2(S) evaluations the two differ in one state (Beutler and Ross 1985 prove that one
suffices).

Several constraints: a little more of action a in state s moves the occupancy of a policy :math:`\pi` along

.. math:: d(t, b) = \nu(t)\, \pi(b|t) + 1[t = s]\,(1[b = a] - \pi(b|s)), \qquad \nu (I - P_\pi) = P_{sa} - P_{\pi, s},

which preserves the balance. If there are more such directions than constraints, some combination of them changes no
cost. Follow it until an action drops out, and repeat until at most m directions are left: a vertex of the set of
optimal occupancies.
"""

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import SAME_BITS_STATES, VERTEX_STATES
from psconrl.kernels.arithmetic.products import dot
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy, randomised_in
from psconrl.kernels.linear import lu
from psconrl.markov.chain import chain_of
from psconrl.markov.structure import attractor_policy
from psconrl.model.matrix_product import product
from psconrl.planning.mixture.column_generation import Mixture
from psconrl.planning.mixture.howard import Column, Howard, disjoint_log_masses
from psconrl.planning.mixture.solve import Solution, stationary_policy
from psconrl.planning.mixture_frequencies import mixed_occupancy
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import DIRECTION_ROUNDING, LEAST_SHARE, SAME_LINE, UNVISITED


def fewest_randomised(problem: Problem, solution: Solution) -> tuple[Floats, Floats]:
    """Return occupancy and policy with the same averages that randomise in as few states as possible."""
    mixture, occupancy, policy = solution.mixture, solution.occupancy, solution.policy
    if mixture.weights.size == 2:
        columns, shares = nearest_pair(problem, mixture)
        if columns is mixture.answers:
            return occupancy, policy
        occupancy = mixed_occupancy(columns, shares, problem.available.shape[1])
        policy = stationary_policy(problem, columns, shares, occupancy)
        if len(columns) < 2 or np.count_nonzero(columns[0].policy != columns[1].policy) <= 1:
            return occupancy, policy
    return drop_randomised(problem, occupancy, policy)


def nearest_pair(problem: Problem, mixture: Mixture[Column]) -> tuple[tuple[Column, ...], Floats]:
    """Return, for one constraint, an equally good mixture of two policies that differ in as few states as possible."""
    columns, shares, w = mixture.answers, mixture.shares, mixture.weights
    if np.count_nonzero(columns[0].policy != columns[1].policy) <= 1:
        return columns, shares
    spent = [float(column.costs[1]) for column in columns]
    level = dot(shares, np.array(spent))
    oracle = Howard(problem)
    low, high = columns if spent[0] <= spent[1] else columns[::-1]
    high = _alike_where_unvisited(oracle, high, low, w)
    # Between different regimes, the states that are visited in one of them switch together.
    masses = disjoint_log_masses((low, high), np.full(2, 0.5))
    rank = np.arange(low.policy.size) if masses is None else _switched_together(*masses)
    while True:
        differing = rank[(low.policy != high.policy)[rank]]
        if differing.size <= 1:
            break
        policy = low.policy.copy()
        half = differing[: differing.size // 2]
        policy[half] = high.policy[half]
        between = oracle.evaluate(policy, w, low)
        if between.policy is not policy or abs(dot(w, between.costs - low.costs)) > SAME_LINE:  # driven, or worse
            break
        low, high = (between, high) if between.costs[1] <= level else (low, between)
    width = float(high.costs[1] - low.costs[1])
    if width <= 0.0:
        return (low,), np.ones(1)
    share = min(max((level - float(low.costs[1])) / width, 0.0), 1.0)
    if share in (0.0, 1.0):
        return ((high,) if share else (low,)), np.ones(1)
    return (low, high), np.array([1.0 - share, share])


def _switched_together(low: Floats, high: Floats) -> Ints:
    """Return the states by the logarithms of their masses in two regimes, those of the second regime first."""
    with np.errstate(invalid="ignore"):
        apart = low - high
    return np.argsort(np.where(np.isnan(apart), 0.0, apart), kind="stable")


def _alike_where_unvisited(oracle: Howard, column: Column, other: Column, w: Floats) -> Column:
    """Return the column with the actions of another in states that neither visits, if it is as good."""
    unvisited = column.stationary + other.stationary <= UNVISITED
    policy = np.where(unvisited, other.policy, column.policy)
    if not (policy != column.policy).any():
        return column
    alike = oracle.evaluate(policy, w, column)
    same = alike.policy is policy and np.abs(alike.costs - column.costs).max() <= SAME_LINE
    return alike if same else column


def drop_randomised(problem: Problem, occupancy: Floats, policy: Floats) -> tuple[Floats, Floats]:
    """Return occupancy and policy with the same averages and at most m randomised states, if rounding permits."""
    S, m = len(policy), problem.thresholds.size
    randomised = randomised_in(policy, occupancy)
    if randomised.size <= m or S > VERTEX_STATES:
        return occupancy, policy
    directions = _directions(problem, policy, randomised)
    moved_to = None if directions is None else _at_a_vertex(problem, occupancy.ravel(), directions)
    if moved_to is None:
        return occupancy, policy
    x = moved_to.reshape(policy.shape)
    # The averages are compared below, so it is safe to drop small entries here.
    visited = x.sum(axis=1) > DIRECTION_ROUNDING
    x[x <= LEAST_SHARE * x.sum(axis=1, keepdims=True)] = 0.0
    onward = attractor_policy(problem.transition, problem.available, visited, policy.argmax(axis=1))
    fewer = policy_from_occupancy(np.where(visited[:, None], x, 0.0), one_hot(onward, policy.shape[1]), 0.0)
    chain = chain_of(problem.transition, fewer).solve(np.zeros((1, S)))
    if chain is None:
        return occupancy, policy
    distribution = chain.stationary[:, None] * fewer
    moved = float(np.abs(product(problem.costs, (distribution - occupancy).ravel())).max())
    return (distribution, fewer) if moved <= SAME_LINE else (occupancy, policy)


def _directions(problem: Problem, policy: Floats, randomised: Ints) -> Floats | None:
    """Return directions (S*A, K) of the occupancy, each more of an action played in some states; largest entry one.

    None if the chain of the policy has several closed classes.
    """
    S, A = policy.shape
    P_pi = chain_of(problem.transition, policy).toarray()
    extra = np.zeros((S, A), dtype=bool)
    extra[randomised] = policy[randomised] > 0
    extra[np.arange(S), policy.argmax(axis=1)] = False  # probabilities of a state sum to one: one of them is dependent
    pairs = np.flatnonzero(extra.ravel())
    change = problem.transition.rows(pairs) - P_pi[pairs // A]
    nu = _solved(np.ascontiguousarray((np.eye(S) - P_pi + 1.0 / S).T), np.ascontiguousarray(change.T))
    if nu is None:
        return None
    d = nu[:, None, :] * policy[:, :, None]
    k = np.arange(pairs.size)
    d[pairs // A, :, k] -= policy[pairs // A]
    d[pairs // A, pairs % A, k] += 1.0
    flat = d.reshape(S * A, -1)
    return np.asarray(flat / np.abs(flat).max(axis=0))


def _solved(matrix: Floats, right: Floats) -> Floats | None:
    """Solve a linear system, bit-identically on every processor if it is small; None if it is singular."""
    if len(matrix) <= SAME_BITS_STATES:
        solution: Floats | None = lu.solved(matrix, right)
        return solution
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return None


def _at_a_vertex(problem: Problem, x: Floats, N: Floats) -> Floats | None:
    """Move along the directions N without changing a cost, until no more directions than constraints are left.

    None if no action drops out on the way.
    """
    while N.shape[1] > problem.thresholds.size:
        d = product(N, _null_vector(product(problem.costs[1:], N)))
        steps = np.divide(x, -d, out=np.full(x.size, np.inf), where=d < -DIRECTION_ROUNDING)
        p = int(steps.argmin())
        if not np.isfinite(steps[p]):
            return None
        x = np.maximum(x + steps[p] * d, 0.0)
        x[p] = 0.0
        k = int(np.abs(N[p]).argmax())
        N = np.delete(N - np.outer(N[:, k], N[p] / N[p, k]), k, axis=1)
        N[p] = 0.0
        N = N / np.maximum(np.abs(N).max(axis=0), DIRECTION_ROUNDING)
    return x


def _null_vector(M: Floats) -> Floats:
    """Return a unit vector in the null space of a matrix (m, K), m < K, by orthogonalising an axis against its rows.

    >>> _null_vector(np.array([[2.0, 1.0]])).round(3).tolist()
    [-0.447, 0.894]
    """
    basis: list[Floats] = []
    for row in M:
        across = _orthogonal(row, basis)
        length = np.sqrt((across * across).sum())
        if length > DIRECTION_ROUNDING * np.abs(row).max():
            basis.append(across / length)
    covered = sum((v * v for v in basis), np.zeros(M.shape[1]))
    left = _orthogonal(np.eye(M.shape[1])[covered.argmin()], basis)
    return np.asarray(left / np.sqrt((left * left).sum()))


def _orthogonal(x: Floats, basis: list[Floats]) -> Floats:
    """Return a vector minus its projection on an orthonormal basis."""
    for _ in range(2):  # the second pass removes rounding residue
        for v in basis:
            x = x - product(v, x) * v
    return x
