"""Optimistic planners against their linear programs, and at the two extremes of optimism."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import psconrl
from models import examples
from psconrl import evaluate, plan, simulate
from psconrl.agents import UCRLCMDP
from psconrl.kernels.arithmetic.products import combine
from psconrl.kernels.sets.best_rows import BestRows
from psconrl.kernels.sets.boxes import pour
from psconrl.kernels.sets.optimism import drive_to, improve_optimistic, optimistic_horizon
from psconrl.learning.parts.radii import Box
from psconrl.planning.optimism.average import optimistic_policy, solve_optimistic
from psconrl.planning.optimism.horizon import solve_horizon

AGREE = 1e-7


def random_box(seed, S, A, m, positive):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(S, 0.5), size=S * A)
    radius = rng.choice([0.02, 0.1, 0.4, 1.0] if positive else [0.0, 0.1, 1.0], size=S * A)
    return Box.around(P, radius), rng.random((m + 1, S * A)), rng.uniform(0.15, 0.7, size=m)


def average(mixture):
    return mixture.shares @ np.array([column.costs for column in mixture.answers])


def extended_lp(box, costs, tau):
    """min over q(s,a,s') = mu(s,a) p(s'|s,a): S^2 A variables; None if infeasible."""
    n, S = box.low.shape
    A = n // S
    upper, limits = [np.repeat(c, S) for c in costs[1:]], list(tau)
    for pair in range(n):
        own = slice(pair * S, (pair + 1) * S)
        for j in range(S):
            for sign, bound in ((1.0, box.low[pair, j]), (-1.0, box.high[pair, j])):
                row = np.zeros(n * S)
                row[own] = sign * bound
                row[pair * S + j] -= sign
                upper.append(row)
                limits.append(0.0)
    balance = np.zeros((S + 1, n * S))
    for s in range(S):
        balance[s, s * A * S : (s + 1) * A * S] = 1.0
        balance[s, s::S] -= 1.0
    balance[S] = 1.0
    result = linprog(np.repeat(costs[0], S), upper, limits, balance, np.append(np.zeros(S), 1.0))
    return result.fun if result.status == 0 else None


@examples(80)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 3), st.integers(0, 3))
def test_howard_over_vertices_is_the_extended_linear_program(seed, S, A, m):
    box, costs, tau = random_box(seed, S, A, m, positive=True)
    ours = solve_optimistic(box.low, box.high, costs, tau)
    referee = extended_lp(box, costs, tau)
    assert ours.feasible == (referee is not None)
    if ours.feasible:
        assert average(ours)[0] == pytest.approx(referee, abs=AGREE)
        assert (average(ours)[1:] <= tau + 1e-9).all()
        np.testing.assert_allclose(optimistic_policy(ours, A, np.random.default_rng(0)).sum(axis=1), 1.0)
        for column in ours.answers:
            pairs = np.arange(S) * A + column.policy
            assert (column.kernel >= box.low[pairs] - 1e-12).all()
            assert (column.kernel <= box.high[pairs] + 1e-12).all()
            np.testing.assert_allclose(column.kernel.sum(axis=1), 1.0)


def horizon_lp(box, costs, tau, H, start):
    """min over nu_h(s,a,s'), H S^2 A variables, averages per step; None if infeasible."""
    n, S = box.low.shape
    A, N = n // S, n * S
    upper, limits = [np.tile(np.repeat(c, S), H) / H for c in costs[1:]], list(tau)
    equal, right = [], []
    for h in range(H):
        for pair in range(n):
            own = slice(h * N + pair * S, h * N + (pair + 1) * S)
            for j in range(S):
                for sign, bound in ((1.0, box.low[pair, j]), (-1.0, box.high[pair, j])):
                    row = np.zeros(H * N)
                    row[own] = sign * bound
                    row[h * N + pair * S + j] -= sign
                    upper.append(row)
                    limits.append(0.0)
        for s in range(S):
            row = np.zeros(H * N)
            row[h * N + s * A * S : h * N + (s + 1) * A * S] = 1.0
            if h:
                row[(h - 1) * N + s : h * N : S] -= 1.0
            equal.append(row)
            right.append(float(h == 0 and s == start))
    result = linprog(np.tile(np.repeat(costs[0], S), H) / H, upper, limits, equal, right)
    return result.fun if result.status == 0 else None


@examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 4))
def test_backward_recursion_is_the_finite_horizon_linear_program(seed, S, A, m, H):
    box, costs, tau = random_box(seed, S, A, m, positive=False)
    ours, policy = solve_horizon(box.low, box.high, costs, tau, H, 0)
    referee = horizon_lp(box, costs, tau, H, 0)
    assert ours.feasible == (referee is not None)
    assert policy.shape == (H, S, A)
    np.testing.assert_allclose(policy.sum(axis=2), 1.0)
    if ours.feasible:
        assert average(ours)[0] == pytest.approx(referee, abs=AGREE)


@pytest.mark.parametrize("name", ["marsrover-4x4", "marsrover-8x8", "box"])
def test_every_hoped_for_model_lies_in_its_box(name):
    """Entry by entry, and so does the occupancy: flow, box and limit of the extended program hold."""
    cmdp = psconrl.load(name)
    S, A = cmdp.n_states, cmdp.n_actions
    visits = np.random.default_rng(0).integers(1, 300, size=S * A)
    box = Box.around(np.array(cmdp.transition), 0.1 / np.sqrt(visits))
    costs = cmdp.costs.reshape(2, -1)
    mixture = solve_optimistic(box.low, box.high, costs, cmdp.thresholds)
    for column in mixture.answers:
        pairs = np.arange(S) * A + column.policy
        assert (column.kernel >= box.low[pairs] - 1e-12).all()
        assert (column.kernel <= box.high[pairs] + 1e-12).all()
        np.testing.assert_allclose(column.kernel.sum(axis=1), 1.0)
        np.testing.assert_allclose(column.stationary @ column.kernel, column.stationary, atol=1e-12)
    assert average(mixture)[0] < plan(cmdp).value
    assert mixture.gap < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_zero_radius_is_plug_in_planning(seed):
    cmdp = psconrl.load("garnet", states=8, branching=8, seed=seed)
    costs = cmdp.costs.reshape(2, -1)
    ours = solve_optimistic(*[cmdp.transition.toarray()] * 2, costs, cmdp.thresholds)
    assert average(ours)[0] == pytest.approx(plan(cmdp).value, abs=1e-9)


def test_the_whole_simplex_is_the_best_imaginable_model():
    """If any distribution is allowed, the policy goes to the cheapest state and stays: the cheapest pair decides."""
    rng = np.random.default_rng(0)
    costs = rng.random((1, 12))
    ours = solve_optimistic(np.zeros((12, 4)), np.ones((12, 4)), costs, np.empty(0))
    assert average(ours)[0] == pytest.approx(costs.min(), abs=1e-12)


def test_a_longer_horizon_comes_closer_to_the_average():
    cmdp = psconrl.load("marsrover-4x4", threshold=0.99)
    costs = cmdp.costs.reshape(2, -1)
    P = cmdp.transition.toarray()
    start = int(cmdp.initial.argmax())
    values = [average(solve_horizon(P, P, costs, cmdp.thresholds, H, start)[0])[0] for H in (4, 40, 400)]
    assert abs(values[2] - 0.75) < abs(values[0] - 0.75) + 1e-12
    assert values[2] == pytest.approx(0.75, abs=0.01)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_pouring_minimises_over_the_box(seed, S):
    rng = np.random.default_rng(seed)
    box = Box.around(rng.dirichlet(np.ones(S), size=1), rng.random(1))
    h = rng.normal(size=S)
    distribution = pour(box.low, box.high, 0, np.argsort(h))
    best = linprog(h, A_eq=np.ones((1, S)), b_eq=[1.0], bounds=list(zip(box.low[0], box.high[0], strict=True)))
    assert distribution.sum() == pytest.approx(1.0)
    assert distribution @ h == pytest.approx(best.fun, abs=1e-9)


def plain_horizon(box, costs, weights, H, start):
    """The recursion of ``optimistic_horizon``, with every distribution poured on its own and sums in eight lanes."""
    n, S = box.low.shape
    cost = combine(weights, costs)
    V, actions, kernels = np.zeros(S), np.empty((H, S), np.int64), np.empty((H, S, S))
    for h in range(H - 1, -1, -1):
        order = np.argsort(V, kind="stable")
        poured = [pour(box.low, box.high, pair, order) for pair in range(n)]
        Q = (row_dots(np.array(poured), V) + cost).reshape(S, -1)
        actions[h] = Q.argmin(axis=1)
        kernels[h] = np.array(poured).reshape(S, -1, S)[np.arange(S), actions[h]]
        V = Q.min(axis=1)
    visits = np.zeros((H, S))
    visits[0, start] = 1.0
    for h in range(H - 1):
        for s in np.flatnonzero(visits[h]):
            visits[h + 1] += visits[h, s] * kernels[h, s]
    return V[start], actions, visits


def row_dots(P, x):
    """Rows times a vector in eight lanes and a rest, added in the order of the kernels."""
    S = x.size
    whole = S - S % 8
    lanes = np.zeros((len(P), 8))
    for j in range(0, whole, 8):
        lanes += P[:, j : j + 8] * x[j : j + 8]
    rest = np.zeros(len(P))
    for j in range(whole, S):
        rest += P[:, j] * x[j]
    a, b, c, d, e, f, g, h = lanes.T
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + rest


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 3), st.booleans())
def test_distributions_kept_from_step_to_step_are_those_poured_again(seed, S, A, positive):
    """To the last bit; several plans with one box, in which the first leaves its distributions to the next."""
    box, costs, _ = random_box(seed, S, A, 1, positive)
    rows = BestRows(box.low, box.high)
    for weights in np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]]):
        value, _, actions, visits = optimistic_horizon(rows, costs, weights, 9, S - 1)
        expected = plain_horizon(box, costs, weights, 9, S - 1)
        assert value == expected[0]
        assert (actions == expected[1]).all()
        assert (visits == expected[2]).all()


class TestOfEqualStatesTheFirstComesFirst:
    """40 states with two actions each, at most a tenth of the mass in each of them: the first ten are filled.

    An unstable sort would mix the ties once there are more than it sorts by insertion.
    """

    S = 40
    low, high = np.zeros((2 * S, S)), np.full((2 * S, S), 0.1)
    costs = np.tile([0.0, 1.0], S)[None, :]

    def filled(self, states):
        return np.where(np.isin(np.arange(self.S), states[:10]), 0.1, 0.0)

    def test_in_an_improvement(self):
        policy, kernel = np.ones(self.S, dtype=np.int64), np.eye(self.S)
        biases = np.zeros((1, self.S))
        biases[0, 20:] = -1.0
        bound, switched, actions, distributions = improve_optimistic(
            BestRows(self.low, self.high), self.costs, np.ones(1), policy, kernel, biases, 1e-9
        )
        assert switched == self.S
        assert bound == pytest.approx(-1.0)
        assert (actions == 0).all()
        np.testing.assert_allclose(distributions, np.tile(self.filled(np.arange(20, 40)), (self.S, 1)), atol=1e-15)

    def test_on_the_way_into_a_set(self):
        policy, kernel = np.zeros(self.S, dtype=np.int64), np.eye(self.S)
        inside = np.arange(self.S) % 2 == 1
        assert drive_to(self.low, self.high, inside, policy, kernel)
        np.testing.assert_allclose(kernel[~inside], np.tile(self.filled(np.flatnonzero(inside)), (20, 1)), atol=1e-15)

    def test_over_a_horizon(self):
        *_, visits = optimistic_horizon(BestRows(self.low, self.high), self.costs, np.ones(1), 3, 5)
        np.testing.assert_allclose(visits[1], self.filled(np.arange(40)), atol=1e-15)


def two_islands():
    """Staying costs (0, 1) in one state and (1, 0) in the other, moving (1, 1): best is some of each, never moving."""
    P = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    return solve_optimistic(P, P, np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]]), np.array([0.25]))


@pytest.mark.statistical
def test_columns_that_never_meet_are_drawn_at_random():
    """Each policy stays in its own state, to which it leads from the other; a quarter of the draws is the costly one.

    False alarms: 4 standard deviations of a binomial distribution, 6e-5, and the seed is fixed.
    """
    mixture = two_islands()
    rng = np.random.default_rng(0)
    drawn = [optimistic_policy(mixture, 2, rng) for _ in range(4000)]
    first = np.array([policy[0, 0] for policy in drawn])  # stays in the first state, the one that spends
    assert set(first.tolist()) == {0.0, 1.0}
    for policy in drawn[:50]:
        stays = [[1.0, 0.0], [0.0, 1.0]] if policy[0, 0] else [[0.0, 1.0], [1.0, 0.0]]
        assert policy.tolist() == stays
    assert abs(first.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_meet_are_mixed(seed):
    """Then one stationary policy has the occupancy, and nothing is drawn."""
    cmdp = psconrl.load("garnet", states=8, branching=8, seed=seed)
    mixture = solve_optimistic(*[cmdp.transition.toarray()] * 2, cmdp.costs.reshape(2, -1), cmdp.thresholds)
    rng = np.random.default_rng(seed)
    before = rng.bit_generator.state
    policy = optimistic_policy(mixture, cmdp.n_actions, rng)
    assert rng.bit_generator.state == before
    assert evaluate(cmdp, policy).costs == pytest.approx(average(mixture), abs=1e-9)


def test_ucrl_cmdp_leaves_the_state_in_which_it_learns_nothing():
    """On the counterexample the optimistic optimum uses both states and never moves between them."""
    cmdp = psconrl.load("counterexample")
    trials = []
    for seed in range(8):
        agent = UCRLCMDP(2, 2, cmdp.thresholds, cmdp.costs, horizon=300, seed=seed)
        simulate(cmdp, agent, 300, seed=seed)
        trials.append(agent.counts.pairs[0, 1])
    assert min(trials) > 0  # each of the first draws is "go" with probability .47: never in 40 of them, 1e-11
