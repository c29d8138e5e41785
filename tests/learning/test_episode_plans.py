"""What an event says of the plan of its episode, and the event of an episode that has not ended."""

from dataclasses import fields

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, Episode, LabelledAgent, PSConRL, load_agent
from psconrl.agents import Endless, EpisodePlan
from psconrl.errors import AgentError
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.registry import make_agent
from psconrl.model.transition import DenseTransition
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


@pytest.mark.parametrize("horizon", [None, Endless()], ids=["proportional", "endless"])
@pytest.mark.parametrize(("name", "rounds"), [("machine", 500), ("counterexample", 200), ("marsrover-4x4", 500)])
def test_the_stored_plan_is_the_optimum_of_the_stored_model(name, rounds, horizon):
    """Whatever was left out of the sample, and for whatever horizon; a commitment plays another policy."""
    model = psconrl.load(name)
    agent = PSConRL(*model.costs.shape[1:], model.thresholds, model.costs, planning_horizon=horizon, seed=1)
    events = []
    agent.watch(events.append)
    psconrl.simulate(model, agent, rounds, seed=1)
    if name == "counterexample":  # infeasible samples
        assert {"explore", "least excess"} & {event.kind for event in events}
    for event in events:
        plan = event.plan
        best = psconrl.plan(plan.cmdp())
        assert bool(best.infeasibility) == (plan.prices is None) == (plan.policy is None)
        if plan.prices is not None:
            assert best.costs[0] == pytest.approx(event.value, abs=1e-6)
            np.testing.assert_allclose(best.multipliers, plan.prices, atol=1e-6)
            found = psconrl.evaluate(plan.cmdp(), plan.policy).costs
            assert found[0] == pytest.approx(event.value, abs=1e-6)
            assert (found[1:] <= plan.targets + 1e-6).all()
            committed = (event.policy != plan.policy).any()
            assert not committed or (event.policy.max(axis=1) == 1.0).all()


def test_a_plan_knows_the_state_that_it_was_made_for():
    agent = make_agent("psconrl-paper", 16, 4, [0.02], ROVER.costs, seed=2)
    starts = []
    begin = agent.begin
    agent.begin = lambda state: starts.append(state) or begin(state)
    events = events_of(agent)
    assert [event.plan.state for event in events] == starts
    assert len(set(starts)) > 2
    last = events[-1].plan
    np.testing.assert_array_equal(last.cmdp().initial, np.eye(16)[starts[-1]])
    np.testing.assert_array_equal(last.cmdp(5).initial, np.eye(16)[5])
    assert last.sampled is agent.sampled


def test_the_model_of_a_plan_lacks_moves_that_were_left_out(monkeypatch):
    """State 2 cannot be reached; from 0 one gets to 1, and back, once in 1e13 rounds. The fast method fails."""
    monkeypatch.setattr(EpisodePlanner, "_solved", lambda self, problem: None)
    rare = 1e-13
    table = np.array([[1 - rare, rare, 0], [rare, 1 - rare, 0], [0, 0, 1.0]])
    costs = np.array([[[1.0], [0.0], [0.0]], [[0.0], [1.0], [0.0]]])
    found = EpisodePlanner(3, 1).optimal(DenseTransition(table), costs, np.array([0.75]), 0)
    assert found.value == 1.0
    np.testing.assert_array_equal(found.model.toarray(), np.eye(3))


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
        ("lagrangian", True), ("psconrl-account", True), ("tsde", True), ("psconrl-published-2023", True),
        ("c-ucrl", True), ("uc-curl", False),
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
