"""Recommendations: what is certain is recommended, what is not is not, and the formulas of what data would settle."""

import numpy as np
import pytest

import psconrl
from log_samples import shop_rows
from psconrl.data.advice.comparison import Compared
from psconrl.data.advice.evidence import fewest_rows, margin_of, value_of_information
from psconrl.data.advice.improvement import Verdict, improve
from psconrl.data.log import Log
from psconrl.errors import AgentError, LogError


def two_actions(rounds: int, costs: tuple[float, float], seed: int = 0) -> Log:
    """Return a log of one state with two actions, taken equally often, and of their costs."""
    actions = np.random.default_rng(seed).integers(2, size=rounds)
    return Log.of_arrays(
        n_states=1,
        n_actions=2,
        states=np.zeros(rounds, dtype=int),
        actions=actions,
        next_states=np.zeros(rounds, dtype=int),
        costs=np.column_stack([np.array(costs)[actions], np.array([1.0, 0.0])[actions]]),
        cost_names=("cost", "limited"),
    )


def test_the_better_action_is_recommended() -> None:
    """Costs are exact and action 1 is better in both: the policy is certain."""
    found = improve(two_actions(100, (2.0, 1.0)), limits={"limited": 0.7}, draws=500)
    assert found.verdict is Verdict.IMPROVE
    np.testing.assert_allclose(found.policy, [[0.0, 1.0]])
    assert found.probability == 1.0
    mean, low, high = found.gain
    assert low <= mean <= high
    assert abs(mean - 0.5) < 0.2


def test_the_limit_decides_how_far_to_go() -> None:
    """Action 0 is cheaper but fills the limit: it is taken in 0.7 of the rounds, where today's policy has a half."""
    found = improve(two_actions(4000, (1.0, 2.0)), limits={"limited": 0.7}, draws=500)
    assert found.verdict is Verdict.IMPROVE
    np.testing.assert_allclose(found.policy, [[0.7, 0.3]], atol=1e-6)


def test_a_limit_that_is_broken_has_a_price() -> None:
    """Today's half is beyond the limit of 0.2, and the action that keeps it is dearer."""
    found = improve(two_actions(4000, (1.0, 2.0)), limits={"limited": 0.2}, draws=500)
    assert found.verdict is Verdict.PAY
    np.testing.assert_allclose(found.policy, [[0.2, 0.8]], atol=1e-6)


def test_nothing_to_gain() -> None:
    """Both actions cost the same, and the limit holds: today's policy is kept."""
    found = improve(two_actions(4000, (1.0, 1.0)), limits={"limited": 0.9}, draws=500)
    assert found.verdict is Verdict.KEEP


def test_few_rounds_are_not_enough() -> None:
    """Six rounds of a queue, of which no action was tried five times in a state."""
    model = psconrl.load("queue")
    rng = np.random.default_rng(0)
    log = Log.of_arrays(
        n_states=model.n_states,
        n_actions=model.n_actions,
        states=np.array([0, 1, 2, 1, 0, 1]),
        actions=rng.integers(model.n_actions, size=6),
        next_states=np.array([1, 2, 1, 0, 1, 0]),
        costs=rng.random((6, 3)),
        cost_names=("cost", "delay", "power"),
    )
    found = improve(log, limits={"delay": 0.5, "power": 0.5}, draws=200)
    assert found.verdict in (Verdict.NOT_ENOUGH, Verdict.PAY)
    if found.verdict is Verdict.NOT_ENOUGH:
        assert found.needed is not None
        assert found.needed.rounds > 0


def test_fewest_rows_by_brute_force() -> None:
    """Integer rows of three pairs, all combinations: none with fewer rows in all reaches the goal."""
    variance, weights, goal = np.array([5.0, 2.0, 0.3]), np.array([2.0, 3.0, 1.0]), 2.4
    rows = fewest_rows(variance, weights, goal)
    assert (variance * weights / (weights + rows)).sum() == pytest.approx(goal)
    grid = np.stack(np.meshgrid(*[np.arange(12)] * 3), axis=-1).reshape(-1, 3)
    reaches = (variance * weights / (weights + grid)).sum(axis=1) <= goal
    assert grid[reaches].sum(axis=1).min() >= rows.sum() - 1e-9
    assert grid[reaches].sum(axis=1).min() <= rows.sum() + 3


def test_value_of_information_by_draws() -> None:
    """E max(G, 0) - max(E G, 0) of a normal G; five standard errors."""
    drawn = np.maximum(np.random.default_rng(0).normal(-0.3, 2.0, size=400_000), 0.0)
    assert abs(value_of_information(-0.3, 2.0) - drawn.mean()) < 5.0 * drawn.std() / np.sqrt(drawn.size)
    assert value_of_information(-1.0, 0.0) == 0.0


def test_probabilities_count_draws() -> None:
    """Four draws by hand: limits 3 of 4, no worse 2 of 4, both 1 of 4."""
    averages = np.array([[1.0, 0.1], [1.0, 0.9], [3.0, 0.2], [3.0, 0.3]])
    today = np.tile([2.0, 0.5], (4, 1))
    found = Compared("", averages, today, np.array([0.5]))
    assert (found.keeps_all, found.no_worse, found.both) == (0.75, 0.5, 0.25)
    margin = margin_of(averages, today, np.array([0.5]), 0.95)
    assert margin.cost == 0  # a mean gain of 0
    assert not margin.settled


def test_an_agent_begins_where_the_log_ends() -> None:
    """Counts, rounds and means of costs are those of the log; accounts begin at zero, and only a new agent learns."""
    log = two_actions(50, (2.0, 1.0))
    agent = psconrl.PSConRL(1, 2, [0.7], seed=0).learn_from(log)
    assert agent.rounds == 50
    np.testing.assert_array_equal(agent.counts.pairs, log.counts().pairs)
    np.testing.assert_allclose(agent.counts.cost_sums, log.counts().cost_sums)
    known = psconrl.PSConRL(1, 2, [0.7], costs=[[[2.0, 1.0]], [[1.0, 0.0]]], seed=0).learn_from(log)
    assert not known.counts.cost_sums.any()
    assert agent.act(0) in (0, 1)
    agent.observe(0, 0, [2.0, 1.0])
    with pytest.raises(AgentError, match="before the first round"):
        agent.learn_from(log)
    with pytest.raises(AgentError, match="1 states and 2 actions"):
        psconrl.PSConRL(2, 2, [0.7], seed=0).learn_from(log)
    with pytest.raises(AgentError, match="2 costs"):
        psconrl.PSConRL(1, 2, [], seed=0).learn_from(log)


def test_where_a_limit_is_broken_today_the_question_is_whether_another_policy_keeps_it() -> None:
    """A shop that loses too much, with few rounds: what to measure is about the limit, and not about the price."""
    log = Log(shop_rows(300, seed=4), state="shelf", action="order", costs=["order", "lost"])
    found = improve(log, limits={"lost": 0.02}, draws=500, seed=1)
    assert found.verdict is Verdict.NOT_ENOUGH
    assert found.needed is not None
    assert found.needed.margin.cost == 1
    advice = log.improve(limits={"lost": 0.02})
    assert advice.measuring.about == "lost"
    assert ("is expected to keep the limit on lost" in advice.measuring.experiment) == (found.needed.least > 0.02)


def test_a_limit_that_no_policy_keeps_is_said_to_be_out_of_reach() -> None:
    """Every action costs 1.9 or 2 of what is limited to 1: the least average is that of the cheaper one."""
    a = np.random.default_rng(0).integers(2, size=400)
    rows = {"s": [0] * 400, "a": a, "c": a, "e": np.where(a == 0, 2.0, 1.9)}
    advice = Log(rows, state="s", action="a", costs=["c", "e"]).improve(limits={"e": 1.0})
    assert advice.verdict is Verdict.NOT_ENOUGH
    assert "its average is then at least about 1.9" in advice.measuring.experiment
    assert "at least about 1.9" in str(advice)


def test_what_was_never_tried_is_not_called_worse() -> None:
    """Only one action was ever taken in either state: the log cannot say what the other one would do there."""
    s = np.random.default_rng(0).integers(2, size=1_000)
    log = Log({"s": s, "a": 1 - s, "c": np.where(s == 0, 10.0, 1.0)}, state="s", action="a", costs="c")
    advice = log.improve()
    assert advice.verdict is Verdict.KEEP
    assert "by what was tried" in str(advice)
    assert "coverage: " in str(advice)


def test_rounds_that_cannot_be_split() -> None:
    with pytest.raises(LogError, match="cannot be split into one half for planning"):
        Log({"s": [1, 1], "a": [0, 0], "c": [1, 2]}, state="s", action="a", costs="c").improve()
