"""Beliefs about costs: the Gibbs sweep as a formula, draws against known results, and constrained costs above zero."""

import math

import numpy as np
import pytest

import psconrl
from psconrl.agents import CostBelief, EmpiricalMeans, PSConRL, SampledCosts
from psconrl.errors import AgentError
from psconrl.kernels.draws.cost_effects import sweep
from psconrl.kernels.draws.gamma import normal_variates
from psconrl.learning.posterior.cost_beliefs import RESOLVED, SHAPE, Hints
from psconrl.learning.posterior.counts import Counts, Record

NOTHING = Hints()


def counted(table, times, again=None):
    """Counts of pairs with the costs of a table (m+1, S, A), each visited ``times`` (S, A) times."""
    table, times = np.asarray(table, dtype=float), np.asarray(times)
    counts = Counts(*table.shape[1:], len(table))
    record = Record.empty(counts)
    for s, a in np.argwhere(times):
        for _ in range(times[s, a]):
            record.step(s, a, 0, table[:, s, a])
    counts.add(record)
    return counts


def plain_sweep(y, n, state, action, noise, least, u, v, levels, normals, gammas):
    """The conditional distributions, one after the other, in plain Python."""
    S, A, K = len(u), len(v), len(y)
    mu, tu, tv, tw = levels
    variance = [tw + noise / n[k] for k in range(K)]
    for effects, group, prior, offset, z in ((0, state, tu, 0, S), (1, action, tv, S, A)):
        mine, other = (u, v) if effects == 0 else (v, u)
        of_other = action if effects == 0 else state
        for g in range(z):
            here = [k for k in range(K) if group[k] == g]
            precision = 1 / prior + sum(1 / variance[k] for k in here)
            total = sum((y[k] - mu - other[of_other[k]]) / variance[k] for k in here)
            mine[g] = total / precision + normals[offset + g] / math.sqrt(precision)
        squares = sum(mine[g] ** 2 for g in set(group))
        if effects == 0:
            tu = (least + squares / 2) / gammas[0]
        else:
            tv = (least + squares / 2) / gammas[1]
    precision = sum(1 / variance[k] for k in range(K))
    mu = sum((y[k] - u[state[k]] - v[action[k]]) / variance[k] for k in range(K)) / precision
    mu += normals[S + A] / math.sqrt(precision)
    theta, squares = [], 0.0
    for k in range(K):
        fit = mu + u[state[k]] + v[action[k]]
        w = y[k] - fit
        if noise:
            spread = 1 / (1 / tw + n[k] / noise)
            w = spread * w * n[k] / noise + math.sqrt(spread) * normals[S + A + 1 + k]
        theta.append(fit + w)
        squares += w**2
    return theta, [mu, tu, tv, (least + squares / 2) / gammas[2]]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_sweep_draws_from_the_conditional_distributions(noise):
    rng = np.random.default_rng(0)
    S, A, K = 4, 3, 7
    pairs = rng.choice(S * A, K, replace=False)
    y, n = rng.normal(size=K), rng.integers(1, 9, K).astype(float)
    u, v, levels = rng.normal(size=S), rng.normal(size=A), np.array([0.2, 0.5, 0.7, 0.1])
    normals, gammas = rng.normal(size=S + A + 1 + K), rng.gamma(2.0, size=3)
    wanted_u, wanted_v = u.copy(), v.copy()
    wanted, wanted_levels = plain_sweep(
        y, n, pairs // A, pairs % A, noise, 0.01, wanted_u, wanted_v, levels.copy(), normals, gammas
    )
    found = sweep(y, n, pairs // A, pairs % A, noise, 0.01, u, v, levels, normals, gammas)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(u, wanted_u, rtol=1e-12)
    np.testing.assert_allclose(v, wanted_v, rtol=1e-12)
    np.testing.assert_allclose(levels, wanted_levels, rtol=1e-12)


def test_a_sweep_refuses_what_does_not_fit():
    good = [np.ones(2), np.ones(2), np.array([0, 1]), np.array([0, 0]), 0.0, 0.1, np.zeros(2), np.zeros(1)]
    good += [np.ones(4), np.zeros(6), np.ones(3)]
    sweep(*good)
    for place, bad in ((1, np.ones(1)), (2, np.array([0, 2])), (3, np.array([0, -1])), (9, np.zeros(5))):
        with pytest.raises(ValueError, match=r"pair|variates"):
            sweep(*[bad if k == place else part for k, part in enumerate(good)])


@pytest.mark.statistical
def test_normal_variates():
    x = normal_variates(200_000, np.random.default_rng(1))
    # Means of x^k for k = 1, 2, 3, 4 within five standard deviations: a false-alarm rate of 6e-7 each.
    for k, (mean, variance) in enumerate([(0, 1), (1, 2), (0, 15), (3, 96)], start=1):
        assert abs((x**k).mean() - mean) <= 5 * math.sqrt(variance / x.size)
    assert normal_variates(0, np.random.default_rng(1)).size == 0
    with pytest.raises(ValueError, match="from 0 on"):
        normal_variates(-1, np.random.default_rng(1))


def additive(S=9, A=5):
    rng = np.random.default_rng(3)
    return (rng.random((2, S, 1)) * [[[3.0]], [[1.0]]]) + rng.random((2, 1, A))


def test_additive_costs_are_known_from_a_few_pairs():
    table = additive()
    times = np.ones(table.shape[1:], dtype=int)
    times[3, 2] = times[5, 0] = times[0, 4] = 0
    belief, counts = SampledCosts().made_for(9, 5, 1), counted(table, times)
    rng = np.random.default_rng(0)
    drawn = np.array([belief.costs(counts, NOTHING, rng) for _ in range(400)])[100:]
    untried = times == 0
    assert (drawn[:, :, ~untried] == table[:, ~untried]).all()  # exact costs are known once they are seen
    np.testing.assert_allclose(np.median(drawn, axis=0), table, atol=0.05)
    free = (drawn[:, 0, untried] == 0.0).mean()
    # Free with probability 1 / (K + 2), K = 42: 900 draws in 300 batches, five standard deviations, rate 6e-7.
    assert abs(free - 1 / 44) <= 5 * math.sqrt(1 / 44 / 300)
    assert (drawn[:, 1, untried] > 0.0).all()  # a constrained cost is never free


def test_states_never_visited_are_free_in_the_objective_only():
    table = additive()
    times = np.ones(table.shape[1:], dtype=int)
    times[7] = 0
    belief, counts = SampledCosts().made_for(9, 5, 1), counted(table, times)
    drawn = belief.costs(counts, NOTHING, np.random.default_rng(0))
    assert (drawn[0, 7] == 0.0).all()
    assert ((drawn[1, 7] >= table[1][times > 0].min()) & (drawn[1, 7] <= table[1][times > 0].max())).all()
    assert (belief.costs(counts, Hints(optimistic=-2.0), np.random.default_rng(0))[0, 7] == -2.0).all()


def test_rewards_may_be_better_than_the_best_so_far():
    table = -additive()
    times = np.ones(table.shape[1:], dtype=int)
    times[7] = 0
    met = table[0][times > 0]
    belief = SampledCosts().made_for(9, 5, 1)
    drawn = belief.costs(counted(table, times), NOTHING, np.random.default_rng(0))
    assert drawn[0, 7] == pytest.approx(np.full(5, met.min() - np.ptp(met)))


def test_before_anything_was_tried_all_is_free():
    belief = SampledCosts().made_for(2, 2, 1)
    assert not belief.costs(Counts(2, 2, 2), NOTHING, np.random.default_rng(0)).any()


def test_while_all_costs_are_the_same_anything_may_be_better():
    table = np.stack([np.full((3, 2), 2.0), np.full((3, 2), 0.5)])
    times = np.array([[4, 1], [1, 0], [2, 1]])
    belief = SampledCosts().made_for(3, 2, 1)
    drawn = belief.costs(counted(table, times), NOTHING, np.random.default_rng(0))
    assert (drawn[1] == 0.5).all()
    assert (drawn[0] == np.where(times > 0, 2.0, 0.0)).all()


@pytest.mark.statistical
def test_the_noise_is_learned_from_what_episodes_differ_by():
    rng, sigma = np.random.default_rng(0), 0.7
    belief, counts = SampledCosts().made_for(4, 2, 0), Counts(4, 2, 1)
    for _ in range(600):
        record = Record.empty(counts)
        for _ in range(10):
            s, a = rng.integers(4), rng.integers(2)
            record.step(s, a, 0, np.array([s + a + sigma * rng.normal()]))
        belief.learn(record, counts)
        counts.add(record)
    drawn = np.array([belief._noise(0, 4.0, rng) for _ in range(200)])
    # A variance from more than 3,000 differences: five standard deviations, a false-alarm rate of 6e-7.
    assert belief._freedom > 3000
    assert abs(drawn.mean() - sigma**2) <= 5 * sigma**2 * math.sqrt(2 / 3000)
    costs = np.array([belief.costs(counts, NOTHING, rng)[0] for _ in range(300)])
    spread = sigma / np.sqrt(counts.pairs)
    np.testing.assert_allclose(costs.mean(axis=0), counts.cost_sums.reshape(4, 2) / counts.pairs, atol=0.05)
    assert (np.abs(costs.std(axis=0) / spread - 1.0) < 0.3).all()


def test_the_means_of_two_episodes_by_hand():
    """Means of 2 and 5 over three and two rounds differ by 3, of a variance that is 1/3 + 1/2 of the noise."""
    belief, counts = SampledCosts().made_for(2, 1, 0), Counts(2, 1, 1)
    for costs in ([1.0, 2.0, 3.0], [4.0, 6.0]):
        record = Record.empty(counts)
        for cost in costs:
            record.step(0, 0, 1, np.array([cost]))
        belief.learn(record, counts)
        counts.add(record)
    assert belief._squares[0] == pytest.approx(9.0 / (1 / 2 + 1 / 3))
    assert belief._freedom == 1.0


def test_the_rate_of_exceptions_by_hand():
    """With one pair tried it is Beta(1, 2): a uniform number of 3/4 is a rate of 1 - (1/4)^(1/2) = 1/2."""

    class Uniforms:
        def random(self, n):
            return np.array([0.75, 0.49, 0.51])[:n]

    belief = SampledCosts().made_for(1, 3, 0)
    assert belief._free(np.array([0]), np.array([1, 2]), 1, 3, Uniforms()).tolist() == [True, False]


def test_the_prior_of_a_variance_is_an_inverse_gamma():
    belief = SampledCosts().made_for(2, 1, 0)
    assert belief._noise(0, 1.0, np.random.default_rng(0)) == 0.0
    belief._squares[:], belief._freedom = 8.0, 5.0
    rng = np.random.default_rng(1)
    drawn = [belief._noise(0, 3.0, rng) for _ in range(4000)]
    # Its inverse is Gamma(shape, 1/rate): mean shape / rate, variance shape / rate^2; five standard deviations.
    shape, rate = SHAPE + 2.5, 0.5 * (RESOLVED * 3.0) ** 2 + 4.0
    assert abs(np.mean(1.0 / np.array(drawn)) - shape / rate) <= 5 * math.sqrt(shape) / rate / math.sqrt(4000)


def test_a_guess_counts_as_observations():
    table, guess = additive(), np.full((2, 9, 5), 1.0)
    counts = counted(table, np.eye(9, 5, dtype=int))
    belief = SampledCosts().made_for(9, 5, 1)
    drawn = belief.costs(counts, Hints(guess=guess, weight=3.0), np.random.default_rng(0))
    means = EmpiricalMeans().costs(counts, Hints(guess=guess, weight=3.0), np.random.default_rng(0))
    np.testing.assert_allclose(drawn, means)


def test_what_a_guess_is_worth_is_learned():
    """Right everywhere, it is believed everywhere; off by a constant, it is corrected everywhere."""
    truth = additive()
    times = np.eye(9, 5, dtype=int)
    times[:, 0] = times[0] = 1
    hints = Hints(guess=truth, weight=None)
    belief = SampledCosts().made_for(9, 5, 1)
    assert (belief.costs(Counts(9, 5, 2), hints, np.random.default_rng(0)) == truth).all()
    np.testing.assert_allclose(belief.costs(counted(truth, times), hints, np.random.default_rng(0)), truth, atol=1e-12)
    off = truth + np.array([0.5, -0.2])[:, None, None]
    belief = SampledCosts().made_for(9, 5, 1)
    drawn = belief.costs(counted(off, times), hints, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, off, atol=1e-9)


def test_a_saved_agent_draws_the_same_costs(tmp_path):
    model = psconrl.load("queue")
    agent = PSConRL(model.n_states, model.n_actions, model.thresholds, optimistic_cost=-1.0, seed=0)
    psconrl.simulate(model, agent, 500, seed=1)
    agent.save(tmp_path / "agent.npz")
    again = PSConRL.load(tmp_path / "agent.npz")
    assert (agent._episode_costs() == again._episode_costs()).all()
    state = agent.cost_belief.state()
    for name, bad in (("levels", -np.ones_like(state["levels"])), ("squares", np.ones(1)), ("freedom", -1.0)):
        with pytest.raises(AgentError):
            agent.cost_belief.restore(state | {name: bad})


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1.0, 1e99])
@pytest.mark.parametrize("noisy", [False, True])
def test_units_do_not_matter(scale, noisy):
    rng = np.random.default_rng(0)
    belief, counts, table = SampledCosts().made_for(9, 5, 1), Counts(9, 5, 2), additive()
    for _ in range(30):
        record = Record.empty(counts)
        for _ in range(6):
            s, a = rng.integers(9), rng.integers(5)
            record.step(s, a, 0, scale * (table[:, s, a] + 0.3 * rng.random() * noisy))
        belief.learn(record, counts)
        counts.add(record)
        drawn = belief.costs(counts, NOTHING, rng)
        assert np.isfinite(drawn).all()
        assert (np.abs(drawn) <= 10.0 * scale).all()
    assert np.isfinite(belief._levels).all()


def test_what_was_drawn_is_converted_to_other_units():
    belief = SampledCosts().made_for(2, 1, 0)
    belief._rescale(0, 3.0, 2.0)
    assert belief._levels[0].tolist() == [0.5, 0.25, 0.25, 0.25]
    belief._of_states[0] = [0.1, -0.3]
    belief._rescale(0, 1.0, 8.0)  # a mean of 3 + 0.5 * 2 = 4 is 3/8 of a unit above 1
    assert belief._levels[0].tolist() == [3 / 8, 1 / 64, 1 / 64, 1 / 64]
    assert belief._of_states[0] == pytest.approx([0.025, -0.075])


def test_what_a_cost_belief_of_yours_returns_is_checked(monkeypatch):
    monkeypatch.setattr(CostBelief, "known", dict(CostBelief.known))  # restored afterwards

    class Wrong(SampledCosts):
        name = "wrong-shape"

        def costs(self, counts, hints, rng):
            return np.zeros((1, 2, 2))

    agent = PSConRL(2, 2, [0.5], cost_belief=Wrong(), seed=0)
    with pytest.raises(AgentError, match="cost_belief"):
        agent.act(0)
