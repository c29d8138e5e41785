"""Draws of the posterior of a log: against closed forms and quadrature."""

import numpy as np
from scipy.integrate import dblquad
from scipy.stats import beta, kstest

from psconrl.data.log import Log
from psconrl.data.posterior.row_posterior import Behaviour, RoundCosts, RowPosterior, halves, neighbours
from psconrl.learning.posterior.transition_beliefs import Dirichlet


def chain_log(moves: dict[tuple[int, int], int], costs: tuple[float, float] = (0.0, 1.0)) -> Log:
    """Return a log of two states and one action with these numbers of moves."""
    pairs = [pair for pair, n in moves.items() for _ in range(n)]
    states, successors = np.array(pairs).T
    return Log.of_arrays(
        n_states=2,
        n_actions=1,
        states=states,
        actions=np.zeros(len(states), dtype=int),
        next_states=successors,
        costs=np.array(costs)[states][:, None],
        cost_names=("cost",),
    )


def test_average_of_a_two_state_chain_by_quadrature() -> None:
    """The mean of p / (p + q) under two beta distributions; false alarm 1e-6 (five standard errors)."""
    log = chain_log({(0, 0): 6, (0, 1): 3, (1, 0): 2, (1, 1): 4})
    first, second = beta(3.5, 6.5), beta(2.5, 4.5)  # prior mass 1, half of it on each state
    exact = dblquad(lambda q, p: p / (p + q) * first.pdf(p) * second.pdf(q), 0.0, 1.0, 0.0, 1.0)[0]
    drawn = RowPosterior(log, Dirichlet()).averages_of(np.ones((2, 1)), 20_000, np.random.default_rng(0))[:, 0]
    assert abs(drawn.mean() - exact) < 5.0 * drawn.std() / np.sqrt(drawn.size)


def test_rows_have_the_distribution_of_the_posterior() -> None:
    """The probability of a move has a beta distribution; Kolmogorov and Smirnov's test at 1e-6."""
    log = chain_log({(0, 0): 6, (0, 1): 3, (1, 0): 2})
    models = RowPosterior(log, Dirichlet(0.25)).draw(4000, np.random.default_rng(1))
    first = np.array([models.transition(k).toarray()[0, 1] for k in range(4000)])
    assert kstest(first, beta(3.25, 6.25).cdf).pvalue > 1e-6


def test_pairs_that_are_not_taken_are_not_drawn() -> None:
    """The rest of the draw has the same distribution: means of a policy agree within five standard errors."""
    rng = np.random.default_rng(2)
    log = Log.of_arrays(
        n_states=4,
        n_actions=2,
        states=rng.integers(4, size=300),
        actions=rng.integers(2, size=300),
        next_states=rng.integers(4, size=300),
        costs=rng.random((300, 2)),
        cost_names=("a", "b"),
    )
    policy = np.eye(2)[[0, 1, 1, 0]]
    for belief in (None, Dirichlet(), neighbours(log)):
        posterior = RowPosterior(log, belief)
        few = posterior.averages_of(policy, 2000, rng)
        all_, _ = posterior.averages(policy, 2000, rng)
        error = np.hypot(few.std(axis=0), all_.std(axis=0)) / np.sqrt(2000)
        assert (np.abs(few.mean(axis=0) - all_.mean(axis=0)) < 5.0 * error).all()


def test_outcomes_keep_what_costs_have_to_do_with_the_next_state() -> None:
    """A cost that is a function of the next state has the mean p . c in every draw, exactly."""
    rng = np.random.default_rng(3)
    successors = rng.integers(3, size=200)
    log = Log.of_arrays(
        n_states=3,
        n_actions=1,
        states=rng.integers(3, size=200),
        actions=np.zeros(200, dtype=int),
        next_states=successors,
        costs=np.array([1.0, -2.0, 5.0])[successors][:, None],
        cost_names=("cost",),
    )
    assert RoundCosts(log).noise[0] == 0.0
    models = RowPosterior(log, Dirichlet()).draw(20, rng)
    for k in range(20):
        np.testing.assert_allclose(models.costs[k, 0], models.transition(k) @ [1.0, -2.0, 5.0], atol=1e-12)


def test_noise_of_costs_is_pooled() -> None:
    """Two outcomes with deviations 1 and 3 from their means, twice each."""
    log = Log.of_arrays(
        n_states=1,
        n_actions=2,
        states=np.zeros(4, dtype=int),
        actions=np.array([0, 0, 1, 1]),
        next_states=np.zeros(4, dtype=int),
        costs=np.array([[1.0], [3.0], [10.0], [16.0]]),
        cost_names=("cost",),
    )
    found = RoundCosts(log)
    assert found.means.ravel().tolist() == [2.0, 13.0]
    np.testing.assert_allclose(found.noise[0] ** 2, (2 * 1.0 + 2 * 9.0) / 2)


def test_behaviour_of_one_state_is_a_dirichlet() -> None:
    """With one state the common frequencies are those of the state, whatever the mass: mean 0.3 within 5 errors."""
    drawn = Behaviour(np.array([[30, 70, 0]])).draw(4000, np.random.default_rng(4))
    assert (drawn[:, 0, 2] == 0.0).all()
    sd = drawn[:, 0, 0].std()
    assert abs(drawn[:, 0, 0].mean() - 0.3) < 5.0 * sd / np.sqrt(4000)
    # Between the spread of Dirichlet(30, 70) and that of twice the variance: the common frequencies are uncertain, too.
    assert 0.9 * np.sqrt(0.21 / 101) < sd < 1.1 * np.sqrt(2 * 0.21 / 101)


def test_behaviour_of_deterministic_and_of_equal_states() -> None:
    """States with an action each stay certain; states that do the same lend their frequencies to a rare one."""
    alone = Behaviour(20 * np.eye(4, dtype=int)).mean()
    assert (alone.diagonal() > 0.99).all()
    equal = np.vstack([np.full((20, 2), 50), [[1, 0], [0, 0]]])
    np.testing.assert_allclose(Behaviour(equal).mean()[-2:], [[0.75, 0.25], [0.5, 0.5]], atol=0.01)


def test_halves_share_every_pair() -> None:
    """Each pair has as many rounds in both halves, up to one."""
    rng = np.random.default_rng(5)
    log = Log.of_arrays(
        n_states=5,
        n_actions=2,
        states=rng.integers(5, size=101),
        actions=rng.integers(2, size=101),
        next_states=rng.integers(5, size=101),
        costs=rng.random((101, 1)),
        cost_names=("cost",),
    )
    first, second = halves(log)
    assert np.abs(first.counts().pairs - second.counts().pairs).max() <= 1
    assert abs(first.n_rounds - second.n_rounds) <= 10
    np.testing.assert_array_equal((first.counts().transitions + second.counts().transitions), log.counts().transitions)


def test_weights_of_neighbours_in_closed_form() -> None:
    """Nine tenths of two observations are shared by the two states that were seen after state 0; a tenth by all."""
    log = Log.of_arrays(
        n_states=3,
        n_actions=2,
        states=np.array([0, 1, 0]),
        actions=np.array([0, 1, 1]),
        next_states=np.array([1, 0, 2]),
    )
    found = neighbours(log, mass=2.0)
    np.testing.assert_allclose(found.prior.toarray()[:2], [[0.0, 0.9, 0.9]] * 2)
    np.testing.assert_allclose(found.prior.toarray()[2:4], [[1.8, 0.0, 0.0]] * 2)
    assert not found.prior.toarray()[4:].any()  # it was never left
    np.testing.assert_allclose(found.surprise, 0.2)
