"""Advice before a run: given where it is due, and not elsewhere."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.sparse import csr_array

import psconrl
from psconrl import PSConRL, simulate
from psconrl.agents import Dirichlet, LearnedMass, Uniform
from psconrl.errors import AdviceWarning
from psconrl.learning.advice import advice, hindsight
from psconrl.learning.posterior.given_weights import as_guess, as_weights
from psconrl.learning.registry import RECIPES, make_agent

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
    for given in ({"costs": network.costs}, {"optimistic_cost": -1.0}):
        assert "1,600 pairs" in advice(PSConRL(400, 4, network.thresholds, seed=0, **given), 1200, True)[0]
        assert advice(PSConRL(400, 4, network.thresholds, belief=belief, seed=0, **given), 1200, True) == []


def test_rewards_that_are_learned_without_a_bound():
    agent = PSConRL(6, 2, RIVER.thresholds, seed=0)
    with pytest.warns(AdviceWarning, match="Give optimistic_cost, minus the largest reward of a round"):
        simulate(RIVER, agent, 1000, seed=0)
    assert not advice(agent, 999, True)


class Paying(gymnasium.Env):
    """One state, two actions; the second one pays 1."""

    observation_space, action_space = spaces.Discrete(1), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, float(action), False, False, {"costs": [0.0]}


def test_a_gymnasium_environment_has_rewards():
    with pytest.warns(AdviceWarning, match="Give optimistic_cost, minus the largest reward of a round"):
        simulate(Paying(), PSConRL(1, 2, [0.5], seed=0), 1000, seed=0)


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in ("uniform", "safe")])
def test_every_agent_says_that_rewards_have_no_bound(name):
    given = {"kappa": 0.1} if name == "triple-qa" else {}
    bounds = (
        {"optimistic_cost": -1.0}
        if "optimistic_cost" in RECIPES[name].option_names()
        else {"ranges": [[-1, 0], [0, 1]]}
    )
    agent = make_agent(name, 2, 2, [0.5], None, 0, 1000, **given)
    (line,) = advice(agent, 1000, True)
    assert line.startswith("the objective is a reward that is learned, and nothing says how large it can be: ")
    published = name in ("psconrl-published", "psconrl-published-2023", "lagrangian-published")
    never = f"'{name}' takes actions that were never tried to pay 0, and may never try them, even in states that it"
    assert (never in line) == published
    assert ("a large one far away may never be looked for" in line) != published
    assert bool(advice(agent, 10, True)) == published  # the others may learn what there is in a short run
    assert line.partition("Give ")[2].startswith(next(iter(bounds)))
    assert advice(agent, 1000, False) == []
    assert advice(make_agent(name, 2, 2, [0.5], None, 0, 1000, **given, **bounds), 1000, True) == []


@pytest.mark.parametrize("reward", [1.0, 0.0])
def test_advice_in_ones_own_loop(reward):
    """At the end of the first episode after 1,000 rounds, and once."""
    agent, warned_at = PSConRL(1, 2, [0.5], seed=0), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(8000):
            agent.observe(agent.act(0), 0, [-reward, 0.0])
            warned_at += [agent.rounds] * (len(caught) - len(warned_at))
    assert len(caught) == (1 if reward else 0)
    for warning, rounds in zip(caught, warned_at, strict=True):
        assert "Give optimistic_cost, minus the largest reward of a round" in str(warning.message)
        assert rounds >= 1000


@pytest.mark.parametrize("name", ["psconrl-published", "psconrl-published-2023", "lagrangian-published"])
@pytest.mark.parametrize("rewards", [[0.0, 1.0], [1.0, 2.0]], ids=["none-met", "met"])
def test_an_agent_that_never_tries_an_action_says_so_in_ones_own_loop(name, rewards):
    """Once, as soon as a reward was met; or after 100 rounds without any, since costs may be 0 as well."""
    agent, warned_at = make_agent(name, 1, 2, [0.5], None, 0, 2000), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2000):
            action = agent.act(0)
            agent.observe(action, 0, [-rewards[action], 0.0])
            warned_at += [agent.rounds] * (len(caught) - len(warned_at))
    assert agent.counts.pairs.tolist() == [[2000 - agent.unfinished_event().length, 0]]
    (warning,), (rounds,) = caught, warned_at
    assert "never tried" in str(warning.message)
    assert str(warning.message).endswith("Give optimistic_cost, minus the largest reward of a round")
    if rewards[0]:
        assert rounds < 10
    else:
        assert str(warning.message).startswith(f"the objective was 0 in all {rounds} rounds so far")
        assert 100 <= rounds < 500


@pytest.mark.parametrize(("costs", "tried"), [([1.0, 0.5], 2), ([1.0, 0.0, 2.0], 2), ([0.0, 0.0], 2)])
def test_costs_are_no_reason_for_advice(costs, tried):
    """Of positive costs, 0 is the least, and need not be searched for; with a hint there is nothing to say."""
    given = {} if costs[0] else {"optimistic_cost": -1.0}
    agent = make_agent("psconrl-published", 1, len(costs), [0.5], None, 0, 2000, **given)
    for _ in range(2000):
        action = agent.act(0)
        agent.observe(action, 0, [costs[action], 0.0])
    assert (agent.counts.pairs > 0).sum() == tried


def test_triple_qa_says_that_no_estimate_can_fall():
    """At the last of F visits in a frame the bonus is kappa sqrt((chi+1) iota / (chi+F)); gains are at least 0."""
    agent = make_agent("triple-qa", 1, 2, [1.0], None, 0, 2000)
    chi, iota, frame = agent.constants.chi, agent.constants.iota, agent.frame_length
    last = np.sqrt((chi + 1.0) * iota / (chi + frame))
    (line,) = advice(agent, 900, False)  # a run of any length
    assert f"its bonus is still {last:.3g} at the end of a frame" in line
    assert f"Lower kappa below {1.0 / last:.2g}," in line
    enough = make_agent("triple-qa", 1, 2, [1.0], None, 0, 2000, kappa=0.999 / last)
    assert advice(enough, 1000, False) == []


def test_a_hundred_runs_that_deserve_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("marsrover-4x4", "queue", "riverswim", "inventory", "garnet"):
            model = psconrl.load(name)
            for seed in range(10):
                for known in (True, False):
                    given = {"costs": model.costs} if known else {"optimistic_cost": float(model.costs[0].min())}
                    agent = PSConRL(model.n_states, model.n_actions, model.thresholds, seed=seed, **given)
                    assert not advice(agent, 20_000, model.maximise)


def test_a_guess_that_no_policy_keeps_the_limits_of():
    queue = psconrl.load("queue")
    tight = queue.with_thresholds([0.5, 0.05])
    for agent in (
        PSConRL.trusting(tight, seed=0),
        PSConRL.trusting(tight, weight=20, seed=0),
        PSConRL.trusting(queue, thresholds={"delay": 0.5, "power": 0.05}, seed=0),
        PSConRL.trusting(tight, costs=tight.costs, seed=0),
    ):
        (line,) = advice(agent, 5000, True)
        assert line.startswith("in the model that the agent begins with, no policy keeps 'power' <= 0.05; the least")
        assert line.endswith("Raise the threshold. It explores until it has learned otherwise")
    with pytest.warns(AdviceWarning, match="no policy keeps 'power' <= 0.05"):
        simulate(queue, agent, 100, seed=0)
    assert not advice(agent, 5000, True)  # it has begun to learn
    assert not advice(PSConRL.trusting(queue, seed=0), 5000, True)
    possible = queue.transition.csr().copy()
    possible.data[:] = 1.0
    informed = LearnedMass(support=possible)  # it knows which transitions are possible, not how likely they are
    assert not advice(PSConRL(10, 6, tight.thresholds, tight.costs, belief=informed, seed=0), 5000, True)


def test_a_guess_is_what_weights_stand_for():
    P = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])
    assert as_guess(as_weights(8.0 * P, "prior")).toarray() == pytest.approx(P.reshape(2, 2))
    assert as_guess(as_weights(csr_array(P.reshape(2, 2)), "prior")).toarray() == pytest.approx(P.reshape(2, 2))
    assert as_guess(as_weights((P > 0).astype(float), "support")) is None
    assert as_guess(as_weights(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), "support")) is not None  # there is no choice
    assert as_guess(0.1) is None
    assert as_guess(None) is None
    assert Dirichlet(0.5 * P).guess() is None  # half an observation per pair
    assert Dirichlet(P).guess() is not None


def chain_of(n):
    """A chain with moves left and right; the objective is least at its end."""
    P, costs = np.zeros((n, 2, n)), np.ones((2, n, 2))
    for s in range(n):
        P[s, 0, max(s - 1, 0)] = P[s, 1, min(s + 1, n - 1)] = 1.0
    costs[0, n - 1] = costs[1, 0] = 0.0
    return psconrl.CMDP(P, costs, [1.0])


class Promising(PSConRL):
    """An agent that plays one policy in a given model."""

    @classmethod
    def of(cls, model, policy, kind="optimal"):
        agent = cls(model.n_states, model.n_actions, model.thresholds, model.costs, seed=0)
        agent.sampled, agent.episode = model.transition, psconrl.Episode(policy, 50, kind=kind)
        return agent

    def begin(self, state):
        return self.episode


def test_a_plan_that_relies_on_unvisited_states():
    model = chain_of(10)
    right = np.tile([0.0, 1.0], (10, 1))
    reluctant = right.copy()
    reluctant[0] = [1.0 - 1e-9, 1e-9]
    agent = Promising.of(model, reluctant)
    assert hindsight(agent, 0) == []  # nothing was played
    simulate(model, agent, 200, seed=0)
    lines = hindsight(agent, 0)
    assert lines[0] == (
        "the last plan expects to spend 100% of the rounds in states that were never visited (9 of 10 were not): "
        "what it promises is a guess"
    )
    assert lines[1] == (
        "for the objective, the last plan promises 0 in the long run, but 1 over as many rounds from here as the run "
        "had, 200: it is slow"
    )
    assert "objective, the last plan promises 0 in the long run, but -1 over" in hindsight(agent, 0, maximise=True)[1]
    for kind in ("explore", "unsettled", "interim"):
        agent = Promising.of(model, reluctant, kind)
        simulate(model, agent, 200, seed=0)
        assert hindsight(agent, 0) == []
    agent = Promising.of(model, right)
    simulate(model, agent, 1000, seed=0)
    assert hindsight(agent, 9) == []


def test_the_search_for_ways_to_states_out_of_reach():
    """A cycle of three states, and a free one to which nothing leads: 2,000 rounds, of which doubts cost about 200."""
    P = np.zeros((4, 2, 4))
    P[[0, 1, 2, 3], :, [1, 2, 0, 0]] = 1.0
    costs = np.array([[[1.0, 0.9]] * 3 + [[0.0, 0.0]], np.zeros((4, 2))])
    agent = PSConRL(4, 2, [1.0], costs, seed=0)
    simulate(psconrl.CMDP(P, costs, [1.0], initial=0), agent, 2000, seed=0)
    (line,) = hindsight(agent, 0)
    spent = agent.doubt.spent[:2].sum()
    assert line.startswith(f"1 of 4 states were out of reach, and looking for ways to them cost {spent:.3g}")
    most = agent.rounds / 100  # for walls and the unknown together
    agent.doubt.spent[:] = [most - 8.0, 7.9, 500.0, 500.0]
    assert hindsight(agent, 0) == []
    agent.doubt.spent[0] += 0.2
    assert len(hindsight(agent, 0)) == 1
    agent.counts.tally.note(0, 3)
    assert hindsight(agent, 0) == []


def test_a_plan_whose_averages_say_little_of_the_run():
    """Two states, each left once in 1,000 rounds: over T rounds from the first, 1 / (2 + 1000/T) is in the other."""
    rate = 1e-3
    P = [[[1.0 - rate, rate]], [[rate, 1.0 - rate]]]
    model = psconrl.CMDP(P, [[[0.0], [0.0]], [[0.0], [1.0]]], [1.0])
    agent = Promising.of(model, np.ones((2, 1)))
    simulate(model, agent, 2000, seed=0)
    agent.counts.pairs[:] = 1  # as if both had been visited
    (line,) = hindsight(agent, 0)
    share = 1.0 / (2.0 + 1000.0 / agent.rounds)
    assert line.startswith(
        f"for limited cost 1, the last plan promises 0.5 in the long run, but {share:.3g} over as many"
    )
    assert 0.5 - 1.0 / (2.0 + 1000.0 / 3000.0) < 0.1
    simulate(model, agent, 1050, seed=1)
    assert agent.rounds >= 3000
    assert hindsight(agent, 0) == []


@pytest.mark.full
def test_a_hundred_runs_that_need_no_hindsight(full):
    for name in ("marsrover-4x4", "queue", "riverswim", "inventory", "garnet"):
        model = psconrl.load(name)
        for seed in range(10 if full else 1):
            for known in (True, False):
                given = {"costs": model.costs} if known else {"optimistic_cost": float(model.costs[0].min())}
                agent = PSConRL(model.n_states, model.n_actions, model.thresholds, seed=seed, **given)
                simulate(model, agent, 5000, seed=seed)
                assert hindsight(agent, 0) == []
