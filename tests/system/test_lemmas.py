"""The theorem and the lemmas of the paper in numbers: what holds, and what a model refutes (docs/theory.md)."""

import sys
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

import psconrl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import lemmas
import regret_terms

LEAKY = psconrl.load("leaky-islands", leak=0.01)


def test_sample_and_truth_have_one_distribution_given_the_history():
    """Lemma 4.3, exactly: over all histories up to the fourth episode."""
    assert lemmas.posterior_sampling_error(4) < 1e-15


def test_the_check_of_lemma_4_3_notices_a_wrong_posterior(monkeypatch):
    monkeypatch.setattr(lemmas, "posterior", lambda go, through: np.array(lemmas.WEIGHTS))
    assert lemmas.posterior_sampling_error(3) > 0.01


@pytest.mark.parametrize(("m", "seed"), [(1, 0), (1, 1), (2, 0), (2, 1)])
def test_the_least_excess_moves_by_at_most_half_the_distance_times_the_diameter(m, seed):
    """Lemma 4.4, in the form in which docs/theory.md proves it."""
    model = psconrl.load("dirichlet", states=5, constraints=m, seed=seed)
    rng = np.random.default_rng(seed)
    for share in (0.01, 0.1, 0.5):
        assert lemmas.feasibility_ratio(model, lemmas.nearby(model, share, rng)) <= 1
        assert lemmas.feasibility_ratio(model, lemmas.worsened(model, share)) <= 1


def test_the_least_excess_is_that_of_the_plan():
    model = psconrl.load("counterexample", threshold=0.5)
    assert lemmas.least_excess(model) == pytest.approx(1 / 1.9 - 0.5)


def test_a_slater_policy_may_have_a_span_far_beyond_the_diameter():
    """The step of the proof of Lemma 4.4 that is wrong: the span is 1 / (3 leak), the diameter 1."""
    policy = lemmas.slow_slater(0.01)
    assert psconrl.evaluate(LEAKY, policy).costs[1] == pytest.approx(1 / 3)
    assert lemmas.span_ratio(LEAKY, policy) == pytest.approx(1 / 0.03)


def test_shortest_paths_leave_out_pairs():
    """Lemma 4.5 counts pairs, but exploration targets states: one pair is never tried."""
    states, pairs = lemmas.exploring_rounds(lemmas.crossroads(), 2_000)
    bound = lemmas.exploration_bound(lemmas.crossroads(), 2_000)
    assert bound == pytest.approx(2 * 3 * (4 * 2_000) ** 0.5 + 1)
    assert pairs == 2_000 > bound > states


@pytest.mark.parametrize(("name", "options"), [("counterexample", {}), ("garnet", {"states": 6, "seed": 3})])
def test_the_exploring_policy_is_a_shortest_path_and_its_bias_is_scaled(name, options):
    """Lemma A.1 holds, with v* = (1 - J*) T in place of v* = T."""
    model = psconrl.load(name, **options)
    errors = np.array([lemmas.shortest_path_errors(model, target) for target in range(model.n_states)])
    assert errors[:, 1].max() < 1e-9
    assert errors[:, 0].max() > 0.1


def test_the_optimum_of_the_leaky_islands_is_to_stay():
    best = psconrl.plan(LEAKY)
    assert best.status is psconrl.Status.OPTIMAL
    assert best.value == pytest.approx(0.5)
    assert best.policy == pytest.approx(np.array([[1, 0], [1, 0]]))
    assert psconrl.diameter(LEAKY) == pytest.approx(1)
    assert psconrl.plan(LEAKY.with_thresholds(0.5 - 0.4)).status is psconrl.Status.OPTIMAL  # gamma is at least .4
    assert lemmas.span_ratio(LEAKY, best.policy) == pytest.approx(1 / (2 * 0.01))


@pytest.mark.parametrize("rounds", [1, 2, 100])
def test_the_regret_of_staying_is_that_of_the_chain(rounds):
    P = np.array([[0.99, 0.01], [0.01, 0.99]])
    at = [np.array([0.0, 1.0]) @ np.linalg.matrix_power(P, t) for t in range(rounds)]
    assert lemmas.leaky_regret(0.01, rounds) == pytest.approx(sum(x[1] - 0.5 for x in at))


def test_one_leak_per_run_costs_a_fifth_of_all_rounds():
    assert lemmas.leaky_regret(1e-6, 10**6) / 10**6 == pytest.approx((1 - exp(-2)) / 4, rel=1e-5)


@pytest.mark.parametrize("rounds", [10**3, 10**6, 10**9, 10**12])
def test_the_bayesian_regret_is_linear_up_to_a_logarithm(rounds):
    """Theorem 4.1 is false: one prior, D = 1, and a regret above .21 T / (1 + ln(T / 10))."""
    assert lemmas.bayesian_regret(rounds) >= 0.21 * rounds / (1 + log(rounds / 10))


def test_it_exceeds_the_bound_of_the_theorem_with_all_constants():
    assert lemmas.bayesian_regret(10**9) > lemmas.theorem_bound(1, 2, 2, 10**9)
    assert lemmas.bayesian_regret(10**12) > 20 * lemmas.theorem_bound(1, 2, 2, 10**12)


def test_the_paper_s_agent_stays_on_the_leaky_islands():
    """It knows the model, and nothing is learned."""
    model = psconrl.load("leaky-islands", leak=1e-4)
    P = model.transition.toarray().reshape(2, 2, 2)
    agent = psconrl.agents.make("psconrl-paper", 2, 2, model.thresholds, model.costs, prior=1e12 * P, seed=0)
    trace = psconrl.simulate(model, agent, 2_000, seed=0)
    assert psconrl.regret(trace, psconrl.plan(model)).final[0] > 500


def test_constrained_optima_have_spans_beyond_the_diameter():
    """The step that Lemmas A.5 and A.6 rest on."""
    models = [psconrl.load("dirichlet", states=5, seed=seed) for seed in (0, 10, 12)]
    spans = [lemmas.span_ratio(model, psconrl.plan(model).policy) for model in models]
    assert spans[0] < 1
    assert min(spans[1:]) > 4


def test_the_confidence_set_covers():
    """Lemma A.7, exactly for two states."""
    assert lemmas.confidence_ratio(0.5, 100, 100) < 1
    assert lemmas.confidence_ratio(0.01, 10, 10) < 1
    assert lemmas.confidence_ratio(0.5, 0, 1) == 0


def test_episodes_are_fewer_than_their_bound():
    """Lemma A.4, second inequality."""
    assert lemmas.episodes_ratio("counterexample", 1_000) < 1


def test_a_hitting_time_may_be_exponential_in_the_states_and_the_diameter_linear():
    """The paper's first footnote."""
    ratios = [lemmas.mixing_over_diameter(n) for n in (5, 10, 15)]
    assert ratios[1] / ratios[0] > 100
    assert ratios[2] / ratios[1] > 100


def test_the_terms_add_up_to_the_regret():
    terms = regret_terms.measured(psconrl.load("counterexample", threshold=0.7), 300, 1.0, seed=0, cost=1)
    assert terms.r0 + terms.r1 + terms.r2 + terms.r3 == pytest.approx(terms.regret)
    assert terms.bounds[1] == pytest.approx(terms.bounds[0] / 0.9)


def test_the_second_term_exceeds_its_bound_on_the_leaky_islands():
    """R0 and R1 vanish there, and R3 has mean zero: R2 is the regret."""
    terms = regret_terms.measured(psconrl.load("leaky-islands", leak=1e-4), 2_000, None, seed=0)
    assert terms.r0 == pytest.approx(0)
    assert terms.r1 == pytest.approx(0)
    assert terms.r2 + terms.r3 == pytest.approx(terms.regret)
    assert max(abs(terms.r2), abs(terms.r3)) > terms.bounds[1]


@pytest.mark.parametrize("name", ["marsrover-4x4", "marsrover-8x8", "box"])
def test_the_positive_part_of_every_round_grows_linearly_for_the_optimal_policy(name):
    """The paper's BR+ as it is written: with costs of 0 and 1 the optimum J has (1 - J) J per round."""
    model = psconrl.load(name)
    best = psconrl.plan(model)
    per_round = (best.occupancy * np.maximum(model.costs[0] - best.value, 0)).sum()
    assert per_round == pytest.approx((1 - best.value) * best.value)
    assert per_round > 0.05


def test_a_slater_policy_mixed_with_uniform_play_is_irreducible():
    """Assumption 2.2, second part; the slack becomes a little smaller."""
    model = psconrl.load("corridor")
    safest = psconrl.plan(psconrl.CMDP(model.transition.toarray().reshape(8, 2, 8), model.costs[1:]))
    mixed = 0.999 * safest.policy + 0.001 * 0.5
    found = psconrl.evaluate(model, mixed)
    assert [len(states) for states in found.classes] == [8]
    assert found.costs[1] < model.thresholds[0] - 0.2


def test_no_diameter_bounds_the_draws_of_a_dirichlet_prior():
    """Two states, one action: under Dirichlet(.1, .1) state 0 is left less than once in a million rounds in an eighth.

    The probability is that of Beta(.1, .1) below 1e-6, so that Assumption 2.1 holds for no D.
    """
    assert beta.cdf(1e-6, 0.1, 0.1) > 0.12


def test_the_optimum_of_the_paper_s_grids_is_randomised_between_a_fast_and_a_safe_way():
    for name in ("marsrover-4x4", "marsrover-8x8", "box"):
        best = psconrl.plan(psconrl.load(name))
        randomised = [s for s in range(len(best.policy)) if best.policy[s].max() < 1 and best.occupancy[s].sum() > 0]
        assert len(randomised) == 1
        assert best.costs[1] == pytest.approx(best.thresholds[0])


def test_elementary_steps_of_the_proof():
    """The radius after sqrt(T/A) visits, the sum over k^-6, the split of the infeasible part, and the tail sum."""
    S, A, T, t = 4, 3, 10_000, 500
    radius = (14 * S * log(2 * A * T * t) / (T / A) ** 0.5) ** 0.5
    assert radius == pytest.approx((14 * S * A**0.5 * log(2 * A * T * t) / T**0.5) ** 0.5)
    assert 2 / 15 * sum(k**-6 for k in range(1, 100)) < 1
    for feasible in (False, True):
        for visited in (False, True):
            first, second = not feasible and visited, not feasible and not visited
            assert (first or second) == (not feasible)
            assert not (first and second)
    tail = sum((1 - 0.2) ** t for t in range(200))  # of a geometric time of mean 5: P(T > t)
    assert tail == pytest.approx(5)


def test_the_aperiodicity_transformation_scales_averages_and_times():
    """Of the proof of Lemma A.1: with the cost theta c, averages are multiplied by theta, and biases stay."""
    model, theta, target = psconrl.load("garnet", states=6, seed=3), 0.3, 2
    S, A = model.n_states, model.n_actions
    P = model.transition.toarray().reshape(S, A, S)
    slow = theta * P + (1 - theta) * np.eye(S)[:, None, :]
    away = np.ones((S, A))
    away[target] = 0.0
    first, second = psconrl.plan(psconrl.CMDP(P, [away])), psconrl.plan(psconrl.CMDP(slow, [theta * away]))
    assert second.value == pytest.approx(theta * first.value)
    assert np.ptp(second.potential - first.potential) < 1e-9
    np.testing.assert_allclose(
        lemmas.hitting_times(psconrl.CMDP(slow, [away]), target), lemmas.hitting_times(model, target) / theta, atol=1e-9
    )


def test_the_condition_of_an_infeasible_sample_differs_between_episodes():
    """Given an infeasible first sample, the truth has its prior distribution; given an infeasible second one, not."""
    thetas, prior = np.array(lemmas.THETAS), np.array(lemmas.WEIGHTS)
    infeasible = thetas < 1 / 0.5275 - 1
    first = prior * (prior @ infeasible)
    second = sum(
        prior * (thetas if through else 1 - thetas) * (lemmas.posterior(1, through) @ infeasible) for through in (0, 1)
    )
    np.testing.assert_allclose(first / first.sum(), prior)
    assert (second / second.sum())[infeasible].sum() > prior[infeasible].sum() + 0.01
