"""The agents of the authors' published code: every formula by hand."""

import numpy as np
import pytest

from psconrl.agents import LagrangianPSRL, PSConRL2023, PublishedLagrangian, PublishedMeans, make
from psconrl.errors import AgentError
from psconrl.learning.agents.psconrl_2023 import uniform_where_absent
from psconrl.learning.posterior.cost_beliefs import Hints
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.model.transition import Transition

PUBLISHED = {"psconrl-published": 0.05, "psconrl-published-2023": 0.001, "lagrangian-published": 0.01}
# One state, two actions. The first costs 0 and spends 1, the second costs 1 and spends nothing.
CHOICE = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])


def recorded(counts, moves, costs):
    """A record of moves {(state, action, next state): times}, with costs (m+1, S, A)."""
    record = Record.empty(counts)
    for (s, a, t), times in moves.items():
        for _ in range(times):
            record.step(s, a, t, np.asarray(costs)[:, s, a])
    return record


def taught(agent, moves, costs=CHOICE):
    """The agent after an episode with these moves."""
    agent.end(recorded(agent.counts, moves, costs))
    return agent


# What all have in common


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_below_the_floor_are_raised_to_it(name):
    agent = make(name, 2, 1, [], seed=0)
    taught(agent, {(0, 0, 0): 3}, np.ones((1, 2, 1)))
    floor = PUBLISHED[name]
    assert agent.belief.parameters(agent.counts).tolist() == [[3.0, floor], [floor, floor]]


@pytest.mark.parametrize("name", PUBLISHED)
def test_episodes_end_after_three_times_as_many_visits_and_three(name):
    agent = make(name, 1, 2, [0.5], seed=0)
    assert agent.begin(0).visit_caps.tolist() == [[3, 3]]
    taught(agent, {(0, 0, 0): 4, (0, 1, 0): 1})
    assert agent.begin(0).visit_caps.tolist() == [[15, 6]]
    assert agent.begin(0).max_steps > 10**15


@pytest.mark.parametrize("name", PUBLISHED)
def test_costs_are_means_and_those_of_untried_pairs_are_0(name):
    agent = make(name, 1, 3, [0.5], np.ones((2, 1, 3)), seed=0)
    assert agent.costs is None
    taught(agent, {(0, 0, 0): 3}, [[[-2.0, 9.0, 9.0]], [[4.0, 9.0, 9.0]]])
    taught(agent, {(0, 0, 0): 1, (0, 1, 0): 2}, [[[2.0, -5.0, 9.0]], [[0.0, 7.0, 9.0]]])
    assert agent._episode_costs().tolist() == [[[-1.0, -5.0, 0.0]], [[3.0, 7.0, 0.0]]]


def test_hints_count_as_observations():
    counts = Counts(1, 2, 2)
    counts.add(recorded(counts, {(0, 0, 0): 3}, [[[1.0, 0.0]], [[2.0, 0.0]]]))
    rng = np.random.default_rng(0)
    assert PublishedMeans().costs(counts, Hints(-1.0), rng).tolist() == [[[0.5, -1.0]], [[2.0, 0.0]]]
    guess = np.array([[[5.0, 7.0]], [[6.0, 8.0]]])
    assert PublishedMeans().costs(counts, Hints(None, guess, 1.0), rng).tolist() == [[[2.0, 7.0]], [[3.0, 8.0]]]
    assert PublishedMeans().costs(counts, Hints(None, guess, None), rng).tolist() == [[[2.0, 7.0]], [[3.0, 8.0]]]


# PSConRL of 2023


def test_a_policy_is_uniform_where_it_has_no_long_run_frequency():
    """From state 2 the chain goes to 0 and 1, between which it alternates."""
    P = np.zeros((6, 3))
    P[[0, 1, 2, 3, 4, 5], [1, 1, 0, 0, 0, 1]] = 1.0
    policy = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    assert uniform_where_absent(Transition.of(P), policy).tolist() == [[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize(("leaving", "played"), [(1.5e-7, [0.0, 1.0]), (0.5e-7, [0.5, 0.5])])
def test_a_frequency_counts_as_0_up_to_a_tolerance(leaving, played):
    """State 1 is entered with a small probability and left at once, so this is about its frequency."""
    P = Transition.of(np.array([[1.0 - leaving, leaving], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]))
    assert uniform_where_absent(P, np.array([[1.0, 0.0], [0.0, 1.0]])).tolist() == [[1.0, 0.0], played]


def test_the_agent_plays_the_best_cycle_of_its_sample_and_uniformly_elsewhere():
    """Both actions of state 0 lead to state 1, whose first action stays there; the second one leads back."""
    agent = PSConRL2023(2, 2, [], seed=0)
    agent._draw = lambda: Transition.of(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    taught(agent, {(0, 0, 1): 1, (0, 1, 1): 1, (1, 0, 1): 1, (1, 1, 0): 1}, [[[1.0, 2.0], [0.25, 0.5]]])
    episode = agent.begin(0)
    assert episode.policy.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert episode.value == pytest.approx(0.25)
    assert episode.kind == "optimal"


def test_an_optimal_policy_that_visits_all_states_is_played_as_it_is():
    """A constraint that binds: the first action, which spends, in a quarter of the rounds."""
    agent = taught(PSConRL2023(1, 2, [0.25], seed=0), {(0, 0, 0): 1, (0, 1, 0): 1})
    np.testing.assert_allclose(agent.begin(0).policy, [[0.25, 0.75]], rtol=1e-9)


def test_an_infeasible_sample_is_played_uniformly():
    agent = taught(PSConRL2023(1, 2, [-0.5], seed=0), {(0, 0, 0): 1, (0, 1, 0): 1})
    episode = agent.begin(0)
    assert episode.kind == "uniform"
    assert episode.policy.tolist() == [[0.5, 0.5]]
    assert episode.visit_caps.tolist() == [[6, 6]]


# The Lagrangian agent


def test_the_multiplier_moves_by_a_constant_step_on_the_average_excess_of_the_episode():
    agent = PublishedLagrangian(1, 2, [0.25], rate=0.3, seed=0)
    assert agent.multipliers.tolist() == [0.0]
    taught(agent, {(0, 0, 0): 12, (0, 1, 0): 4})  # 12 spent in 16 rounds
    assert agent.multipliers == pytest.approx([0.3 * (0.75 - 0.25)])
    taught(agent, {(0, 0, 0): 2, (0, 1, 0): 8})  # 2 spent in 10 rounds
    assert agent.multipliers == pytest.approx([0.3 * (0.75 - 0.25 + 0.2 - 0.25)])
    taught(agent, {(0, 1, 0): 1000})  # nothing spent
    assert agent.multipliers == pytest.approx([0.3 * (0.75 + 0.2 - 0.75)])


def test_the_multiplier_is_never_negative_and_has_no_ceiling():
    agent = PublishedLagrangian(1, 2, [0.25], rate=1000.0, seed=0)
    assert taught(agent, {(0, 1, 0): 5}).multipliers.tolist() == [0.0]
    assert taught(agent, {(0, 0, 0): 5}).multipliers.tolist() == [750.0]
    assert taught(agent, {(0, 1, 0): 5}).multipliers.tolist() == [500.0]


def test_every_constraint_has_a_multiplier_of_its_own():
    costs = np.array([[[0.0]], [[1.0]], [[0.5]]])
    agent = PublishedLagrangian(1, 1, [0.5, 0.25], rate=2.0, seed=0)
    assert taught(agent, {(0, 0, 0): 3}, costs).multipliers.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(("multiplier", "played"), [(0.9, [1.0, 0.0]), (1.1, [0.0, 1.0])])
def test_what_is_played_is_cheapest_at_the_multiplier(multiplier, played):
    """One unit of spending saves one unit of the objective."""
    agent = taught(PublishedLagrangian(1, 2, [0.25], seed=0), {(0, 0, 0): 1, (0, 1, 0): 1})
    agent.multipliers = np.array([multiplier])
    episode = agent.begin(0)
    assert episode.policy[0].tolist() == played
    assert episode.value == pytest.approx(min(multiplier, 1.0) - 0.25 * multiplier)


@pytest.mark.parametrize(("spent", "threshold", "played"), [(1.0, 0.0, [0.0, 1.0]), (0.0, 1.0, [1.0, 0.0])])
@pytest.mark.parametrize("agent", [PublishedLagrangian, LagrangianPSRL])
def test_a_multiplier_that_is_too_large_to_plan_with_is_an_error(agent, spent, threshold, played):
    """One unit of the cost, or of the threshold, is worth the multiplier: 1e99 can be planned with, 1e101 cannot."""
    costs = CHOICE * np.array([1.0, spent]).reshape(2, 1, 1)
    learner = taught(agent(1, 2, [threshold], seed=0), {(0, 0, 0): 1, (0, 1, 0): 1}, costs)
    learner.multipliers = np.array([1e99])
    assert learner.begin(0).policy[0].tolist() == played
    for multiplier in (1e101, np.inf):
        learner.multipliers = np.array([multiplier])
        with pytest.raises(AgentError, match=r"a multiplier of .* is too large to plan .*1e\+100\); take a smaller"):
            learner.begin(0)


@pytest.mark.parametrize("rate", [1.01e100, 1e308, 0.0, -1.0])
def test_a_rate_beyond_the_largest_cost_is_refused(rate):
    assert PublishedLagrangian(1, 2, [0.25], rate=1e100, seed=0).rate == 1e100
    with pytest.raises(AgentError, match=r"rate must be a positive number up to 1e\+100; got"):
        PublishedLagrangian(1, 2, [0.25], rate=rate, seed=0)


def test_the_rate_is_that_of_the_8x8_grid_unless_another_is_given():
    assert make("lagrangian-published", 1, 2, [0.25]).rate == 0.0035
    assert make("lagrangian-published", 1, 2, [0.25], rate=2.9).rate == 2.9
