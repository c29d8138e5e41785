"""One deterministic policy for a whole episode, where a randomised plan would hardly use its rarer action."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl.agents import PSConRL, WhenSlow
from psconrl.errors import AgentError
from psconrl.learning.episode_planner import EpisodePlanner, MixedPolicies
from psconrl.learning.parts.commitment import TOL, RandomisedPlan
from psconrl.markov.chain import DenseChain, SparseChain
from psconrl.model.transition import Transition


@pytest.mark.parametrize("form", [DenseChain, lambda P: SparseChain(csr_array(P))])
@pytest.mark.parametrize("rounds", [1, 2, 17, 1000])
def test_time_in_states_is_a_sum_over_rounds(form, rounds):
    rng = np.random.default_rng(rounds)
    P = rng.dirichlet(np.ones(5), size=5) * (rng.random((5, 5)) < 0.6) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    wanted, now = np.zeros(5), np.eye(5)[2]
    for _ in range(rounds):
        wanted += now / rounds
        now = now @ P
    chain = form(P)
    np.testing.assert_allclose(chain.time_in_states(2, rounds), wanted, atol=1e-13)
    for tol in (1e-3, 0.1):
        assert np.abs(chain.time_in_states(2, rounds, tol) - wanted).sum() <= tol / 2
    with pytest.raises(ValueError, match="one of its states"):
        chain.time_in_states(5, rounds)


# Two states, stay or move: a round in state 0 costs 4 of the limited cost, one in state 1 the objective.
STAY = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
COSTS = np.array([[[0.0, 0.0], [1.0, 1.0]], [[4.0, 4.0], [0.0, 0.0]]])


def plan_of(state, balance, steps=100, leave=1e-4, shares=(0.5, 0.5), met=((-2.0,), (2.0,))):
    columns = MixedPolicies(
        (np.array([0, 1]), np.array([1, 0])),  # stay in 0 forever, or in 1
        np.array(shares),
        np.array([[0.0, 4.0], [1.0, 0.0]]),
        np.array([0.25]),
    )
    policy = np.tile([1.0 - leave, leave], (2, 1))
    transition = Transition.of(STAY.reshape(4, 2))
    observed = np.array(met[1]) - np.array(met[0])
    return RandomisedPlan(
        policy, columns, transition, COSTS, np.array([2.0]), state, steps, 0, np.array([balance]), observed
    )


def test_what_a_plan_promises_and_what_an_episode_brings_by_hand():
    plan = plan_of(0, 1.0)
    assert plan.promised.tolist() == [2.0]
    assert plan.units.tolist() == [4.0]
    assert plan_of(0, 1.0, met=((0.0,), (0.0,))).units.tolist() == [4.0]
    assert plan_of(0, 1.0, met=((-1.0,), (0.5,))).units.tolist() == [1.5]
    stays, moves = plan.columns.policies
    assert plan.in_episode(stays) == pytest.approx([0.0, 4.0], rel=1e-14)
    assert plan.in_episode(moves) == pytest.approx([0.99, 0.04], rel=1e-12)  # the first round of a hundred
    # In round t the chain is in state 0 with probability 1/2 + (1 - 2e)^t / 2, where e = 1e-4.
    share = np.mean(0.5 + 0.5 * (1 - 2e-4) ** np.arange(100))
    assert plan.in_episode(plan.policy) == pytest.approx([1.0 - share, 4.0 * share], abs=4.0 * TOL / 2)


@pytest.mark.parametrize(("state", "balance", "wanted"), [(0, 5.0, 1), (0, -5.0, 0), (1, 5.0, 1), (1, -5.0, 0)])
def test_a_debt_is_paid_and_credit_is_spent(state, balance, wanted):
    assert WhenSlow().choose(plan_of(state, balance)) == wanted


def test_a_small_credit_is_not_spent_by_a_large_debt():
    """After 100 rounds the balance would be -5 + 100 (4 - 0.5) = 345, or -5 + 100 (0.04 - 0.5) = -51."""
    plan = replace(plan_of(0, -5.0), thresholds=np.array([0.5]))
    assert WhenSlow().choose(plan) == 1
    assert WhenSlow().choose(replace(plan_of(0, -500.0), thresholds=np.array([0.5]))) == 0


def test_a_dear_move_waits_until_the_balance_is_worth_it():
    """Moving costs 3 of the objective once. Balances would be 10 + 200 or 10 - 196, in units of 4: squares that differ
    by 594. A unit is worth 1, so that moving is worth it up to 2 * 0.1 * t * 3 = 594, which is t = 990.
    """
    costs = COSTS.copy()
    costs[0, 0, 1] = 3.0
    for rounds, wanted in ((989, 1), (991, 0)):
        plan = replace(plan_of(0, 10.0), costs=costs, rounds=rounds)
        assert WhenSlow(patience=0.1).choose(plan) == wanted
        assert WhenSlow(patience=0.0).choose(plan) == 1
    free = replace(plan_of(0, 10.0), costs=costs, rounds=10**6)
    free = replace(free, columns=free.columns._replace(prices=np.zeros(1)))
    assert WhenSlow().choose(free) == 1


def with_constraints(plan, costs, thresholds, prices, balance):
    """Return a plan with these constraints, (m, S, A), in place of its own; all are in units of 4."""
    m = len(thresholds)
    averages = [[0.0, *costs[:, 0, 0]], [1.0, *costs[:, 1, 0]]]
    return replace(
        plan,
        costs=np.concatenate([plan.costs[:1], costs]),
        thresholds=np.array(thresholds),
        columns=plan.columns._replace(prices=np.array(prices), averages=np.array(averages)),
        balance=np.array(balance),
        observed=np.full(m, 4.0),
    )


@pytest.mark.parametrize("balance", [-300.0, -5.0, 5.0, 300.0])
@pytest.mark.parametrize("state", [0, 1])
def test_a_constraint_stated_twice_counts_once_however_its_price_is_divided(state, balance):
    """Moving costs 3 of the objective once, so that patience matters as well."""
    alone = replace(plan_of(state, balance), rounds=990)
    alone.costs[0, 0, 1] = 3.0
    try:
        for prices in ([0.25, 0.0], [0.0, 0.25], [0.1, 0.15]):
            twice = with_constraints(alone, COSTS[[1, 1]], [2.0, 2.0], prices, [balance, balance])
            assert WhenSlow().choose(twice) == WhenSlow().choose(alone)
    finally:
        alone.costs[0, 0, 1] = 0.0


@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("balance", [-5.0, 5.0])
def test_the_credit_of_a_free_constraint_changes_nothing(state, balance):
    """Regression: a second limit that never binds made the violation of the first linear."""
    plan = plan_of(state, balance)
    for other, credit in ((COSTS[1], -1e6), (4.0 - COSTS[1], -1e6), (4.0 - COSTS[1], -201.0)):
        free = with_constraints(plan, np.stack([COSTS[1], other]), [2.0, 4.0], [0.25, 0.0], [balance, credit])
        assert free.weights.tolist() == [1.0, 0.0]
        assert WhenSlow().choose(free) == WhenSlow().choose(plan)


def test_a_debt_of_a_free_constraint_counts():
    """In state 0 the free cost is 0, in state 1 it is 4, and its threshold is 3.

    Staying in 0 leaves a balance of (5 + 200) / 4 = 51.25 of the limited cost, and moving to 1 one of (5 - 196) / 4 =
    -47.75. But moving raises the balance of the free one by (396 - 300) / 4 = 24: beyond 51.25 if its debt exceeds 109.
    """
    costs = np.stack([COSTS[1], 4.0 - COSTS[1]])
    for debt, wanted in ((108.5, 1), (109.5, 0)):
        plan = with_constraints(plan_of(0, 5.0), costs, [2.0, 3.0], [0.25, 0.0], [5.0, debt])
        assert WhenSlow().choose(plan) == wanted


def test_a_promise_about_a_free_constraint_may_be_broken_unless_it_is_in_debt():
    """A free cost that differs from its promise is no reason to commit; one that is overspent is."""
    free = np.array([[4.0, 4.0], [0.0, 0.0]])
    even = np.full((2, 2), 2.0)  # the limited cost, whose promise is always kept
    for balance, commits in ((-1000.0, False), (1000.0, True)):
        plan = with_constraints(plan_of(0, 0.0), np.stack([even, free]), [2.0, 3.0], [0.25, 0.0], [0.0, balance])
        assert (WhenSlow().choose(plan) is not None) == commits


def test_credit_does_not_outweigh_a_debt():
    """Both costs are incurred in state 0, and have weights of 1/2. The episode has 100 rounds; units are 4.

    A debt d of cost 1 becomes d + 50 if the agent stays in 0, and d - 49 if it moves to 1. The credit of cost 2 counts
    as the 50 that staying spends, however large it is, and becomes 0 or -99. Moving has the smaller sum of squares if
    (d - 49)^2 + 99^2 < (d + 50)^2, that is 198 d > 9,702, or d > 49.
    """
    costs = COSTS[[1, 1]]
    for debt, wanted in ((48.5, 0), (49.5, 1)):
        for credit in (-4.0 * 51.0, -4e6):
            plan = with_constraints(plan_of(0, 0.0), costs, [2.0, 2.0], [0.25, 0.25], [4.0 * debt, credit])
            assert WhenSlow().choose(plan) == wanted


def test_patience_needs_more_credit():
    """As above with patience: moving costs 3 of the objective once, and the prices are 1 of a unit, half for each cost.

    After t rounds patience is 0.1 t 3 / 100 = 0.003 t for moving. The policies differ by 0.99 of a unit per round in
    cost 2, so that its credit counts up to 50 + 0.003 t / (0.5 * 0.99): with t = 33,000 up to 250. The agent moves if
    0.5 ((d - 49)^2 + 299^2) + 200 * 99 < 0.5 ((d + 50)^2 + 200^2), which is d > 449.
    """
    dear = COSTS.copy()
    dear[0, 0, 1] = 3.0
    for debt, wanted in ((448.0, 0), (450.0, 1)):
        plan = replace(plan_of(0, 0.0), costs=dear, rounds=33_000)
        plan = with_constraints(plan, COSTS[[1, 1]], [2.0, 2.0], [0.125, 0.125], [4.0 * debt, -4e6])
        assert WhenSlow().choose(plan) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_the_cap_on_credit_changes_no_choice_between_two_policies_with_one_constraint(seed):
    """The choice is that of the formula without the cap, with costs that need not be in units of their range."""
    rng = np.random.default_rng(seed)
    costs = np.array([[[0.0, rng.random() * 5], [1.0, rng.random() * 5]], rng.random((2, 2)) * 10.0])
    for balance in -np.geomspace(1.0, 1e5, 12):
        plan = replace(plan_of(int(rng.integers(2)), balance, met=((0.0,), (rng.random(),))), costs=costs, rounds=1000)
        chosen = WhenSlow(0.001).choose(plan)
        each = np.array([plan.in_episode(policy) for policy in plan.columns.policies])
        after = (balance + 100 * (each[:, 1] - 2.0)) / plan.units[0]
        lagrangian = each[:, 0] + 0.25 * each[:, 1]
        free = after**2 + 2 * 0.1 * 1000 * 100 * (lagrangian - lagrangian.min()) / (0.25 * plan.units[0])
        assert chosen in (None, int(free.argmin()))


def test_small_differences_matter_once_they_explain_the_balance():
    """Staying at 0 forever promises 0.08 of a range of 4 and spends nothing: 0.02 of the range, below ``within``.

    The balance counts once it exceeds the 100 rounds of the episode, in units of 4, if the difference over all rounds
    explains half of it: 0.02 t > 0.5 * 101, so from t = 2,525 on.
    """
    shares = (0.02, 0.98)
    for balance, rounds, commits in (
        (-404.0, 2600, True),
        (-404.0, 2500, False),
        (-399.0, 2600, False),
        (404.0, 2600, False),
    ):
        plan = replace(plan_of(1, balance, leave=1e-9, shares=shares), rounds=rounds, thresholds=np.array([0.08]))
        assert plan.promised == pytest.approx([0.08])
        assert (WhenSlow().choose(plan) is not None) == commits


def test_a_plan_that_keeps_its_promise_within_the_episode_is_played():
    rule = WhenSlow(0.05)
    assert rule.choose(plan_of(0, 5.0, leave=0.5)) is None
    assert rule.choose(plan_of(0, 5.0, steps=1)) is None
    # The average of the episode lies above what is promised by this share of the range; the threshold lies between.
    plan = plan_of(0, 5.0, leave=0.02)
    off = abs(plan.in_episode(plan.policy)[1] - 2.0) / 4.0
    assert WhenSlow(off * 1.001).choose(plan) is None
    assert WhenSlow(off * 0.999).choose(plan) == 1


def test_a_huge_cost_that_is_never_incurred_does_not_hide_what_matters(full):
    """Regression: this made the rule ineffective once, and the regret linear."""
    plain = psconrl.load("corridor")
    costs = np.array(plain.costs)
    costs[1, 3, 0] = 1e3
    model = psconrl.CMDP(plain.transition, costs, [0.25], initial=0)
    for seed in range(3 if full else 1):
        agent = PSConRL(8, 2, [0.25], costs, seed=seed)
        trace = psconrl.simulate(model, agent, horizon=20_000, seed=seed)
        assert abs(trace.cumulative[-1][0] - 0.75 * 20_000) < 500


def test_a_commitment_keeps_the_balance_that_a_ledger_keeps():
    model = psconrl.load("corridor")
    agent = PSConRL(8, 2, [0.25], model.costs, seed=1)
    psconrl.simulate(model, agent, horizon=2_000, seed=1)
    assert agent.commitment.balance.tolist() == agent.ledger.balance.tolist()
    assert agent.commitment.extremes.tolist() == agent.ledger.extremes.tolist()
    agent.set_thresholds([0.5])
    assert agent.commitment.balance.tolist() == agent.ledger.balance.tolist()


@pytest.mark.parametrize("env", ["riverswim", "corridor"])
def test_balances_stay_small_without_a_ledger(env):
    """Regression: policies that were drawn with their shares violated the constraint of RiverSwim for ever, by 0.4 in
    every round. Over 10,000 rounds the violation is 240 now, and less than 1,000 in each of 20 runs.
    """
    model = psconrl.load(env)
    for seed in range(2):
        agent = PSConRL(model.n_states, model.n_actions, model.thresholds, model.costs, ledger=None, seed=seed)
        trace = psconrl.simulate(model, agent, horizon=10_000, seed=seed)
        assert trace.cumulative[-1][1] - 10_000 * model.thresholds[0] < 2_000


def test_the_planner_says_what_it_mixes():
    model = psconrl.load("corridor")
    planner = EpisodePlanner(8, 2)
    choice = planner.optimal(model.transition.restarting(0, 1e-3), model.costs, model.thresholds, 0)
    assert len(choice.columns.policies) == 2
    assert choice.columns.shares.sum() == pytest.approx(1.0)
    assert choice.columns.prices == pytest.approx([1.0], abs=0.05)  # a round of use is worth one of cost
    mixed = choice.columns.shares @ choice.columns.averages
    assert mixed == pytest.approx([choice.value, 0.25], abs=1e-9)
    free = planner.optimal(model.transition, model.costs, np.array([1.0]), 0)
    assert free.columns is None  # nothing is mixed


def test_options_are_checked():
    with pytest.raises(AgentError, match="within"):
        WhenSlow(0.0)
    with pytest.raises(AgentError, match="patience"):
        WhenSlow(patience=-1.0)
    with pytest.raises(AgentError, match="commitment must be one such as WhenSlow"):
        PSConRL(2, 2, [0.5], commitment="when-slow")


def test_the_corridor_is_learned_and_is_not_without(full):
    """The means of four runs, or two, differ by a factor of about a hundred at this horizon."""
    model = psconrl.load("corridor")
    best = psconrl.plan(model)
    scores = {}
    for rule in (None, WhenSlow()):
        for seed in range(4 if full else 2):
            agent = PSConRL(8, 2, [0.25], model.costs, commitment=rule, seed=seed)
            trace = psconrl.simulate(model, agent, horizon=20_000, seed=seed)
            regret, violation = psconrl.regret(trace, best).final
            scores.setdefault(rule is None, []).append(regret + 2.0 * max(violation[0], 0.0))
            assert rule is None or abs(agent.ledger.balance[0]) < 300
    assert np.mean(scores[False]) < np.mean(scores[True]) / 10


def test_policies_of_a_sample_that_needs_a_mixture():
    """Staying in s0 costs (1, 0); s1, which cannot be left, costs (0, 1). The limit is 0.5: half of the runs stay."""
    P = Transition.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    costs = np.array([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])
    choice = EpisodePlanner(2, 2).optimal(P, costs, np.array([0.5]), 0)
    np.testing.assert_array_equal(choice.policy[0], [1.0, 0.0])  # the only stationary policy within the limit
    assert choice.value == 1.0
    order = np.argsort(choice.columns.averages[:, 0])
    np.testing.assert_allclose(choice.columns.averages[order], [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(choice.columns.shares, [0.5, 0.5])
    np.testing.assert_allclose(choice.columns.prices, [1.0])
