"""What is said before a run, of runs that deserve it and of others."""

import warnings

import pytest

import psconrl
from psconrl import PSConRL, simulate
from psconrl.agents import LearnedMass, Uniform
from psconrl.errors import AdviceWarning
from psconrl.learning.advice import advice

RIVER = psconrl.load("riverswim")


def test_more_pairs_than_rounds_to_visit_them():
    agent = PSConRL(500, 10, [0.5], seed=0)
    (line,) = advice(agent, 5000, False)
    assert line.startswith("5,000 pairs of states and actions, 5,000 rounds: most pairs will be seen once at most")
    assert not advice(agent, 10_000, False)
    assert not advice(agent, 999, False)
    assert not advice(PSConRL(30, 30, [0.5], seed=0), 1000, False)
    assert not advice(Uniform(500, 10, [0.5], seed=0), 5000, False)


def test_support_answers_it():
    network = psconrl.load("network", side=20)
    belief = LearnedMass(support=network.transition.csr())
    for told in ({"costs": network.costs}, {"optimistic_cost": -1.0}):
        assert "1,600 pairs" in advice(PSConRL(400, 4, network.thresholds, seed=0, **told), 1200, True)[0]
        assert advice(PSConRL(400, 4, network.thresholds, belief=belief, seed=0, **told), 1200, True) == []


def test_rewards_that_are_learned_without_a_bound():
    agent = PSConRL(6, 2, RIVER.thresholds, seed=0)
    with pytest.warns(AdviceWarning, match="Give optimistic_cost, minus the largest reward of a round"):
        simulate(RIVER, agent, 1000, seed=0)
    assert not advice(agent, 999, True)


def test_a_hundred_runs_that_deserve_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("marsrover-4x4", "queue", "riverswim", "inventory", "garnet"):
            model = psconrl.load(name)
            for seed in range(10):
                for known in (True, False):
                    told = {"costs": model.costs} if known else {"optimistic_cost": float(model.costs[0].min())}
                    agent = PSConRL(model.n_states, model.n_actions, model.thresholds, seed=seed, **told)
                    assert not advice(agent, 20_000, model.maximise)
