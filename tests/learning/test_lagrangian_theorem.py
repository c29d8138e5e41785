"""Lagrangian PSRL with the constants of the theorem: steps, ceiling, projection and episodes, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psconrl
from psconrl import simulate
from psconrl.agents import CubeRoot, Dirichlet, TheoremLagrangian
from psconrl.errors import AgentError
from psconrl.learning.parts.schedules import ceil_of_cube_root
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.rivals.lagrangian_theorem import projected_on_simplex

# One state: the first action spends one unit, the second costs one unit of the objective.
CHOICE = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])


def taught(agent, moves, costs=CHOICE):
    record = Record.empty(agent.counts)
    for action, times in moves.items():
        for _ in range(times):
            record.step(0, action, 0, costs[:, 0, action])
    agent.end(record)
    return agent


def test_the_step_falls_with_the_rounds_to_the_power_of_two_thirds():
    agent = TheoremLagrangian(1, 2, [0.25], CHOICE, gap=0.5, seed=0)  # the largest multiplier is 4
    taught(agent, {0: 3, 1: 5})  # 3 spent in 8 rounds, 2 allowed
    assert agent.multipliers == pytest.approx([4 / 8 ** (2 / 3) * 1])
    taught(agent, {1: 8 * 7})  # nothing spent in 56 rounds, 64 in all
    assert agent.multipliers == pytest.approx([0.0])
    taught(agent, {0: 61})  # 61 spent in 61 rounds, 125 in all
    assert agent.multipliers == pytest.approx([4.0])


def test_the_rate_is_a_factor_of_the_step():
    one, tenth = (
        taught(TheoremLagrangian(1, 2, [0.25], CHOICE, gap=0.5, rate=rate, seed=0), {0: 3, 1: 5}).multipliers
        for rate in (1.0, 0.1)
    )
    assert tenth == pytest.approx(0.1 * one)


def test_several_constraints_share_one_ceiling_and_the_smallest_gap():
    """Gaps of 1 and 6 in ranges of 1 and 10: the smallest share is 0.6, and the largest sum of prices 2 / 0.6."""
    costs = np.array([[[0.0, 4.0]], [[1.0, 0.0]], [[10.0, 0.0]]])
    agent = TheoremLagrangian(1, 2, [0.25, 2.5], costs, gap=[1.0, 6.0], seed=0)
    taught(agent, {0: 3, 1: 5}, costs)  # excesses: 3 - 2, and 30 - 20, that is 1 range
    step = (2 / 0.6) / math.sqrt(2) / 4
    assert agent.multipliers == pytest.approx([4 * step, 4 * step / 10])
    taught(agent, {0: 1000}, costs)
    assert agent.multipliers == pytest.approx([4 / 0.6, 4 / 0.6 / 10])


def test_units_of_the_costs_do_not_matter():
    moved = []
    for objective, cost in ((1.0, 1.0), (100.0, 7.0)):
        table = CHOICE * np.array([objective, cost])[:, None, None]
        agent = TheoremLagrangian(1, 2, [0.25 * cost], table, gap=0.4 * cost)
        moved.append(taught(agent, {0: 12, 1: 4}, table).multipliers * cost / objective)
    assert moved[1] == pytest.approx(moved[0], rel=1e-12)


def test_without_constraints_nothing_is_priced():
    agent = TheoremLagrangian(1, 2, [], CHOICE[:1], gap=0.5)
    assert taught(agent, {0: 3}, CHOICE[:1]).multipliers.size == 0


points = st.lists(st.floats(-10, 10), min_size=1, max_size=6).map(np.array)


@given(points, st.floats(0.01, 10))
def test_the_projection_on_the_simplex_satisfies_its_variational_inequality(point, size):
    """(point - x)(y - x) <= 0 for all y of the set; it is enough to look at its corners."""
    x = projected_on_simplex(point, size)
    assert (x >= 0).all()
    assert x.sum() <= size * (1 + 1e-12)
    corners = np.vstack([np.zeros(point.size), size * np.eye(point.size)])
    assert ((corners - x) @ (point - x) <= 1e-9 * size).all()


@pytest.mark.parametrize(
    ("point", "expected"),
    [([-1.0], [0.0]), ([0.5], [0.5]), ([9.0], [2.0]), ([1.5, 1.5], [1.0, 1.0]), ([3.0, 1.5, -4.0], [1.75, 0.25, 0.0])],
)
def test_the_projection_on_the_simplex_by_hand(point, expected):
    assert projected_on_simplex(np.array(point), 2.0) == pytest.approx(expected)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=1, max_size=40))
def test_the_multipliers_have_the_regret_of_online_gradient_ascent(averages):
    r"""For every price in the set, on every path: at most :math:`\Lambda^2 / \eta_K + \sum_k \eta_k |\Delta_k|^2 / 2`.

    The set has the squared diameter :math:`2 \Lambda^2`, and the steps do not increase.
    """
    agent = TheoremLagrangian(1, 1, [0.0, 0.0], np.array([[[1.0]], [[1.0]], [[1.0]]]), gap=0.5, seed=0)
    ceiling, used, excesses, squares = 4.0, [], [], 0.0
    for average in averages:
        steps = agent.begin(0).max_steps
        record = Record.empty(agent.counts)
        for _ in range(steps):
            record.step(0, 0, 0, np.array([1.0, *average]))
        used.append(agent.multipliers)
        excesses.append(steps * np.array(average))
        agent.end(record)
        step = ceiling / math.sqrt(2) / agent.rounds ** (2 / 3)
        squares += step / 2 * excesses[-1] @ excesses[-1]
    paid = sum(price @ excess for price, excess in zip(used, excesses, strict=True))
    best = ceiling * max(0.0, *np.sum(excesses, axis=0))
    assert best - paid <= ceiling**2 / step + squares + 1e-9


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 8, 9, 26, 27, 28, 10**15, 10**15 + 1, 99_999**3, 99_999**3 + 1])
def test_the_cube_root_is_rounded_up_exactly(rounds):
    n = ceil_of_cube_root(rounds)
    assert (n - 1) ** 3 < max(rounds, 1) <= n**3


def test_episodes_end_after_the_cube_root_or_with_the_doubling_of_a_pair():
    counts = Counts(1, 3, 1)
    assert CubeRoot().caps(counts)[0] == 1
    record = Record.empty(counts)
    for action, times in enumerate((0, 1, 26)):
        for _ in range(times):
            record.step(0, action, 0, np.zeros(1))
    counts.add(record)
    steps, caps = CubeRoot().caps(counts)
    assert (steps, caps.tolist()) == (3, [[1, 1, 26]])


@pytest.mark.parametrize("T", [1, 9, 100, 2_000, 30_000])
def test_without_pairs_the_number_of_episodes_is_within_its_bound(T):
    t, episodes = 0, 0
    while t < T:
        t, episodes = t + ceil_of_cube_root(t), episodes + 1
    n = math.ceil(T ** (1 / 3) - 1e-9)
    assert episodes <= 1 + (3 * n * n - n) / 2
    assert CubeRoot().most_episodes(1, 1, T) <= T


@pytest.mark.parametrize("seed", range(6))
def test_the_policy_of_an_episode_is_optimal_in_every_state_of_the_sample(seed):
    """Conserving: the proof needs the optimality equation in all states, and not only where the policy stays."""
    model = psconrl.load("garnet", states=7, actions=3, branching=2, seed=seed)
    agent = TheoremLagrangian(7, 3, model.thresholds, model.costs, belief=Dirichlet(0.3), gap=0.1, seed=seed)
    simulate(model, agent, 200, seed=seed)
    agent.finish()
    policy = agent.begin(0).policy
    P = np.asarray(agent.sampled.toarray()).reshape(7, 3, 7)
    cost = model.costs[0] + np.tensordot(agent.multipliers, model.costs[1:], 1)
    P_pi, c_pi = np.einsum("sa,sat->st", policy, P), (policy * cost).sum(axis=1)
    system = np.block([[np.eye(7) - P_pi, np.ones((7, 1))], [np.ones((1, 7)), np.zeros((1, 1))]])
    *h, g = np.linalg.solve(system, np.append(c_pi, 0.0))
    assert ((cost + P @ np.array(h)).min(axis=1) - g - np.array(h) >= -1e-8).all()


@pytest.mark.parametrize(("gap", "said"), [(0.0, "gap must be a positive number"), ([0.1, 0.2, 0.3], "one per")])
def test_a_bad_gap_gets_one_clear_line(gap, said):
    with pytest.raises(AgentError, match=said):
        TheoremLagrangian(1, 2, [0.25, 0.25], gap=gap)


@pytest.mark.statistical
def test_the_islands_are_learned_with_the_constraint_kept():
    """Over 10 other seeds regret and violation after 8,000 rounds were below 500; uniform play has 4,000 of regret."""
    model = psconrl.load("islands")
    agent = TheoremLagrangian(2, 2, model.thresholds, model.costs, gap=0.5, seed=0)
    ends = simulate(model, agent, 8_000, seed=0).cumulative[-1]
    assert ends[0] - 8_000 * psconrl.plan(model).value < 1_000
    assert ends[1] - 8_000 * model.thresholds[0] < 1_000
