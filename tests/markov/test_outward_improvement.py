"""Policies chosen from the farthest state to a reference: totals in closed form, bounds, hubs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl import CMDP, plan
from psconrl.kernels.graphs.nested_dissection import outward
from psconrl.kernels.search import outward_improvement as kernel
from psconrl.markov import outward_improvement
from psconrl.markov.elimination_order import NO_ORDER, OutwardOrders, order_for
from psconrl.markov.outward_improvement import LOWER_GAIN, OutwardSteps


def line(n, actions, reset=False):
    """Walk on a line by (up, down) of each action; with ``reset`` one more action leads to state 0."""
    k, A = np.arange(n), len(actions) + reset
    P = np.zeros((n, A, n))
    for a, (up, down) in enumerate(actions):
        P[k, a, k] += 1.0 - up - down
        P[k, a, np.minimum(k + 1, n - 1)] += up
        P[k, a, np.maximum(k - 1, 0)] += down
    P[:, -1, 0] += float(reset)
    sparse = csr_array(P.reshape(n * A, n))
    sparse.indptr, sparse.indices = sparse.indptr.astype(np.intc), sparse.indices.astype(np.intc)
    return sparse


def every(n, A):
    return np.ones((n, A), dtype=bool)


@pytest.mark.parametrize("reference", [0, 5, 11])
def test_time_until_a_reference_of_a_symmetric_walk_is_quadratic(reference):
    """From x, above the reference r, it takes (x - r) (2 n - 1 - x - r) steps, and below likewise: the ends reflect."""
    n, P = 12, line(12, [(0.5, 0.5)])
    order = OutwardOrders(P.indptr, P.indices, n, np.inf).towards(reference)
    policy, rows = kernel.improve_outward(
        P.indptr, P.indices, P.data, np.ones(n), every(n, 1), np.zeros(n, np.int64), np.zeros(n), 0.0, reference, 0.0,
        order,
    )  # fmt: skip
    x, r = np.arange(n), reference
    expected = np.where(x >= r, (x - r) * (2 * n - 1 - x - r), (r - x) * (r + x + 1))
    assert not policy.any()
    assert kernel.until_reference(rows, np.ones(n), reference, order) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reset", [False, True])
def test_the_optimal_gain_is_proven_whatever_the_policy(monkeypatch, seed, reset):
    monkeypatch.setattr(outward_improvement, "OUTWARD_STATES", 0)
    rng, n = np.random.default_rng(seed), 30
    P = line(n, [(0.3, 0.2), (0.2, 0.3), (0.1, 0.5)], reset)
    A = 3 + reset
    cost = rng.random((n, A))
    cost[:, 3:] += 5.0
    best = plan(CMDP(P, [cost], []))
    visited = int(best.occupancy.sum(axis=1).argmax())
    h = best.potential if reset else np.zeros(n)
    found = OutwardSteps(P).improve(
        np.zeros(n, np.int64), h, cost.ravel(), every(n, A), best.value, -np.inf, 1e-13, visited
    )
    assert found.bound == pytest.approx(best.value - LOWER_GAIN, abs=1e-13)
    assert np.array_equal(found.policy, best.policy.argmax(axis=1))


def test_a_border_at_which_all_farther_states_jump_moves_outward_in_one_step(monkeypatch):
    """Wear of a symmetric walk, reset at a price of .05: from resets at once to the best border, for the best gain."""
    monkeypatch.setattr(outward_improvement, "OUTWARD_STATES", 0)
    n, P = 200, line(200, [(0.5, 0.5)], reset=True)
    cost = np.stack([0.001 * np.arange(n) / n, np.full(n, 0.05)], axis=1)
    best = plan(CMDP(P, [cost], []))
    border = int((best.policy[:, 1] > 0.5).argmax())
    assert 10 < border < 190
    at_once = np.where(np.arange(n) > 0, 1, 0)
    h = np.where(at_once, 0.05 - best.value, 0.0)
    found = OutwardSteps(P).improve(at_once, h, cost.ravel(), every(n, 2), best.value, -np.inf, 1e-13, 0)
    assert np.array_equal(found.policy, best.policy.argmax(axis=1))
    assert found.bound == pytest.approx(best.value - LOWER_GAIN, abs=1e-12)


def test_a_gain_that_is_far_too_high_is_halved(monkeypatch):
    """Waiting costs .5 where it starts and nothing far away: for a gain of 9 the longest excursion would be best."""
    monkeypatch.setattr(outward_improvement, "OUTWARD_STATES", 0)
    n, P = 40, line(40, [(0.4, 0.2), (0.2, 0.4)])
    cost = np.repeat(np.where(np.arange(n) < 5, 0.5, 0.0)[:, None], 2, axis=1)
    best = plan(CMDP(P, [cost], [])).value
    steps, policy, bounds = OutwardSteps(P), np.ones(n, np.int64), []
    gain = 9.0
    for _ in range(3):
        found = steps.improve(policy, np.zeros(n), cost.ravel(), every(n, 2), gain, -np.inf, 1e-13, 0)
        policy, gain = found.policy, float(plan(CMDP(line_of(P, found.policy), [cost[:, :1]], [])).value)
        bounds.append(found.bound)
    assert gain == pytest.approx(best, abs=1e-9)
    assert max(bounds) <= best


def line_of(P, policy):
    """The rows of a policy with two actions."""
    return csr_array(P[2 * np.arange(policy.size) + policy])


def test_states_are_ordered_from_the_farthest_and_hubs_come_last():
    P = line(6, [(0.5, 0.5)])
    nothing = np.zeros(6, dtype=bool)
    assert outward(P.indptr, P.indices, 2, nothing).tolist() == [5, 4, 0, 3, 1, 2]
    assert outward(P.indptr, P.indices, 2, np.arange(6) == 4).tolist() == [5, 0, 3, 1, 2, 4]
    assert OutwardOrders(P.indptr, P.indices, 6, np.inf).away_from(2).state.tolist() == [1, 3, 0, 4, 5, 2]


def test_a_state_that_all_states_may_be_reset_to_does_not_fill_in():
    n = 400
    P = line(n, [(0.5, 0.5)], reset=True)
    assert order_for(P.indptr, P.indices, n, np.inf).work < 20 * n
    orders = OutwardOrders(P.indptr, P.indices, n, np.inf)
    for order in (orders.towards(7), orders.away_from(7)):
        assert order.work < 20 * n
        assert 0 in order.state[-2:]


def test_wide_and_small_models_are_left_to_sweeps():
    n = 40
    P = line(n, [(0.5, 0.5)])
    assert OutwardOrders(P.indptr, P.indices, n, 1.0).towards(0) is NO_ORDER
    args = np.zeros(n, np.int64), np.zeros(n), np.zeros(n), every(n, 1), 0.0, 0.0, 1e-13, 0
    assert OutwardSteps(P).improve(*args) is None
