"""Gymnasium's tables as models, against an independent LP; agents that learn these environments by playing."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text import BlackjackEnv, CliffWalkingEnv, FrozenLakeEnv, TaxiEnv
from scipy.optimize import linprog
from scipy.sparse import lil_array

import psconrl
from psconrl import CMDP, PSConRL, Status, continuing, plan, simulate
from psconrl.agents import Dirichlet, FixedPolicy, Published
from psconrl.errors import ModelError
from psconrl.markov.structure import reachable

HOLES = {"4x4": {5, 7, 11, 12}, "8x8": {19, 29, 35, 41, 42, 46, 49, 52, 54, 59}}


def hole(size):
    return lambda state, action, next_state: float(next_state in HOLES[size])


def edge(state, action, next_state):
    """A step onto the path beside the cliff."""
    return float(24 <= next_state < 36)


def toll(state, action, next_state):
    """A drive into the middle of the taxi's town."""
    row, column = divmod(next_state // 20, 5)
    return float(state // 20 != next_state // 20 and row == 2 and 1 <= column <= 3)


def eastward(state, action, next_state):
    return [float(action == 2), float(action == 0)]


CASES = {
    "lake 4x4": (FrozenLakeEnv, {}, hole("4x4"), [0.003]),
    "lake 4x4 dry": (FrozenLakeEnv, {"is_slippery": False}, lambda s, a, t: float(a == 2), [0.2]),
    "lake 4x4 rewards for all": (FrozenLakeEnv, {"reward_schedule": (5, -2, -1)}, hole("4x4"), [0.003]),
    "lake 8x8": (FrozenLakeEnv, {"map_name": "8x8"}, hole("8x8"), [0.001]),
    "lake 8x8 dry": (FrozenLakeEnv, {"map_name": "8x8", "is_slippery": False}, lambda s, a, t: float(a == 2), [0.3]),
    "cliff": (CliffWalkingEnv, {}, edge, [0.3]),
    "cliff wet": (CliffWalkingEnv, {"is_slippery": True}, edge, [0.05]),
    "taxi": (TaxiEnv, {}, toll, [0.19]),
    "taxi two limits": (TaxiEnv, {}, eastward, [0.05, 0.1]),
    "taxi in the rain": (TaxiEnv, {"is_rainy": True}, toll, [0.19]),
}


def lp_value(env, cost, thresholds):
    """The best average reward by an LP over reachable pairs of a state and whether the episode is over.

    It follows the rules of play and does not identify end states: after an end any action restarts.
    """
    starts = [(s, float(p)) for s, p in enumerate(env.initial_state_distrib) if p > 0]
    m = len(thresholds)

    def outcomes(node, action):
        state, over = node
        if over:
            return [(p, (s, False), 0.0, [0.0] * m) for s, p in starts]
        return [
            (p, (int(t), bool(done)), float(r), np.atleast_1d(cost(state, action, int(t))))
            for p, t, r, done in env.P[state][action]
            if p > 0
        ]

    found = [(s, False) for s, _ in starts]
    number = {node: k for k, node in enumerate(found)}
    A = int(env.action_space.n)
    for node in found:
        for action in range(A):
            for _, successor, _, _ in outcomes(node, action):
                if successor not in number:
                    number[successor] = len(found)
                    found.append(successor)
    n = len(found)
    flow, reward, costs = lil_array((n + 1, n * A)), np.zeros(n * A), np.zeros((m, n * A))
    flow[n, :] = 1.0
    for node in found:
        for action in range(A):
            k = number[node] * A + action
            flow[number[node], k] += 1.0
            for p, successor, r, c in outcomes(node, action):
                flow[number[successor], k] -= p
                reward[k] += p * r
                costs[:, k] += p * np.asarray(c)
    result = linprog(-reward, costs, thresholds, flow.tocsr(), np.append(np.zeros(n), 1.0), method="highs")
    assert result.status == 0
    return -result.fun, n


@pytest.mark.parametrize("name", CASES)
def test_plans_of_tables_are_certified_and_agree_with_an_independent_lp(name):
    build, options, cost, thresholds = CASES[name]
    env = build(**options)
    cmdp = CMDP.from_gymnasium(env, cost, thresholds)
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert psconrl.certify(cmdp, best).holds
    value, met = lp_value(env, cost, thresholds)
    assert best.value == pytest.approx(value, abs=1e-7)  # HiGHS: 1e-7
    # A constraint binds.
    assert best.multipliers.max() > 0
    # States keep their numbers; unreachable ones are kept, have transitions, and do no harm.
    assert cmdp.n_states == env.observation_space.n
    assert reachable(cmdp).size == met
    part = cmdp.restricted(reachable(cmdp))
    assert plan(part).value == pytest.approx(best.value, abs=1e-9)
    assert np.allclose(best.policy.sum(axis=1), 1.0)


@pytest.mark.parametrize("limits", [[0.3, 0.1], [0.3, 9.0]])
def test_where_policies_tie_one_that_attains_the_optimum_is_found(limits):
    """A crossing takes seven steps to the right, so 0.3 of them a step is 0.3 / 7 crossings: waiting anywhere ties."""
    lake = FrozenLakeEnv(map_name="8x8", is_slippery=False)
    cmdp = CMDP.from_gymnasium(lake, lambda s, a, t: [float(a == 2), float(a == 0)], limits)
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert best.value == pytest.approx(0.3 / 7, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.part(3)
@pytest.mark.parametrize("name", ["lake 4x4", "cliff wet", "taxi in the rain"])
def test_a_plan_is_played_on_the_environment_as_it_is(name):
    build, options, cost, thresholds = CASES[name]
    cmdp = CMDP.from_gymnasium(build(**options), cost, thresholds)
    best = plan(cmdp)
    # Moderate policies, for a moderate variance: half the plan, half uniform.
    policy = 0.5 * best.policy + 0.5 / cmdp.n_actions
    exact = psconrl.evaluate(cmdp, policy).costs
    agent = FixedPolicy(cmdp.n_states, cmdp.n_actions, thresholds, policy=policy, seed=0)
    trace = simulate(continuing(build(**options), cost), agent, 20_000, seed=0, checkpoints=40)
    blocks = trace.window_averages()  # 40 blocks of 500 rounds, longer than a trip: nearly independent
    errors = blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))
    # 5 standard errors, 39 degrees of freedom: false-alarm rate 1.2e-5 a cost.
    assert (abs(trace.averages[-1] - exact) < 5 * errors + 1e-12).all()
    assert (errors > 0).all()


class Toy(gymnasium.Env):
    """An environment that consists of its table alone."""

    def __init__(self, table, start=None):
        self.P = table
        self.observation_space = gymnasium.spaces.Discrete(len(table))
        self.action_space = gymnasium.spaces.Discrete(len(table[0]))
        self.start = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return (int(self.np_random.integers(len(self.P))) if self.start is None else self.start), {}


def test_duplicates_are_added_up_with_their_mean_reward():
    cmdp = CMDP.from_gymnasium(
        Toy(
            {0: {0: [(0.25, 1, 4.0, False), (0.25, 1, 8.0, False), (0.5, 0, 1.0, False)]}, 1: {0: [(1, 0, 0, False)]}},
            0,
        )
    )
    np.testing.assert_array_equal(cmdp.transition, [[0.5, 0.5], [1.0, 0.0]])
    assert cmdp.costs[0, 0, 0] == -3.5
    assert cmdp.outcome_costs[0][0].tolist() == [-1.0, -6.0]
    assert cmdp.maximise
    assert cmdp.n_constraints == 0


def test_ends_lead_to_the_start_whatever_the_table_says_of_them():
    ending = [(1.0, 2, 1.0, True)]
    loop, escape = [(1.0, 2, 0.0, True)], [(1.0, 1, 7.0, False)]
    table = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: ending}, 2: {0: loop}, 3: {0: [(1.0, 3, 0.0, True)]}}
    for row in (loop, escape):
        cmdp = CMDP.from_gymnasium(Toy(table | {2: {0: row}}, 0), lambda s, a, t: 1.0, [1.0])
        # 3 is unreachable; by its self-loop it is an end, and leads to the start like every end.
        np.testing.assert_array_equal(cmdp.transition, np.eye(4)[[1, 2, 0, 0]])
        np.testing.assert_array_equal(cmdp.costs[:, :, 0], [[0, -1, 0, 0], [1, 1, 0, 0]])
        assert plan(cmdp).value == pytest.approx(1 / 3)
    both = table | {0: {0: [(0.5, 1, 0.0, False), (0.5, 2, 0.0, False)]}}
    with pytest.raises(
        ModelError, match=r"state 2 must end the episode always or never; entered from state 1 by action 0"
    ):
        CMDP.from_gymnasium(Toy(both, 0))
    with pytest.raises(ModelError, match="state 0 must end the episode always or never"):  # the start is no end
        CMDP.from_gymnasium(Toy(table | {1: {0: [(1.0, 0, 0.0, True)]}}, 0))
    # Unreachable states do not turn reachable ones into ends: from 3, which is unreachable, 1 would be one.
    astray = table | {3: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)]}}
    np.testing.assert_array_equal(CMDP.from_gymnasium(Toy(astray, 0)).transition, np.eye(4)[[1, 2, 0, 1]])


def test_the_start_is_asked_for_where_it_is_not_said():
    table = {s: {0: [(1.0, (s + 1) % 3, 0.0, False)]} for s in range(3)}
    assert CMDP.from_gymnasium(Toy(table, 2)).initial.tolist() == [0, 0, 1]
    with pytest.raises(ModelError, match=r"Toy starts at random and does not say how.*give initial="):
        CMDP.from_gymnasium(Toy(table))
    assert CMDP.from_gymnasium(Toy(table), initial=[0.5, 0.5, 0]).initial.tolist() == [0.5, 0.5, 0]
    np.testing.assert_allclose(CMDP.from_gymnasium(TaxiEnv()).initial, TaxiEnv().initial_state_distrib, rtol=1e-12)


def test_large_tables_are_sparse():
    ring = {s: {a: [(1.0, (s + 1 + a) % 1500, float(a), False)] for a in (0, 1)} for s in range(1500)}
    cmdp = CMDP.from_gymnasium(Toy(ring, 0), lambda s, a, t: [a, t == 0], [0.25, 1.0], cost_names=["r", "a", "zero"])
    assert cmdp.is_sparse
    assert plan(cmdp).value == pytest.approx(0.25)


def test_what_is_no_table_is_refused():
    with pytest.raises(ModelError, match=r"BlackjackEnv has no table.*psconrl\.continuing\(env, cost=\.\.\.\)"):
        CMDP.from_gymnasium(BlackjackEnv())
    with pytest.raises(ModelError, match=r"P\[1\] must have 2 actions like P\[0\]; got 1"):
        CMDP.from_gymnasium(Toy({0: {0: [], 1: []}, 1: {0: []}}, 0))
    with pytest.raises(ModelError, match=r"P\[0\] must list \(probability, next state, reward, done\)"):
        CMDP.from_gymnasium(Toy({0: {0: [(1.0, 0, 0.0)]}}, 0))
    with pytest.raises(ModelError, match=r"P must lead to states from 0 to 0; got 3\.\.3"):
        CMDP.from_gymnasium(Toy({0: {0: [(1.0, 3, 0.0, False)]}}, 0))
    with pytest.raises(ModelError, match=r"transition\[1, 0\] must sum to 1"):
        CMDP.from_gymnasium(Toy({0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: []}}, 0))
    for cost in (lambda s, a, t: "x", lambda s, a, t: [0.0] * (1 + t), lambda s, a, t: np.inf, 3):
        with pytest.raises(ModelError, match="cost must"):
            CMDP.from_gymnasium(FrozenLakeEnv(), cost, [0.1])
    with pytest.raises(ModelError, match="thresholds must have one entry per constrained cost"):
        CMDP.from_gymnasium(FrozenLakeEnv(), hole("4x4"))


# Learning. Tolerances are five standard deviations of the result plus its mean error, both measured over 24 seeds (12
# for the taxi) on the table; the seeds here are fixed, so a failure means that something has changed.


def late_averages(task, agent, horizon, seed):
    return simulate(task, agent, horizon, seed=seed, checkpoints=2).window_averages()[-1]


def test_an_agent_that_knows_nothing_but_sizes_learns_the_frozen_lake():
    """Three steps right of six are needed, 0.2 of all steps are allowed; only the largest reward, 1, is known."""
    env, cost = FrozenLakeEnv(is_slippery=False), CASES["lake 4x4 dry"][2]
    best = plan(CMDP.from_gymnasium(env, cost, [0.2]))
    agent = PSConRL(16, 4, [0.2], optimistic_cost=-1.0, seed=1)
    late = late_averages(continuing(env, cost), agent, 6000, seed=1)
    np.testing.assert_allclose(best.costs, [-1 / 15, 0.2], atol=1e-9)
    assert abs(late[0] - best.costs[0]) < 0.008 + 5 * 0.005  # the uniform policy finds the goal once in 620 rounds
    assert abs(late[1] - best.costs[1]) < 0.035 + 5 * 0.016


@pytest.mark.statistical
@pytest.mark.full
def test_an_agent_that_knows_nothing_but_sizes_learns_the_slippery_lake():
    """Without the limit 0.0057 of all steps end in a hole, and the uniform policy ends 0.11 of them there."""
    env, cost = FrozenLakeEnv(), hole("4x4")
    best = plan(CMDP.from_gymnasium(env, cost, [0.003]))
    agent = PSConRL(16, 4, [0.003], optimistic_cost=-1.0, seed=0)
    late = late_averages(continuing(env, cost), agent, 50_000, seed=0)
    assert abs(late[0] - best.costs[0]) < 0.0003 + 5 * 0.0016  # of 0.014; the uniform policy earns 0.0016
    assert abs(late[1] - best.costs[1]) < 0.0001 + 5 * 0.0004


@pytest.mark.statistical
def test_an_agent_that_knows_the_costs_learns_to_walk_beside_the_cliff():
    """The shortest way takes the edge for 12 of 14 steps; 0.3 are allowed."""
    env = CliffWalkingEnv()
    cmdp = CMDP.from_gymnasium(env, edge, [0.3])
    best = plan(cmdp)
    agent = PSConRL(48, 4, [0.3], cmdp.costs, seed=0)
    late = late_averages(continuing(env, edge), agent, 6000, seed=0)
    assert abs(late[0] - best.costs[0]) < 0.0073 + 5 * 0.0014  # of 0.9354; standing still costs 1, a fall 100
    assert abs(late[1] - best.costs[1]) < 0.021 + 5 * 0.022


def test_a_taxi_driver_who_knows_the_town_learns_to_avoid_the_toll():
    """Known: where every move leads, the costs, and that customers appear anywhere. Only the 404 reachable states
    are numbered, by their labels; episodes end after three visits of a pair, since with one there would be thousands.
    """
    env = TaxiEnv()
    cmdp = CMDP.from_gymnasium(env, toll, [0.19])
    states = reachable(cmdp)
    part = cmdp.restricted(states)
    best = plan(part)
    P = part.transition.toarray().reshape(states.size, 6, states.size)
    prior = np.where(P == 1.0, 1.0, 300.0 * P)  # a new customer's distribution counts as 300 observations
    agent = psconrl.LabelledAgent(
        PSConRL(states.size, 6, [0.19], part.costs, belief=Dirichlet(prior), schedule=Published(), seed=0),
        states=states.tolist(),
        actions=range(6),
    )
    task = continuing(env, toll)
    state, _ = task.reset(seed=0)
    total = np.zeros(2)
    for _ in range(4000):
        action = agent.act(state)
        state, reward, _, _, info = task.step(action)
        costs = np.append(-reward, info["costs"])
        agent.observe(action, state, costs)
        total += costs
    assert best.multipliers[0] > 3  # the constraint binds
    assert abs(total[0] / 4000 - best.costs[0]) < 0.016 + 5 * 0.024  # of -0.52
    assert abs(total[1] / 4000 - best.costs[1]) < 0.005 + 5 * 0.005


def test_costs_are_named_after_their_thresholds():
    lake = CMDP.from_gymnasium(FrozenLakeEnv(), hole("4x4"), {"falls": 0.1})
    assert lake.cost_names == ("reward", "falls")
    assert lake.with_thresholds({"falls": 0.2}).thresholds.tolist() == [0.2]
    two = CMDP.from_gymnasium(FrozenLakeEnv(), lambda s, a, t: (a == 2, 2.0 * (a == 1)), {"right": 0.3, "down": 0.4})
    assert two.cost_names == ("reward", "right", "down")
    assert two.costs[1].max() == 1.0  # in the order of the thresholds
    assert two.costs[2].max() == 2.0
    named = CMDP.from_gymnasium(FrozenLakeEnv(), hole("4x4"), {"falls": 0.1}, cost_names=["fish", "falls"])
    assert named.cost_names == ("fish", "falls")
    with pytest.raises(ModelError, match="one entry per cost, 1 here; got 'falls', 'slips'"):
        CMDP.from_gymnasium(FrozenLakeEnv(), hole("4x4"), {"falls": 0.1, "slips": 0.2})
    with pytest.raises(ModelError, match="unknown constrained cost 'fals'; did you mean 'falls'"):
        CMDP.from_gymnasium(FrozenLakeEnv(), hole("4x4"), {"fals": 0.1}, cost_names=["fish", "falls"])
