"""The inequalities of docs/theorems.md in numbers: no ratio exceeds 1, and the checks notice what is too strong."""

import sys
from math import asinh, sqrt
from pathlib import Path

import numpy as np
import pytest

import psconrl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import leaky_runs
import lemmas
import theorems

ROUNDING = 1.0 + 1e-9


def leaky(leak):
    model = psconrl.load("leaky-islands", leak=leak)
    P = model.transition.toarray().reshape(2, 2, 2)
    return theorems.Problem(P, model.costs, 0.5, 0.5, 1.0, 1.0, 0.5 - leak / (1 + leak))


@pytest.mark.parametrize("seed", range(4))
def test_lagrangians_have_bounded_prices_and_spans(seed):
    """Lemma 0 (a) to (c)."""
    rng = np.random.default_rng(seed)
    ratios = theorems.lemma_ratios(theorems.drawn_problem(rng), float(rng.uniform(0, 5)))
    assert len(ratios) == 3
    assert max(ratios.values()) <= ROUNDING


@pytest.mark.parametrize("leak", [1e-2, 1e-4])
def test_the_lagrangian_of_the_leaky_islands_has_a_span_below_two(leak):
    """The span of the single costs is 1 / (2 leak)."""
    model = psconrl.load("leaky-islands", leak=leak)
    spans = np.ptp(psconrl.evaluate(model, np.array([[1.0, 0.0], [1.0, 0.0]])).biases, axis=1)
    assert spans == pytest.approx(np.full(2, 1 / (2 * leak)))
    for price in (0.0, 0.5, 1.0, 2.0):
        assert theorems.lemma_ratios(leaky(leak), price)["0(b) span <= D (1 + lambda)"] <= ROUNDING


def test_projection_is_the_nearest_point():
    assert theorems.projected(np.array([3.0, 1.0]), 2.0) == pytest.approx([2.0, 0.0])
    assert theorems.projected(np.array([1.5, 1.0]), 2.0) == pytest.approx([1.25, 0.75])
    assert theorems.projected(np.array([0.5, -1.0]), 2.0) == pytest.approx([0.5, 0.0])


@pytest.mark.parametrize("seed", range(6))
def test_dual_steps_have_the_regret_of_online_gradients(seed):
    """Theorem 1: against the best price afterwards."""
    rng = np.random.default_rng(seed)
    assert theorems.dual_ratio(rng, 1 + seed % 3, 10, 2_000) <= 1


def test_without_a_change_the_optimistic_rows_are_the_frequencies():
    P = np.array([[[0.2, 0.5, 0.3]]])
    h = np.array([2.0, 0.0, 1.0])
    assert theorems.optimistic_rows(P, np.zeros((1, 1)), h) == pytest.approx(P)
    assert theorems.optimistic_rows(P, np.full((1, 1), 0.2), h) == pytest.approx(np.array([[[0.1, 0.6, 0.3]]]))
    assert theorems.optimistic_rows(P, np.full((1, 1), 2.0), h) == pytest.approx(np.array([[[0.0, 1.0, 0.0]]]))


def test_the_extended_optimum_without_uncertainty_is_that_of_the_model():
    problem = theorems.drawn_problem(np.random.default_rng(0))
    found = theorems.extended_optimum(problem.P, np.zeros((4, 2)), problem.costs[0])
    assert found.average == pytest.approx(psconrl.plan(psconrl.CMDP(problem.P, problem.costs[:1])).value, abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_one_sided_control_of_the_constrained_cost(seed):
    """Theorem 2: (2), (4) as optimal stopping, spans in the extended model, exact moments in the lemma of step 3."""
    ratios = theorems.tilt_ratios(np.random.default_rng(seed), L=25)
    assert len(ratios) == 5
    assert max(ratios.values()) <= 1.0 + 1e-4  # the tolerance of the search for the price


def test_the_moments_of_an_episode_are_those_of_a_random_walk():
    """Two states visited at random, x = f / 2 or -f / 2: the second moment is that of L independent signs."""
    P = np.full((2, 1, 2), 0.5)
    problem = theorems.Problem(P, np.array([[[0.0], [0.0]], [[0.0], [1.0]]]), 0.5, 0.0, 0.0, 2.0, 0.5)
    found = theorems.Extended(0.0, np.zeros(2), np.zeros(2, int), P)
    episode = theorems.episode_moments(problem, np.zeros((2, 1)), found, 0.2, 9, start=1)
    assert episode.first == pytest.approx(0.1)
    assert episode.second == pytest.approx(9 * 0.1**2)
    stopped = theorems.episode_moments(problem, np.full((2, 1), 0.5), found, 0.2, 9, start=1)
    assert stopped.second == pytest.approx(3 * 0.1**2)  # three visits make the radii exceed 1


def test_the_tilt_grows_exponentially_and_is_cut_off():
    L = 50
    assert theorems.tilt_function(0.0, L, 0.4) == 0
    assert theorems.tilt_function(8 * L * asinh(L), L, 0.4) == pytest.approx(1)
    assert theorems.tilt_function(8 * L * asinh(0.4 * L), L, 0.4) == pytest.approx(0.4)
    assert theorems.tilt_function(1e9, L, 0.4) == pytest.approx(1.4)
    assert theorems.tilt_function(-1e9, L, 0.4) == pytest.approx(-0.4)


@pytest.mark.parametrize("price", [0.0, 0.3, 2.0])
def test_the_slope_of_the_tilt_is_bounded_by_the_tilt(price):
    """Theorem 2, step 4, with both cut-offs; the bound is nearly attained."""
    L = 40
    ratios = [theorems.slope_ratio(L, price, V) for V in np.linspace(-60 * L, 60 * L, 121)]
    assert 0.9 < max(ratios) <= 1


@pytest.mark.parametrize("V", [-3e4, 50.0, 9e3])
def test_the_potential_is_nearly_linear_in_a_large_balance(V):
    """Theorem 2, step 5."""
    for price in (0.0, 0.3, 2.0):
        assert max(theorems.potential_ratios(100, price, V).values()) <= 1 + 1e-6


def test_constants_of_the_second_theorem():
    """Steps 4 and 5, and those of rounded tilts."""
    share = np.exp(1 / 8) / 8
    assert 6 * share <= 0.85
    assert 2 * share <= 0.29
    assert share <= 0.15  # w L^2 / R = 1 / 8
    assert 0.15 <= 0.85 * 18  # b is at least 9 (1 + 1)
    for b, x in ((18.0, 18.0), (18.0, 0.0), (18.0, -40.0)):
        assert x + 0.85 * b + 0.29 * max(-x, 0) <= 0.5 * x + 1.5 * b
        for rho in (1.0, 1.5, 2.0):
            assert rho * x + 1.28 * b + 0.43 * max(-x, 0) <= 0.5 * rho * x + 2.28 * b + 1e-12
    assert 1.5 * 6 * share <= 1.28
    assert 1.5 * 2 * share <= 0.43
    assert 4.56 + 1 / 18 <= 5
    assert 1 + 5.56 + 5 <= 12


@pytest.mark.parametrize("H", [0, 40])
def test_radii_along_a_path_add_up_to_the_root_of_its_length(H):
    """Renewed by doubling, and by blocks as in Theorem 3."""
    for seed in range(3):
        assert max(theorems.radii_ratios(np.random.default_rng(seed), 1_000, H).values()) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_values_with_the_account_have_bounded_spans_and_excess(seed):
    """Theorem 3: the span, (i) and (ii)."""
    ratios = theorems.account_ratios(np.random.default_rng(seed), H=12)
    assert max(ratios.values(), default=0.0) <= ROUNDING


def test_values_with_the_account_on_the_islands():
    """There is no stationary optimum; the excess of a block stays below a constant (H = W)."""
    P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    problem = theorems.Problem(P, leaky(0.01).costs, 0.5, 0.5, 1.0, 1.0, 0.5)
    excess = [theorems.account_values(problem, 4.0, H, H)[0][-1].max() - H / 2 for H in (10, 40)]
    assert max(excess) < 2


@pytest.mark.parametrize("seed", range(3))
def test_plans_for_returning_transitions(seed):
    """The proposition on the planning horizon, and the span of the Lagrangian there."""
    ratios = theorems.returning_ratios(theorems.drawn_problem(np.random.default_rng(seed), 3), 1e-3)
    assert max(ratios.values(), default=0.0) <= ROUNDING


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_the_balance_of_a_fixed_rate_on_the_islands(rate):
    """The deviation of the time on one island is sqrt(T / rate) / 2 at most, and nearly that if the rate is small."""
    rounds = 20_000
    assert theorems.steps_ratio(rate, rounds) <= 1
    if rate == 0.5:
        assert theorems.balance_deviation(rate, rounds) == pytest.approx(sqrt(rounds / 4))
    else:
        assert theorems.steps_ratio(rate, rounds) > 0.9


def test_the_bounds_of_the_theorems():
    """The table in docs/theory.md: where the bound on the regret is below T."""
    cases = [((2, 2), (1, 0.5), (5.1, 9.1)), ((4, 2), (5, 0.25), (7.4, 10.9)), ((20, 4), (20, 0.1), (10.45, 14.0))]
    for sizes, constants, exponents in cases:
        for bounds, exponent in zip((theorems.lagrangian_bounds, theorems.tilted_bounds), exponents, strict=True):
            later, earlier = int(10 ** (exponent + 0.06)), int(10 ** (exponent - 0.06))
            assert bounds(*sizes, later, *constants)[0] < later
            assert bounds(*sizes, earlier, *constants)[0] > earlier


def test_the_counterexample_at_a_hundred_million_rounds():
    assert round(lemmas.leaky_regret(1e-8, 10**8)) == 21_616_618
    assert round(lemmas.theorem_bound(1, 2, 2, 10**8)) == 6_358_554


def test_the_leaks_of_the_runs_have_the_distribution_of_the_prior():
    leaks = leaky_runs.prior_leaks(9)
    assert leaks.max() < lemmas.LARGEST_LEAK
    assert 1 / (1 + np.log(0.1 / leaks)) == pytest.approx((np.arange(9) + 0.5) / 9)


def test_sojourns_have_the_regret_of_the_closed_form():
    """A mean of 2,000 runs; false alarms at five standard errors, below 1e-6."""
    rng = np.random.default_rng(0)
    drawn = np.array([leaky_runs.sojourn_regret(0.01, 100, rng) for _ in range(2_000)])
    error = drawn.std(ddof=1) / len(drawn) ** 0.5
    assert abs(drawn.mean() - lemmas.leaky_regret(0.01, 100)) < 5 * error
    assert drawn.max() == 50


def test_the_paper_s_agent_with_its_prior_stays_on_the_leaky_islands():
    leaks = leaky_runs.prior_leaks(4)
    assert leaky_runs.played_regret(1e-9, leaks, 400, 0) == pytest.approx(200.0)


def test_a_leak_is_a_probability():
    with pytest.raises(psconrl.ModelError, match="leak must be a probability above 0 and below 1/2; got 0"):
        psconrl.load("leaky-islands", leak=0.0)
