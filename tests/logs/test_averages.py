"""Averages of the policy that wrote a log: batch means, and when they contradict the model."""

import numpy as np
from scipy.stats import t

from psconrl.data.advice.averages import BatchMeans, todays_averages
from psconrl.data.log import Log
from psconrl.data.posterior.row_posterior import RowPosterior


def walk(rounds: int, hidden: bool, seed: int) -> Log:
    """Return a log of two states; if ``hidden``, their probabilities depend on a regime that changes rarely."""
    rng = np.random.default_rng(seed)
    regime = np.cumsum(rng.random(rounds) < 0.01) % 2
    high = np.where(regime == 1, 0.9, 0.1) if hidden else np.full(rounds, 0.5)
    path = np.append(0, (rng.random(rounds) < high).astype(int))
    return Log.of_arrays(
        n_states=2,
        n_actions=1,
        states=path[:-1],
        actions=np.zeros(rounds, dtype=int),
        next_states=path[1:],
        costs=path[:-1, None].astype(float),
        cost_names=("cost",),
    )


def test_batch_means_by_hand() -> None:
    """Seven values in three batches of two; the last value is in the mean alone."""
    found = BatchMeans.of(np.array([1.0, 3.0, 4.0, 8.0, 0.0, 4.0, 9.0]), batches=3)
    means = np.array([2.0, 6.0, 2.0])
    error = np.sqrt(((means - means.mean()) ** 2).sum() / 2 / 3)
    assert found.mean == 29.0 / 7.0
    np.testing.assert_allclose(found.error, error)
    half = t.ppf(0.975, 2) * error
    np.testing.assert_allclose(found.interval(0.95), (found.mean - half, found.mean + half))


def test_few_rounds_have_no_error() -> None:
    """One round makes no batches."""
    found = BatchMeans.of(np.array([2.0]))
    assert (found.mean, found.batches) == (2.0, 1)
    assert np.isnan(found.error)


def test_a_hidden_regime_is_noticed() -> None:
    """Batches vary several times as much as the model explains; a right model is not accused (false alarm 1%)."""
    (hidden,), (plain,) = (
        todays_averages(log, RowPosterior(log), draws=500) for log in (walk(8000, True, 0), walk(8000, False, 0))
    )
    assert "not in the state" in hidden.disagreement
    assert plain.disagreement == ""
    assert plain.low < 0.5 < plain.high  # false alarm 5%
    assert str(plain).startswith("cost: 0.")


def test_rewards_keep_their_sign() -> None:
    """A log of rewards has averages in the units of the log."""
    log = walk(500, False, 1)
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__} | {"signs": np.array([-1.0])}
    (reward,) = todays_averages(Log.of_arrays(**fields), RowPosterior(Log.of_arrays(**fields)), draws=200)
    assert reward.low < reward.mean < reward.high
    assert reward.low > 0.0
    assert reward.batch is not None
    assert reward.batch.mean > 0.0
