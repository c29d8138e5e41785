"""Estimating a model from play: counts, exploration, draws, and the coverage of its intervals."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import psconrl
from psconrl.agents import Dirichlet
from psconrl.errors import ConfigError, ModelError, PolicyError, PsconrlError
from psconrl.simulation import model_estimation as module
from psconrl.simulation.exploration import Explorer
from psconrl.simulation.observations import Observations


class Recorder(gymnasium.Wrapper):
    """A wrapper that logs every step."""

    def reset(self, **options):
        self.log = []
        self.at, info = self.env.reset(**options)
        return self.at, info

    def step(self, action):
        outcome = self.env.step(action)
        self.log.append((self.at, action, outcome[0], -outcome[1], *outcome[4]["costs"]))
        self.at = outcome[0]
        return outcome


@pytest.mark.parametrize("name", ["riverswim", "queue", "marsrover-4x4"])
def test_what_is_counted_is_what_happened(name):
    model = psconrl.load(name, **({"slip": 0.2} if name == "marsrover-4x4" else {}))
    env = Recorder(psconrl.CMDPEnv(model))
    found = psconrl.estimate(env, 700, seed=3)
    S, A = found.model.n_states, found.model.n_actions
    number = {int(state): k for k, state in enumerate(found.states)}
    log = [row for row in env.log if row[2] in number]  # the last may lead to an unvisited state
    assert 699 <= len(log) <= 700
    counts, sums = np.zeros((S, A, S)), np.zeros((len(model.costs), S, A))
    for s, a, t, *costs in log:
        counts[number[s], a, number[t]] += 1
        sums[:, number[s], a] += costs
    np.testing.assert_array_equal(found.counts.toarray(), counts.reshape(S * A, S))
    visits = counts.sum(axis=2)
    np.testing.assert_array_equal(found.model.available, visits > 0)
    np.testing.assert_array_equal(found.untried, np.argwhere(visits == 0))
    tried = visits > 0
    np.testing.assert_allclose(found.model.costs[:, tried], (sums / visits.clip(min=1))[:, tried], atol=1e-12)
    expected = (counts / visits.clip(min=1)[:, :, None]).reshape(S * A, S)
    np.testing.assert_allclose(found.model.transition.toarray(), expected, atol=1e-15)
    assert (found.model.cost_names, found.model.maximise) == (model.cost_names, model.maximise)
    assert found.model.thresholds.tolist() == model.thresholds.tolist()
    assert found.states[found.model.initial.argmax()] == env.log[0][0]


def test_a_deterministic_environment_is_known_exactly_once_all_was_tried():
    model = psconrl.load("marsrover-4x4")
    found = psconrl.estimate(model, 500, seed=0)
    assert found.untried.size == 0
    np.testing.assert_array_equal(found.model.transition.toarray(), model.transition.toarray())
    np.testing.assert_allclose(found.model.costs, model.costs, atol=1e-12)
    assert psconrl.plan(found.model).value == pytest.approx(psconrl.plan(model).value, abs=1e-9)


def test_the_same_seed_plays_the_same():
    one, two, other = (psconrl.estimate(psconrl.load("riverswim"), 300, seed=seed) for seed in (4, 4, 5))
    assert (one.counts != two.counts).nnz == 0
    assert (one.counts != other.counts).nnz > 0


# Exploration


def corridor(tries_at_home, length=3, slip_times=0):
    """Seen so far: a walk to the right by action 1; action 0 stays. In the last state nothing was tried.

    ``slip_times``: how often, for each success, the first step right failed.
    """
    seen = Observations(length + 1, 2, 1)
    nothing = np.zeros(1)
    for state in range(length):
        for _ in range(tries_at_home if state == 0 else 50):
            seen.note(state, 0, state, nothing)
            seen.note(state, 1, state + 1, nothing)
            for _ in range(slip_times if state == 0 else 0):
                seen.note(state, 1, state, nothing)
    return seen


@pytest.mark.parametrize(
    ("tries", "length", "slips", "goes"),
    [
        (1, 3, 0, False),  # (1 + 1)^2 = 4 is not more than 1 * (3 + 1)
        (2, 3, 0, True),  # 9 is
        (2, 8, 0, False),  # 9 against 8 + 1
        (2, 7, 0, True),  # against 8
        (2, 6, 2, False),  # three tries for the first step: (2 + 1)^2 against 8 + 1
        (2, 6, 1, True),  # two: against 7 + 1
    ],
)  # fmt: skip
def test_a_try_is_weighed_against_the_way(tries, length, slips, goes):
    seen = corridor(tries, length, slips)
    seen.visits[0, 0] = tries  # staying was tried least
    explorer = Explorer(seen, np.random.default_rng(0))
    chosen = {explorer.action(0) for _ in range(5)}
    assert chosen == ({1} if goes else {0} if slips else {0, 1})
    if goes:
        assert [explorer.action(state) for state in range(1, length)] == [1] * (length - 1)


def test_a_state_that_cannot_be_reached_any_more_is_left():
    seen = Observations(3, 2, 1)
    for state, action, following in ((0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 0, 1), (2, 1, 2)):
        for _ in range(20):
            seen.note(state, action, following, np.zeros(1))
    explorer = Explorer(seen, np.random.default_rng(0))  # (0, 1) was never tried, and nothing leads back to 0
    assert {explorer.action(state) for state in (1, 2) for _ in range(20)} == {0, 1}


def test_actions_that_there_are_not_are_never_tried():
    """The environment raises otherwise; the mask comes with every state."""
    P = np.zeros((3, 2, 3))
    P[[0, 0, 1, 2, 2], [0, 1, 1, 0, 1], [1, 2, 2, 0, 2]] = 1.0
    mask = np.array([[1, 1], [0, 1], [1, 1]])
    model = psconrl.CMDP(P, [np.arange(6.0).reshape(3, 2)], available=mask)
    found = psconrl.estimate(model, 60, seed=0)
    np.testing.assert_array_equal(found.model.available, mask)
    assert found.untried.tolist() == [[1, 0]]
    assert psconrl.plan(found.model).value == pytest.approx(psconrl.plan(model).value, abs=1e-12)


def test_a_river_is_swum_to_the_end():
    """Uniformly random play reaches the far bank, six states up, in one of thousands of rounds."""
    found = psconrl.estimate(psconrl.load("riverswim"), 3000, seed=0)
    visits = np.asarray(found.counts.sum(axis=1)).ravel()
    assert visits.sum() == 3000
    assert visits.min() >= 30  # 64 as measured; of 250 on average


# States that are left out


class Corridor(gymnasium.Env):
    """A corridor that never visits a place twice before its end."""

    observation_space, action_space = spaces.Discrete(50), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        return self.at, 1.0, self.at == 20, False, {}


def test_states_that_were_not_left_again_are_left_out():
    with pytest.raises(ModelError, match=r"15 rounds are too few: no state was met again"):
        psconrl.estimate(Corridor(), 15, seed=0)
    found = psconrl.estimate(Corridor(), 21, seed=0)  # there, and back to the start
    assert found.model.n_states == 21
    assert found.states.tolist() == list(range(21))
    assert found.counts.sum() == 21
    more = psconrl.estimate(Corridor(), 24, seed=0)
    assert more.counts.sum() == 24
    assert found.model.state_names == tuple(map(str, range(21)))
    whole = found.everywhere(psconrl.plan(found.model).policy)
    assert whole.shape == (50, 2)
    np.testing.assert_array_equal(whole[21:], 0.5)
    assert psconrl.plan(found.model).value == pytest.approx(20 / 21, abs=1e-12)


def test_only_the_last_rounds_are_left_out():
    """Branches entered in the last rounds and not left: 0 -> 1 -> 2, where 0 -> 0 is known."""
    seen = Observations(3, 1, 1)
    for state, following in ((0, 0), (0, 1), (1, 2)):
        seen.note(state, 0, following, np.zeros(1))
    assert module._between_known_states(seen).tolist() == [0]


# Draws


def test_costs_belong_to_their_outcomes():
    """The expected costs of a draw are those of its own transitions; of outcomes not seen, the mean of the pair."""
    model = psconrl.CMDP.from_gymnasium(
        gymnasium.make("FrozenLake-v1"), lambda s, a, t: [t == 5, s + 0.1 * t], thresholds=[0.1, 5.0]
    )
    for belief in (None, Dirichlet(0.3)):
        found = psconrl.estimate(model, 400, seed=1, belief=belief)
        drawn = found.draw(np.random.default_rng(0))
        S, A = drawn.n_states, drawn.n_actions
        P, N = drawn.transition.toarray().reshape(S, A, S), found.counts.toarray().reshape(S, A, S)
        assert (drawn.available == found.model.available).all()
        for i in range(3):
            known = np.array(
                [[model.outcome_costs[i][int(s) * A + a][found.states] for a in range(A)] for s in found.states]
            )
            mean = (N * known).sum(axis=2) / N.sum(axis=2).clip(min=1)
            by_outcome = np.where(N > 0, known, mean[:, :, None])
            np.testing.assert_allclose(drawn.costs[i], (P * by_outcome).sum(axis=2) * drawn.available, atol=1e-12)
        if belief is None:  # nothing that no action was seen to do
            possible = (N > 0).any(axis=1)
            assert not P[np.broadcast_to(~possible[:, None, :], P.shape)].any()
            assert (P[drawn.available] > 0).sum() > (N > 0).sum()  # but what another action was seen to do
        else:
            assert (P[drawn.available] > 0).all()


@pytest.mark.statistical
def test_rows_are_drawn_from_the_posterior(full):
    """Mean of Dirichlet(1/2 + N) in 4,000 draws, or 1,000, within 5 standard errors: false alarms below 1e-5."""
    number = 4000 if full else 1000
    found = psconrl.estimate(psconrl.load("riverswim"), 200, seed=2, belief=Dirichlet(0.5))
    rng = np.random.default_rng(0)
    draws = np.array([found.draw(rng).transition.toarray() for _ in range(number)])
    alpha = 0.5 + found.counts.toarray()
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    variance = mean * (1 - mean) / (total + 1)
    assert (abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / number) + 1e-12).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.3 if full else 0.6)


class Dice(gymnasium.Env):
    """One state with varying costs."""

    observation_space, action_space = spaces.Discrete(1), spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(self.np_random.normal(3.0, 2.0)), False, False, {"cost": 1.5}


def test_a_cost_that_varies_is_known_to_its_standard_error():
    env = Recorder(psconrl.continuing(Dice(), limits=[2.0]))
    found = psconrl.estimate(env, 50, thresholds=[2.0], seed=0)
    paid = np.array([row[3] for row in env.log])
    rng = np.random.default_rng(0)
    draws = np.array([found.draw(rng).costs[:, 0, 0] for _ in range(1000)])
    error = paid.std(ddof=1) / np.sqrt(50)
    assert found.model.costs[0, 0, 0] == pytest.approx(paid.mean(), abs=1e-12)
    assert abs(draws[:, 0].mean() - paid.mean()) < 5 * error / np.sqrt(1000)
    assert draws[:, 0].std() == pytest.approx(error, rel=5 / np.sqrt(2 * 1000))
    assert (draws[:, 1] == 1.5).all()
    interval = found.interval([0], level=0.5, draws=1000)
    np.testing.assert_allclose(interval.high[0] - interval.low[0], 2 * 0.6744898 * error, rtol=0.16)
    assert interval.value == (-interval.high[0], -interval.low[0])


@pytest.mark.statistical
@pytest.mark.full
def test_intervals_hold_the_truth_as_often_as_they_say():
    """140 environments drawn from the belief itself, and 80% intervals of both costs: binomial, 4.4 standard
    deviations, false alarms below 2e-5 a number. Pairs are not chosen at random, and the policy was planned on the
    same rounds (every second time); neither matters to a correct belief.
    """
    environments, held, draws = 0, np.zeros(2), 49
    for seed in range(150):
        truth = psconrl.load("dirichlet", states=4, actions=2, prior=0.5, seed=seed)
        found = psconrl.estimate(truth, 80, seed=seed, belief=Dirichlet(0.5))
        if found.model.n_states < 4 or found.untried.size:
            continue  # what is left out depends on the observations alone
        policy = psconrl.plan(found.model).policy if seed % 2 else np.full((4, 2), 0.5)
        interval = found.interval(policy, level=0.8, draws=draws, seed=seed)
        costs = psconrl.evaluate(truth, policy).costs
        held += (interval.low <= costs) & (costs <= interval.high)
        environments += 1
    assert environments > 140
    share = 0.8 * (draws - 1) / (draws + 1)  # of the ranks among the draws, quantiles being interpolated
    assert (abs(held - share * environments) < 4.4 * np.sqrt(share * (1 - share) * environments)).all(), (
        held / environments
    )


def test_a_policy_of_the_whole_environment_has_an_interval_in_another_estimate():
    env = psconrl.load("riverswim")
    one, two = (psconrl.estimate(env, 400, seed=seed) for seed in (0, 1))
    policy = psconrl.plan(one.model).policy
    np.testing.assert_array_equal(two.interval(one.everywhere(policy), seed=3).low, two.interval(policy, seed=3).low)
    walk = psconrl.estimate(Corridor(), 21, seed=0)
    assert walk.interval(walk.everywhere(psconrl.plan(walk.model).policy)).value[0] == pytest.approx(20 / 21)
    with pytest.raises(PolicyError, match="not available"):
        walk.interval(np.full((50, 2), 0.5))


def test_large_models_are_sparse(monkeypatch):
    dense = psconrl.estimate(psconrl.load("queue"), 800, seed=0)
    monkeypatch.setattr(module, "TABLE_DENSE_ENTRIES", 10)
    sparse = psconrl.estimate(psconrl.load("queue"), 800, seed=0)
    assert (dense.model.is_sparse, sparse.model.is_sparse) == (False, True)
    np.testing.assert_allclose(sparse.model.costs, dense.model.costs, atol=1e-12)
    assert psconrl.plan(sparse.model).value == pytest.approx(psconrl.plan(dense.model).value, abs=1e-8)
    assert sparse.interval(psconrl.plan(sparse.model).policy, draws=20).low.shape == (3,)


# Input


def test_limits_come_from_the_task_the_call_or_the_model():
    def hole(s, a, t):
        return float(t in (5, 7, 11, 12))

    lake = gymnasium.make("FrozenLake-v1")
    task = psconrl.continuing(lake, hole, limits={"holes": 0.05})
    for env, given in ((task, None), (task, {"holes": 0.05}), (task, [0.05]),
                       (psconrl.continuing(lake, hole), {"holes": 0.05})):  # fmt: skip
        model = psconrl.estimate(env, 200, given, seed=0).model
        assert (model.cost_names, model.thresholds.tolist(), model.maximise) == (("reward", "holes"), [0.05], True)
    assert psconrl.estimate(psconrl.CMDPEnv("queue"), 100, [3, 0.4], seed=0).model.thresholds.tolist() == [3, 0.4]


@pytest.mark.parametrize(
    ("arguments", "options", "complaint"),
    [
        ((Dice(), 0), {}, "rounds must be a whole number from 1 on"),
        ((Dice(), 2.5), {}, "rounds must be a whole number from 1 on"),
        ((Dice(), 10), {"seed": -1}, "seed must be a whole number from 0 on; got -1"),
        ((Dice(), 10), {"belief": "dirichlet"}, "belief must be one such as Dirichlet"),
        ((Dice(), 10), {}, "the environment reports 1 costs, and 0 limits are given for them; say thresholds="),
        ((Dice(), 10, [1.0, 2.0]), {}, "the environment reports 1 costs, and 2 limits"),
        ((psconrl.continuing(Dice(), limits=[1.0]), 10, [1.0, 2.0]), {}, "one number for each of cost"),
        (("riverswim", 10), {}, "env must be a Gymnasium environment or a CMDP; got str"),
        ((gymnasium.make("CartPole-v1"), 10), {}, "infinitely many"),
    ],
)
def test_what_cannot_be_estimated_ends_in_one_line(arguments, options, complaint):
    with pytest.raises(PsconrlError) as error:
        psconrl.estimate(*arguments, **options)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_levels_and_draws_that_cannot_be():
    found = psconrl.estimate(Dice(), 20, [2.0], seed=0)
    for level in (0.0, 1.0, 90):
        with pytest.raises(ConfigError, match="level must lie between 0 and 1"):
            found.interval([0], level)
    with pytest.raises(ConfigError, match="draws must be a whole number"):
        found.interval([0], draws=0)


def test_load_says_where_models_come_from():
    with pytest.raises(ModelError, match=r"psconrl\.estimate makes a model of it by playing"):
        psconrl.load("gym:Blackjack-v1")
