"""PMEVI-DT: trips between states, the constants of its plans, its episodes, and that it learns as UCRL2 does."""

import math
from itertools import pairwise

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, plan, simulate
from psconrl.agents import PMEVIDT
from psconrl.errors import AgentError, SolverError
from psconrl.learning.posterior.commutes import Commutes
from psconrl.learning.registry import make_agent
from psconrl.learning.rivals import pmevi_dt
from psconrl.learning.runtime.recording import Trajectory

ROVER = psconrl.load("marsrover-4x4")


def path(states):
    return np.array(states[:-1]), np.array(states[1:])


def trips_by_definition(states, rewards, a, b):
    """The trips from a to b: from the first visit of a after b, or at all, to the next visit of b."""
    found, began = [], None
    for t, state in enumerate(states):
        if state == a and began is None:
            began = t
        if state == b and began is not None:
            found.append((t - began, sum(rewards[began:t])))
            began = None
    return found


def test_trips_between_states_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    states, rewards = rng.integers(0, 4, 301), rng.random(300)
    commutes = Commutes(5)  # state 4 is never visited
    commutes.add(*path(states), rewards)
    for a in range(5):
        for b in range(5):
            found = trips_by_definition(states[:-1], rewards, a, b) if a != b else []
            assert commutes.trips[a, b] == len(found)
            assert commutes.lengths[a, b] == sum(length for length, _ in found)
            assert commutes.rewards[a, b] == pytest.approx(sum(reward for _, reward in found))
    assert commutes.trips[0, 1] > 20
    assert not commutes.trips[4].any()


def test_trips_may_be_added_in_parts_saved_and_restored():
    rng = np.random.default_rng(1)
    before, after = path(rng.integers(0, 3, 101))
    rewards = rng.random(100)
    whole, first, second = Commutes(3), Commutes(3), Commutes(3)
    whole.add(before, after, rewards)
    first.add(before[:37], after[:37], rewards[:37])
    second.restore(first.state())
    second.add(before[37:], after[37:], rewards[37:])
    assert {k: np.asarray(v).tolist() for k, v in second.state().items()} == {
        k: np.asarray(v).tolist() for k, v in whole.state().items()
    }
    with pytest.raises(AgentError, match="trips: must hold finite numbers from 0"):
        second.restore(first.state() | {"trips": -np.ones((3, 3))})


def test_a_state_that_was_changed_from_outside_ends_no_trip():
    commutes = Commutes(3)
    commutes.add(np.array([0, 1]), np.array([1, 0]), np.ones(2))
    commutes.add(np.array([2, 1]), np.array([1, 0]), np.ones(2))  # a reset to 2 where 0 was due
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[2, 1] = 1.0
    assert commutes.trips.tolist() == expected.tolist()


def test_trips_of_optimal_play_give_the_differences_of_the_bias():
    """On a cycle of rewards r with mean g, h(s) - h(s + 1) = r(s) - g."""
    rewards = np.array([0.0, 1.0, 0.5, 0.3])
    commutes = Commutes(4)
    states = np.arange(41) % 4
    commutes.add(*path(states), np.tile(rewards, 10))
    h = np.array([(rewards - rewards.mean())[s:].sum() for s in range(4)])
    assert commutes.differences() == pytest.approx(h[:, None] - h[None, :])


def test_the_bound_on_the_span_is_the_fifth_root_of_the_horizon_unless_given():
    for horizon, span in ((1, 1.0), (32, 2.0), (100_000, 10.0)):
        assert PMEVIDT(2, 2, [0.5], horizon=horizon).most_span == pytest.approx(span)
    assert PMEVIDT(2, 2, [0.5], horizon=32, span=0.7).most_span == 0.7


def trained(bonus=0.5, delta=0.1):
    """An agent with three states, one action, costs from 2 to 6, after 8 rounds; c_0 = 2."""
    agent = PMEVIDT(3, 1, [0.5], horizon=32, bonus=bonus, delta=delta, ranges=[[2.0, 6.0], [0.0, 1.0]])
    states, costs = [0, 1, 0, 1, 1, 0, 1, 0, 0], [2.0, 6.0, 4.0, 6.0, 6.0, 2.0, 6.0, 3.0]
    for state, successor, cost in zip(states[:-1], states[1:], costs, strict=True):
        assert agent.act(state) == 0
        agent.observe(0, successor, [cost, 0.0])
    agent.finish()
    return agent


def test_the_errors_of_the_bias_are_those_of_the_formula():
    agent = trained()
    agent._open_block()
    assert agent.commutes.earned == pytest.approx(1 + 0 + 0.5 + 0 + 0 + 1 + 0 + 0.75)
    assert agent.commutes.both_ways()[0, 1] == 6
    B = agent.surplus
    root = math.sqrt(8 * 8 * math.log(2 / 0.1))
    errors = agent._errors()
    assert errors[0, 1] == errors[1, 0] == pytest.approx((3 * 2 + 0.5 * 3 * root + 2 * B) / 6)
    assert errors[0, 2] == errors[2, 1] == errors[0, 0] == np.inf
    agent.surplus = -1e6
    assert agent._errors()[0, 1] == 0.0


def test_the_surplus_is_the_sum_of_planned_gains_minus_that_of_rewards():
    agent = PMEVIDT(2, 1, [0.5], horizon=32, ranges=[[2.0, 6.0], [0.0, 1.0]])
    agent._gain = 0.75
    agent._improve(Trajectory(np.array([0, 1, 1]), np.array([1, 1, 0]), np.array([[2.0, 0], [6.0, 0], [3.0, 0]])))
    assert agent.surplus == pytest.approx(3 * 0.75 - (1.0 + 0.0 + 0.75))
    known = PMEVIDT(2, 1, [0.5], [[[2.0], [6.0]], [[0.0], [0.0]]], horizon=32)
    known._improve(Trajectory(np.array([0, 1]), np.array([1, 1]), np.array([[99.0, 0], [99.0, 0]])))
    assert known.surplus == pytest.approx(2 * 1.0 - 1.0)  # of known costs, their means count


def test_the_bounds_on_the_bias_combine_span_and_estimates():
    agent = PMEVIDT(3, 1, [0.5], horizon=32)
    differences = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    errors = np.full((3, 3), np.inf)
    errors[0, 1] = errors[1, 0] = 0.25
    bounds = agent._bounds(differences, errors)
    assert bounds.tolist() == [[0.0, 1.25, 2.0], [-0.75, 0.0, 1.25], [1.25, 2.0, 0.0]]
    errors[0, 1] = errors[1, 0] = -0.25  # no bias has these differences
    assert agent._bounds(differences, errors).tolist() == (2.0 * (1.0 - np.eye(3))).tolist()


def test_the_mitigation_is_that_of_the_formula():
    agent = trained()
    p_bar = agent.counts.transitions / np.maximum(agent.counts.visits, 1)[:, None]
    reference = np.array([0.5, 1.5, 1.0])
    errors = np.array([[np.inf, 0.2, 5.0], [0.2, np.inf, 5.0], [5.0, 5.0, np.inf]])
    log = math.log(3 * 1 * 32 / 0.1)
    found = agent._mitigation(p_bar, reference, errors)
    assert agent.counts.visits.tolist() == [4, 4, 0]
    for state, own in ((0, 0), (1, 1)):
        p = p_bar[state]
        variance = (p * reference**2).sum() - (p * reference).sum() ** 2
        off = np.minimum(errors[:, own], 2.0)
        V = variance + 8 * 2 * (p * off).sum()
        assert found[state, 0] == pytest.approx(0.5 * (math.sqrt(2 * V * log / 4) + 3 * 2 * log / 4))
    assert found[2, 0] == np.inf


def test_the_planning_error_is_the_root_of_log_t_over_t():
    agent = PMEVIDT(2, 2, [0.5], horizon=32, bonus=0.1)
    assert agent._accuracy() == pytest.approx(0.1 * math.sqrt(math.log(2) / 2))
    agent.rounds = 100
    assert agent._accuracy() == pytest.approx(0.1 * math.sqrt(math.log(100) / 100))


def test_an_episode_ends_once_a_pair_has_doubled_whatever_the_blocks(monkeypatch):
    def run():
        agent = make_agent("pmevi-dt", 16, 4, ROVER.thresholds, ROVER.costs, 0, 1_500, bonus=0.03)
        plans = []
        planned = agent._plan
        monkeypatch.setattr(agent, "_plan", lambda: plans.append(agent.counts.visits.copy()) or planned())
        trace = simulate(ROVER, agent, 1_500, seed=0)
        return plans, trace.cumulative.tolist(), agent.episodes

    plans, costs, episodes = run()
    for before, after in pairwise(plans):
        ended = after - before >= np.maximum(before, 1)
        assert ended.sum() == 1
    monkeypatch.setattr(pmevi_dt, "BLOCK_ROUNDS", 16)
    shorter, same, more = run()
    assert same == costs
    assert [visits.tolist() for visits in shorter] == [visits.tolist() for visits in plans]
    assert more > episodes == len(plans)


def test_an_unsettled_plan_is_replaced_by_uniform_play_until_its_episode_ends(monkeypatch):
    def fails(*given):
        raise SolverError("no")

    agent = PMEVIDT(2, 3, [0.5], horizon=100)
    monkeypatch.setattr(pmevi_dt, "plan_mitigated", fails)
    episode = agent.begin(0)
    assert episode.kind == "unsettled"
    assert (episode.policy == 1 / 3).all()
    assert agent._gain == 1.0


def test_the_optimism_is_below_the_true_optimum():
    model = psconrl.load("garnet", states=5, seed=4)
    best = plan(CMDP(model.transition, model.costs[:1])).value
    agent = make_agent("pmevi-dt", 5, model.n_actions, model.thresholds, model.costs, 0, 3_000)
    values = []
    agent.watch(lambda event: values.append(event.value))
    simulate(model, agent, 3_000, seed=0)
    assert max(values) <= best + 1e-9
    assert values[-1] > values[0]


def test_the_true_bias_satisfies_the_estimated_bounds():
    """With the published constants, and h from the model: rewards are one minus the objective, scaled to [0, 1]."""
    model = psconrl.load("garnet", states=5, seed=4)
    free = CMDP(model.transition, model.costs[:1])
    agent = make_agent("pmevi-dt", 5, model.n_actions, [], free.costs, 0, 20_000)
    simulate(free, agent, 20_000, seed=0)
    agent._open_block()
    errors = agent._errors()
    bounds = agent._bounds(agent.commutes.differences(), errors)
    rewards = agent._as_rewards(free.costs[0])
    P, h = model.transition.array, np.zeros(5)
    for _ in range(5_000):
        image = (rewards + (P @ h).reshape(5, -1)).max(axis=1)
        h = 0.5 * (h + image)
        h -= h.min()
    assert (h[:, None] - h[None, :] <= bounds + 1e-9).all()
    assert errors.min() < agent.most_span  # estimates count


@pytest.mark.part(2)
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("env", "options", "most"), [("riverswim", {"length": 4}, 2.0), ("garnet", {"states": 8, "seed": 4}, 3.0)]
)
def test_regret_grows_slower_than_the_rounds_and_as_that_of_ucrl2(env, options, most):
    """Mean regrets after 3,000 and 12,000 rounds: 96 and 111 on RiverSwim (UCRL2 92 and 105), 44 and 87 (42 and 89)."""
    model = psconrl.load(env, **options)
    free = CMDP(model.transition, model.costs[:1], initial=model.initial)
    best = plan(free).value
    regrets = {}
    for name in ("ucrl2", "pmevi-dt"):
        ends = []
        for seed in range(6):
            agent = make_agent(name, free.n_states, free.n_actions, [], free.costs, seed, 12_000, bonus=0.1)
            ends.append(simulate(free, agent, 12_000, seed=seed, checkpoints=4).cumulative[[0, -1], 0])
        regrets[name] = np.mean(ends, axis=0) - best * np.array([3_000, 12_000])
    early, late = regrets["pmevi-dt"]
    assert early > 0.0
    assert late < most * early  # linear regret would be four times as large
    assert late == pytest.approx(regrets["ucrl2"][1], rel=0.25)
