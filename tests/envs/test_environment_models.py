"""The environments beyond the paper: communicating, documented, with a known optimum found in two ways."""

import itertools
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import psconrl
from psconrl import Status, evaluate, plan
from psconrl.envs.chain import chain
from psconrl.envs.inventory import inventory
from psconrl.envs.queue import queue
from psconrl.envs.random_models import dirichlet_cmdp, garnet, ring
from psconrl.envs.registry import ENVIRONMENTS
from psconrl.envs.riverswim import riverswim
from psconrl.errors import ConfigError, ModelError
from psconrl.experiment.spec_file import shipped_spec
from psconrl.markov.structure import is_communicating
from psconrl.planning.slater import slater_gap

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from study import DRAWN, OWN

OPTIMA = {
    "queue": 0.3775060130,
    "inventory": 1.7546602607,
    "riverswim": 0.2168112245,
    "chain": 0.2572527932,
    "garnet": 0.2274338594,
    "dirichlet": 0.1450546571,
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_communicating_feasible_and_described(name):
    cmdp = psconrl.load(name)
    assert is_communicating(cmdp)
    assert plan(cmdp).certificate.holds
    assert ENVIRONMENTS[name].summary
    assert ENVIRONMENTS[name].build.__module__.startswith("psconrl.envs")
    assert cmdp.n_constraints >= 1


@pytest.mark.parametrize("name", OPTIMA)
def test_known_optimum_by_planner_and_referee(name):
    cmdp = psconrl.load(name)
    assert plan(cmdp).value == pytest.approx(OPTIMA[name], abs=1e-8)
    assert plan(cmdp, method="lp").value == pytest.approx(OPTIMA[name], abs=1e-7)


def test_a_queue_with_one_speed_is_the_birth_death_chain_of_the_textbook():
    """Detailed balance: pi(n+1) / pi(n) = up(n) / down(n+1)."""
    arrival, speed, capacity = 0.3, 0.5, 6
    cmdp = queue(capacity, arrival, [speed], [1.0])
    always_open = np.zeros(capacity + 1, dtype=int)
    up = np.array([arrival] + [arrival * (1 - speed)] * (capacity - 1))
    down = np.array([speed * (1 - arrival)] * capacity)
    distribution = np.append(1.0, np.cumprod(up / down))
    distribution /= distribution.sum()
    exact = evaluate(cmdp, always_open)
    np.testing.assert_allclose(exact.occupancy.sum(axis=1), distribution, rtol=1e-12)
    assert exact.costs[1] == pytest.approx(distribution @ np.arange(capacity + 1))
    assert exact.value == pytest.approx(arrival * (1 - distribution[-1]) + arrival * speed * distribution[-1])


def test_what_flows_in_flows_out():
    """Throughput in equals throughput out, under any policy."""
    cmdp = queue()
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(6), size=10)
    exact = evaluate(cmdp, policy)
    served = np.array([[0.2, 0.2, 0.5, 0.5, 0.8, 0.8]] * 10) * (np.arange(10) > 0)[:, None]
    assert (exact.occupancy * served).sum() == pytest.approx(exact.value)


def test_a_stock_without_orders_sells_nothing():
    cmdp = inventory(capacity=4, customers=3, buying=0.4)
    exact = evaluate(cmdp, np.zeros(5, dtype=int))
    np.testing.assert_allclose(exact.costs, [0.0, 3 * 0.4, 0.0], atol=1e-12)


def test_a_stock_refilled_every_day_is_a_sum_over_the_demand():
    cmdp = inventory(capacity=2, customers=2, buying=0.5)
    exact = evaluate(cmdp, np.full(3, 2))
    # Two on the shelf each morning; demand 0, 1, 2 with 1/4, 1/2, 1/4; an order unless nothing was sold.
    np.testing.assert_allclose(exact.costs, [2 / 4 + 1 / 2, 0.0, 3 / 4], atol=1e-12)


def test_riverswim_without_limit_swims_to_the_far_end():
    free = plan(riverswim(effort=1.0))
    assert free.value == pytest.approx(0.4286, abs=1e-3)  # the value in the literature for six positions
    assert (free.policy[:, 1] > 0.999).all()


ONWARD = {0: Fraction(96, 100), 1: Fraction(94, 100)}  # the paper's values, which are not doubles


def averages_on_the_chain(scores):
    """Reward and score a round of a deterministic policy, from one visit of position 0 to the next: exact."""
    here, reward, score, rounds = Fraction(1), Fraction(0), 0, Fraction(0)
    for s, a in enumerate(scores):
        rounds, score = rounds + here, score + here * a
        reward += here * (Fraction(2, 5) * ((1 - a) if s < 3 else a) + (1 - ONWARD[a]))  # and the prize, one round on
        here *= ONWARD[a]
    rounds += 1  # the end or the prize
    return reward / rounds, score / rounds


def test_the_optimum_of_the_chain_in_rational_arithmetic():
    """The averages that can be reached are the convex hull of those of the 64 policies: the best on a line of two."""
    limit = Fraction(7, 10)
    found = [averages_on_the_chain(scores) for scores in itertools.product((0, 1), repeat=6)]
    above = [point for point in found if point[1] >= limit]
    below = [point for point in found if point[1] < limit]
    best = max(
        r + (limit - g) / (g_up - g) * (r_up - r) for r_up, g_up in above for r, g in below
    )  # all policies with slack earn less than the best that has none: the limit binds
    assert best > max(r for r, _ in above)
    exact = plan(chain())
    assert exact.certificate.holds
    assert exact.value == pytest.approx(float(best), abs=1e-12)
    assert exact.costs[1] == pytest.approx(0.3, abs=1e-12)
    score = exact.policy[:6, 1]
    np.testing.assert_allclose(score[[0, 1, 3, 4, 5]], 1.0, atol=1e-12)  # it gives up scores where that pays: at 2
    assert 0.02 < score[2] < 0.021


def test_the_gap_of_the_chain_is_that_of_scoring_always():
    """(1 - q^6) / (1 - q) positions of a round in each, then the end or the prize."""
    most = max(averages_on_the_chain(scores)[1] for scores in itertools.product((0, 1), repeat=6))
    positions = (1 - ONWARD[1] ** 6) / (1 - ONWARD[1])
    assert most == positions / (positions + 1)
    gap = float(most - Fraction(7, 10))
    assert gap == pytest.approx(0.1378948896)
    least = plan(chain(missed=0.3 - gap + 1e-9))
    assert least.status is Status.OPTIMAL
    assert plan(chain(missed=0.3 - gap - 1e-6)).status is Status.INFEASIBLE


def test_the_spans_of_the_chain():
    """Backward from position 0 with h = 0 there: h(end) = h(prize) - reward difference, and so on down the chain."""
    cmdp = chain()
    policy = plan(cmdp).policy
    for table, span in zip(cmdp.costs, (1.0, 0.84708), strict=True):
        gain = evaluate(cmdp, policy).occupancy.ravel() @ table.ravel()
        h = np.zeros(9)  # positions 0 to 5, end, prize; last of all position 0 again
        h[6], h[7] = table[6, 0] - gain, table[7, 0] - gain
        for s in range(5, -1, -1):
            onward = policy[s] @ [0.96, 0.94]
            h[s] = policy[s] @ table[s] - gain + onward * h[s + 1] + (1 - onward) * h[7]
        assert h[0] == pytest.approx(0.0, abs=1e-12)
        assert np.ptp(h[:8]) == pytest.approx(span, abs=1e-9)


def test_random_models_depend_on_their_seed_only():
    for build in (garnet, dirichlet_cmdp):
        np.testing.assert_array_equal(build(seed=3).transition.toarray(), build(seed=3).transition.toarray())
        assert (build(seed=3).transition.toarray() != build(seed=4).transition.toarray()).any()
    assert garnet(sparse=True).is_sparse
    assert (np.count_nonzero(garnet(branching=3).transition, axis=1) == 3).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: queue(capacity=0), "capacity must be a whole number from 1 on"),
        (lambda: queue(arrival=1.5), "arrival must lie strictly between 0 and 1"),
        (lambda: queue(speeds=[0.5], powers=[1, 2]), "one power for each"),
        (lambda: inventory(capacity=-1), "whole numbers"),
        (lambda: inventory(buying=0), "buying must lie"),
        (lambda: riverswim(1), "length must be a whole number from 2 on"),
        (lambda: chain(5), "length must be an even number from 2 on; got 5"),
        (lambda: chain(0), "length must be an even number from 2 on; got 0"),
        (lambda: garnet(states=3, branching=5), "branching must lie between 1 and states = 3"),
        (lambda: dirichlet_cmdp(prior=0), "must be positive"),
        (lambda: dirichlet_cmdp(masses=[]), "masses must be a list of positive numbers"),
        (lambda: dirichlet_cmdp(masses=[1.0, -1.0]), "masses must be a list of positive numbers"),
        (lambda: dirichlet_cmdp(masses="many"), "masses must be a list of positive numbers"),
        (lambda: dirichlet_cmdp(masses=["1"]), "masses must be a list of positive numbers"),
        (lambda: dirichlet_cmdp(prior=1.0, masses=[1.0]), "give prior or masses, not both"),
        (lambda: garnet(seed=-1), "seed must not be negative; got -1"),
        (lambda: psconrl.load("queue", dely=3), "did you mean 'delay'"),
    ],
)
def test_bad_parameters_get_one_clear_line(build, message):
    with pytest.raises((ModelError, ConfigError), match=message):
        build()


@pytest.mark.parametrize("mass", [0.5, 4.0])
def test_the_rows_of_a_drawn_mass_are_as_concentrated_as_they_should_be(mass):
    """The sum of squares of a row from Dirichlet(M/S) is (M/S + 1) / (M + 1) in mean. 400 rows: five deviations, once
    in two million seeds."""
    rows = dirichlet_cmdp(states=100, actions=4, masses=[mass], seed=5).transition.toarray()
    squares = (rows**2).sum(axis=1)
    assert abs(squares.mean() - (mass / 100 + 1) / (mass + 1)) < 5 * squares.std() / 20


def test_every_action_draws_its_own_mass():
    rows = dirichlet_cmdp(states=30, actions=40, masses=[0.001, 1e4], seed=6).transition.toarray().reshape(30, 40, 30)
    sure = rows.max(axis=2) > 0.5
    assert (sure.all(axis=0) | ~sure.any(axis=0)).all()  # all rows of an action alike
    assert abs(sure[0].mean() - 0.5) < 5 * 0.5 / np.sqrt(40)  # each mass as likely as the other; once in two million


@pytest.mark.parametrize("name", sorted(OWN))
def test_environments_of_the_study_have_a_certified_optimum_and_a_binding_constraint(name):
    cmdp = OWN[name](*([0] if name in DRAWN else []))
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert best.certificate.holds
    assert best.multipliers.max() > 1e-4
    inside = np.flatnonzero(cmdp.transition.reachable_from(np.arange(cmdp.n_states) == 0))
    assert cmdp.transition.restrict(inside).communicates
    assert cmdp.available.all()


def test_the_fifty_rings_meet_the_assumptions_of_the_theorems():
    """The diameter is the time to leave all places but one, each by its surest action; the gap is that of the spec."""
    models = [psconrl.load("ring", seed=k) for k in range(50)]
    gaps = {agent.options["gap"] for agent in shipped_spec("theory").agents.values() if agent.knowledge.candidates
            and "gap" in agent.options}  # fmt: skip
    for model in models:
        P = model.transition.toarray().reshape(6, 2, 6)
        places = np.arange(6)
        left = P[places, :, (places + 1) % 6]
        assert (P[places, :, places] + left == 1.0).all()
        assert ((left[:, 0] >= 1e-5) & (left[:, 0] <= 0.1)).all()
        assert ((left[:, 1] >= 0.4) & (left[:, 1] <= 1.0)).all()
        time = 1.0 / left.max(axis=1)
        assert psconrl.diameter(model) == pytest.approx(time.sum() - time.min())
        assert psconrl.diameter(model) <= 12.5
        assert plan(model).multipliers[0] > 0.1
    assert gaps == {0.2}
    assert min(slater_gap(model) for model in models) == pytest.approx(0.2198, abs=5e-5)
    assert len({model.transition.toarray().tobytes() for model in models}) == 50
    np.testing.assert_array_equal(ring(53).transition.toarray(), models[3].transition.toarray())


@pytest.mark.parametrize("seed", range(0, 50, 7))
def test_the_optimum_of_a_ring_is_that_of_a_renewal_cycle(seed):
    """In a cycle, x rounds are stays at the first place, y stays at the opposite one, and u others, of which each costs
    0.5: x + 0.5 u = 0.4 (x + y + u). One of the two places is stayed at until one drifts, the other one left at random.
    """
    P = psconrl.load("ring", seed=seed).transition.toarray().reshape(6, 2, 6)
    (drift, *_, away, _, _), leave = (P[np.arange(6), a, (np.arange(6) + 1) % 6] for a in (0, 1))
    elsewhere = (1.0 / leave[[1, 2, 4, 5]]).sum()
    x = 1.0 / drift  # as long as it can be, if the opposite place is left on purpose in time
    y = (0.6 * x + 0.1 * (elsewhere + 1.0 / leave[3])) / (0.4 + 0.1 * away / leave[3])
    u = elsewhere + (1.0 - away * y) / leave[3]
    if away * y > 1.0:
        y = 1.0 / away
        x = (0.4 * y - 0.1 * (elsewhere + 1.0 / leave[0])) / (0.6 - 0.1 * drift / leave[0])
        u = elsewhere + (1.0 - drift * x) / leave[0]
    assert x + 0.5 * u == pytest.approx(0.4 * (x + y + u))
    model = psconrl.load("ring", seed=seed)
    assert plan(model).value == pytest.approx(1.0 - x / (x + y + u), abs=1e-9)
    assert plan(model, method="lp").value == pytest.approx(1.0 - x / (x + y + u), abs=1e-7)


def test_moving_between_the_islands_may_fail_like_a_ferry_that_comes_rarely():
    ferry = psconrl.load("islands", threshold=0.3, success=0.02)
    assert psconrl.diameter(ferry) == pytest.approx(50.0)
    assert plan(ferry).value == pytest.approx(0.7)
    np.testing.assert_allclose(ferry.transition.toarray().reshape(2, 2, 2)[:, 1], [[0.98, 0.02], [0.02, 0.98]])
    for success in (0.0, 1.01):
        with pytest.raises(ModelError, match="success must be a probability above 0"):
            psconrl.load("islands", success=success)
