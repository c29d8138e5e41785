"""Agents that start from a model: its weight in transitions and in costs, against the formulas."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, PSConRL, load_agent, simulate
from psconrl.agents import Dirichlet, EmpiricalMeans, Endless, LagrangianPSRL, LearnedMass
from psconrl.errors import AgentError, CostsWarning
from psconrl.learning.sampler import WORTHS

QUEUE = psconrl.load("queue")
S, A = QUEUE.n_states, QUEUE.n_actions
EACH = np.linspace(0.5, 40.0, S * A).reshape(S, A)
BOTH = pytest.mark.parametrize("kind", [PSConRL, LagrangianPSRL])


def after_some_rounds(agent, rounds=300):
    simulate(QUEUE, agent, rounds, seed=0)
    agent.finish()
    return agent


@BOTH
@pytest.mark.parametrize("weight", [20, 0.25, EACH], ids=["20", "quarter", "each"])
def test_transitions_are_worth_n_observations(kind, weight):
    """Parameters: the weight of the pair times the model's distribution, plus the counts."""
    agent = kind.trusting(QUEUE, weight, seed=1)
    P, each = QUEUE.transition.toarray(), np.broadcast_to(weight, (S, A)).reshape(-1, 1)
    np.testing.assert_allclose(agent.belief.parameters(agent.counts), each * P, rtol=1e-15)
    after_some_rounds(agent)
    n = agent.counts.transitions
    assert n.any()
    np.testing.assert_allclose(agent.belief.parameters(agent.counts), each * P + n, rtol=1e-15)
    np.testing.assert_allclose(agent.belief.mean(agent.counts), (each * P + n) / (each + n.sum(axis=1)[:, None]))


@BOTH
@pytest.mark.parametrize("weight", [20, 0.25, EACH, None], ids=["20", "quarter", "each", "learned"])
def test_costs_are_worth_as_much(kind, weight):
    """(w g + sums) / (w + N), and w = 1 if what the model is worth is learned."""
    agent = kind.trusting(QUEUE, weight, seed=1)
    np.testing.assert_allclose(agent._known_or_mean_costs(), QUEUE.costs, rtol=1e-14)
    agent.guessed_costs *= 2.0  # a wrong guess, so that it shows
    after_some_rounds(agent)
    w = 1.0 if weight is None else np.broadcast_to(weight, (S, A))
    sums, n = agent.counts.cost_sums.reshape(-1, S, A), agent.counts.pairs
    np.testing.assert_allclose(agent._known_or_mean_costs(), (w * 2.0 * QUEUE.costs + sums) / (w + n), rtol=1e-13)
    agent.optimistic_cost = -3.0
    hopeful = (w * 2.0 * QUEUE.costs[0] + sums[0] - 3.0) / (w + n + 1)
    np.testing.assert_allclose(agent._known_or_mean_costs()[0], hopeful, rtol=1e-13)


@pytest.mark.full
def test_what_it_is_worth_may_be_learned():
    """The learned weight is large where the model is right, and small where all actions lead elsewhere."""
    agent = PSConRL.trusting(QUEUE, seed=1)
    assert isinstance(agent.belief, LearnedMass)
    assert agent.belief.grid == WORTHS
    np.testing.assert_allclose(agent.belief.support.toarray(), QUEUE.transition.toarray())
    np.testing.assert_allclose(agent.belief.mean(agent.counts), QUEUE.transition.toarray(), rtol=1e-12)
    masses = {}
    for name, environment in {"right": QUEUE, "wrong": elsewhere(QUEUE)}.items():
        agent = PSConRL.trusting(QUEUE, seed=1)
        simulate(environment, agent, 5000, seed=2)
        agent.finish()
        tried = agent.counts.visits > 0
        masses[name] = agent.belief.masses(agent.counts, np.random.default_rng(0))[tried]
    assert np.median(masses["right"]) >= 100.0
    assert np.median(masses["wrong"]) <= 1.0


def elsewhere(model):
    """A model with every distribution permuted over its support: all is possible, with other probabilities."""
    P = model.transition.toarray().copy()
    for row in P:
        there = np.flatnonzero(row)
        order = there[np.argsort(row[there])]
        row[order] = np.sort(row[there])[::-1]
    return CMDP(P, model.costs, model.thresholds, initial=model.initial)


def test_known_costs_leave_nothing_to_guess():
    agent = PSConRL.trusting(QUEUE, 20, costs=2.0 * QUEUE.costs, seed=1)
    assert agent.guessed_costs is None
    np.testing.assert_array_equal(agent._known_or_mean_costs(), 2.0 * QUEUE.costs)
    assert PSConRL.trusting(QUEUE, 20, costs=None).guessed_costs is not None


def test_limits_are_the_models_unless_others_are_given():
    assert PSConRL.trusting(QUEUE, 20).thresholds.tolist() == QUEUE.thresholds.tolist()
    other = QUEUE.thresholds * 0.9
    assert PSConRL.trusting(QUEUE, 20, thresholds=other).thresholds.tolist() == other.tolist()


def test_guesses_may_be_weighed_otherwise():
    agent = PSConRL.trusting(QUEUE, 20, cost_weight=3.0, guessed_costs=0.5 * QUEUE.costs)
    assert agent.cost_weight == 3.0
    np.testing.assert_array_equal(agent.guessed_costs, 0.5 * QUEUE.costs)
    assert agent.belief.parameters(agent.counts).sum(axis=1) == pytest.approx(20.0)


def test_what_was_handed_in_may_be_changed_afterwards():
    each, costs = EACH.copy(), QUEUE.costs.copy()
    agent = PSConRL.trusting(QUEUE, each, guessed_costs=costs)
    each[:], costs[:] = -1.0, np.nan
    np.testing.assert_allclose(agent._known_or_mean_costs(), QUEUE.costs)
    np.testing.assert_allclose(agent.belief.parameters(agent.counts).sum(axis=1), EACH.ravel())


@pytest.mark.parametrize("sparse", [False, True])
def test_what_the_model_holds_for_impossible_is_believed_once_it_is_seen(sparse):
    n = 90 if sparse else 3
    ring = np.eye(n)[(np.arange(n) + 1) % n]
    model = CMDP(csr_array(ring) if sparse else ring, np.zeros((1, n, 1)), [])
    for weight in (4.0, None):
        agent = PSConRL.trusting(model, weight, seed=0)
        rng = np.random.default_rng(0)
        assert agent.belief.sample(agent.counts, rng).toarray()[0].tolist() == ring[0].tolist()
        assert agent.act(0) == 0
        agent.observe(0, 2, [0.0])
        agent.finish()
        drawn = agent.belief.sample(agent.counts, rng).toarray()[0]
        assert np.flatnonzero(drawn).tolist() == [1, 2]
        if weight is not None:
            assert agent.belief.mean(agent.counts)[0, [1, 2]] == pytest.approx([0.8, 0.2])


@pytest.mark.part(3)
@BOTH
@pytest.mark.parametrize("weight", [20.0, EACH, None], ids=["20", "each", "learned"])
def test_it_is_saved_and_resumed_bit_for_bit(kind, weight, tmp_path):
    agent = kind.trusting(QUEUE, weight, seed=4)
    simulate(QUEUE, agent, 400, seed=0)
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    np.testing.assert_array_equal(again.guessed_costs, agent.guessed_costs)
    np.testing.assert_array_equal(again.cost_weight, agent.cost_weight)
    assert repr(again.belief) == repr(agent.belief)
    one, two = (simulate(QUEUE, each, 600, seed=1) for each in (agent, again))
    assert one.cumulative.tolist() == two.cumulative.tolist()
    assert agent.rng.bit_generator.state == again.rng.bit_generator.state


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "trusting needs a model, a CMDP; got int"),
        ({"weight": 0}, "weight must be above 0 for every pair"),
        ({"weight": np.where(EACH > 30, 0.0, 1.0)}, "weight must be above 0 for every pair"),
        (
            {"weight": -1.0},
            r"weight must be a finite number, not negative, or one for every pair, \(S, A\) = \(10, 6\)",
        ),
        ({"weight": np.nan}, "weight must be a finite number, not negative"),
        ({"weight": np.inf}, "weight must be a finite number, not negative"),
        ({"weight": True}, "weight must be a finite number, not negative"),
        ({"weight": np.ones(S)}, "weight must be a finite number, not negative"),
        ({"weight": EACH.T}, "weight must be a finite number, not negative"),
        ({"weight": "much"}, "weight must be numbers"),
        ({"weight": 1e200}, "weight must lie between 1e-50 and 1e"),
        ({"cost_weight": -1.0}, "cost_weight must be a finite number, not negative"),
        ({"guessed_costs": QUEUE.costs[:1]}, r"guessed_costs must be finite and have shape \(m\+1, S, A\)"),
        ({"guessed_costs": np.full_like(QUEUE.costs, np.nan)}, "guessed_costs must be finite"),
        ({"thresholds": QUEUE.thresholds[:1]}, r"guessed_costs must be finite and have shape \(m\+1, S, A\)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options, message):
    with pytest.raises(AgentError, match=message) as error:
        PSConRL.trusting(**({"model": QUEUE, "weight": 1.0} | options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("row", [0.0, 1.0 / S])
def test_a_model_with_actions_that_are_missing_is_refused_like_everywhere(row):
    available = np.ones((S, A), dtype=bool)
    available[3, 2] = False
    P = np.array(QUEUE.transition).reshape(S, A, S)
    P[3, 2] = row
    model = CMDP(P, QUEUE.costs, QUEUE.thresholds, available=available)
    for weight in (1.0, None):
        with pytest.raises(AgentError, match="every action is available in every state"):
            PSConRL.trusting(model, weight)


def test_much_trust_is_the_plan_of_the_model():
    """With 1e8 observations of every pair, samples equal the model up to four digits, and so do their plans."""
    agent = PSConRL.trusting(QUEUE, 1e8, planning_horizon=Endless(), ledger=None, seed=3)
    assert isinstance(agent.belief, Dirichlet)
    episode, best = agent.begin(0), psconrl.plan(QUEUE)
    assert episode.value == pytest.approx(best.costs[0], abs=1e-3)
    np.testing.assert_allclose(psconrl.evaluate(QUEUE, episode.policy).costs, best.costs, atol=1e-3)


TABLE = QUEUE.transition.toarray().reshape(S, A, S)


@BOTH
@pytest.mark.parametrize(
    ("belief", "weight"),
    [
        (Dirichlet(10.0 * TABLE), 10),
        (Dirichlet(csr_array(25.0 * TABLE.reshape(-1, S))), 25),
        (LearnedMass(WORTHS, support=TABLE), 1000),
    ],
    ids=["table", "sparse", "learned"],
)
def test_much_of_the_transitions_and_nothing_of_the_costs_is_worth_a_warning(kind, belief, weight, recwarn):
    assert belief.prior_weight() == pytest.approx(weight)
    with pytest.warns(CostsWarning, match=f"worth {weight} observations of a pair") as warned:
        kind(S, A, QUEUE.thresholds, belief=belief)
    assert warned[0].filename == __file__  # where the agent was made
    for known in ({"costs": QUEUE.costs}, {"guessed_costs": QUEUE.costs}, {"optimistic_cost": -1.0}):
        kind(S, A, QUEUE.thresholds, belief=belief, **known)
    kind.trusting(QUEUE, 20)
    kind.trusting(QUEUE)
    assert not recwarn.list


@pytest.mark.parametrize(
    "belief",
    [None, Dirichlet(0.1), Dirichlet(100.0), Dirichlet(9.9 * TABLE), LearnedMass(support=TABLE), LearnedMass(WORTHS)],
    ids=["default", "paper", "heavy", "light", "support", "scattered"],
)
def test_little_or_nothing_of_the_transitions_is_not(belief, recwarn):
    """However heavy, a uniform prior carries no information about transitions."""
    PSConRL(S, A, QUEUE.thresholds, belief=belief)
    assert not recwarn.list


def test_the_weight_of_a_prior_is_the_median_of_the_pairs():
    heavy = TABLE.copy()
    heavy[0] *= 1000.0
    assert Dirichlet(heavy).prior_weight() == pytest.approx(1.0)


@pytest.mark.statistical
def test_unknown_costs_make_a_strong_prior_try_everything(full):
    """Five times as many pairs are tried, and a day costs three times as much at shadow prices: three runs, or one.

    Over 20 runs of 300 days a day cost 16.1 and 5.24, standard deviations 0.4 and 0.15: the bound is nine standard
    errors away, or five.
    """
    environment = psconrl.load("inventory", capacity=20, customers=12)
    best = psconrl.plan(environment)
    belief = Dirichlet(csr_array(20.0 * environment.transition.csr()))
    paid, tried = {}, {}
    for name in ("known", "unknown", "sampled"):
        runs = []
        for seed in range(3 if full else 1):
            known = {"costs": environment.costs} if name == "known" else {"optimistic_cost": None}
            if name == "unknown":
                known["cost_belief"] = EmpiricalMeans()
            with pytest.warns(CostsWarning) if name != "known" else nullcontext():
                agent = PSConRL(21, 21, environment.thresholds, belief=belief, seed=seed, **known)
            simulate(environment, agent, 300, seed=seed)
            agent.finish()
            a_day = agent.counts.cost_sums.sum(axis=1) / agent.counts.visits.sum()
            runs.append(
                (a_day[0] + best.multipliers @ (a_day[1:] - environment.thresholds), (agent.counts.visits > 0).sum())
            )
        paid[name], tried[name] = np.mean(runs, axis=0)
    assert paid["unknown"] > 2.5 * paid["known"]
    assert tried["unknown"] > 4 * tried["known"]
    assert paid["sampled"] < 1.6 * paid["known"]  # 6.79 over 20 runs, a standard deviation of 0.45
