"""Thresholds by name, for agents as for models."""

import numpy as np
import pytest

import psconrl
from psconrl import LabelledAgent, PSConRL, load_agent, simulate
from psconrl.agents import Uniform, adapt, make
from psconrl.errors import AgentError, ModelError

QUEUE = psconrl.load("queue")  # delay 2.0, power 0.3


def named(**thresholds):
    return PSConRL(QUEUE.n_states, QUEUE.n_actions, thresholds, QUEUE.costs, seed=0)


def test_an_agent_takes_thresholds_by_name_in_their_order():
    plain = PSConRL(QUEUE.n_states, QUEUE.n_actions, [2.0, 0.3], QUEUE.costs, seed=0)
    agent = named(delay=2.0, power=0.3)
    assert agent.thresholds.tolist() == [2.0, 0.3]
    assert agent.constraint_names.names == ("delay", "power")
    assert plain.constraint_names is None
    one, two = (simulate(QUEUE, each, 200, seed=1).cumulative for each in (plain, agent))
    assert (one == two).all()


def test_thresholds_that_are_not_named_stay_in_force():
    agent = named(delay=2.0, power=0.3)
    agent.set_thresholds({"power": 0.4})
    assert agent.thresholds.tolist() == [2.0, 0.4]
    agent.set_thresholds({"power": 0.5, "delay": 3.0})
    assert agent.thresholds.tolist() == [3.0, 0.5]
    agent.set_thresholds([1.0, 0.2])
    assert agent.thresholds.tolist() == [1.0, 0.2]
    LabelledAgent(agent, QUEUE.state_names, QUEUE.action_names).set_thresholds({"delay": 4})
    assert agent.thresholds.tolist() == [4.0, 0.2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dely": 1.0}, "unknown constrained cost 'dely'; did you mean 'delay'"),
        ({"delay": "1"}, "thresholds must be numbers"),
        ({"delay": np.nan}, "thresholds must be finite"),
        ({"delay": [1.0]}, "thresholds must be numbers"),
    ],
)
def test_a_wrong_name_or_number_changes_nothing(wrong, message):
    agent = named(delay=2.0, power=0.3)
    with pytest.raises(AgentError, match=message):
        agent.set_thresholds(wrong)
    assert agent.thresholds.tolist() == [2.0, 0.3]


def test_an_agent_without_names_says_what_to_give_instead():
    agent = PSConRL(QUEUE.n_states, QUEUE.n_actions, QUEUE.thresholds, QUEUE.costs, seed=0)
    with pytest.raises(AgentError, match=r"give 2 thresholds in their order, such as model\.with_thresholds\(\{\.\.\."):
        agent.set_thresholds({"power": 0.4})
    agent.set_thresholds(QUEUE.with_thresholds({"power": 0.4}).thresholds)
    assert agent.thresholds.tolist() == [2.0, 0.4]
    with pytest.raises(AgentError, match=r"names of thresholds must be text, all different; got \[1\]"):
        PSConRL(2, 2, {1: 0.5})


def test_a_model_brings_its_names_and_the_sense_of_its_thresholds():
    """Lower bounds are given and changed with their own sign, as in the model."""
    model = psconrl.CMDP(
        QUEUE.transition,
        [QUEUE.costs[1], QUEUE.costs[0]],
        {"served": 0.3},
        cost_names=["waiting", "served"],
        at_least=["served"],
    )
    agent = PSConRL.trusting(model, 20, seed=0)
    assert agent.thresholds.tolist() == [-0.3]
    agent.set_thresholds({"served": 0.35})
    assert agent.thresholds.tolist() == [-0.35]
    assert PSConRL.trusting(model, 20, thresholds={"served": 0.2}, seed=0).thresholds.tolist() == [-0.2]
    with pytest.raises(ModelError, match="unknown constrained cost 'serve'"):
        PSConRL.trusting(model, 20, thresholds={"serve": 0.2})


def test_names_are_saved_with_the_agent(tmp_path):
    agent = PSConRL.trusting(QUEUE, 20, seed=0)
    agent.set_thresholds({"power": 0.4})
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert again.constraint_names == agent.constraint_names
    again.set_thresholds({"delay": 1.0})
    assert again.thresholds.tolist() == [1.0, 0.4]
    assert "constraint_names" not in PSConRL(2, 2, [0.5]).state()


def test_thresholds_in_another_order_than_the_costs_are_refused():
    with pytest.raises(AgentError, match=r"in the order \['power', 'delay'\], the model its costs in the order"):
        simulate(QUEUE, named(power=0.3, delay=2.0), 10)
    simulate(QUEUE, named(cost=2.0, watts=0.3), 10)  # other names impose no order


def test_every_kind_of_agent_takes_names():
    class Mixed:
        def begin(self, state):
            return psconrl.Episode(np.full((2, 2), 0.5), max_steps=1)

        def end(self, record):
            pass

    for agent in (
        Uniform(2, 2, {"risk": 0.5}),
        make("psconrl-paper", 2, 2, {"risk": 0.5}),
        make("c-ucrl", 2, 2, {"risk": 0.5}, costs=np.zeros((2, 2, 2))),
        adapt(Mixed(), 2, 2, {"risk": 0.5}),
    ):
        assert agent.thresholds.tolist() == [0.5]
        assert agent.constraint_names.names == ("risk",)
