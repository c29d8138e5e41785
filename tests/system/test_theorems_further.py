"""The inequalities of docs/theorems-further.md in numbers, each with a case that nearly attains it if there is one.

Far from attained, so that a constant wrong by a factor of two would pass: the second moment of a lap and the change of
cosh in it (ratios below 0.05), (5), the lemma of step 3 and (10) (below 0.5), and the compensators of the two
exponentials, of which only the inequalities behind them are tested where they are equations.
"""

import sys
from fractions import Fraction
from math import e, exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest

import psconrl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import theorems
import theorems_further as further

ROUNDING = 1.0 + 1e-9


def test_lengths_of_stages_add_up():
    """Lemma 5: 3.5 is nearly attained, and so is the number of stages, by one epoch of 2^i rounds."""
    total, ratios = 0, []
    for i in range(200):
        total += further.root_above(2**i)
        ratios.append(total / 2 ** (i / 2))
    assert 3.4 < max(ratios) <= 3.5
    assert further.stage_ratios([2**20])["5: number of stages"] == pytest.approx(1)
    assert 0.97 < max(further.stage_ratios([2**i])["5: sum of L_n"] for i in range(30)) <= 1
    rng = np.random.default_rng(0)
    for _ in range(50):
        epochs = list(rng.integers(1, 10 ** int(rng.integers(1, 6)), 20))
        assert max(further.stage_ratios(epochs).values()) <= 1


def test_the_root_is_rounded_up():
    assert [further.root_above(n) for n in (0, 1, 2, 4, 5, 10**30, 10**30 + 1)] == [0, 1, 2, 2, 3, 10**15, 10**15 + 1]


# --- Lemma 8


def test_drift_bounds_noise():
    """Equality on islands without a leak, where a segment is k times the cost of its first round."""
    across = np.array([1.0, -1.0]) / sqrt(2)
    assert further.segment_ratio(further.islands(0.0), across, 30) == pytest.approx(1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        chain = further.drawn_chain(rng)
        assert chain.mu @ chain.P == pytest.approx(chain.mu)
        assert further.segment_ratio(chain, rng.normal(size=2), 25) <= ROUNDING


def test_second_moments_of_segments_are_those_of_all_paths():
    chain, L = further.islands(0.2), 5
    x = np.array([0.5, -0.5])
    u = np.array([further.segment_means(chain, L)[1] @ np.array([1.0, 0.0])])[0]
    paths = np.indices((2,) * L).reshape(L, -1).T
    for first in range(2):
        mine = paths[paths[:, 0] == first]
        weights = np.prod([chain.P[mine[:, t], mine[:, t + 1]] for t in range(L - 1)], axis=0)
        expected = float(weights @ x[mine].sum(axis=1) ** 2)
        assert further.second_moments(chain, x, u)[L, first] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_a_lap_steers_and_its_noise_is_bounded(seed):
    """Axes, mean, second moment and potential of a lap, for all signs of y."""
    rng = np.random.default_rng(seed)
    ratios = further.lap_ratios(further.drawn_chain(rng), int(rng.integers(1, 25)))
    assert ratios.pop("8: alpha <= sqrt(d) r") <= 1.003  # the half axes are made smaller by 1e-3 or 2e-3
    assert ratios.pop("8: mean of a lap") == pytest.approx(1, abs=1e-6)
    assert max(ratios.values()) <= 1


@pytest.mark.parametrize("leak", [0.0, 0.01, 0.3])
def test_a_lap_on_the_islands(leak):
    """Against a slow enumeration of all paths: the mean of cosh after a lap of three rounds."""
    chain, L = further.islands(leak), 3
    x, nu = np.array([0.4, -0.4]), np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]])

    def sums(k):
        """The distribution of a segment of k rounds."""
        found = {}
        for first in range(2):
            paths = {(first, 0.0): nu[k, first]}
            for _ in range(k):
                moved = {}
                for (s, total), weight in paths.items():
                    for t in range(2):
                        key = (t, round(total + x[s], 9))
                        moved[key] = moved.get(key, 0.0) + weight * chain.P[s, t]
                paths = moved
            for (_, total), weight in paths.items():
                found[total] = found.get(total, 0.0) + weight
        return found

    expected = np.mean([
        sum(p * q * np.cosh(0.3 + a + b) for a, p in sums(k).items() for b, q in sums(L - k).items())
        for k in range(L + 1)
    ])  # fmt: skip
    assert further.cosh_after_a_lap(chain, x, nu, 0.3) == pytest.approx(float(expected))
    assert max(further.lap_ratios(chain, 12).values()) <= 1.003


@pytest.mark.parametrize("d", [2, 3, 4, 9])
def test_constants_of_lemma_8(d):
    """With R = 9 d^(3/2) L; the potential, the growth in all laps, and the box."""
    assert 1.057 < exp(1 / 18) < 1.058
    assert 1.058 / 2 * 16 / 9 <= 0.941  # times r / (sqrt(d) R)
    assert 0.941 / 2 / 9 <= 0.0523  # r <= sqrt(d) L / 2
    assert 1.058 / 2 * 4 / 81 <= 0.0262
    assert d * 0.0523 / d**1.5 <= 0.037 * sqrt(2 / d) * ROUNDING
    for n in (2, 3, 4, 5, 100, 10**6):
        L = further.root_above(n)
        growth = exp(0.0262 / d**2)
        assert growth <= 1.02
        assert growth * (d + 0.037 * L) / (d * n**2) <= 1 / n
        walls = log(2 * d * n**2)
        assert 9 * d**2 * L * walls + L <= 10 * d**2 * L * walls - 1


# --- Theorem 6


@pytest.mark.parametrize("price", [0.0, 0.4, 3.0])
def test_the_potential_on_every_path(price):
    """Psi(V + Delta) <= Psi(V) + f Delta + g, nearly attained; Psi in closed form is the integral of f."""
    L = 20
    heights = np.linspace(-60 * L, 60 * L, 81)
    assert 0.8 < max(further.path_ratio(L, price, V) for V in heights) <= ROUNDING
    for V in (-2_000.0, -300.0, 90.0, 2_000.0):
        grid = np.linspace(0.0, V, 20_001)
        integral = np.trapezoid([theorems.tilt_function(v, L, price) for v in grid], grid)
        assert further.potential(np.array([V]), L, price)[0] == pytest.approx(integral, rel=1e-4, abs=1e-9)


def test_the_two_exponentials_are_supermartingales():
    """The compensators with the least valid b; the inequalities behind them are attained at the ends."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        assert max(further.exponential_ratios(rng).values()) <= ROUNDING
    y = np.linspace(-50, 1, 2_001)
    assert (np.exp(y) <= 1 + y + (e - 2) * y**2 + 1e-12).all()
    assert exp(1) == pytest.approx(1 + 1 + (e - 2))
    g = np.linspace(0, 1, 101)
    assert (np.exp(g) <= 1 + (e - 1) * g + 1e-12).all()
    rare = 1e-4  # g is its largest value or 0
    assert log(1 - rare + rare * e) / ((e - 1) * rare) == pytest.approx(1, abs=1e-3)


def test_constants_of_theorem_6():
    share = exp(1 / 8) / 8
    assert share / 2 <= 0.0709
    assert 0.0709 * 2 <= 0.142  # a >= 2 >= 1, so that L (|f| + w) <= 2 a
    assert (e - 1) <= 1.72
    assert 1.72 * 0.85 <= 1.47
    assert 1.72 * 0.29 <= 0.5
    assert (e - 2) * 6 / 8 <= 0.54
    assert (e - 2) * 2 / 8 <= 0.18
    assert 2 / 8 <= 1  # eta times the largest increment
    assert pytest.approx(1 + 0.54 + 1.47) == 3.01  # of b K'
    assert pytest.approx(-0.32) == 0.18 + 0.5 - 1  # of X^-: the mean of f Delta is its positive part less X^-
    assert 8 + 0.142 <= 8.15
    assert 3.01 / 0.32 <= 9.41
    assert 8.15 / 0.32 <= 25.5
    assert 1.47 + 0.5 * 9.41 <= 6.18
    assert 0.5 * 25.5 + 0.142 <= 12.9
    assert 1 + 6.18 <= 7.2
    assert 8 * 3.5 == 28


def test_one_sided_sums_of_a_fair_walk():
    """drawn_sum against independent signs: one state, costs 0 or 1, tau 1/2."""

    class Fair:
        """A generator whose chain has two states that are alike."""

        def __init__(self):
            self.whole = iter([2, 2])

        def integers(self, low, high, size=None):
            return np.full(size, 4) if size else next(self.whole)

        def dirichlet(self, weights, size):
            return np.full((size, len(weights)), 0.5)

        def random(self, shape=None):
            return np.full(shape, 0.5) if shape else 0.6

    found = further.drawn_sum(Fair(), 6, 1.0, True)
    assert found.probabilities.sum(axis=1) == pytest.approx(1)
    assert found.probabilities @ found.values == pytest.approx(0)
    assert found.probabilities @ found.values**2 == pytest.approx(6 / 4)


# --- Theorem 7


@pytest.mark.parametrize("seed", range(8))
def test_values_with_accounts_in_a_box(seed):
    """Spans, slopes between 0 and kappa, and (10), at any price."""
    box = further.drawn_box(np.random.default_rng(seed))
    D = further.extended_diameter(box.P, box.beta)
    ratios = further.box_ratios(box, 15, D)
    assert max(ratios.values()) <= 1 + 1e-7
    assert ratios["7: slope of U in the account"] <= ROUNDING


@pytest.mark.parametrize(("k", "price"), [(1, 0.0), (4, 0.7), (6, 3.0)])
def test_the_span_with_accounts_in_a_box_is_attained(k, price):
    """D (1 + kappa (1 - tau) + lambda tau), and D is that of the library."""
    box = further.steep_box(k, price)
    D = psconrl.diameter(psconrl.CMDP(box.P, box.costs, [0.5]))
    assert (D, further.extended_diameter(box.P, box.beta)) == (pytest.approx(k), pytest.approx(k))
    ratios = further.box_ratios(box, k, D)
    assert ratios["7: span of U"] == pytest.approx(1)
    assert ratios["7: slope of U in the account"] == pytest.approx(1)
    assert ratios["7: (10)"] <= 0.6


def test_values_in_a_box_are_those_of_a_slow_recursion():
    """A ball without a radius is the model; overflow costs kappa, and credit is forgotten."""
    box = further.drawn_box(np.random.default_rng(3))._replace(beta=np.zeros((2, 2)))
    rng = np.random.default_rng(0)
    costs, prices = np.array([[[1, 0], [0, 3]], [[4, 0], [0, 4]]]) / 4, np.array([0.6])
    box = further.Box(rng.dirichlet(np.ones(2), size=(2, 2)), np.zeros((2, 2)), costs, np.array([0.25]), prices, 3, 4)

    def value(s, z, left):
        """The least cost from here, z in quarters."""
        if not left:
            return 0.6 * z / 4
        found = []
        for a in range(2):
            moved = z + round(4 * costs[1, s, a]) - 1
            after = max(-3, min(3, moved))
            rest = sum(box.P[s, a, t] * value(t, after, left - 1) for t in range(2))
            found.append(costs[0, s, a] + 1.6 * max(0, moved - 3) / 4 + rest)
        return min(found)

    values, _ = further.box_values(box, 4)
    assert values[4] == pytest.approx(np.array([[value(s, z, 4) for z in range(-3, 4)] for s in range(2)]))


def test_the_least_value_in_a_ball_is_that_of_the_optimistic_row():
    rng = np.random.default_rng(0)
    P, U = rng.dirichlet(np.ones(4), size=(1, 1)), rng.normal(size=(4, 5, 3))
    for beta in (0.0, 0.3, 2.0):
        found = further.least_in_balls(P[0, 0], beta, U)
        for i, j in np.ndindex(5, 3):
            row = theorems.optimistic_rows(P, np.full((1, 1), beta), U[:, i, j])[0, 0]
            assert found[i, j] == pytest.approx(row @ U[:, i, j])


def test_constants_of_theorem_7():
    """(11), its sum over stages, and until when the walls are never met."""
    for D, m, zeta, L in ((1.0, 1, 1.0, 1), (30.0, 3, 0.01, 50)):
        gamma, kappa = D * (1 + m + 1 / zeta), m + 1 / zeta
        assert (1 + kappa) * (1 + 2 * D * L) + D * (1 + 1 / zeta) <= gamma * (2 + 2 * L) <= 4 * gamma * L
    assert (4 * 3.5, 10 * 3.5) == (14, 35)
    assert 5 * 3.5 <= 18
    for m, met, unmet in ((1, 1_420_000, 1_400_000), (2, 9_330_000, 9_300_000)):
        assert further.half_box(met, m) < met
        assert further.half_box(unmet, m) > unmet


def test_sizes_of_the_bounds():
    """The table in docs/theory.md: where the bounds on the regret of Theorems 6 and 7 are below T."""
    cases = [
        ((2, 2), (1, 0.5), (8.77, 11.37, 12.17)),
        ((4, 2), (5, 0.25), (10.79, 12.26, 13.04)),
        ((20, 4), (20, 0.1), (13.74, 14.17, 14.95)),
    ]
    for sizes, constants, exponents in cases:
        for m, exponent in enumerate(exponents):
            later, earlier = int(10 ** (exponent + 0.04)), int(10 ** (exponent - 0.04))
            for T, below in ((later, True), (earlier, False)):
                regret, violation = (
                    further.box_bounds(*sizes, T, *constants, m) if m else further.staged_bounds(*sizes, T, *constants)
                )
                assert (regret < T) is below
                assert violation < regret * 1.1


# --- Theorem 9


def test_constants_of_theorem_9():
    assert 1.058 / 2 * 4 / 9 <= 0.236  # times 1 / sqrt(d)
    assert 0.941 + 0.236 / 0.5 <= 1.941  # r <= sqrt(d) L / 2, and -r is not there
    for L in (1, 2, 5, 100):
        assert (1.941 * L / 2 + 0.236 / sqrt(2)) / (2 * L) <= 0.66
        assert np.cosh(log(2 * L)) == pytest.approx(L + 1 / (4 * L))
        for H in (L, L + 1, 2 * L * L):
            assert exp(0.0262 / 4 * 2) <= 1.02
            assert e + 2 * 1.02 * (L + 0.25 + 0.02 * H / L) <= 5 * (L + H)
    for d in (2, 3, 10):
        assert 4 * 81 * 2 * d**4 + 8 * (d - 1) <= 652 * d**4  # log^2 is at least 1
    assert log(5 * 2) > 1
    assert 2 * 326 == 652


# --- Proposition 10


def test_the_lemma_with_random_costs_needs_the_additional_a():
    rng = np.random.default_rng(0)
    ratios = [further.noisy_moment_ratios(rng) for _ in range(40)]
    assert max(r["10: second moment with random costs"] for r in ratios) <= 1
    assert max(r["without the additional a (it fails)"] for r in ratios) > 10


def test_constants_of_learned_costs():
    """(3) has 5, (4) has 11, and b has 12, for every price; 2 r is at most beta."""
    for price in (0.0, 0.5, 7.0):
        tilted = 1 + 2 * price  # the largest lambda_k
        assert (4 * (1 + tilted) + 1 + price) / (1 + price) == pytest.approx(9)
        assert (5 * (1 + tilted) + 1 + price) / (1 + price) == pytest.approx(11)
        assert 1 + price <= 1 * (1 + price)  # a <= D (1 + lambda_j)
    S, A, delta = 2, 1, 0.01
    for N in (1, 2, 10, 10**6):
        r = min(1.0, sqrt(log(4 * S * A * N * (N + 1) / delta) / (2 * N)))
        assert min(1.0, 2 * r) <= theorems.radius(S, A, N, delta)
        failing = 2 * exp(-2 * N * (log(4 * S * A * N * (N + 1) / delta) / (2 * N)))  # Hoeffding, both sides
        assert failing * 2 * S * A == pytest.approx(delta / (N * (N + 1)))


# --- Proposition 11

TWINS = {
    "not unique": ((0.25, 0.5), (1.0, 0.25), (0.6, 0.75), (0.85, 1.5), 1 / 30, 1 / 3, 1 / 6),
    "unique": ((0.2, 0.4), (0.4, 0.2), (0.7, 0.7), (0.9, 0.9), 1 / 14, 2 / 7, 5 / 18),
}


@pytest.mark.parametrize("case", TWINS)
def test_prices_of_samples_may_lose_for_ever(case):
    """Both pairs of models: values, prices, the loss, stationary masses and Slater constants."""
    first, second, *prices, loss, mass, slack = TWINS[case]
    models = [further.twin(*first), further.twin(*second)]
    for model, (low, high), (x_b, x_e) in zip(models, prices, (first, second), strict=True):
        plan = psconrl.plan(model.model)
        assert plan.value == pytest.approx(0.75)
        assert low - 1e-6 <= plan.multipliers[0] <= high + 1e-6
        assert [model.dual(price) for price in (low, high)] == pytest.approx([0.75, 0.75])
        assert max(model.dual(low - 0.01), model.dual(high + 0.01)) < 0.75 - 1e-3
        assert model.lines[0] == pytest.approx([0.75, 0.5])  # always a is optimal
        for price in (0.3, low, high, 2.0):
            alone = psconrl.CMDP(model.model.transition.toarray().reshape(2, 3, 2),
                                 [model.model.costs[0] + price * (model.model.costs[1] - 0.5)])  # fmt: skip
            assert psconrl.plan(alone).value == pytest.approx(model.dual(price))
        assert 0.5 - psconrl.plan(psconrl.CMDP(alone.transition, model.model.costs[1:])).value >= slack - 1e-9
        shares = [leave / (leave + 0.5) for leave in (0.5, x_b, x_e)]
        assert min(min(share, 1 - share) for share in shares) >= mass - 1e-12
    losses = [0.75 - models[i].dual(price) for i in (0, 1) for price in np.linspace(*prices[1 - i], 11)]
    assert min(losses) == pytest.approx(loss)
    if case == "unique":
        assert max(losses) == pytest.approx(loss)


def test_the_loss_with_unique_prices_in_fractions():
    half, price_first, price_second = Fraction(1, 2), Fraction(7, 10), Fraction(9, 10)
    b = 1, Fraction(1, 5) / Fraction(7, 5)
    x = Fraction(1, 5)
    always_e = (x + 2 * x) / (2 * x + 1), (1 + x) / (2 * x + 1)
    assert b[0] + price_second * (b[1] - half) == always_e[0] + price_first * (always_e[1] - half) == Fraction(19, 28)
    assert Fraction(3, 4) - Fraction(19, 28) == Fraction(1, 14)


def test_the_sum_of_proposition_11():
    """Part (b): twice the root of 2 / t, added up."""
    for T in (1, 10, 10**4):
        assert (2 * np.sqrt(2 / np.arange(1, T + 1))).sum() <= 4 * sqrt(2 * T) <= 6 * sqrt(T)
