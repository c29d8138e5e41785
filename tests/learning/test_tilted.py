"""Tilted optimism: its formulas by hand, its price against a linear program, when its episodes end, what it plays."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import psconrl
from psconrl import CMDP, simulate
from psconrl.agents import TiltedOptimism
from psconrl.errors import AgentError, SolverError
from psconrl.learning.agents import tilted
from psconrl.learning.agents.tilted import Epoch, tilt
from psconrl.learning.parts.l1_region import hoeffding_widths, weissman_radii
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.registry import load_agent
from psconrl.planning.optimism.priced_balls import plan_at_price, price_in_balls
from psconrl.simulation.model_run import Simulation

ROVER = psconrl.load("marsrover-4x4")


def agent_for(model, horizon, known=True, **options):
    costs = model.costs if known else None
    return TiltedOptimism(model.n_states, model.n_actions, model.thresholds, costs, horizon=horizon, **options)


def counts_of(visits, S, A, seed=0, costs=2):
    """Counts with these visits (S*A,), and random successors and costs."""
    rng, counts = np.random.default_rng(seed), Counts(S, A, costs)
    record = Record.empty(counts)
    for pair, n in enumerate(visits):
        for _ in range(n):
            record.step(pair // A, pair % A, int(rng.integers(S)), rng.random(costs))
    counts.add(record)
    return counts


def test_radii_and_widths_by_hand():
    counts = counts_of([0, 1, 50, 400], 2, 2)
    radii, widths = weissman_radii(counts, 0.01, 0.1), hoeffding_widths(counts, 0.01, 0.1).ravel()
    for pair, n in enumerate([0, 1, 50, 400]):
        if n == 0:
            assert (radii[pair], widths[pair]) == (2.0, 1.0)
            continue
        log = math.log(4 * n * (n + 1) / 0.01)
        assert radii[pair] == pytest.approx(0.1 * math.sqrt(2 * (2 * math.log(2) + log) / n))
        assert widths[pair] == pytest.approx(0.1 * math.sqrt((math.log(4) + log) / (2 * n)))
    assert weissman_radii(counts, 0.01, 10.0)[1] == 2.0
    assert hoeffding_widths(counts, 0.01, 10.0)[0, 1] == 1.0


@pytest.mark.parametrize(("horizon", "length"), [(1, 1), (2, 2), (100, 10), (101, 11), (10**12, 10**6)])
def test_the_length_is_the_root_of_the_horizon_rounded_up(horizon, length):
    assert TiltedOptimism(2, 2, [0.5], horizon=horizon).length == length


def test_the_tilt_by_hand():
    for account in (-300.0, -1.0, 0.0, 2.0, 90.0):
        assert tilt(account, 5.0, 10) == pytest.approx(math.sinh(account / 80) / 10)
    assert tilt(80.0 * math.asinh(15.0), 0.5, 10) == pytest.approx(1.5)
    assert (tilt(1e300, 0.5, 10), tilt(-1e300, 0.5, 10), tilt(-1.0, 0.0, 10)) == (1.5, -0.5, 0.0)


@pytest.mark.parametrize("centre", [0.0, 0.03, 2.0])
def test_the_slope_of_the_tilt_is_bounded_by_the_tilt_as_the_proof_needs_it(centre):
    """f' <= exp(1/8) (|f(V)| + 1/L) / (8 L) within L of V."""
    for length in (5, 40):
        for account in np.linspace(-60.0, 60.0, 41) * length:
            near = account + np.linspace(-length, length, 41)
            values = np.array([tilt(v, centre, length) for v in near])
            steepest = (np.diff(values) / np.diff(near)).max()
            bound = math.exp(0.125) * (abs(tilt(account, centre, length)) + 1 / length) / (8 * length)
            assert 0.0 <= steepest <= bound * (1 + 1e-9)


def program(p_bar, radius, objective, excess):
    """Price and value of the optimistic program, by a linear program over occupations of (s, a, s')."""
    n, S = p_bar.shape
    A, size = n // S, n * S
    flow = np.zeros((S + 1, 2 * size))
    for pair in range(n):
        for s in range(S):
            flow[pair // A, pair * S + s] += 1.0
            flow[s, pair * S + s] -= 1.0
    flow[S, :size] = 1.0
    q, d = np.eye(size), np.eye(size)
    mass = np.repeat(np.repeat(np.eye(n), S, axis=1), S, axis=0) * p_bar.reshape(-1, 1)
    within = np.hstack([np.repeat(np.eye(n), S, axis=1) * -radius[:, None], np.repeat(np.eye(n), S, axis=1)])
    limit = np.concatenate([np.repeat(excess.ravel(), S), np.zeros(size)])[None]
    rows = np.vstack([np.hstack([q - mass, -d]), np.hstack([mass - q, -d]), within, limit])
    costs = np.concatenate([np.repeat(objective.ravel(), S), np.zeros(size)])
    found = linprog(costs, rows, np.zeros(len(rows)), flow, np.eye(S + 1)[S])
    return (-found.ineqlin.marginals[-1], found.fun) if found.success else None


@pytest.mark.parametrize("seed", range(12))
def test_the_price_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    S, A = 4, 2
    p_bar = rng.dirichlet(np.full(S, 0.3), S * A)
    radius, objective = rng.uniform(0.01, 0.6, S * A), rng.random((S, A))
    excess = rng.random((S, A)) - rng.choice([0.02, 0.2, 0.4])
    expected, found = program(p_bar, radius, objective, excess), price_in_balls(p_bar, radius, objective, excess)
    assert (expected is None) == (found is None)
    if found is not None:
        assert found == pytest.approx(expected, abs=1e-7)
        for price in (0.0, 0.5 * found.price, 2.0 * found.price + 0.1):  # the value is the largest least average
            plan = plan_at_price(p_bar, radius, objective, excess, price)
            assert plan.objective + price * plan.excess <= found.value + 1e-9


def test_without_a_binding_constraint_the_price_is_zero_and_without_a_feasible_policy_there_is_none():
    p_bar, radius = np.full((4, 2), 0.5), np.full(4, 0.2)
    objective = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert price_in_balls(p_bar, radius, objective, np.full((2, 2), -0.1)).price == 0.0
    assert price_in_balls(p_bar, radius, objective, np.full((2, 2), 0.1)) is None


def test_a_plan_between_two_equal_ones_is_the_one_that_planning_returns(monkeypatch):
    seen = counts_of([5, 9, 2, 30, 7, 1, 12, 4, 3], 3, 3)
    rng = np.random.default_rng(3)
    epoch = Epoch(seen, np.full(9, 0.3), rng.random((3, 3)), rng.random((3, 3)) - 0.4, np.zeros((3, 3)))
    prices, solved = rng.random(60) * 3.0, []

    def counted(*given):
        solved.append(given[-1])
        return plan_at_price(*given)

    monkeypatch.setattr(tilted, "plan_at_price", counted)
    for price in prices:
        found = epoch.plan(price)
        alone = plan_at_price(epoch.p_bar, epoch.radius, epoch.objective, epoch.excess, price)
        np.testing.assert_array_equal(found.policy, alone.policy)
        np.testing.assert_array_equal(found.kernel, alone.kernel)
    assert sorted(solved) == epoch.prices
    assert len(solved) < 40


@pytest.mark.parametrize(
    ("known", "bonus", "met"), [(True, 0.01, "length"), (True, 0.05, "widths"), (False, 0.05, "widths")]
)
def test_episodes_and_epochs_end_by_their_rules(known, bonus, met):
    """After L rounds, or with the round in which the widths exceed 1, or with the epoch; the account begins at 0."""
    agent = agent_for(ROVER, 400, known, bonus=bonus)
    rng, P = np.random.default_rng(0), ROVER.transition.toarray().reshape(16, 4, 16)
    state, ends, widths, steps, account = 0, [], [], 0, 0.0
    for _ in range(300):
        before, price = agent._epoch, agent.price
        episode = agent.begin(state)
        if agent._epoch is not before:
            assert before is None or (before.visits_left(agent.counts.pairs) == 0).any()
            ends.append("epoch")
            account = 0.0
        elif steps == 20:
            ends.append("length")
        elif sum(widths) > 1.0:
            assert sum(widths[:-1]) <= 1.0
            ends.append("widths")
        else:
            ends.append("no")
            assert agent.price == price
        if ends[-1] != "no":
            widths, steps = [], 0
            assert agent.price == agent._epoch.centre.price + tilt(account, agent._epoch.centre.price, 20)
        assert agent.account == pytest.approx(account)
        record = Record.empty(agent.counts)
        while not record.is_full(episode.max_steps, episode.visit_caps):
            action = int(episode.policy[state].argmax())
            successor = int(rng.choice(16, p=P[state, action]))
            cost = ROVER.costs[:, state, action]
            record.step(state, action, successor, cost)
            widths.append(agent._epoch.widths[4 * state + action])
            account += cost[1] - ROVER.thresholds[0]
            state, steps = successor, steps + 1
        agent.end(record)
    assert {"epoch", met} <= set(ends)


def test_learned_costs_are_planned_with_at_their_lower_bounds():
    model = CMDP(np.ones((1, 2, 1)), [[[2.0, 6.0]], [[1.0, 3.0]]], [2.0])
    agent = agent_for(model, 100, known=False, bonus=0.1, ranges=[[2.0, 6.0], [1.0, 3.0]])
    record = Record.empty(agent.counts)
    for _ in range(50):
        record.step(0, 1, 0, np.array([5.0, 2.5]))
    agent.end(record)
    agent.begin(0)
    epoch, error = agent._epoch, 0.1 * math.sqrt(math.log(4 * 2 * 50 * 51 * 100) / 100)
    assert epoch.objective[0] == pytest.approx([0.0, 0.75 - error])
    assert epoch.excess[0] == pytest.approx([-0.5, 0.75 - error - 0.5])
    assert epoch.widths == pytest.approx([3.0, epoch.radius[1] + 2 * error])
    agent.end(record)
    assert agent.account == pytest.approx(50 * 0.25)


def test_units_change_nothing():
    """Units are powers of 2, so that nothing is rounded otherwise."""
    twin = CMDP(ROVER.transition, ROVER.costs * [[[8.0]], [[0.25]]], 0.25 * ROVER.thresholds, initial=ROVER.initial)
    totals = [simulate(m, agent_for(m, 600, bonus=0.03, seed=0), 600, seed=1).cumulative[-1] for m in (ROVER, twin)]
    assert (totals[0] * [8.0, 0.25]).tolist() == totals[1].tolist()


def test_a_constraint_that_cannot_bind_has_no_price():
    agent = agent_for(CMDP(ROVER.transition, ROVER.costs, [1.5], initial=ROVER.initial), 500, bonus=0.03, seed=0)
    simulate(ROVER, agent, 500, seed=0)
    assert agent.account <= 0.0
    assert agent.price == agent._epoch.centre.price == 0.0


def test_an_infeasible_constraint_is_priced_by_the_account_alone():
    agent = agent_for(CMDP(ROVER.transition, ROVER.costs, [-0.5], initial=ROVER.initial), 400, bonus=0.03, seed=0)
    kinds = simulate(ROVER, agent, 400, seed=0).episodes.kind
    assert set(kinds) == {"least excess"}
    assert agent._epoch.centre is None
    assert 0.0 <= agent.price <= 1.0


def test_a_new_threshold_begins_an_epoch():
    agent = agent_for(ROVER, 1_000, bonus=0.03, seed=0)
    simulate(ROVER, agent, 700, seed=0)
    assert agent.account != 0.0
    agent.set_thresholds([0.4])
    agent.act(0)
    assert agent.account == 0.0
    assert agent._epoch.excess.min() == pytest.approx(ROVER.costs[1].min() - 0.4)


def test_an_agent_saved_within_an_epoch_goes_on_with_its_plans(tmp_path):
    run = Simulation(ROVER, agent_for(ROVER, 4_000, bonus=0.01, seed=0), seed=1)
    for rounds in range(100, 4_001, 100):
        run.run(rounds)
        if len(run.agent._epoch.prices) > 2:
            break
    assert len(run.agent._epoch.prices) > 2
    run.agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    assert again._epoch.prices == run.agent._epoch.prices
    for _ in range(300):
        ours, theirs = run.agent.act(0), again.act(0)
        assert ours == theirs
        for one in (run.agent, again):
            one.observe(ours, 0, ROVER.costs[:, 0, ours])
    assert again.account == run.agent.account


def test_an_unsettled_plan_is_uniform(monkeypatch):
    def fails(*given):
        raise SolverError("not settled")

    agent = agent_for(ROVER, 100, seed=0)
    monkeypatch.setattr(tilted, "price_in_balls", fails)
    episode = agent.begin(0)
    assert (episode.kind, episode.max_steps) == ("unsettled", 10)
    assert (episode.policy == 0.25).all()


@pytest.mark.parametrize("thresholds", [[], [0.2, 0.3]])
def test_it_serves_one_constraint_only(thresholds):
    with pytest.raises(AgentError, match=f"serves models with one limit; got {len(thresholds)}"):
        TiltedOptimism(3, 2, thresholds, horizon=100)


def test_it_learns_and_keeps_the_constraint():
    best = psconrl.plan(ROVER)
    trace = simulate(ROVER, agent_for(ROVER, 4_000, bonus=0.03, seed=0), 4_000, seed=0, checkpoints=4_000)
    regret = trace.cumulative[-1] - 4_000 * np.append(best.value, ROVER.thresholds)
    assert regret[0] < 80.0
    assert regret[1] < 40.0
