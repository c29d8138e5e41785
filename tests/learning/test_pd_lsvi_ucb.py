"""Primal-dual LSVI-UCB: its constants, its plan against a slow loop, its multipliers, and saving."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import simulate
from psconrl.agents import PDLSVIUCB
from psconrl.errors import AgentError
from psconrl.learning.posterior.counts import Record
from psconrl.learning.registry import load_agent, make_agent


def garnet_agent(limits=1, rounds=300, **options):
    model = psconrl.load("garnet", states=5, actions=3, branching=2, constraints=limits, seed=3)
    agent = make_agent("pd-lsvi-ucb", 5, 3, model.thresholds, model.costs, 0, 1000, **({"bonus": 0.01} | options))
    if rounds:
        simulate(model, agent, rounds, seed=1)
        agent.finish()
    return model, agent


def test_the_constants():
    T, A = 10_000, 3
    costs = np.zeros((2, 2, A))
    costs[1, 0] = 10.0
    agent = PDLSVIUCB(2, A, [5.0], costs, horizon=T, gap=2.0)
    H, K, xi = 10, 1000, 2 / 0.2
    assert agent.H == H
    assert agent.ceilings.tolist() == [xi]
    assert agent.steps == pytest.approx([xi / math.sqrt(K * H**2)])
    assert agent.sharpness == pytest.approx(K * math.log(A) / (2 * (1 + xi + H)))
    given = PDLSVIUCB(2, A, [5.0], costs, horizon=T, H=7, alpha=3.0, eta=0.5)
    assert (given.H, given.sharpness, given.steps.tolist()) == (7, 3.0, [0.5])


def slow_plan(model, agent, state):
    """The plan by dense value iteration, one table at a time. Returns policy and values of constrained gains."""
    S, A, H = model.n_states, model.n_actions, agent.H
    low, high = model.costs.min(axis=(1, 2)), model.costs.max(axis=(1, 2))
    gains = [(high[i] - model.costs[i]) / (high[i] - low[i]) for i in range(len(low))]
    N = agent.counts.transitions
    visits = N.sum(axis=1)
    bonus = agent.bonus * S * A * H / np.sqrt(visits + agent.ridge)
    V, policy = [np.zeros(S) for _ in gains], []
    for _ in range(H):
        Q = [
            np.minimum(g + ((N @ v) / (visits + agent.ridge) + bonus).reshape(S, A), H)
            for g, v in zip(gains, V, strict=True)
        ]
        scores = agent.sharpness * (Q[0] + sum(y * q for y, q in zip(agent.multipliers, Q[1:], strict=True)))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        policy.insert(0, weights / weights.sum(axis=1, keepdims=True))
        V = [(policy[0] * q).sum(axis=1) for q in Q]
    return np.array(policy), np.array([v[state] for v in V[1:]])


@pytest.mark.parametrize("limits", [1, 2])
def test_the_plan_is_that_of_the_slow_loop(limits):
    model, agent = garnet_agent(limits, alpha=2.0)
    agent.multipliers = np.linspace(0.5, 1.0, limits)
    policy, values = slow_plan(model, agent, 3)
    episode = agent.begin(3)
    assert (episode.max_steps, episode.kind) == (6, "optimistic")
    np.testing.assert_allclose(episode.policy, policy, atol=1e-12)
    wanted = 6 * (model.costs[1:].max(axis=(1, 2)) - model.thresholds) / np.ptp(model.costs[1:], axis=(1, 2))
    expected = np.clip(agent.multipliers + agent.steps * (wanted - values), 0.0, agent.ceilings)
    agent.end(Record.empty(agent.counts))
    np.testing.assert_allclose(agent.multipliers, expected, atol=1e-12)


def test_multipliers_stay_within_their_bounds():
    costs = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    agent = PDLSVIUCB(1, 2, [-1.0], costs, horizon=16, gap=0.5, eta=1e9, bonus=0.0)
    agent.begin(0)
    agent.end(Record.empty(agent.counts))
    assert agent.multipliers.tolist() == [4.0]
    agent.set_thresholds([5.0])
    agent.begin(0)
    agent.end(Record.empty(agent.counts))
    assert agent.multipliers.tolist() == [0.0]


def test_learned_costs_are_means_and_the_lowest_of_an_untried_pair():
    agent = PDLSVIUCB(1, 2, [3.0], horizon=16, ranges=[[0.0, 10.0], [2.0, 6.0]])
    record = Record.empty(agent.counts)
    for cost in (4.0, 6.0):
        record.step(0, 0, 0, np.array([cost, 3.0]))
    agent.end(record)
    np.testing.assert_allclose(agent._gains(), [[0.5, 1.0], [0.75, 1.0]])


def test_a_saved_agent_continues_bit_for_bit(tmp_path):
    model, agent = garnet_agent(rounds=303)
    agent.begin(0)
    agent._shortfall[:] = 1.0
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert again._shortfall.tolist() == [1.0]
    runs = [simulate(model, one, 100, seed=8) for one in (agent, again)]
    assert runs[0].cumulative.tolist() == runs[1].cumulative.tolist()
    with pytest.raises(AgentError, match=r"multipliers: must hold finite numbers from 0; has -1\.0"):
        again.restore(agent.state() | {"multipliers": [-1.0]})


@pytest.mark.full
@pytest.mark.statistical
def test_with_a_small_bonus_it_learns_the_objective():
    """The optimum is -.257 under a limit of .3; uniform play has -.22."""
    model = psconrl.load("chain")
    agent = make_agent("pd-lsvi-ucb", 8, 2, model.thresholds, model.costs, 0, 20_000, bonus=0.001, gap=0.138)
    uniform = make_agent("uniform", 8, 2, model.thresholds, model.costs, 0)
    mine, theirs = (simulate(model, one, 20_000, seed=0).cumulative[-1] / 20_000 for one in (agent, uniform))
    assert mine[0] < theirs[0] - 0.02
