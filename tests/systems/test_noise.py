"""Distributions of noise against closed forms and simulation, and their sufficient statistics."""

from math import comb, exp, factorial

import numpy as np
import pytest

from psconrl.errors import ModelError
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson, noise_from_dict
from psconrl.systems.priors import Beta, Gamma, Weights


def test_binomial_probabilities():
    noise = Binomial("n", 0.3)
    table = noise.table(noise.known, {"n": np.array([0.0, 4.0]), "times": np.ones(1)}, 2)
    np.testing.assert_allclose(table[0], [1, 0, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(table[1], [comb(4, k) * 0.3**k * 0.7 ** (4 - k) for k in range(5)], rtol=1e-13)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_binomial_of_certain_trials(p):
    table = Binomial(3, p).table(np.array([p]), {"n": np.array([3.0]), "times": np.ones(1)}, 1)
    np.testing.assert_array_equal(table[0], [1, 0, 0, 0] if p == 0 else [0, 0, 0, 1])


def test_poisson_probabilities_end_with_all_larger_counts():
    noise = Poisson(1.7, most=4)
    table = noise.table(noise.known, {"times": np.array([1.0, 2.0, 0.0])}, 3)
    for row, mean in zip(table, (1.7, 3.4, 0.0), strict=True):
        first = [exp(-mean) * mean**k / factorial(k) for k in range(4)]
        np.testing.assert_allclose(row, [*first, 1.0 - sum(first)], atol=1e-14)


def test_geometric_probabilities_end_with_all_larger_counts():
    noise = Geometric(0.25, most=3)
    np.testing.assert_allclose(
        noise.table(noise.known, {"times": np.ones(1)}, 1)[0], [0.25, 0.1875, 0.140625, 0.421875]
    )


def test_a_parameter_may_be_an_expression():
    noise = Bernoulli("0.1 * staff")
    arguments = {"when": np.ones(2), "times": np.ones(2), "p": np.array([0.1, 0.3])}
    np.testing.assert_allclose(noise.table(np.zeros(1), arguments, 2), [[0.9, 0.1], [0.7, 0.3]])


COUNTS = np.array([[3.0, 2.0, 0.0, 1.0], [1.0, 0.0, 4.0, 0.0]])


def test_statistics_of_the_binomial_are_successes_and_failures():
    found = Binomial("n", Beta()).statistics(
        COUNTS, np.zeros(1), {"n": np.array([3.0, 2.0]), "times": np.ones(1)}, None
    )
    np.testing.assert_array_equal(found, [2 + 3 + 8, (6 * 3 + 5 * 2) - 13])


def test_statistics_of_the_geometric_are_successes_and_failures():
    found = Geometric(Beta(), most=3).statistics(COUNTS, np.zeros(1), {"times": np.ones(2)}, None)
    np.testing.assert_array_equal(found, [10, 2 + 3 + 8])  # the one count of 3 or more has no success


def test_statistics_of_the_poisson_draw_the_counts_beyond_the_most():
    rng = np.random.default_rng(3)
    counts = np.array([[0.0, 0.0, 2000.0]])
    mean = 1.5
    found = Poisson(Gamma(1, 1), most=2).statistics(counts, np.array([mean]), {"times": np.ones(1)}, rng)
    shares = np.array([exp(-mean) * mean**k / factorial(k) for k in range(60)])
    tail = shares[2:] / shares[2:].sum()
    k = np.arange(2, 60)
    expected, spread = tail @ k, np.sqrt(tail @ k**2 - (tail @ k) ** 2)
    assert found[1] == 2000
    assert abs(found[0] / 2000 - expected) < 5 * spread / np.sqrt(2000)  # false alarm: 6e-7


def test_statistics_of_the_poisson_below_the_most_are_exact():
    found = Poisson(Gamma(1, 1), most=3).statistics(
        np.array([[1.0, 2.0, 3.0, 0.0]]), np.ones(1), {"times": np.array([0.5])}, None
    )
    np.testing.assert_array_equal(found, [8, 3.0])


def test_statistics_of_values_are_their_numbers():
    found = Categorical([1, 2, 3, 4], prior=1).statistics(COUNTS, np.zeros(4), {}, None)
    np.testing.assert_array_equal(found, [4, 2, 4, 1])


@pytest.mark.parametrize(
    ("prior", "statistics", "mean", "variance"),
    [
        (Gamma(2, 3), [5, 4], 7 / 7, 7 / 49),
        (Beta(2, 3), [5, 4], 7 / 14, 7 * 7 / (14**2 * 15)),
        (Weights([1, 2]), [3, 4], [4 / 10, 6 / 10], 4 * 6 / (10**2 * 11)),
    ],
)
def test_posteriors(prior, statistics, mean, variance):
    rng = np.random.default_rng(11)
    drawn = np.array([prior.draw(np.array(statistics, dtype=float), rng) for _ in range(4000)])
    # Six standard errors each: a false alarm once in 10^8 tests.
    np.testing.assert_allclose(drawn.mean(axis=0), np.atleast_1d(mean), atol=6 * (variance / 4000) ** 0.5)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.25)


def test_about_says_what_a_belief_is_worth():
    assert repr(Gamma.about(2.3, worth=10)) == "Gamma(23, 10)"
    assert repr(Beta.about(0.25, worth=8)) == "Beta(2, 6)"
    assert Gamma(2, 4).mean() == [0.5]
    assert Beta(1, 3).mean() == [0.25]
    np.testing.assert_allclose(Weights([1, 3]).mean(), [0.25, 0.75])


@pytest.mark.parametrize(
    "noise",
    [
        Binomial(3, 0.2), Bernoulli(Beta(2, 1)), Poisson(Gamma(2, 1), most=5, times=2), Geometric(0.3, most=4),
        Categorical(["a", "b"], prior=[1, 2]), Categorical({1: 0.5, 4: 0.5}), Joint([(0, "a"), (2, "b")], prior=[1, 2]),
        Joint({(0, "a"): 0.25, (2, "b"): 0.75}), Geometric(Beta(), most=2, times=0.5), Bernoulli(0.3, times=0.5),
    ],
)  # fmt: skip
def test_plain_data_describes_a_noise(noise):
    arguments = {key: np.array([float(value)]) for key, value in noise.arguments.items()}
    other = noise_from_dict(noise.to_dict())
    parameter = noise.prior.mean() if noise.prior else noise.known
    np.testing.assert_array_equal(other.outcomes(arguments), noise.outcomes(arguments))
    np.testing.assert_array_equal(other.table(parameter, arguments, 1), noise.table(parameter, arguments, 1))
    assert repr(other.prior) == repr(noise.prior)
    assert repr(other) == repr(noise)


@pytest.mark.parametrize(
    ("noise", "shown"),
    [
        (Poisson("0.5 * hour", most=3, times="hour"), "Poisson(rate=0.5 * hour, most=3, times=hour)"),
        (Bernoulli(Beta(2, 1), when=lambda hour: hour < 3), "Bernoulli(p=Beta(2, 1), when=a function)"),
        (Binomial("hour", 0.25), "Binomial(n=hour, p=0.25)"),
        (
            Categorical({"a": "hour / 24", "b": lambda hour: 1 - hour / 24}),
            "Categorical(values=['a', 'b'], probabilities=['hour / 24', 'a function'])",
        ),
    ],
)
def test_noise_of_an_agent_that_was_loaded_is_shown_as_it_was_given(noise, shown):
    assert repr(noise) == repr(noise_from_dict(noise.to_dict())) == shown


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bernoulli(1.5), lambda: Bernoulli(Gamma(1, 1)), lambda: Poisson(-1, most=3), lambda: Poisson(1, most=0),
        lambda: Poisson(1, most=2.5), lambda: Categorical([1, 1], prior=1), lambda: Categorical([1, 2], [0.5, 0.6]),
        lambda: Categorical([1, 2]), lambda: Categorical([1, 2], [0.5, 0.5], prior=1), lambda: Categorical([], prior=1),
        lambda: Categorical([1, 2], [1.0]), lambda: Gamma(0, 1), lambda: Gamma(1, np.inf), lambda: Beta("a", 1),
        lambda: Beta.about(1.2, 3), lambda: Weights([1, -1]), lambda: Poisson(Beta(), most=3),
        lambda: Categorical({1: 0.5}, [0.5]), lambda: Categorical([[1], [2]], prior=1),
    ],
)  # fmt: skip
def test_wrong_noise_is_refused(make):
    with pytest.raises(ModelError):
        make()
