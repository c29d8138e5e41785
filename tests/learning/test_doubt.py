"""Doubts about a belief that became certain too soon: what is doubted, when, and what it may cost."""

import math

import numpy as np
import pytest

import psconrl
from psconrl.agents import Budget, Dirichlet, Doubted, EveryRound, Explore, LearnedMass, PSConRL, SampledCosts
from psconrl.errors import AgentError
from psconrl.learning.parts.doubt import NO_DOUBT, UNKNOWN, WALLS
from psconrl.learning.posterior.cost_beliefs import Hints
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.model.transition import DenseTransition

NO_LIMITS = np.empty(0)


def counts_of(moves, n_states=3, n_actions=1):
    """Counts of some transitions (state, action, next state), without costs."""
    counts, record = Counts(n_states, n_actions, 2), Record(n_states, n_actions, 2)
    for state, action, following in moves:
        record.step(state, action, following, np.zeros(2))
    counts.add(record)
    return counts


def ready(budget, n_states=3, value=1.0, best=0.0):
    """A budget after one episode without doubt, whose plan has this value; any round costs ``best`` at least."""
    budget = budget.made_for(n_states, 1, 1)
    costs = np.full((2, n_states, 1), 2.0)
    costs[0, -1, 0] = best
    budget.refer(value, np.zeros(1), costs, np.array([0.5]))
    budget.enter(Record(n_states, 1, 2))
    return budget


def rng():
    return np.random.default_rng(0)


def test_what_the_transitions_seen_reach():
    counts = counts_of([(0, 0, 1), (1, 0, 0), (2, 0, 0)])
    assert counts.reached_from(0).tolist() == [True, True, False]
    assert counts.reached_from(2).tolist() == [True, True, True]


def test_gain_and_allowance_by_hand():
    """With a price of 2 and a threshold of 0.5, the least c0 + 2 (c - 0.5) is 0.2 + 2 (0.1 - 0.5) = -0.6."""
    costs = np.array([[[1.0, 0.2]], [[0.0, 0.1]]])
    budget = Budget(walls=3.0, unknown=2.0, untried=1.0, shortcuts=0.5).made_for(1, 2, 1)
    budget.refer(0.4, np.array([2.0]), costs, np.array([0.5]))
    np.testing.assert_allclose(budget.allowed(16), np.array([3.0, 2.0, 1.0, 0.5]) * (0.4 + 0.6) * 4.0)
    budget.refer(-0.7, np.array([2.0]), costs, np.array([0.5]))  # nothing better is conceivable
    assert (budget.allowed(16) < 0.0).all()
    budget.refer_to_nothing()
    assert np.isinf(budget.allowed(16)).all()
    nothing = Budget(0.0, 0.0, 0.0, 0.0).made_for(1, 2, 1)
    assert (nothing.allowed(16) < 0.0).all()


def test_an_episode_in_doubt_is_charged_with_its_lagrangian_beyond_the_plan():
    budget = Budget().made_for(1, 1, 1)
    budget.refer(0.25, np.array([2.0]), np.zeros((2, 1, 1)), np.array([0.5]))
    record = Record(1, 1, 2)
    for c0, c1 in ((1.0, 1.0), (0.5, 0.25)):
        record.step(0, 0, 0, np.array([c0, c1]))
    # 1.5 + 2 (1.25 - 1) - 2 * 0.25 = 1.5
    budget._planned = UNKNOWN
    budget.enter(record)
    assert budget.spent.tolist() == budget.largest.tolist() == [0.0, 1.5, 0.0, 0.0]
    cheap = Record(1, 1, 2)
    for _ in range(10):
        cheap.step(0, 0, 0, np.array([0.0, 0.5]))
    budget.enter(cheap)  # gains 2.5, of which 1.5 are owed
    assert budget.spent.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert budget.largest.tolist() == [0.0, 1.5, 0.0, 0.0]
    budget._planned = NO_DOUBT
    budget.enter(record)
    assert budget.spent.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_doubts_are_affordable_up_to_the_allowance_less_the_largest():
    """Allowed are 5 * 1 * sqrt(4) = 10; the accounts hold 6, and the largest episode cost 4 or a little more."""
    counts = counts_of([(0, 0, 1), (1, 0, 0)] * 2)
    for largest, wanted in ((4.0, True), (4.001, False)):
        budget = ready(Budget(5.0, 0.0, 0.0, 0.0))
        budget.spent[WALLS], budget.largest[WALLS] = 6.0, largest
        assert (budget.begin(counts, 0, rng()) is not None) == wanted


def test_no_two_episodes_in_a_row_are_in_doubt():
    counts, budget = counts_of([(0, 0, 1), (1, 0, 0)] * 2), ready(Budget())
    assert budget.begin(counts, 0, rng()) is not None
    budget.enter(Record(3, 1, 2))
    assert budget.begin(counts, 0, rng()) is None
    budget.enter(Record(3, 1, 2))
    assert budget.begin(counts, 0, rng()) is not None


def test_walls_are_doubted_if_all_pairs_in_reach_were_tried():
    """State 2 is out of reach. Rows of up to sqrt(t) visits may lead there, or those with the fewest."""
    counts = counts_of([(0, 0, 1), (1, 0, 0)] * 8)
    assert ready(Budget(5.0, 0.0, 0.0, 0.0)).begin(counts, 0, rng()) == Doubted(2, 8)  # the fewest; sqrt(16) is less
    often = counts_of([(0, 0, 1), (1, 0, 0)] + [(0, 0, 0)] * 98)
    assert ready(Budget(5.0, 0.0, 0.0, 0.0)).begin(often, 0, rng()) == Doubted(2, 10)
    assert ready(Budget(0.0, 1.0, 1.0, 0.0)).begin(often, 0, rng()) is None


def test_the_unknown_is_doubted_after_half_of_the_rounds_without_a_first_visit():
    moves = [(0, 0, 1)]  # state 1 was never left
    budget = ready(Budget(0.0, 1.0, 1.0, 0.0))
    assert budget.begin(counts_of(moves), 0, rng()) is None  # the last first visit is in round 1
    assert budget.begin(counts_of([(0, 0, 1)] * 2), 0, rng()) == Doubted(2, 0)
    assert ready(Budget(5.0, 0.0, 0.0, 0.0)).begin(counts_of([(0, 0, 1)] * 2), 0, rng()) is None
    all_met, later = counts_of([(0, 0, 1), (0, 0, 2)] * 2), counts_of([(0, 0, 1), (0, 0, 2)] * 4)
    budget = ready(Budget(0.0, 1.0, 1.0, 0.0))
    budget.begin(all_met, 0, rng())
    assert budget.begin(later, 0, rng()) is None  # no state is out of reach
    costs_unknown = budget.begin(later, 0, rng(), learns_costs=True)
    assert costs_unknown == Doubted(None, untried_stay=True)


def test_the_unknown_is_doubted_at_once_while_samples_are_infeasible():
    budget = ready(Budget(0.0, 1.0, 1.0, 0.0))
    budget.refer_to_nothing()
    assert budget.begin(counts_of([(0, 0, 1)]), 0, rng()) == Doubted(2, 0)


def test_the_target_is_the_best_state_or_any():
    """Half of the draws are the best of ten states, and a tenth of the other half. 3,000 draws: 5.5 deviations of 27
    are exceeded once in 26 million seeds."""
    budget = ready(Budget(), n_states=11)
    generator, far = np.random.default_rng(1), np.arange(1, 11)
    drawn = np.bincount([budget._target(far, generator) for _ in range(3000)], minlength=11)
    assert abs(drawn[10] - 3000 * 0.55) < 150
    assert drawn[0] == 0
    assert (drawn[1:] > 0).all()


def test_a_sample_in_doubt_of_walls_has_one_imagined_visit():
    """A row of n visits leads to the target with Beta(1 + a, n + M - a), a = M/S; the mean is (1 + a) / (n + 1 + M).

    Means of 4,000 draws: five deviations are exceeded once in two million seeds.
    """
    belief = LearnedMass([1e-6], exceptions=False).made_for(3, 1, 1)
    counts = counts_of([(0, 0, 1)] * 9 + [(1, 0, 0)] * 30)
    generator = np.random.default_rng(2)
    drawn = np.array([belief.sample_in_doubt(counts, Doubted(2, 9), generator).matrix[:, 2] for _ in range(4000)])
    p = 1.0 / 10.0
    deviation = math.sqrt(p * (1 - p) / 11 / 4000)
    assert drawn[:, 0].mean() == pytest.approx(p, abs=5 * deviation)
    assert drawn[:, 1].max() < 1e-3  # more visits than the limit
    np.testing.assert_allclose(drawn[:, 2], 1.0, atol=1e-3)  # untried
    only_untried = belief.sample_in_doubt(counts, Doubted(2, 0), generator).matrix
    assert only_untried[0, 2] < 1e-3
    assert only_untried[2, 2] == pytest.approx(1.0, abs=1e-3)


def test_what_is_impossible_stays_so_in_doubt():
    support = np.ones((3, 1, 3))
    support[0, 0, 2] = 0.0
    belief = LearnedMass(support=support).made_for(3, 1, 1)
    drawn = belief.sample_in_doubt(counts_of([(0, 0, 1)]), Doubted(2, 5), rng()).matrix
    assert drawn[0, 2] == 0.0
    assert drawn[1, 2] > 0.3


def test_untried_pairs_stay_in_doubt_of_costs_if_they_may():
    """A row without visits but an imagined one of its own state stays there but for M (1 - 1/S) / (1 + M)."""
    support = np.ones((3, 1, 3))
    support[2, 0, 2] = 0.0
    belief = LearnedMass([1e-6], support=support, exceptions=False).made_for(3, 1, 1)
    drawn = belief.sample_in_doubt(counts_of([(0, 0, 1)] * 9), Doubted(None, untried_stay=True), rng()).matrix
    assert drawn[0, 1] == pytest.approx(1.0, abs=1e-3)  # tried
    assert drawn[1, 1] == pytest.approx(1.0, abs=1e-3)
    assert drawn[2, 2] == 0.0


def test_shortcuts_have_the_mass_of_one_observation():
    """After n = 20 identical visits the rest has mean M (1 - 1/S) / (n + M) = 0.0317 with M = 1; a learned one is tiny.

    Means of 4,000 draws: five deviations are exceeded once in two million seeds.
    """
    belief = LearnedMass().made_for(3, 1, 1)
    counts = counts_of([(0, 0, 1), (1, 0, 2), (2, 0, 0)] * 20)
    generator = np.random.default_rng(3)
    rest = [1.0 - belief.sample_in_doubt(counts, Doubted(None), generator).matrix[0, 1] for _ in range(4000)]
    wanted = 2.0 / 3.0 / 21.0
    assert np.mean(rest) == pytest.approx(wanted, abs=5 * math.sqrt(wanted * (1 - wanted) / 22 / 4000))
    assert np.mean([1.0 - belief.sample(counts, generator).matrix[0, 1] for _ in range(200)]) < wanted / 3


def test_counts_with_imagined_visits_by_hand():
    counts = counts_of([(0, 0, 1)] * 4)
    imagined = counts.imagining(np.array([0, 2]), 2)
    assert imagined.transitions.tolist() == [[0, 4, 1], [0, 0, 0], [0, 0, 1]]
    assert imagined.visits.tolist() == [5, 0, 1]
    assert counts.transitions.tolist() == [[0, 4, 0], [0, 0, 0], [0, 0, 0]]
    assert imagined.tally.visits().tolist() == [5, 0, 1]
    assert counts.imagining(np.array([0, 2]), np.array([0, 1])).transitions.tolist() == [
        [1, 4, 0],
        [0, 0, 0],
        [0, 1, 0],
    ]


def test_costs_in_doubt_rely_on_their_own_observations():
    """Four pairs cost 0 or 1 with equal probability, observed 90 times; one pair cost 0 in eight observations.

    By effects of states and actions that pair costs about as much as the others; alone it costs little.
    """
    belief, counts = SampledCosts().made_for(2, 3, 1), Counts(2, 3, 2)
    generator = np.random.default_rng(4)
    for episode in range(30):
        record = Record(2, 3, 2)
        for pair in range(5):
            for _ in range(3 if pair < 4 else int(episode < 2) * 4):
                cost = 0.0 if pair == 4 else float(generator.random() < 0.5)
                record.step(pair // 3, pair % 3, 0, np.array([cost, cost]))
        belief.learn(record, counts)
        counts.add(record)
    drawn = np.array([belief.costs_in_doubt(counts, Hints(), generator) for _ in range(400)])
    pooled = np.array([belief.costs(counts, Hints(), generator) for _ in range(400)])
    assert abs(drawn[:, 1, 1, 1].mean()) < 0.1 < pooled[:, 1, 1, 1].mean()
    assert (drawn[:, 1, 1, 2] == 0.0).all()  # untried
    assert (drawn[:, 0, 1, 2] < 0.0).all()  # untried: better than all, of which the best has a mean of 0


def door(probability, length=8):
    """A corridor with a door in its middle; the far end pays, and leads back to the start."""
    P, costs = np.zeros((length, 2, length)), np.ones((2, length, 2))
    costs[1] = 0.0
    for s in range(length):
        P[s, 0, max(s - 1, 0)] = P[s, 1, (s + 1) % length] = 1.0
    P[3, 1, 4], P[3, 1, 3] = probability, 1.0 - probability
    costs[0, length - 1, 1], costs[1, length - 1, 1], costs[0, 0, 0] = 0.0, 1.0, 0.98
    return psconrl.CMDP(P, costs, [0.05], initial=0)


def test_a_door_is_found_and_is_not_without_doubt():
    """A door that opens at one try in ten. Of 40 runs 12 came through without doubt, and all with doubts: ten of ten
    without have a probability of about 6e-6, and one of three that fails with doubts was not seen in 40 runs.
    """
    model = door(0.1)

    def comes_through(seed, **options):
        agent = PSConRL(8, 2, [0.05], model.costs, fallback=Explore(), seed=seed, **options)
        psconrl.simulate(model, agent, 3000, seed=seed)
        return bool(agent.counts.pairs[7].any())

    assert all(comes_through(seed) for seed in range(3))
    assert not all(comes_through(seed, doubt=None) for seed in range(10))


@pytest.mark.parametrize(("doubted", "counted_on"), [(None, 0.0), (Doubted(2, 100), 0.04)])
def test_plans_in_doubt_count_on_what_is_doubted(doubted, counted_on):
    """After 400 rounds a transition out of reach of probability .04 is not expected within the episode."""
    agent = PSConRL(3, 1, [1.0], np.zeros((2, 3, 1)), seed=0, ledger=None)
    agent.counts = counts_of([(0, 0, 1), (1, 0, 0)] * 200)
    agent.rounds = 400
    table = np.array([[0.0, 0.96, 0.04], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    agent._draw = lambda doubted=None: DenseTransition(table)
    agent.doubt.begin = lambda *_, **__: doubted
    planned = []
    agent._optimal = lambda P, costs, state, probabilities: planned.append(P.toarray()[0, 2])
    agent.begin(0)
    assert planned == [counted_on]


def test_doubts_cost_no_more_than_they_may():
    """No door at all: the far half is out of reach, and the model is not communicating. The account stays within the
    allowance and one episode more."""
    model = door(0.0)
    agent = PSConRL(8, 2, [0.05], model.costs, seed=1)
    for _ in range(3):
        psconrl.simulate(model, agent, 1000, seed=1)
        allowed = agent.doubt.allowed(agent.rounds)
        assert (agent.doubt.spent <= np.maximum(allowed, 0.0) + agent.doubt.largest).all()
        assert agent.doubt.spent[WALLS] > 0.0


def test_an_interim_policy_is_charged_to_what_it_continues():
    """The next episode is planned, in doubt or not, while the last policy is still played."""
    costly = Record(3, 1, 2)
    costly.step(0, 0, 0, np.array([3.0, 0.5]))  # a loss of 2 beyond the value of 1
    counts = counts_of([(0, 0, 1), (1, 0, 0)] * 2)
    budget = ready(Budget())
    budget.begin(counts, 0, rng())  # in doubt, and not played yet
    budget.enter(costly, interim=True)
    assert budget.spent.tolist() == [0.0] * 4
    budget.enter(costly)
    assert budget.spent.sum() == 2.0
    budget.begin(counts, 0, rng())  # without doubt
    budget.enter(costly, interim=True)
    assert budget.spent.sum() == 4.0
    budget.enter(costly)
    assert budget.spent.sum() == 4.0


def test_new_thresholds_reset_the_accounts():
    model = door(0.0)
    agent = PSConRL(8, 2, [0.05], model.costs, seed=1)
    psconrl.simulate(model, agent, 1000, seed=1)
    assert agent.doubt.spent.any()
    agent.set_thresholds([0.2])
    assert not agent.doubt.spent.any()
    assert (agent.doubt.allowed(1000) < 0.0).all()
    psconrl.simulate(model, agent, 200, seed=2)
    assert (agent.doubt.allowed(1000) > 0.0).any()


def test_the_fallback_explores_ever_less():
    """The j-th infeasible episode explores with probability j^(-1/2): 18.6 of the first 100 in the mean, with a
    deviation of 3.6. The mean of 50 runs is within five deviations of it in all but one of two million cases.
    """
    model = psconrl.CMDP(np.ones((1, 2, 1)), np.ones((2, 1, 2)), [0.5])
    explored = []
    for seed in range(50):
        agent = PSConRL(1, 2, [0.5], model.costs, schedule=EveryRound(), doubt=None, seed=seed)
        trace = psconrl.simulate(model, agent, 100, seed=seed)
        kinds = list(trace.episodes.kind)
        assert agent.fallback.number == 101
        assert kinds[0] == "explore"
        explored.append(kinds.count("explore"))
    p = np.arange(1, 101) ** -0.5
    assert np.mean(explored) == pytest.approx(p.sum(), abs=5 * math.sqrt((p * (1 - p)).sum() / 50))


def test_a_belief_that_cannot_doubt_never_does():
    agent = PSConRL(3, 2, [0.5], np.ones((2, 3, 2)), belief=Dirichlet(), seed=0)
    agent.doubt.begin = None  # would fail
    assert agent.begin(0).policy.shape == (3, 2)


def test_damaged_accounts_are_refused():
    budget = ready(Budget())
    state = budget.state()
    for key, value in (
        ("spent", np.zeros(2)),
        ("largest", np.full(4, -1.0)),
        ("numbers", np.zeros(3)),
        ("numbers", np.full(5, 7.0)),
        ("played", np.zeros(9)),
    ):
        with pytest.raises(AgentError):
            Budget().made_for(3, 1, 1).restore(state | {key: value})
    again = Budget().made_for(3, 1, 1)
    again.restore(state)
    assert again.state().keys() == state.keys()
    for key, value in again.state().items():
        np.testing.assert_array_equal(value, state[key])


def test_options_are_checked():
    for name in ("walls", "unknown", "untried", "shortcuts"):
        with pytest.raises(AgentError, match=name):
            Budget(**{name: -1.0})
