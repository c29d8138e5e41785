"""The ``repr`` of an agent."""

import numpy as np
import pytest

import psconrl
from psconrl import LabelledAgent, PSConRL, simulate
from psconrl.agents import Agent, Dirichlet, Doubling, FixedPolicy, SquareRoot, adapt, make
from psconrl.errors import AgentError
from psconrl.learning.registry import RECIPES

ROVER = psconrl.load("marsrover-4x4")


def agent_for(**options):
    return PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=0, **options)


def test_the_usual_agent_has_no_options():
    agent = agent_for()
    assert repr(agent) == "PSConRL(16 states, 4 actions, 1 constraint, costs known, 0 rounds played)"
    agent.act(0)
    agent.observe(0, 1, [1.0, 0.0])
    assert repr(agent).endswith("costs known, 1 round played)")
    simulate(ROVER, agent, 2000, seed=0)
    assert repr(agent).endswith(", 2,001 rounds played)")  # including the episode in progress


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"schedule": Doubling(), "ledger": None}, "schedule=Doubling(), ledger=None, 0"),
        ({"belief": Dirichlet(0.1)}, "costs known, belief=Dirichlet(prior=0.1), 0"),
        ({"schedule": SquareRoot(), "commitment": None}, "costs known, commitment=None, 0"),
        (
            {"optimistic_cost": -2.0, "cost_weight": np.ones((16, 4))},
            "optimistic_cost=-2.0, cost_weight=array(16, 4), 0",
        ),
    ],
)
def test_options_that_are_not_the_usual_ones_are_shown(options, shown):
    assert shown in repr(agent_for(**options))


@pytest.mark.parametrize("name", RECIPES)
def test_every_agent_is_one_line(name):
    known = {"safe": psconrl.learning.safe.baseline.known_baseline(ROVER, None)}.get(name, {})
    size = (2, 2) if name == "span-fha" else (16, 4)
    costs = np.zeros((2, 2, 2)) if name == "span-fha" else ROVER.costs
    agent = make(name, *size, ROVER.thresholds, costs, seed=0, horizon=100, **known)
    assert repr(agent).startswith(f"{type(agent).__name__}({size[0]} states, {size[1]} actions, 1 constraint")
    assert len(repr(agent).splitlines()) == 1
    assert len(repr(agent)) < 500


def test_agents_of_others_and_labelled_ones():
    class Mixed:
        def begin(self, state):
            return psconrl.Episode(np.full((2, 2), 0.5), max_steps=1)

        def end(self, record):
            pass

    agent = adapt(Mixed(), 2, 2, [0.5, 0.5])
    assert repr(agent).startswith("Adapted(2 states, 2 actions, 2 constraints")
    labelled = LabelledAgent(PSConRL(2, 2, [], seed=0), ["a", "b"], ["x", "y"])
    assert repr(labelled) == f"LabelledAgent({labelled.agent!r})"
    assert "policy=array(2, 2)" in repr(FixedPolicy(2, 2, [], policy=np.full((2, 2), 0.5)))


def test_repr_never_raises():
    class Secretive(Agent):
        def __init__(self, n_states, n_actions, thresholds, costs=None, *, secret=3, seed=None):
            super().__init__(n_states, n_actions, thresholds, costs, seed)

        def begin(self, state):
            return psconrl.Episode.uniform(self.n_states, self.n_actions)

    class Loud:
        def __repr__(self):
            raise RuntimeError

    assert repr(Secretive(2, 2, [])) == "Secretive(2 states, 2 actions, 0 constraints, costs learned, 0 rounds played)"
    assert repr(PSConRL.__new__(PSConRL)) == "<incomplete PSConRL>"
    assert repr(LabelledAgent.__new__(LabelledAgent)) == "<incomplete LabelledAgent>"
    odd = agent_for()
    odd.optimistic_cost = Loud()
    assert repr(odd) == "<incomplete PSConRL>"
    with pytest.raises(AgentError):
        agent_for(belief=0.1)
