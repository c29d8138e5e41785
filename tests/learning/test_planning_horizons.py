"""Planning horizons and episode lengths: formulas and their purpose."""

from math import ceil, log, log2, sqrt

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, PSConRL
from psconrl.agents import (
    Balance,
    Doubling,
    Endless,
    Growing,
    LearnedMass,
    LengthOnly,
    Ouyang,
    Proportional,
    SquareRoot,
    Steady,
)
from psconrl.errors import AgentError
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.model.transition import DenseTransition, SparseTransition


@pytest.mark.parametrize("make", [DenseTransition, lambda P: SparseTransition(csr_array(P))])
def test_a_run_that_restarts_goes_back_with_its_probability(make):
    P = np.array([[0.25, 0.75, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    restarted = make(P).restarting(2, 0.2)
    np.testing.assert_allclose(restarted.toarray(), 0.8 * P + 0.2 * np.array([0.0, 0.0, 1.0]), rtol=1e-15)
    np.testing.assert_allclose(restarted.toarray().sum(axis=1), 1.0)
    np.testing.assert_array_equal(make(P).toarray(), P)


def test_averages_move_by_the_probability_times_a_difference_of_the_bias():
    """J' = J + eta (h(s) - mu' h) / (1 - eta), whatever the policy."""
    environment = psconrl.load("garnet", states=8, seed=3)
    policy = np.random.default_rng(0).dirichlet(np.ones(environment.n_actions), size=8)
    before = psconrl.evaluate(environment, policy)
    for state, eta in ((0, 0.1), (5, 0.4)):
        after = psconrl.evaluate(
            CMDP(environment.transition.restarting(state, eta), environment.costs, environment.thresholds), policy
        )
        distribution = after.occupancy.sum(axis=1)
        moved = eta / (1 - eta) * (before.biases[:, state] - before.biases @ distribution)
        np.testing.assert_allclose(after.costs, before.costs + moved, rtol=1e-10)


@pytest.mark.parametrize(("rounds", "probability"), [(0, 0.5), (1, 0.5), (6, 0.5), (30, 0.1), (3000, 0.001)])
def test_plans_are_for_a_third_of_the_rounds_so_far(rounds, probability):
    assert Proportional().restart(rounds) == pytest.approx(probability)
    assert Endless().restart(rounds) == 0.0


def test_the_factor_must_make_sense():
    for factor in (0, 2.0, float("nan"), "far"):
        with pytest.raises(AgentError, match="factor must be a number above 0 and at most 1"):
            Proportional(factor)


# In state 0 work pays 1 and costs 1; rest is free. A rare transition, once in 1e20 rounds, leads from 0 to 1, where
# work is free and pays: in the long run the threshold of .1 is met by working until then.
RARE = 1e-20
P = np.array([[[1 - RARE, RARE], [1.0, 0.0]], [[0.0, 1.0], [1e-30, 1.0]]])
COSTS = np.array([[[-1.0, 0.0], [-1.0, -1.0]], [[1.0, 0.0], [0.0, 0.0]]])


def sure_of_it(**parts):
    """An agent that draws this model every time."""
    agent = PSConRL(2, 2, [0.1], COSTS, seed=0, **parts)
    agent._draw = lambda doubted=None: DenseTransition(P.reshape(4, 2) / P.reshape(4, 2).sum(axis=1, keepdims=True))
    return agent


def test_plans_do_not_wait_for_events_of_negligible_probability():
    """Endless horizon: work until the rare transition. Finite: work in a tenth of the rounds, as the threshold says."""
    for planning_horizon, share in ((Endless(), 1.0), (Proportional(), 0.1)):
        agent = sure_of_it(ledger=None, planning_horizon=planning_horizon, belief=LearnedMass(exceptions=False))
        agent.counts.visits[:] = 100
        agent.rounds = 400
        assert agent.begin(0).policy[0, 0] == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(("leak", "stays"), [(0.04, 0.0), (0.06, 1.0)])
def test_plans_count_on_ways_out_of_reach_that_an_episode_can_find(leak, stays):
    """After 400 rounds episodes last 20. Staying in 0 leads to the better state 2 once in 25 or 16.7 rounds."""
    agent = PSConRL(3, 2, [1.0], np.zeros((2, 3, 2)), seed=0, doubt=None, ledger=None)
    agent.costs[0] = [[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]]
    table = np.array([[1 - leak, 0, leak], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1.0]])
    agent._draw = lambda doubted=None: DenseTransition(table)
    for move in ((0, 0), (1, 1), (2, 0), (3, 0)):
        agent.counts.tally.note_times(*move, 100)
    agent.counts.visits[:4] = 100
    agent.rounds = 400
    assert agent.begin(0).policy[0, 0] == stays


@pytest.mark.parametrize("make", [DenseTransition, lambda P: SparseTransition(csr_array(P))])
def test_rows_that_may_be_exceptions_lead_out_of_reach_only_if_an_episode_is_long_enough(make):
    """Only tried rows of states in reach lose what is below 1 / steps, and only to states out of reach."""
    P = np.array([[0.9, 0.06, 0.04, 0.0], [0.04, 0.5, 0.06, 0.4], [0.04, 0.04, 0.46, 0.46], [0.01, 0.47, 0.49, 0.03]])
    counts = Counts(4, 1, 1)
    for s, following in ((0, 1), (1, 0), (3, 2)):
        counts.tally.note(s, following)
    counts.visits[[0, 1, 3]] = 1
    belief = LearnedMass().made_for(4, 1, 1)
    wanted = P.copy()
    wanted[0] = [0.9 / 0.96, 0.06 / 0.96, 0.0, 0.0]
    np.testing.assert_allclose(belief.expected_within(make(P), counts, 0, 20).toarray(), wanted, rtol=1e-15)
    for other in (LearnedMass(exceptions=False), LearnedMass(support=np.ones((4, 1, 4)))):
        sample = make(P)
        assert other.made_for(4, 1, 1).expected_within(sample, counts, 0, 20) is sample
    counts.tally.note(0, 3)
    sample = make(P)
    assert belief.expected_within(sample, counts, 0, 20) is sample  # all states are in reach


def test_over_the_whole_run_the_limit_is_kept():
    environment = CMDP(np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]), COSTS, [0.1])
    trace = psconrl.simulate(environment, sure_of_it(ledger=Balance(0.1)), 2000, seed=0)
    # Independent randomised actions give the sum a deviation of 13: five deviations occur once in 2 million seeds.
    assert abs(trace.cumulative[-1, 1] - 200) < 67


def test_a_limit_without_slack_is_kept_by_looking_further():
    """A cycle of six states, half of them expensive: the threshold of a half is met in the long run, but from an
    expensive state not over the next t/3 rounds."""
    P = np.zeros((6, 2, 6))
    P[np.arange(6), 0, (np.arange(6) + 1) % 6] = P[np.arange(6), 1, np.arange(6)] = 1.0
    dear = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    costs = np.array([np.tile([0.5, 1.0], (6, 1)), np.column_stack([dear, np.ones(6)])])
    agent = PSConRL(6, 2, [0.5], costs, seed=0)
    trace = psconrl.simulate(CMDP(P, costs, [0.5]), agent, 5000, seed=0, checkpoints=2)
    assert trace.window_averages()[-1][1] < 0.51  # of the second half
    assert agent.explored < 900


def test_restart_probabilities_decrease_to_zero():
    agent = sure_of_it()
    agent.rounds = 3000
    probabilities = agent._probabilities()
    assert probabilities[:3] == pytest.approx([1e-3, 1e-5, 1e-7])
    assert probabilities[-1] == 1e-12
    agent.rounds = 900  # plans for 300 rounds at most are given up at once
    assert agent._probabilities() == pytest.approx([1 / 300])
    assert sure_of_it(planning_horizon=Endless())._probabilities() == [0.0]


class Odd:
    """Values that a user's own parts may return."""

    def __init__(self, value):
        self.value = value

    def restart(self, rounds):
        return self.value

    def targets(self, thresholds, rounds):
        yield self.value


@pytest.mark.parametrize("probability", [1.5, -0.1, float("nan"), "x", None])
def test_an_invalid_probability_is_refused(probability):
    agent = sure_of_it()
    agent.planning_horizon, agent._trusted = Odd(probability), False
    with pytest.raises(AgentError, match="the restart probability must be a number from 0 to 1"):
        agent.begin(0)


@pytest.mark.parametrize("limits", [[float("nan")], ["a"], [0.1, 0.2], None])
def test_limits_that_are_none_are_refused(limits):
    agent = sure_of_it()
    agent.ledger, agent._trusted = Odd(limits), False
    with pytest.raises(AgentError, match=r"the ledger must yield|the targets of a ledger must be"):
        agent.begin(0)


def counts_of(*pairs):
    """Counts of a model of one state, with the given visits of each action."""
    counts = Counts(1, len(pairs), 1)
    record = Record.empty(counts)
    for a, n in enumerate(pairs):
        for _ in range(n):
            record.step(0, a, 0, np.zeros(1))
    counts.add(record)
    return counts


@pytest.mark.parametrize(("pairs", "steps"), [((0, 0), 1), ((1, 0), 1), ((4, 0), 2), ((4, 1), 3), ((10, 90), 10)])
def test_episodes_of_the_root_of_the_rounds(pairs, steps):
    found, caps = SquareRoot().caps(counts_of(*pairs))
    assert found == steps == max(1, ceil(sqrt(sum(pairs))))
    assert caps.ravel().tolist() == [max(1, n) for n in pairs]
    assert LengthOnly().caps(counts_of(*pairs)) == (steps, None)


@pytest.mark.parametrize(("rounds", "steps"), [(0, 1), (5, 3), (99, 10), (100, 10), (101, 11), (1001, 101)])
def test_episodes_of_a_tenth_of_the_rounds_or_their_root(rounds, steps):
    assert Growing().caps(counts_of(rounds)) == (steps, None)


@pytest.mark.parametrize("last", [1, 50, 100, 101, 10**6])
def test_the_most_growing_episodes_by_hand(last):
    t = count = 0
    while t < last:
        t += max(1, ceil(sqrt(t)), ceil(t / 10))
        count += 1
    by_hand = min(last, 2 * sqrt(last)) if last <= 100 else 21 + log(last / 100) / log(1.1)
    assert Growing().most_episodes(5, 2, last) == pytest.approx(by_hand)
    assert count <= by_hand


@pytest.mark.parametrize("T", [1, 10, 1000, 10**6])
def test_the_most_episodes_by_hand(T):
    S, A = 5, 2
    doublings = 10 * log2(8 * T / 10) if T >= 10 else T
    assert Ouyang().most_episodes(S, A, T) == pytest.approx(min(T, max(2.0, sqrt(2 * 10 * T * log(T)))))
    assert Doubling().most_episodes(S, A, T) == pytest.approx(min(T, doublings))
    assert Steady().most_episodes(S, A, T) == pytest.approx(min(T, sqrt(2 * T) + doublings))
    assert SquareRoot().most_episodes(S, A, T) == pytest.approx(min(T, 2 * sqrt(T) + doublings))
    assert LengthOnly().most_episodes(S, A, T) == pytest.approx(min(T, 2 * sqrt(T)))


def test_two_episodes_of_the_root_at_most_between_square_numbers():
    """The basis of the bound: successive episodes that no pair ends, from the first round."""
    t = count = 0
    while t < 10**6:
        t += max(1, ceil(sqrt(t)))
        count += 1
        assert count <= 2 * sqrt(t)


def test_a_sample_with_states_out_of_reach_and_several_costs_is_planned_on_the_rest():
    """State 1 cannot be reached from 0 and 2, between which both actions move; the second saves 1 and costs 1."""
    table = np.array([[0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0.0]])
    costs = np.array([[[1.0, 0.0], [9.0, 9.0], [1.0, 0.0]], [[0.0, 1.0], [9.0, 9.0], [0.0, 1.0]]])
    found = EpisodePlanner(3, 2).optimal(DenseTransition(table), costs, np.array([0.25]), 0)
    assert found.value == pytest.approx(0.75)
    assert found.prices == pytest.approx([1.0])
    np.testing.assert_array_equal(found.policy[1], [0.5, 0.5])


def test_the_machine_is_learned_for_ever_although_samples_have_states_out_of_reach():
    machine = psconrl.load("machine")
    agent = PSConRL(
        machine.n_states, machine.n_actions, machine.thresholds, machine.costs, planning_horizon=Endless(), seed=0
    )
    assert psconrl.simulate(machine, agent, 1000, seed=0).cumulative.shape[1] == 2
