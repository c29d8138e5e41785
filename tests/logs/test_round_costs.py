"""Draws of costs that are learned: moments in closed form, correlations, and what was never tried."""

import numpy as np

from psconrl.data.log import Log
from psconrl.data.posterior.round_costs import RoundCosts, _root
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.learning.posterior.transition_beliefs import Dirichlet


def log_of(actions: list[int], costs: np.ndarray, n_actions: int = 2, signs: list[float] | None = None) -> Log:
    """Return a log of one state."""
    n, q = costs.shape
    return Log.of_arrays(
        n_states=1,
        n_actions=n_actions,
        states=np.zeros(n, dtype=int),
        actions=np.array(actions),
        next_states=np.zeros(n, dtype=int),
        costs=costs,
        cost_names=tuple(f"cost {i}" for i in range(q)),
        signs=np.ones(q) if signs is None else np.array(signs),
    )


def test_moments_of_means() -> None:
    """Means 2 and 13 of two and of four observations, pooled variance (2 + 20) / 4; five standard errors."""
    costs = np.array([[1.0], [3.0], [10.0], [12.0], [14.0], [16.0]])
    posterior = RowPosterior(log_of([0, 0, 1, 1, 1, 1], costs), Dirichlet())
    drawn = posterior.draw(20_000, np.random.default_rng(0)).costs[:, 0]
    variance = 5.5 / np.array([2.0, 4.0])
    error = np.sqrt(variance / 20_000)
    assert (np.abs(drawn.mean(axis=0) - [2.0, 13.0]) < 5.0 * error).all()
    assert (np.abs(drawn.var(axis=0) / variance - 1.0) < 5.0 * np.sqrt(2.0 / 20_000)).all()


def test_noise_is_pooled_over_what_can_show_it() -> None:
    """An outcome that was seen once says nothing about noise; rows of correlations have unit length."""
    costs = np.array([[1.0, 0.0], [3.0, 5.0], [10.0, 1.0]])
    found = RoundCosts(log_of([0, 0, 1], costs))
    np.testing.assert_allclose(found.noise**2, [2.0, 12.5])
    correlation = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])  # of no variables whatever
    root = _root(correlation)
    np.testing.assert_allclose((root.T @ root).diagonal(), 1.0)


def test_a_reward_is_a_negative_cost() -> None:
    """Signs turn what is large when good into a cost."""
    found = RoundCosts(log_of([0, 1], np.array([[4.0], [5.0]]), signs=[-1.0]))
    assert found.means.ravel().tolist() == [-4.0, -5.0]


def test_a_copied_cost_has_the_same_draws() -> None:
    """Noise of costs in a round is correlated as it was in the log: fully, half, and not at all."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 4000))
    costs = np.column_stack([first, first, 0.5 * first + np.sqrt(0.75) * second, -2.0 * first])
    models = RowPosterior(log_of([0, 1] * 2000, costs), Dirichlet()).draw(4000, rng)
    drawn = models.costs[:, :, 0]
    # Roots of eigenvalues that rounding makes 1e-17 in place of 0 remain.
    np.testing.assert_allclose(drawn[:, 1], drawn[:, 0], atol=1e-7)
    np.testing.assert_allclose(drawn[:, 3], -2.0 * drawn[:, 0], atol=1e-7)
    # Standard errors of both correlations are about 0.75 / sqrt(4000).
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1] - 0.5) < 5.0 * 0.75 * np.sqrt(2.0 / 4000)


def test_unknown_costs_count_for_nothing() -> None:
    """Means are over the rounds in which a cost is known, and correlations over those in which both are."""
    costs = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 7.0], [5.0, 9.0]])
    found = RoundCosts(log_of([0, 0, 0, 0], costs))
    np.testing.assert_allclose(found.means, [[3.0, 7.0]])
    assert found.times.tolist() == [[3.0, 3.0]]
    np.testing.assert_allclose(found.correlation, [[1.0, np.sqrt(0.5)], [np.sqrt(0.5), 1.0]])


def test_what_was_never_tried_costs_what_its_state_or_action_does() -> None:
    """State 1 was left by action 0 alone: action 1 costs what it does there, or what action 1 does elsewhere."""
    log = Log.of_arrays(
        n_states=3,
        n_actions=2,
        states=np.array([0, 0, 1, 2]),
        actions=np.array([0, 1, 0, 0]),
        next_states=np.array([0, 1, 2, 0]),
        costs=np.array([[1.0], [2.0], [3.0], [50.0]]),
        cost_names=("cost",),
    )
    drawn = RowPosterior(log, Dirichlet()).draw(400, np.random.default_rng(2)).costs[:, 0]
    assert set(drawn[:, 3].round(9)) == {3.0, 2.0}
    assert set(drawn[:, 5].round(9)) == {50.0, 2.0}
    # Each of two with probability one half; five standard errors.
    assert abs((drawn[:, 3].round(9) == 3.0).mean() - 0.5) < 5.0 * 0.5 / np.sqrt(400)
