"""Paying back what was overspent: the ledger, the limits planned for, and what it does to violations."""

import numpy as np
import pytest

import psconrl
from psconrl import PSConRL, plan, regret, simulate
from psconrl.errors import AgentError
from psconrl.learning.counts import Record
from psconrl.learning.registry import load_agent, make_agent
from psconrl.learning.repayment import Ledger


def episode(steps, *costs):
    """A record in which all was spent in one pair."""
    record = Record(np.zeros((2, 2), dtype=np.int64), np.zeros((1 + len(costs), 2)))
    record.steps = steps
    record.cost_sums[1:, 0] = costs
    return record


def test_the_limits_planned_for_by_hand():
    ledger, limits = Ledger(2), np.array([0.5, 1.0])
    ledger.enter(episode(100, 80.0, 40.0), limits)
    assert ledger.balance.tolist() == [30.0, -60.0]
    tried = list(ledger.targets(limits, 0.5))
    # a half of 30 over the square root of 100; then a quarter of it each time; the second limit was kept
    assert [t.tolist() for t in tried] == [[0.5 - 1.5 / 4**k, 1.0] for k in range(4)] + [[0.5, 1.0]]
    assert tried[-1] is limits
    ledger.enter(episode(100, 10.0, 100.0), limits)  # 40 under the first limit: the debt is paid
    assert list(ledger.targets(limits, 0.5)) == [limits]


def test_without_debt_or_share_the_limits_are_left_alone():
    ledger, limits = Ledger(1), np.array([0.5])
    assert list(ledger.targets(limits, 1.0)) == [limits]
    ledger.enter(episode(10, 9.0), limits)
    assert list(ledger.targets(limits, 0.0)) == [limits]
    assert len(list(Ledger(0).targets(np.empty(0), 1.0))) == 1


def violation(name, cmdp, horizon, seed):
    agent = make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed)
    _, over = regret(simulate(cmdp, agent, horizon, seed=seed), plan(cmdp)).final
    return over[0]


@pytest.mark.parametrize(("env", "horizon"), [("marsrover-8x8", 4_000), ("queue", 1_500)])
def test_violations_are_paid_back(env, horizon):
    """What this costs is in benchmarks/RESULTS.md. Same seeds, same bits: no false alarms."""
    cmdp = psconrl.load(env)
    for seed in range(3):
        plain, repaying = (violation(name, cmdp, horizon, seed) for name in ("psconrl", "psconrl-repaying"))
        assert repaying < 0.5 * plain  # measured: -9 to 6 against 73 to 114, and 93 to 541 against 1,550 to 2,678


def test_a_limit_that_leaves_no_room_is_still_planned_for():
    """Both actions cost as much as is allowed: nothing can be paid back, and nothing stops the agent."""
    agent = PSConRL(1, 2, [1.0], costs=[[[1.0, 0.0]], [[1.0, 1.0]]], repay=1.0, seed=0)
    agent.ledger.enter(episode(10, 15.0), agent.thresholds)
    episode_now = agent.begin(0)
    assert episode_now.kind == "optimal"
    assert episode_now.policy[0].tolist() == [0.0, 1.0]


def test_a_saved_agent_remembers_its_debts(tmp_path):
    cmdp = psconrl.load("marsrover-4x4")
    made = [PSConRL.repaying(16, 4, cmdp.thresholds, costs=cmdp.costs, seed=3) for _ in range(2)]
    whole = simulate(cmdp, made[0], 3_000, seed=1)
    assert whole.count("repay") > 0
    simulate(cmdp, made[1], 1_500, seed=1)
    made[1].save(tmp_path / "a.agent")
    again, _ = load_agent(tmp_path / "a.agent")
    assert again.repay == 0.1
    assert again.ledger.balance.tolist() == made[1].ledger.balance.tolist()
    assert again.ledger.rounds == made[1].ledger.rounds
    assert [again.begin(k).policy.tolist() for k in range(3)] == [made[1].begin(k).policy.tolist() for k in range(3)]


def test_new_limits_start_a_new_ledger():
    agent = PSConRL(2, 1, [0.1], repay=1.0, seed=0)
    for _ in range(20):
        agent.observe(agent.act(0), 0, [0.0, 1.0])
    assert agent.ledger.balance[0] > 1
    agent.set_thresholds([2.0])
    assert agent.ledger.balance.tolist() == [0.0]


@pytest.mark.parametrize("repay", [-0.1, float("nan"), float("inf")])
def test_the_share_must_make_sense(repay):
    with pytest.raises(AgentError, match="repay must be a number from 0 on"):
        PSConRL(2, 2, [0.5], repay=repay)


def test_the_share_can_be_given_to_the_preset():
    assert PSConRL.repaying(2, 2, [0.5]).repay == 0.1
    assert make_agent("psconrl-repaying", 2, 2, [0.5], repay=1.0).repay == 1.0
