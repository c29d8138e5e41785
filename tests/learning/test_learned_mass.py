"""The belief that learns its mass: likelihoods as products of predictions, draws against enumerated posteriors."""

import itertools
import math

import numpy as np
import pytest

import psconrl
from psconrl import PSConRL, load_agent, simulate
from psconrl.agents import Balance, Gradual, LearnedMass, Steady, make
from psconrl.errors import AgentError, ConfigError
from psconrl.learning.posterior.counts import Counts, Record

ROVER = psconrl.load("marsrover-4x4")


def counted(S, A, rows):
    """Counts with the given transitions {(s, a): [n to every state]}."""
    counts, record = Counts(S, A, 1), None
    record = Record.empty(counts)
    for (s, a), ns in rows.items():
        for t, n in enumerate(ns):
            for _ in range(n):
                record.step(s, a, t, np.zeros(1))
    counts.add(record)
    return counts


def predictive(ns, mass, width):
    """The probability of a sequence with these counts, one outcome after the other (Polya's urn)."""
    total, seen, n = 0.0, [0] * len(ns), 0
    for j, times in enumerate(ns):
        for _ in range(times):
            total += math.log((mass / width + seen[j]) / (mass + n))
            seen[j] += 1
            n += 1
    return total


@pytest.mark.parametrize("ns", [[0, 0, 0], [3, 0, 0], [2, 1, 0], [1, 5, 7]])
def test_the_likelihood_of_a_row_is_the_product_of_its_predictions(ns):
    belief = LearnedMass(grid=[0.01, 0.5, 20.0]).made_for(3, 2, 0)
    found = belief.likelihood(counted(3, 2, {(1, 0): ns}))[2]
    np.testing.assert_allclose(found, [predictive(ns, mass, 3) for mass in belief.grid], rtol=1e-12, atol=1e-13)


def test_with_known_support_the_mass_is_shared_by_what_is_possible():
    support = np.ones((3, 1, 3), dtype=bool)
    support[1, 0, 2] = False
    belief = LearnedMass(grid=[0.5, 2.0], support=support).made_for(3, 1, 0)
    counts = counted(3, 1, {(1, 0): [2, 1, 0]})
    np.testing.assert_allclose(
        belief.likelihood(counts)[1], [predictive([2, 1, 0], mass, 2) for mass in (0.5, 2.0)], rtol=1e-12
    )
    rng = np.random.default_rng(0)
    assert all(belief.sample(counts, rng).toarray()[1, 2] == 0.0 for _ in range(50))
    assert belief.mean(counts)[1, 2] == 0.0


def test_new_visits_bring_the_likelihood_up_to_date():
    belief = LearnedMass().made_for(3, 1, 0)
    counts = counted(3, 1, {(0, 0): [1, 0, 0]})
    belief.likelihood(counts)
    record = Record.empty(counts)
    record.step(0, 0, 2, np.zeros(1))
    counts.add(record)
    fresh = LearnedMass().made_for(3, 1, 0)
    np.testing.assert_array_equal(belief.likelihood(counts), fresh.likelihood(counts))


def far_off(observed, expected, draws):
    """True if a frequency is more than five standard deviations off: a false alarm once in two million."""
    return abs(observed - expected) > 5 * math.sqrt(expected * (1 - expected) / draws) + 1e-12


def test_one_mass_a_pool_is_drawn_from_its_posterior():
    rows = {(0, 0): [4, 0, 0], (1, 0): [3, 1, 0], (2, 1): [2, 2, 2]}
    counts, grid = counted(3, 2, rows), [0.1, 1.0, 10.0]
    rng, draws = np.random.default_rng(1), 4000
    for pool, groups in (("action", {0: [(0, 0), (1, 0)], 1: [(2, 1)]}), ("all", {0: list(rows)})):
        belief = LearnedMass(grid, pool, exceptions=False).made_for(3, 2, 0)
        drawn = np.array([belief.masses(counts, rng) for _ in range(draws)])
        for group, members in groups.items():
            logs = np.array([sum(predictive(rows[pair], mass, 3) for pair in members) for mass in grid])
            posterior = np.exp(logs) / np.exp(logs).sum()
            for mass, probability in zip(grid, posterior, strict=True):
                assert not far_off((drawn[:, group] == mass).mean(), probability, draws)
        assert (drawn[:, 0] == drawn[:, 2]).all()  # the rows of an action have one mass


def test_exceptions_are_drawn_from_their_posterior(full):
    """Three rows of one action and two masses: the mass of the pool, which rows are exceptions, and their masses."""
    rows = {(0, 0): [6, 0, 0], (1, 0): [2, 2, 1], (2, 0): [0, 0, 0]}
    counts, grid = counted(3, 1, rows), [0.05, 5.0]
    tried = [0, 1]
    joint = {}
    for pool, *kinds in itertools.product(range(2), (None, 0, 1), (None, 0, 1)):  # None: no exception
        k = sum(kind is not None for kind in kinds)
        # The prior of the rate is Beta(1, 3), as there are three rows.
        prior = math.lgamma(1 + k) + math.lgamma(3 + 2 - k) - math.lgamma(4 + 2) - k * math.log(2)
        masses = [pool if kind is None else kind for kind in kinds]
        weight = math.exp(prior + sum(predictive(rows[s, 0], grid[masses[s]], 3) for s in tried))
        key = tuple(grid[mass] for mass in masses)
        joint[key] = joint.get(key, 0.0) + weight
    total = sum(joint.values())
    belief = LearnedMass(grid).made_for(3, 1, 0)
    rng, draws = np.random.default_rng(4), 20_000 if full else 4_000
    drawn = np.array([belief.masses(counts, rng) for _ in range(draws)])
    for key, weight in joint.items():
        share = np.all(drawn[:, :2] == key, axis=1).mean()
        # Successive draws are correlated: by their autocorrelation some 4 of them are worth one draw.
        assert not far_off(share, weight / total, draws / 4)


def test_a_row_unlike_all_others_is_an_exception():
    S = 60
    rows = {(s, 0): [30 if t == s else 0 for t in range(S)] for s in range(S - 1)}
    rows[S - 1, 0] = [2] * S
    counts, rng = counted(S, 1, rows), np.random.default_rng(5)
    belief = LearnedMass().made_for(S, 1, 0)
    drawn = np.array([belief.masses(counts, rng) for _ in range(400)])[50:]
    assert np.median(drawn[:, 0]) < 1e-3
    assert (drawn[:, -1] >= 0.1).mean() > 0.9
    without = LearnedMass(exceptions=False).made_for(S, 1, 0)
    assert (np.ptp([without.masses(counts, rng) for _ in range(20)], axis=1) == 0.0).all()


def test_a_row_that_leads_anywhere_has_the_mass_of_one_that_does():
    """Its likelihood under the mass of the others is below the smallest double."""
    S = 150
    rows = {(s, 0): [30 if t == s else 0 for t in range(S)] for s in range(S - 1)}
    rows[S - 1, 0] = [2] * S
    belief = LearnedMass().made_for(S, 1, 0)
    counts, rng = counted(S, 1, rows), np.random.default_rng(6)
    drawn = np.array([belief.masses(counts, rng) for _ in range(100)])
    assert (drawn[5:, -1] == 1.0).all()


def test_turns_of_masses_and_weights_have_the_posterior_of_the_hierarchy(full):
    """Two rows of one action and two masses: the joint distribution of their masses, the weights integrated out."""
    rows = {(0, 0): [5, 0], (1, 0): [2, 2]}
    counts, grid = counted(2, 1, rows), [0.05, 5.0]
    joint = {}
    for z in itertools.product(range(2), repeat=2):
        tally = [z.count(k) for k in range(2)]
        prior = sum(math.lgamma(0.5 + n) - math.lgamma(0.5) for n in tally) - math.lgamma(1.0 + 2)
        joint[z] = math.exp(prior + sum(predictive(rows[s, 0], grid[z[s]], 2) for s in range(2)))
    total = sum(joint.values())
    belief = LearnedMass(grid, exact=False).made_for(2, 1, 0)
    rng, draws = np.random.default_rng(2), 20_000 if full else 4_000
    drawn = np.array([belief.masses(counts, rng) for _ in range(draws)])
    for z, weight in joint.items():
        share = np.all(drawn == [grid[k] for k in z], axis=1).mean()
        # Successive draws are correlated: by their autocorrelation some 4 of them are worth one draw.
        assert not far_off(share, weight / total, draws / 4)


@pytest.mark.parametrize("exact", [False, True])
def test_what_was_never_tried_has_the_masses_of_its_action(exact):
    """Rows of the first action are deterministic, those of the second scattered: so are most of the untried ones."""
    S = 12
    rows = {(s, 0): [20 if t == s else 0 for t in range(S)] for s in range(8)}
    rows |= {(s, 1): [2] * S for s in range(8)}
    counts, rng = counted(S, 2, rows), np.random.default_rng(3)
    belief = LearnedMass([0.01, 0.1, 1.0, 10.0], exact=exact).made_for(S, 2, 0)
    drawn = np.array([belief.masses(counts, rng) for _ in range(400)]).reshape(400, S, 2)[:, 8:]
    assert np.median(drawn[:, :, 0]) <= 0.1
    assert np.median(drawn[:, :, 1]) >= 3.0


def test_the_mean_is_that_of_many_samples_at_the_same_weights():
    counts = counted(3, 1, {(0, 0): [4, 1, 0]})
    belief = LearnedMass([0.1, 3.0], exact=False).made_for(3, 1, 0)
    by_hand = np.zeros(3)
    probability = np.array([predictive([4, 1, 0], mass, 3) for mass in (0.1, 3.0)])
    probability = np.exp(probability) / np.exp(probability).sum()
    for weight, mass in zip(probability, (0.1, 3.0), strict=True):
        by_hand += weight * (np.array([4, 1, 0]) + mass / 3) / (5 + mass)
    np.testing.assert_allclose(belief.mean(counts)[0], by_hand, rtol=1e-12)
    np.testing.assert_allclose(belief.mean(counts)[1], np.full(3, 1 / 3))


@pytest.mark.parametrize("exact", [False, True])
def test_it_is_saved_and_resumed_bit_for_bit(exact, tmp_path):
    parts = {"belief": LearnedMass(exact=exact), "schedule": Steady(), "ledger": Balance(0.2)}
    agent = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=4, **parts)
    simulate(ROVER, agent, 700, seed=0)
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert again.config().keys() == agent.config().keys()
    one, two = (simulate(ROVER, a, 700, seed=1) for a in (agent, again))
    assert one.cumulative.tolist() == two.cumulative.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": []}, "grid must be a list of masses"),
        ({"grid": [1.0, -1.0]}, "grid must be rising"),
        ({"grid": [1.0, math.inf]}, "grid must be rising"),
        ({"grid": [3.0, 1.0]}, "grid must be rising"),
        ({"grid": [1.0, 1e7]}, "grid must be rising, of numbers between"),
        ({"grid": "wide"}, "grid must be numbers"),
        ({"pool": "planet"}, "unknown pool 'planet'"),
        ({"exact": 1}, "exact must be True or False"),
        ({"support": np.full((2, 2, 2), -1.0)}, "support must be finite and not negative; 0 means impossible"),
        ({"support": 1.0}, "support must have shape"),
        ({"surprise": 1.0}, "surprise must be a share from 0 to below 1; got 1.0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options, message):
    with pytest.raises((AgentError, ConfigError), match=message):
        LearnedMass(**options)
    if "support" not in options:
        with pytest.raises((AgentError, ConfigError), match=message):
            make("psconrl", 2, 2, [0.5], belief={"name": "learned-mass"} | options)


def test_a_support_of_other_sizes_is_refused():
    with pytest.raises(AgentError, match="support must have shape"):
        PSConRL(3, 2, [0.5], belief=LearnedMass(support=np.ones((2, 2, 2))))
    with pytest.raises(AgentError, match=r"support\[0, 0\] must allow at least one next state"):
        PSConRL(3, 2, [0.5], belief=LearnedMass(support=np.zeros((3, 2, 3))))


def test_steady_episodes_are_as_long_as_they_are_many():
    schedule = Steady().made_for(2, 1, 0)
    counts = counted(2, 1, {(0, 0): [3, 1]})
    for number in (1, 2, 3):
        steps, caps = schedule.caps(counts)
        assert (steps, caps.ravel().tolist()) == (number, [4, 1])
        schedule.ended(1)


def booked(ledger, spent, steps, thresholds):
    """A ledger after an episode with these sums of costs."""
    own = ledger.made_for(2, 1, len(thresholds))
    record = Record.empty(Counts(2, 1, len(thresholds) + 1))
    record.cost_sums[1:, 0] = spent
    record.visits[0] = record.steps = steps
    own.enter(record, np.array(thresholds))
    return own


def test_a_balance_spends_credit_and_pays_debts_by_hand():
    """100 rounds at limits .5 and .2: 10 below and 5 above; a share of .3 over sqrt(100). The costs met are .4 and .25,
    so that no more than .3 times the .1 between .4 and .5 is added to the first limit."""
    tau = np.array([0.5, 0.2])
    ledger = booked(Balance(0.3), [40.0, 25.0], 100, tau)
    assert ledger.balance.tolist() == [-10.0, 5.0]
    np.testing.assert_allclose(ledger.extremes, [[-0.1, 0.0], [0.0, 0.05]])
    targets = list(ledger.targets(tau, 100))
    np.testing.assert_allclose(targets[0], [0.5 + 0.03, 0.2 - 0.15])
    np.testing.assert_allclose(targets[1], [0.53, 0.2 - 0.15 / 4])
    np.testing.assert_allclose(targets[-1], [0.53, 0.2])
    assert len(targets) == 9


def test_a_balance_with_several_debts_tries_them_all_and_then_each_by_hand():
    """Debts of 10 and 5 and a credit of 10 in 100 rounds: a constraint without slack must not hold up the other."""
    tau = np.array([0.5, 0.2, 0.5])
    ledger = booked(Balance(0.3), [60.0, 25.0, 40.0], 100, tau)
    np.testing.assert_allclose(ledger.balance, [10.0, 5.0, -10.0])
    quarters = 0.25 ** np.arange(8)[:, None]
    due, credit = np.array([0.3, 0.15, 0.0]), np.array([0.0, 0.0, 0.03])
    cuts = [quarters * due, quarters * due * [1, 0, 0], quarters * due * [0, 1, 0], np.zeros((1, 3))]
    np.testing.assert_allclose(list(ledger.targets(tau, 100)), tau + credit - np.vstack(cuts))


def test_a_balance_of_credit_alone_or_of_nothing():
    tau = np.array([0.5])
    ledger = booked(Balance(0.1), [40.0], 100, tau)
    ledger.enter(one_round(2, 1, 1.5), tau)  # an expensive round: now there is more room above the threshold
    np.testing.assert_allclose(list(ledger.targets(tau, 101)), [[0.5 + 0.1 * 9 / np.sqrt(101)]])
    assert not list(booked(Balance(0.1), [50.0], 100, tau).targets(tau, 100))


def one_round(S, A, cost):
    """The record of one round in the first state."""
    record = Record.empty(Counts(S, A, 2))
    record.step(0, 0, 0, np.array([0.0, cost]))
    return record


def test_no_plan_may_spend_more_than_an_episode_could():
    """However much was saved, the target is at most the threshold plus a share of the range of costs, 0 to 2."""
    tau = np.array([1.0])
    ledger = Balance(0.1).made_for(1, 1, 1)
    for cost in (0.0, 2.0, *[0.0] * 398):
        ledger.enter(one_round(1, 1, cost), tau)
    assert ledger.balance.tolist() == [-398.0]  # 19.9 times the root of 400
    np.testing.assert_allclose(next(ledger.targets(tau, 400)), [1.0 + 0.1 * 2.0])


def test_new_limits_begin_with_an_empty_balance_and_no_costs():
    tau = np.array([0.5])
    ledger = booked(Balance(0.1), [40.0], 100, tau)
    ledger.begin_again(None, np.array([0.7]))
    assert (ledger.balance.tolist(), ledger.extremes.tolist()) == ([0.0], [[0.0], [0.0]])


def test_a_balance_is_restored_with_its_extremes():
    again = Balance(0.1).made_for(2, 1, 1)
    again.restore(booked(Balance(0.1), [40.0], 100, np.array([0.5])).state())
    np.testing.assert_allclose(again.extremes, [[-0.1], [0.0]])


def test_a_gradual_ledger_settles_within_a_third_of_the_rounds_by_hand():
    """Until round (3 / .1)^2 = 900 it is a balance; from then on a debt is due over a third of the rounds so far."""
    tau = np.array([0.5])
    for t, rate in [(0, 0.1), (1, 0.1), (100, 0.01), (900, 0.1 / 30), (2500, 3 / 2500), (90_000, 3 / 90_000)]:
        assert 0.1 / Gradual().spread(t) == pytest.approx(rate)
        assert Gradual().spread(t) >= Balance().spread(t) == np.sqrt(max(t, 1))
    ledger = booked(Gradual(0.1, pace=2.0), [1300.0], 2500, tau)
    np.testing.assert_allclose(ledger.balance, [50.0])
    np.testing.assert_allclose(list(ledger.targets(tau, 2500)), 0.5 - 2 * 50 / 2500 * 0.25 ** np.arange(8)[:, None])
    ledger = booked(Gradual(0.1, pace=2.0), [1200.0], 2500, tau)
    ledger.enter(one_round(2, 1, 1.5), tau)  # now there is room above the threshold
    np.testing.assert_allclose(list(ledger.targets(tau, 2501)), [[0.5 + 2 * 49 / 2501]])


@pytest.mark.parametrize("pace", [1.0, 3.0, 10.0])
def test_how_far_a_balance_and_its_targets_deviate(pace):
    r"""The variance v of the balance by its recursion, :math:`v' = (1 - r_t)^2 v + \sigma^2`, with :math:`\sigma = 1`.

    After the first :math:`(c / \rho)^2` rounds, whose traces vanish like :math:`t^{-2c - 1}`, it is t / (2c + 1) with
    ``Gradual``, and with ``Balance`` :math:`\sqrt t / (2 \rho)`, up to terms of lower order.
    """
    gradual, balance, v, w = Gradual(0.3, pace), Balance(0.3), 0.0, 0.0
    rounds = 200_000
    for t in range(1, rounds):
        v, w = (1.0 - 0.3 / gradual.spread(t)) ** 2 * v + 1.0, (1.0 - 0.3 / balance.spread(t)) ** 2 * w + 1.0
    assert v == pytest.approx(rounds / (2 * pace + 1), rel=0.01)
    assert w == pytest.approx(np.sqrt(rounds) / (2 * 0.3), rel=0.01)
    deviation = 0.3 / gradual.spread(rounds) * np.sqrt(v)
    assert deviation == pytest.approx(pace / np.sqrt((2 * pace + 1) * rounds), rel=0.01)


@pytest.mark.parametrize("pace", [0.0, -1.0, float("nan"), "fast"])
def test_the_pace_must_be_positive(pace):
    with pytest.raises(AgentError, match="pace must be"):
        Gradual(pace=pace)


def test_the_expected_transitions_of_one_mass_a_pool():
    counts = counted(3, 1, {(0, 0): [4, 1, 0], (1, 0): [0, 2, 0]})
    belief = LearnedMass([0.1, 3.0]).made_for(3, 1, 0)
    logs = [sum(predictive(ns, mass, 3) for ns in ([4, 1, 0], [0, 2, 0])) for mass in (0.1, 3.0)]
    probability = np.exp(logs) / np.exp(logs).sum()
    by_hand = sum(w * (np.array([4, 1, 0]) + M / 3) / (5 + M) for w, M in zip(probability, (0.1, 3.0), strict=True))
    np.testing.assert_allclose(belief.mean(counts)[0], by_hand, rtol=1e-12)


def test_a_ledger_does_not_ask_in_which_unit_costs_are_counted():
    for scale in (1.0, 2.0**-60, 2.0**60):
        ledger = booked(Balance(0.3), [40.0 * scale, 25.0 * scale], 100, np.array([0.5, 0.2]) * scale)
        targets = np.array(list(ledger.targets(np.array([0.5, 0.2]) * scale, 100))) / scale
        np.testing.assert_allclose(targets[0], [0.53, 0.05])
        assert len(targets) == 9
