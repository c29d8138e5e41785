"""Posterior sampling with the account in the state: its plans against the recursion, written out, and the account."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import simulate
from psconrl.agents import PSConRLAccount
from psconrl.errors import AgentError

CHAIN = psconrl.load("chain")


def price(x, slope, width):
    """The potential."""
    if x <= 0:
        return 0.0
    return slope * x * x / (2 * width) if x <= width else slope * (x - width / 2)


def values(P, cost, excess, slope, width, H, z):
    """Values Q (H, accounts..., S, A) of the recursion, as a function of round, account and state, without a grid."""
    S, A = cost.shape

    def after(h, z):
        if (h, z) not in known:
            totals = np.empty((S, A))
            for s in range(S):
                for a in range(A):
                    to = round(z + excess[s, a], 9)
                    ahead = np.full(S, price(to, slope, width)) if h == H - 1 else after(h + 1, to).min(axis=1)
                    totals[s, a] = cost[s, a] + P[s, a] @ ahead
            known[h, z] = totals
        return known[h, z]

    known = {}
    after(0, round(z, 9))
    return known


def small(seed):
    """A small model whose constrained cost is a multiple of a tenth, as is its threshold."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    costs = np.stack([rng.random((3, 2)), rng.integers(0, 11, (3, 2)) / 10])
    costs[1, 0, 0], costs[1, 2, 1] = 0.0, 1.0
    return psconrl.CMDP(P, costs, [0.4])


@pytest.mark.parametrize("seed", range(4))
def test_every_action_of_a_run_is_optimal_in_the_sample_from_the_present_account(seed):
    model, T, H = small(seed), 40, 6
    agent = PSConRLAccount(3, 2, model.thresholds, model.costs, horizon=T, gap=0.3, H=H, W=2.5, grid=0.1, seed=seed)
    worth = np.ptp(model.costs[0])
    P, rng = model.transition.toarray().reshape(3, 2, 3), np.random.default_rng(seed)
    state, account, known = 0, 0.0, {}
    for t in range(T):
        action = agent.act(state)
        if t % H == 0:
            drawn = agent.sampled.toarray().reshape(3, 2, 3)
            known = values(drawn, model.costs[0] / worth, model.costs[1] - 0.4, 2 / 0.3, 2.5, H, account)
        q = known[t % H, round(account, 9)][state]
        assert q[action] == pytest.approx(q.min(), abs=1e-9)
        following = int(rng.choice(3, p=P[state, action]))
        agent.observe(action, following, model.costs[:, state, action])
        account += model.costs[1, state, action] - 0.4
        state = following
    agent.finish()
    assert agent.account == pytest.approx(account, abs=1e-9)


def test_one_model_is_drawn_for_a_block():
    agent = PSConRLAccount(8, 2, CHAIN.thresholds, CHAIN.costs, horizon=400, seed=0)
    drawn = []
    for _ in range(60):
        agent.observe(agent.act(0), 0, [0.0, 0.0])
        drawn.append(agent.sampled)
    assert [t for t in range(1, 60) if drawn[t] is not drawn[t - 1]] == [20, 40]


@pytest.mark.parametrize(("T", "H"), [(400, 20), (440, 20), (441, 21), (1, 1)])
def test_blocks_and_width_are_the_root_of_the_horizon(T, H):
    agent = PSConRLAccount(8, 2, [0.3], horizon=T)
    assert (H, float(H)) == (agent.H, agent.W)
    assert PSConRLAccount(8, 2, [0.3], horizon=T, H=7).W == 7.0
    assert PSConRLAccount(8, 2, [0.3], horizon=T, W=3.5).W == 3.5
    assert agent.cell == 0.1 / math.ceil(0.1 * math.sqrt(T))
    assert PSConRLAccount(8, 2, [0.3], horizon=T, grid=0.2).cell == 0.2


def test_the_slope_is_twice_the_inverse_of_the_gap_in_ranges():
    """A gap of 2.5 in a range of 10."""
    potential = PSConRLAccount(8, 2, [2.0], horizon=900, gap=2.5)._potential(10.0)
    assert (potential.slope, potential.width) == (8.0, 30.0)


def test_the_account_is_what_was_observed():
    cmdp = psconrl.load("marsrover-4x4", slip=0.3)  # where it slips decides what it costs
    for costs in (cmdp.costs, None):
        agent = PSConRLAccount(16, 4, cmdp.thresholds, costs, horizon=400, seed=0)
        trace = simulate(cmdp, agent, 400, seed=0)
        agent.finish()
        assert agent.account == pytest.approx(trace.cumulative[-1, 1] - 0.2 * 400, abs=1e-9)


def test_units_do_not_matter():
    """Rewards in cents from another zero, the limited cost in eighths: the same run."""
    scaled = CHAIN.costs * np.array([64.0, 0.125])[:, None, None]
    other = psconrl.CMDP(CHAIN.transition, scaled, CHAIN.thresholds * 0.125, initial=CHAIN.initial)
    one = PSConRLAccount(8, 2, CHAIN.thresholds, CHAIN.costs, horizon=900, gap=0.125, seed=1)
    two = PSConRLAccount(8, 2, other.thresholds, other.costs, horizon=900, gap=0.125 / 8, seed=1)
    first, second = simulate(CHAIN, one, 900, seed=2), simulate(other, two, 900, seed=2)
    np.testing.assert_array_equal(second.cumulative, first.cumulative * np.array([64.0, 0.125]))


@pytest.mark.parametrize("seed", range(5))
def test_values_of_a_sample_have_a_span_of_at_most_its_diameter_times_the_slope_plus_one(seed):
    """sp U_h(., z) <= (1 + slope) D for every round and account, which replaces the known span of SA-CVI-UCB."""
    model = small(seed)
    P, slope = model.transition.toarray().reshape(3, 2, 3), 2 / 0.3
    D = psconrl.diameter(model)
    for width in (0.5, 4.0):
        for z in (-1.0, 0.0, 2.0):
            known = values(P, model.costs[0], model.costs[1] - 0.4, slope, width, 6, z)
            spans = [np.ptp(q.min(axis=1)) for q in known.values()]
            assert max(spans) <= (1 + slope) * D


def test_new_thresholds_begin_a_new_block_and_keep_the_account():
    agent = PSConRLAccount(8, 2, CHAIN.thresholds, CHAIN.costs, horizon=900, seed=0)
    simulate(CHAIN, agent, 100, seed=0)
    agent.finish()
    before = agent.account
    agent.set_thresholds([0.5])
    assert agent.account == before
    agent.act(0)
    assert (agent._block.step, agent._block.limit) == (0, 0.5)


@pytest.mark.parametrize("thresholds", [[], [0.2, 0.3]])
def test_one_constraint(thresholds):
    with pytest.raises(AgentError, match=rf"serves models with one constraint; got {len(thresholds)}\. Use"):
        PSConRLAccount(3, 2, thresholds, horizon=100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": 0.0}, "gap must be a positive number; got 0.0"),
        ({"W": 0.0}, "W must be a positive number; got 0.0"),
        ({"grid": 0.0}, "grid must be a number above 0 and at most 1; got 0.0"),
        ({"grid": 1e-9}, r"a plan for blocks of 10 rounds with a grid of 1e-09 takes .* GB"),
    ],
)
def test_bad_options_say_what_is_wanted(options, message):
    with pytest.raises(AgentError, match=message):
        PSConRLAccount(3, 2, [0.2], horizon=100, **options)


@pytest.mark.parametrize(("key", "value"), [("position", 10**6), ("actions", np.full(3, 1)), ("cell", math.nan)])
def test_a_block_that_cannot_be_is_refused(key, value):
    agent, again = (PSConRLAccount(8, 2, CHAIN.thresholds, CHAIN.costs, horizon=400, seed=0) for _ in range(2))
    simulate(CHAIN, agent, 50, seed=0)
    state = agent.state()
    state["block"] = dict(state["block"]) | {key: value}
    with pytest.raises(AgentError):
        again.restore(state)


@pytest.mark.statistical
def test_the_constraint_is_kept_on_the_islands_and_most_of_the_optimum_is_found():
    model = psconrl.load("islands")
    agent = PSConRLAccount(2, 2, model.thresholds, model.costs, horizon=4_000, gap=0.5, seed=0)
    ends = simulate(model, agent, 4_000, seed=0).cumulative[-1]
    assert ends[0] - 4_000 * psconrl.plan(model).value < 4 * math.sqrt(4_000)
    assert ends[1] - 4_000 * model.thresholds[0] < 4 * math.sqrt(4_000)
