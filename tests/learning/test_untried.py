"""Costs that are learned: an untried pair is better than all that were tried, where nothing shows the contrary."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from psconrl import CMDP, simulate
from psconrl.agents import EmpiricalMeans, SampledCosts
from psconrl.learning.posterior.cost_beliefs import Hints
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.untried_costs import best_objective, favouring_rarely_tried
from psconrl.learning.registry import RECIPES, make_agent
from psconrl.simulation.gym_run import GymSimulation

# These take untried pairs to be free, as published; they must be given an optimistic cost to earn rewards.
AS_PUBLISHED = ("fha", "ucrl-cmdp", "psconrl-published", "psconrl-published-2023", "lagrangian-published")
# Agents that are given nothing about the costs; SpanFHA takes too long.
RARELY = [
    name
    for name, recipe in RECIPES.items()
    if "optimistic_cost" in recipe.option_names() and name not in (*AS_PUBLISHED, "span-fha")
]


def one_state(objective, times):
    """Counts of one state, where action a was tried ``times[a]`` times, and cost ``objective[a]``; no constraints."""
    counts = Counts(1, len(objective), 1)
    record = Record.empty(counts)
    for action, (cost, number) in enumerate(zip(objective, times, strict=True)):
        for _ in range(number):
            record.step(0, action, 0, np.array([float(cost)]))
    counts.add(record)
    return counts


@pytest.mark.parametrize(
    ("means", "best"),
    [
        ([0.5, 2.0], 0.0),  # nonnegative costs: 0 is the optimum
        ([0.5, 0.5], 0.0),
        ([0.0, 0.0], -1.0),  # a tie goes to the untried pair
        ([0.0, 4.0], -0.04),
        ([-3.0, -3.0], -6.0),
        ([-3.0, -1.0], -5.0),  # rewards: as much better than the best as that is than the worst
        ([-3.0, 2.0], -8.0),
    ],
)
def test_the_objective_of_an_untried_pair(means, best):
    assert best_objective(np.array(means)) == best
    assert best_objective(np.array(means), -0.25) == -0.25  # what the caller said
    counts = one_state([*means, 7.0], [3, 1, 0])
    hopeful = EmpiricalMeans().costs(counts, Hints(), np.random.default_rng(0))
    assert hopeful.tolist() == [[[*means, best]]]
    drawn = SampledCosts().made_for(1, 3, 0).costs(counts, Hints(), np.random.default_rng(0))
    assert drawn[0, 0, :2].tolist() == means
    if means[0] == means[1]:
        assert drawn[0, 0, 2] == best
    else:  # the best one as an exception, else between the others
        assert drawn[0, 0, 2] == best or min(means) <= drawn[0, 0, 2] <= max(means)


@pytest.mark.parametrize("belief", [EmpiricalMeans(), SampledCosts()])
def test_costs_are_the_means_once_they_differ_and_all_was_tried(belief):
    counts = one_state([0.0, 1.0, 0.5], [1, 5, 2])
    drawn = belief.made_for(1, 3, 0).costs(counts, Hints(), np.random.default_rng(0))
    assert drawn.tolist() == [[[0.0, 1.0, 0.5]]]
    assert counts.mean_costs().tolist() == drawn.tolist()


@pytest.mark.parametrize("belief", [EmpiricalMeans(), SampledCosts()])
@pytest.mark.parametrize("cost", [0.0, 4.0, -4.0])
def test_pairs_that_are_all_the_same_are_tried_in_turn(belief, cost):
    counts = one_state([cost] * 3, [2, 1, 4])
    drawn = belief.made_for(1, 3, 0).costs(counts, Hints(), np.random.default_rng(0))
    unit = abs(cost) or 1.0
    assert drawn[0, 0] == pytest.approx(cost - 0.01 * unit * np.array([0.5, 1.0, 0.25]))
    assert favouring_rarely_tried(np.full((1, 3), cost), counts.pairs.astype(float)).tolist() == drawn[0].tolist()
    hinted = Hints(optimistic=cost)  # nothing better exists
    assert (belief.made_for(1, 3, 0).costs(counts, hinted, np.random.default_rng(0)) == cost).all()


def test_pairs_with_a_guess_count_as_tried():
    counts = one_state([0.0, 0.0], [2, 0])
    guess, weight = np.zeros((1, 1, 2)), np.array([[1.0, 0.0]])
    assert counts.hopeful_costs(None, guess, 1.0).tolist() == [[[0.0, 0.0]]]
    assert counts.hopeful_costs(None, guess, weight).tolist() == [[[0.0, -1.0]]]


class OneState(gymnasium.Env):
    """One state; an action pays its reward with a probability, else nothing."""

    observation_space = spaces.Discrete(1)

    def __init__(self, rewards, probability=1.0):
        self.rewards, self.probability = rewards, probability
        self.action_space = spaces.Discrete(len(rewards))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        paid = self.probability == 1.0 or self.np_random.random() < self.probability
        return 0, float(self.rewards[action]) * paid, False, False, {"costs": [0.0]}


def learning_agent(name, n_actions, horizon):
    """An agent that knows nothing of the costs but, if it must, their ranges; its one limit never binds."""
    options = {}
    if "ranges" in RECIPES[name].option_names():
        options["ranges"] = [[-1.0, 1.0], [0.0, 1.0]]
    if name in AS_PUBLISHED:
        options["optimistic_cost"] = -1.0
    if name == "triple-qa":  # as published it learns nothing: the gain of a cost that is 0 does not decrease
        options |= {"together": False, "kappa": 0.1}
    if name == "safe":
        options |= {"baseline": np.full((1, n_actions), 1.0 / n_actions), "slack": 0.9, "span": 0.0}
    return make_agent(name, 1, n_actions, [1.0], None, 0, horizon, **options)


@pytest.fixture(params=[name for name in RECIPES if name != "uniform"])
def name(request):
    return request.param


@pytest.mark.parametrize("better", [0, 1])
def test_every_agent_finds_the_action_that_pays(name, better):
    """Uniform play earns 1/2 a round; agents that randomise have less than 1/4 with a probability below 1e-20."""
    horizon = 30 if name == "span-fha" else 400  # SpanFHA takes long, and does not randomise here
    rewards = np.eye(2)[better]
    played = GymSimulation(OneState(rewards), learning_agent(name, 2, horizon), seed=0).run(horizon)
    assert -played.cumulative[-1, 0] > 0.25 * horizon
    model = CMDP(np.ones((1, 2, 1)), [-rewards[None], np.zeros((1, 2))], [1.0])
    simulated = simulate(model, learning_agent(name, 2, horizon), horizon, seed=0)
    assert -simulated.cumulative[-1, 0] > 0.25 * horizon


@pytest.mark.part(4)
@pytest.mark.parametrize("name", RARELY)
def test_a_penalty_does_not_hide_a_reward(name):
    """The first action pays nothing, the second costs 1, the third pays 1: 0 is not the best after the second."""
    horizon = 1000
    played = GymSimulation(OneState([0.0, -1.0, 1.0]), learning_agent(name, 3, horizon), seed=0).run(horizon)
    assert -played.cumulative[-1, 0] > 0.5 * horizon


@pytest.mark.statistical
@pytest.mark.part(4)
@pytest.mark.parametrize("name", RARELY)
def test_every_agent_finds_an_action_that_pays_rarely(name):
    """One action pays 1 in one of 20 rounds, the other nothing.

    Tried in turn, the action that pays has not paid after 600 of 3,000 rounds with probability 0.95^300 = 2e-7. Played
    for the other 2,400 it pays 120 times on average, and less than 37 times, half of uniform play, with a probability
    below 1e-15.
    """
    horizon = 3000
    played = GymSimulation(OneState([0.0, 1.0], 0.05), learning_agent(name, 2, horizon), seed=0).run(horizon)
    assert -played.cumulative[-1, 0] > 0.5 * 0.05 / 2 * horizon
