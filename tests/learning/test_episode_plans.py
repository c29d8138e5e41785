"""What an event says of the plan of its episode, and the event of an episode that has not ended."""

from dataclasses import fields

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, Episode, LabelledAgent, PSConRL, load_agent
from psconrl.agents import EpisodePlan
from psconrl.errors import AgentError
from psconrl.learning.registry import make_agent
from psconrl.planning.optimism.average import plan_in_box

ROVER = psconrl.load("marsrover-4x4", slip=0.1)


def events_of(agent, horizon=1500):
    """The events of a run; the last one is that of the episode in progress, None if the last one has just ended."""
    events = []
    agent.watch(events.append)
    psconrl.simulate(ROVER, agent, horizon, seed=3)
    return [*events, agent.unfinished_event()]


def test_the_plan_of_an_event_is_the_optimum_of_its_model():
    agent = make_agent("psconrl-paper", 16, 4, [0.02], ROVER.costs, seed=2)
    events = events_of(agent)
    kinds = {event.kind for event in events}
    assert kinds == {"optimal", "explore"}
    for event in events:
        assert event.plan.model.shape == (64, 16)
        np.testing.assert_array_equal(event.plan.targets, [0.02])
        best = psconrl.plan(event.plan.cmdp())
        assert bool(best.infeasibility) == (event.kind == "explore")
        if event.kind == "explore":
            assert event.plan.prices is event.plan.policy is None
        else:
            assert best.value == pytest.approx(event.value, abs=1e-6)
            np.testing.assert_allclose(event.plan.prices, best.multipliers, atol=1e-6)
            np.testing.assert_array_equal(event.plan.policy, event.policy)


def test_targets_of_a_ledger_and_doubts_are_known():
    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=0)
    events = events_of(agent, 4000)
    assert any(event.plan.in_doubt for event in events)
    assert not all(event.plan.in_doubt for event in events)
    balanced = [event for event in events if event.kind == agent.ledger.name]
    assert balanced
    assert all((event.plan.targets != event.thresholds).any() for event in balanced)


def test_the_event_of_an_unfinished_episode_is_the_one_it_would_have_if_it_ended():
    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=0)
    *ended, last = events_of(agent, 2000)
    assert all(event.finished for event in ended)
    assert not last.finished
    assert sum(event.length for event in (*ended, last)) == last.round == 2000
    before = agent.state()
    found = []
    agent.watch(found.append)
    agent.finish()
    assert before["rounds"] == 2000 - last.length  # looking at it has changed nothing
    for field in fields(last):
        if field.name != "finished":
            np.testing.assert_array_equal(getattr(last, field.name), getattr(found[0], field.name))
    assert agent.unfinished_event() is None


def test_an_unfinished_event_counts_the_rounds_that_explored():
    agent = make_agent("uniform", 16, 4, ROVER.thresholds, seed=0)
    assert agent.unfinished_event() is None
    named = LabelledAgent(agent, list("abcdefghijklmnop"), ["up", "right", "down", "left"])
    named.observe(named.act("a"), "b", [1.0, 0.5])
    event = named.unfinished_event()
    assert (event.round, event.length, event.explored, agent.explored) == (1, 1, 1, 0)
    np.testing.assert_array_equal(event.averages, [1.0, 0.5])
    assert event.plan is None


@pytest.mark.parametrize(
    ("name", "has_model"),
    [
        ("lagrangian", True), ("tsde", True), ("psconrl-published-2023", True), ("c-ucrl", True), ("uc-curl", False),
        ("ucrl-cmdp", False), ("po-cmdp", False), ("pdnac", False), ("pd-lsvi-ucb", False),
    ],
)  # fmt: skip
def test_other_agents_say_what_they_have(name, has_model):
    agent = make_agent(name, 16, 4, ROVER.thresholds, ROVER.costs, seed=0, horizon=3000)
    planned = [event for event in events_of(agent, 3000) if event is not None and event.plan is not None]
    assert planned
    assert all((event.plan.model is not None) == has_model for event in planned)
    if name != "tsde":  # which ignores all constraints
        priced = [event.plan.prices for event in planned if event.plan.prices is not None]
        assert priced
        assert all(prices.shape == (1,) and (prices >= 0).all() for prices in priced)


def test_prices_of_a_box_that_is_a_single_model_are_the_shadow_prices():
    """Staying costs (0, 1), moving (2, 0): a unit of the threshold is worth 2."""
    costs = np.array([[[0.0, 2.0]], [[1.0, 0.0]]])
    P = np.ones((2, 1))
    found = plan_in_box(P, P, costs, np.array([0.25]))
    np.testing.assert_allclose(found.prices, [2.0])
    np.testing.assert_allclose(psconrl.plan(CMDP(P.reshape(1, 2, 1), costs, [0.25])).multipliers, [2.0])
    assert plan_in_box(P, P, costs, np.array([-0.25])).prices is None


def test_a_plan_is_dropped_with_its_episode_and_not_saved(tmp_path):
    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=0)
    psconrl.simulate(ROVER, agent, 500, seed=0)
    assert agent.last_episode.plan.model is not None
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert again.last_episode.plan is None
    np.testing.assert_array_equal(again.last_episode.policy, agent.last_episode.policy)
    agent.finish()
    assert agent.last_episode.plan is None


def test_an_own_agent_may_say_what_it_planned_with():
    class Planner:
        plan = EpisodePlan(prices=np.array([3.0]))

        def begin(self, state):
            return Episode(np.full((16, 4), 0.25), max_steps=10, plan=self.plan)

        def end(self, record):
            pass

    player = psconrl.agents.adapt(Planner(), 16, 4, ROVER.thresholds, seed=0)
    assert all(event.plan.prices.tolist() == [3.0] for event in events_of(player, 55))
    Planner.plan = "none"
    with pytest.raises(AgentError, match="plan of an episode must be an EpisodePlan, or None; got str"):
        psconrl.simulate(ROVER, Planner(), 10, seed=0)
    with pytest.raises(AgentError, match="has no model with costs and targets"):
        EpisodePlan().cmdp()
