"""Guarantees without a prior: bounds against brute force over the vertices of the confidence sets."""

from itertools import product

import numpy as np
from scipy.sparse import csr_array

from psconrl.data.advice.robust import robust_plan, set_of_rows
from psconrl.learning.posterior.counts import Counts


def counted(table: np.ndarray, n_actions: int) -> Counts:
    """Return counts of transitions (S*A, S)."""
    S = table.shape[1]
    found = Counts(S, n_actions, 2)
    numbers = np.flatnonzero(table.ravel())
    found.tally.restore({"numbers": numbers, "times": table.ravel()[numbers]})
    found.visits += table.sum(axis=1)
    return found


def average(P: np.ndarray, cost: np.ndarray) -> float:
    """Return the average of a cost (S,) of a chain with one class."""
    S = len(cost)
    mu = np.linalg.lstsq(np.vstack([P.T - np.eye(S), np.ones(S)]), np.append(np.zeros(S), 1.0), rcond=None)[0]
    return float(mu @ cost)


def test_bounds_are_those_of_the_worst_vertices() -> None:
    """Two states: the worst rows of a box are vertices, so that all pairs of them are tried."""
    table = np.array([[60, 40], [90, 10], [30, 70], [50, 50]])
    counts = counted(table, 2)
    costs = np.array([[[1.0, 2.0], [3.0, 0.5]], [[0.0, 1.0], [1.0, 0.2]]])
    start = np.array([1.0, 0.0])
    sets = set_of_rows(counts, np.array([0.7]), start, costs=costs)
    found = robust_plan(sets, np.array([0.7]), np.full((2, 2), 0.5))
    assert found.policy is not None
    low = np.asarray(
        csr_array((sets.distributions.low, sets.distributions.successors, sets.distributions.indptr)).todense()
    )
    high = np.asarray(
        csr_array((sets.distributions.high, sets.distributions.successors, sets.distributions.indptr)).todense()
    )
    ends = [
        [(max(low[k, 0], 1 - high[k, 1])), (min(high[k, 0], 1 - low[k, 1]))] for k in range(4)
    ]  # of the probability of state 0
    for i, bound in enumerate(found.bounds):
        worst = -np.inf
        for vertex in product(*ends):
            rows = np.array([[p, 1 - p] for p in vertex]).reshape(2, 2, 2)
            chain = (found.policy[:, :, None] * rows).sum(axis=1)
            worst = max(worst, average(chain, (found.policy * costs[i]).sum(axis=1)))
        assert worst - 1e-9 <= bound <= worst + 2e-3 * np.ptp(costs[i])
    least = np.inf
    for vertex in product(*ends):
        rows = np.array([[p, 1 - p] for p in vertex]).reshape(2, 2, 2)
        least = min(least, average(rows.mean(axis=1), costs[0].mean(axis=1)))
    assert least - 2e-3 * np.ptp(costs[0]) <= found.today_at_least <= least + 1e-9


def test_support_takes_the_place_of_visits_to_every_state() -> None:
    """A state that was never left spoils every guarantee, unless it is known where it leads, and from where."""
    table = np.zeros((3, 3), dtype=int)
    table[0], table[1] = [500, 500, 0], [500, 500, 0]
    counts = counted(table, 1)
    costs = np.zeros((2, 3, 1))
    costs[1, 2] = 1.0
    start = np.array([1.0, 0.0, 0.0])
    plain = robust_plan(set_of_rows(counts, np.array([0.1]), start, costs=costs), np.array([0.1]))
    assert plain.policy is None
    support = csr_array(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0]]))
    known = robust_plan(set_of_rows(counts, np.array([0.1]), start, costs=costs, support=support), np.array([0.1]))
    assert known.policy is not None
    assert known.bounds[1] <= 2e-3


def test_sorted_own_entries_give_the_same_means_as_all_states() -> None:
    """With nothing unseen, the kernel looks at stored entries alone: a slow loop over all states agrees."""
    from psconrl.kernels.sets.pessimism import row_sets, worst_means

    rng = np.random.default_rng(0)
    S, pairs = 6, 12
    low, high = np.zeros((pairs, S)), np.zeros((pairs, S))
    for k in range(pairs):
        own = rng.choice(S, size=4, replace=False)
        p = rng.dirichlet(np.ones(4))
        low[k, own], high[k, own] = 0.5 * p, np.minimum(1.5 * p, 1.0)
    h = rng.normal(size=S)
    stored = csr_array(high)
    places = stored.indptr.astype(np.int32), stored.indices.astype(np.int32)
    lows = np.array([low[k, s] for k in range(pairs) for s in stored.indices[stored.indptr[k] : stored.indptr[k + 1]]])
    found = worst_means(row_sets(*places, lows, stored.data, np.zeros(pairs), S), h)
    for k in range(pairs):
        left, value = 1.0 - low[k].sum(), float(low[k] @ h)
        for s in np.argsort(-h):
            step = min(high[k, s] - low[k, s], left)
            value, left = value + step * h[s], left - step
        np.testing.assert_allclose(found[k], value, atol=1e-12)


def test_bounds_of_learned_costs_are_mirrored() -> None:
    """Costs between 0 and 1, and what is left of them to 1: the lower bound of one is 1 less the upper of the other."""
    rng = np.random.default_rng(1)
    table = rng.integers(1, 40, size=(4, 2))
    found, mirrored = counted(table, 2), counted(table, 2)
    found.cost_sums[:] = 0.3 * table.sum(axis=1)
    mirrored.cost_sums[:] = 0.7 * table.sum(axis=1)
    start, ranges = np.array([1.0, 0.0]), np.tile([0.0, 1.0], (2, 1))
    own, other = (set_of_rows(one, np.array([0.5]), start, ranges=ranges) for one in (found, mirrored))
    np.testing.assert_allclose(own.lowest, 1.0 - other.costs[0], atol=1e-12)
    assert (own.lowest < 0.3).all()
    assert (own.costs[0] > 0.3).all()
