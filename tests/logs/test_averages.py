"""Averages of the policy that wrote a log: batch means, and when they contradict the model."""

import numpy as np
from scipy.stats import chi2, t

from log_samples import shop, shop_rows
from psconrl.data.advice.averages import BatchMeans, Unexplained, _disagreement, todays_averages
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


def cycle(rounds: int, length: int, seed: int) -> Log:
    """Return a log that goes around a ring, and waits in the last state with probability 0.3; only there it pays."""
    rng = np.random.default_rng(seed)
    path = [0]
    for wait in rng.random(rounds) < 0.3:
        s = path[-1]
        path.append(s if s == length - 1 and wait else (s + 1) % length)
    states = np.array(path)
    return Log.of_arrays(
        n_states=length,
        n_actions=1,
        states=states[:-1],
        actions=np.zeros(rounds, dtype=int),
        next_states=states[1:],
        costs=(states[:-1, None] == length - 1).astype(float),
        cost_names=("cost",),
    )


def test_what_is_unexplained_by_a_slow_loop() -> None:
    """The mean of the log is that of the model, plus what its ends explain, plus what is unexplained, exactly."""
    log, h, average = cycle(203, 7, 0), np.random.default_rng(0).normal(size=7), 0.3
    found = Unexplained.of(log, 0, average, h)
    left = [
        cost + h[after] - h[before] - average
        for cost, before, after in zip(log.costs[:, 0], log.states, log.next_states, strict=True)
    ]
    np.testing.assert_allclose(found.batch.mean, np.mean(left))
    np.testing.assert_allclose(log.costs[:, 0].mean(), average + found.ends + found.batch.mean)
    np.testing.assert_allclose(found.error, np.sqrt(np.var(left) / len(left)))
    np.testing.assert_allclose(found.batch.error, BatchMeans.of(np.array(left)).error)


def test_a_deterministic_log_leaves_rounding_alone() -> None:
    """Nothing varies but rounding residues, which are not compared."""
    log = cycle(203, 7, 0)
    log.costs[:, 0] = log.states == 0
    states = np.arange(203) % 7
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    fields |= {"states": states, "next_states": (states + 1) % 7, "costs": (states[:, None] == 0) / 3.0}
    own = Log.of_arrays(**fields)
    (found,) = todays_averages(own, RowPosterior(own), draws=100)
    assert found.disagreement == ""


def test_a_right_model_of_a_cycle_is_not_accused() -> None:
    """Batches of ten rounds of a cycle of seven, and of chains that begin far from their usual states.

    The false-alarm rate is 1% a log; more than 12 of 300 logs have a probability of 1e-5.
    """
    alarms = 0
    for seed in range(300):
        log = cycle(203, 7, seed)
        (found,) = todays_averages(log, RowPosterior(log), draws=40, seed=seed)
        alarms += found.disagreement != ""
    assert alarms <= 12


def test_where_the_rounds_began_is_separated_from_what_is_wrong() -> None:
    """A queue that fills up from empty: the mean of the log is lower than the long run, and the model explains it."""
    rng = np.random.default_rng(0)
    path = [0]
    for up in rng.random(240) < 0.7:
        path.append(min(path[-1] + 1, 30) if up else max(path[-1] - 1, 0))
    states = np.array(path)
    log = Log.of_arrays(
        n_states=31,
        n_actions=1,
        states=states[:-1],
        actions=np.zeros(240, dtype=int),
        next_states=states[1:],
        costs=states[:-1, None].astype(float),
        cost_names=("waiting",),
    )
    (found,) = todays_averages(log, RowPosterior(log), draws=200)
    assert found.batch is not None
    low, high = found.batch.interval(0.95)
    assert found.ends < -0.5 * (high - low)
    assert found.disagreement == ""
    assert "where the rounds began and ended" in str(found)


def test_a_cost_that_never_varied_says_so() -> None:
    """No breakdown in 200 rounds: at 95%, one occurs in at most 1 - 0.05^(1/200) = 1.49% of rounds."""
    log = walk(200, False, 0)
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    own = Log.of_arrays(**(fields | {"costs": np.zeros((200, 1))}))
    (found,) = todays_averages(own, RowPosterior(own), draws=50)
    assert found.never_varied == 200
    assert "1.49% of rounds" in str(found)
    (varied,) = todays_averages(log, RowPosterior(log), draws=50)
    assert varied.never_varied == 0


def test_disagreement_begins_at_the_quantiles() -> None:
    """Batches that vary as much as the chi-square quantile allows, and a mean as far off as Student's t allows."""
    drawn, level, plain = np.full(50, 2.0), 0.001, BatchMeans(2.0, 0.1, 20)
    edge = np.sqrt(chi2.isf(level, 19) / 19)
    for factor, odd in ((0.999, False), (1.001, True)):
        left = Unexplained(BatchMeans(0.0, edge * factor, 20), 1.0, 0.0)
        assert ("something that changes slowly" in _disagreement(drawn, plain, left, level)) == odd
        far = t.isf(level / 2.0, 19) * factor
        left = Unexplained(BatchMeans(-far, 1.0, 20), 1.0, 0.0)
        assert ("standard errors apart" in _disagreement(drawn, plain, left, level)) == odd
        # The posterior is uncertain by 3, the batches by 4.
        spread = np.array([-3.0, 3.0])
        left = Unexplained(BatchMeans(5.0 * far, 4.0, 20), 1.0, 0.0)
        assert ("standard errors apart" in _disagreement(spread, plain, left, level)) == odd


def test_intervals_have_their_level() -> None:
    """A share of 4,000 rounds is nearly normal: half-lengths of 50% and 95% are 0.674 and 1.96 standard errors."""
    log = walk(4000, False, 2)
    error = np.sqrt(0.25 / 4000)
    for level, quantile in ((0.5, 0.6745), (0.95, 1.96)):
        (found,) = todays_averages(log, RowPosterior(log), level=level, draws=8000)
        # A standard error of these quantiles of 8,000 draws is below 2%.
        np.testing.assert_allclose((found.high - found.low) / 2.0, quantile * error, rtol=0.1)


def test_rounds_with_unknown_costs_are_no_sample_of_all() -> None:
    """What emptied the shelf is not known to the log: the rounds in which nothing was lost are not compared."""
    rows = shop_rows(1_000, seed=3)
    log = Log({name: rows[name] for name in ("shelf", "order")}, system=shop())
    lost = next(one for one in log.averages() if one.name == "lost")
    assert (lost.batch, lost.disagreement) == (None, "")
