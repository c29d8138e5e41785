"""What more data would settle: formulas against draws, brute force and closed forms."""

import numpy as np
import pytest
from scipy.stats import norm

from psconrl.data.advice.comparison import Compared
from psconrl.data.advice.evidence import (
    RELIABLE,
    Margin,
    _aimed_at,
    _explained,
    _rounds,
    margin_of,
    needed,
    value_of_information,
    variances,
)
from psconrl.data.log import Log
from psconrl.data.posterior.mean_model import mean_model
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.learning.posterior.transition_beliefs import Dirichlet


def three_states(seed: int = 0, rounds: int = 6000) -> tuple[Log, np.ndarray]:
    """Return a log of three states and two actions, and known costs (2, 3, 2)."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=6)
    state, rows = 0, []
    for _ in range(rounds):
        action = int(rng.integers(2))
        after = int(rng.choice(3, p=P[2 * state + action]))
        rows.append((state, action, after))
        state = after
    states, actions, successors = np.array(rows).T
    log = Log.of_arrays(
        n_states=3, n_actions=2, states=states, actions=actions, next_states=successors,
        costs=np.zeros((rounds, 2)), cost_names=("cost", "limited"),
    )  # fmt: skip
    return log, rng.random((2, 3, 2))


def test_deviations_are_those_of_a_dirichlet() -> None:
    """Parameters are the counts and an observation spread over all states: h' C h with the covariance matrix C."""
    log, costs = three_states(rounds=60)
    posterior = RowPosterior(log, Dirichlet(), costs)
    mean = mean_model(posterior, posterior.draw(4, np.random.default_rng(0)))
    h = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
    found = mean.deviations(h)
    for pair in range(6):
        alpha = log.counts().transitions.reshape(6, 3)[pair] + 1.0 / 3.0
        p = alpha / alpha.sum()
        covariance = (np.diag(p) - np.outer(p, p)) / (alpha.sum() + 1.0)
        np.testing.assert_allclose(found[:, pair] ** 2, np.einsum("is,st,it->i", h, covariance, h), rtol=1e-9)
    noisy = mean._replace(cost_noise=np.full((2, 6), 0.3))
    np.testing.assert_allclose(noisy.deviations(h) ** 2, found**2 + 0.09)


@pytest.mark.parametrize("cost", [0, 1])
def test_variances_of_rows_add_up_to_that_of_the_margin(cost: int) -> None:
    """The variance of a margin in draws, of 6,000 rounds; its standard error is 3%, higher orders are about as much."""
    log, costs = three_states()
    posterior = RowPosterior(log, Dirichlet(), costs)
    rng = np.random.default_rng(1)
    models = posterior.draw(2000, rng)
    models = models._replace(behaviours=np.full((2000, 3, 2), 0.5))
    mean = mean_model(posterior, models)._replace(today=np.full((3, 2), 0.5))
    policy = np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])
    drawn = models.averages(policy)
    margin = models.today()[:, 0] - drawn[:, 0] if cost == 0 else drawn[:, 1]
    found = variances(mean, policy, cost)
    assert found.sum() == pytest.approx(margin.var(), rel=0.15)
    # Noise of costs adds up independently, in proportion to how often a pair is taken, or how much more often.
    weight = [mean.evaluate(one).occupancy.ravel() for one in (policy, mean.today)]
    noisy = variances(mean._replace(cost_noise=np.full((2, 6), 0.3)), policy, cost)
    np.testing.assert_allclose(noisy - found, (0.3 * (weight[0] - (weight[1] if cost == 0 else 0.0))) ** 2, atol=1e-15)


def test_the_margin_that_is_least_settled() -> None:
    """Limits with margins of 2 and 1 deviations, and a gain of 3; three claims share the error."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(50_000, 3))
    today = np.column_stack([np.full(50_000, 10.0), np.zeros((50_000, 2))])
    averages = np.array([7.0, 1.0, 2.0]) + z * [1.0, 0.5, 1.0]
    found = margin_of(averages, today, np.array([2.0, 3.0]), 0.95)
    assert found.cost == 2
    assert found.mean == pytest.approx(1.0, abs=0.03)  # more than five standard errors
    assert found.deviation == pytest.approx(1.0, abs=0.03)
    assert found.wanted == pytest.approx(norm.ppf(1.0 - 0.05 / 3.0))
    dearer = averages + np.array([6.0, 0.0, 0.0])
    assert margin_of(dearer, today, np.array([2.0, 3.0]), 0.95).cost == 0
    limit = margin_of(dearer, today, np.array([2.0, 3.0]), 0.95, limits_only=True)
    assert (limit.cost, limit.wanted) == (2, pytest.approx(norm.ppf(1.0 - 0.05 / 2.0)))


def test_the_aim_is_met_nine_times_in_ten() -> None:
    """With the deviation aimed at, an estimate of the margin, which is uncertain, is enough of them from zero."""
    margin = Margin(0, 3.6, 2.0, 1.645)
    sigma = _aimed_at(margin)
    z = np.random.default_rng(3).normal(size=(2, 200_000))
    estimates = 3.6 + 2.0 * z[0] + sigma * z[1]
    assert (estimates >= 1.645 * sigma).mean() == pytest.approx(RELIABLE, abs=5.0 * 0.3 / np.sqrt(200_000))


def test_a_small_margin_is_taken_for_half_a_deviation() -> None:
    """A true margin of half a deviation is found large enough with probability 0.9, whatever its estimate is."""
    for mean in (-5.0, 0.0, 2.0):
        sigma = _aimed_at(Margin(0, mean, 2.0, 1.645))
        assert norm.cdf((1.0 - 1.645 * sigma) / sigma) == pytest.approx(RELIABLE)
    assert _aimed_at(Margin(0, 0.0, 0.0, 1.645)) > 0.0


def test_rounds_by_brute_force() -> None:
    """The first whole number of rounds whose variances are small enough."""
    variance, weights, occupancy = np.array([5.0, 2.0, 0.3]), np.array([2.0, 3.0, 1.0]), np.array([0.2, 0.5, 0.3])
    found = _rounds(variance, weights, occupancy, 2.4)
    slow = next(T for T in range(1000) if (variance * weights / (weights + T * occupancy)).sum() <= 2.4)
    assert slow - 1 < found <= slow
    assert _rounds(variance, weights, occupancy, 8.0) == 0.0
    assert np.isinf(_rounds(variance, weights, np.array([0.0, 1.0, 1.0]), 2.4))


def test_value_of_an_experiment_by_draws() -> None:
    """E max(G^, 0) - max(E G, 0) if the experiment leaves a variance of 1 of 4; six standard errors."""
    learned = np.random.default_rng(4).normal(0.4, np.sqrt(3.0), size=400_000)
    drawn = np.maximum(learned, 0.0)
    slow = drawn.mean() - 0.4
    assert abs(value_of_information(0.4, np.sqrt(3.0)) - slow) < 6.0 * drawn.std() / np.sqrt(drawn.size)


def test_what_is_needed_of_rows() -> None:
    """The cheapest of the experiments, for two parts of a log; the pair with the largest share of variance is first."""
    log, costs = three_states(rounds=400)
    posterior = RowPosterior(log, Dirichlet(), costs)
    mean = mean_model(posterior, posterior.draw(200, np.random.default_rng(5)))
    policy = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    margin = Margin(1, 0.05, 0.05, 1.96)
    found = needed(mean, policy, margin, parts=2)
    variance = variances(mean, policy, 1)
    s, a = found.matters[0]
    assert variance.argmax() == 2 * s + a
    np.testing.assert_allclose(found.shares[0], variance.max() / variance.sum())
    weights = mean.weights + 2.0
    goal = variance.sum() * (_aimed_at(margin) / margin.deviation) ** 2
    slow = {}
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        played = mean.evaluate((1.0 - share) * mean.today + share * policy)
        slow[share] = 2.0 * _rounds(variance, weights, played.occupancy.ravel(), goal)
    assert found.rounds == pytest.approx(min(slow.values()))
    assert slow[found.share_of_proposal] == found.rounds
    assert 0.0 <= found.value <= found.perfect


def test_a_parameter_explains_its_share() -> None:
    """A margin of 3x + y with unit variances: x explains 9 of 10; five standard errors of a squared correlation."""
    x, y = np.random.default_rng(6).normal(size=(2, 20_000))
    assert _explained(x[:, None], 3.0 * x + y) == pytest.approx(0.9, abs=5.0 * 2.0 * 0.1 * np.sqrt(0.9 / 20_000))
    assert _explained(x[:, None], np.zeros(20_000)) == 0.0


def test_safety_counts_deviations() -> None:
    """A slack of two deviations and a gain of one; without any limit only the gain counts."""
    z = np.array([-1.0, 1.0, -1.0, 1.0])
    averages = np.column_stack([5.0 + 0.0 * z, 1.0 + 0.5 * z])
    today = np.column_stack([6.0 + z, 1.0 + 0.0 * z])
    found = Compared("", averages, today, np.array([2.0]))
    assert found.safety_of_limits == pytest.approx(2.0)
    assert found.safety == pytest.approx(1.0)
    free = Compared("", averages[:, :1], today[:, :1], np.empty(0))
    assert (free.safety_of_limits, free.keeps_all) == (np.inf, 1.0)
    mean, low, high = found.gain(0.5)
    assert (mean, low, high) == (1.0, 0.0, 2.0)


@pytest.mark.parametrize("cost", [0, 1])
def test_variance_of_a_row_in_closed_form(cost: int) -> None:
    """The covariance of a Dirichlet row with 60 rounds in all, and what a change of the row changes in the margin."""
    log, costs = three_states(rounds=60)
    posterior = RowPosterior(log, Dirichlet(), costs)
    mean = mean_model(posterior, posterior.draw(4, np.random.default_rng(0)))
    policy = np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])
    own, today = mean.evaluate(policy), mean.evaluate(mean.today)
    found = variances(mean, policy, cost)
    for pair in range(6):
        alpha = log.counts().transitions.reshape(6, 3)[pair] + 1.0 / 3.0
        p = alpha / alpha.sum()
        h = own.occupancy.ravel()[pair] * own.biases[cost]
        if cost == 0:
            h = h - today.occupancy.ravel()[pair] * today.biases[0]
        np.testing.assert_allclose(found[pair], h @ (np.diag(p) - np.outer(p, p)) @ h / (alpha.sum() + 1.0), rtol=1e-9)
