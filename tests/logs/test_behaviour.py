"""The posterior of the policy that wrote a log: masses, common frequencies and draws, against slow sums."""

import numpy as np

from psconrl.data.posterior.behaviour import MASSES_OF_BEHAVIOUR, Behaviour

PAIRS = np.array([[7, 0, 1], [0, 3, 0], [2, 2, 0], [0, 0, 0]])


def urn(pairs: np.ndarray, mass: float) -> tuple[float, np.ndarray]:
    """Return the log-probability of visits (S, A) in any order, and the expected draws (A,) from common frequencies.

    One action after the other: it is drawn from the common frequencies, or repeats an earlier one of its state.
    """
    usual = pairs.sum(axis=0) / pairs.sum()
    log, common = 0.0, np.zeros(pairs.shape[1])
    for row in pairs:
        total = 0
        for a, n in enumerate(row):
            for k in range(n):
                log += np.log((mass * usual[a] + k) / (mass + total))
                common[a] += mass * usual[a] / (mass * usual[a] + k)
                total += 1
    return log, common


def test_masses_are_weighed_by_the_probability_of_an_urn() -> None:
    """The likelihood of every mass, and the expected numbers of actions that came from the common frequencies."""
    slow = [urn(PAIRS, mass) for mass in MASSES_OF_BEHAVIOUR]
    shares = np.exp([log for log, _ in slow])
    found = Behaviour(PAIRS)
    np.testing.assert_allclose(found._shares, shares / shares.sum(), rtol=1e-9)
    np.testing.assert_allclose(found._common, [common for _, common in slow], rtol=1e-9)


def test_draws_have_the_mean() -> None:
    """Five standard errors; the mean takes the expected common frequencies."""
    found = Behaviour(PAIRS)
    drawn = found.draw(8000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.sum(axis=2), 1.0)
    error = drawn.std(axis=0) / np.sqrt(8000)
    assert (np.abs(drawn.mean(axis=0) - found.mean()) <= 5.0 * error + 1e-9).all()


def test_an_action_that_was_never_taken_has_no_share() -> None:
    """In no draw, and not in the mean."""
    found = Behaviour(np.array([[3, 0, 1], [0, 0, 2]]))
    assert (found.mean()[:, 1] == 0.0).all()
    assert (found.draw(20, np.random.default_rng(0))[:, :, 1] == 0.0).all()


def test_a_rule_that_explores_is_not_taken_for_common_frequencies() -> None:
    """A rule of its own in every state, and a fifth of uniform actions: the bias stays below one observation."""
    rng = np.random.default_rng(1)
    policy = 0.8 * np.eye(9) + 0.2 / 9.0
    pairs = np.array([rng.multinomial(200, row) for row in policy])
    off = Behaviour(pairs).mean() - pairs / 200.0
    assert np.abs(off).max() <= 1.0 / 201.0
