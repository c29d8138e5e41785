"""The environments that were written for the leaderboard before any agent was run on them: their exact solutions."""

from fractions import Fraction

import numpy as np
import pytest

import psconrl
from held_out import HELD_OUT
from psconrl import Status, plan
from psconrl.answers.pareto import cost_ranges
from psconrl.envs.gate import gate
from psconrl.envs.machine import machine
from psconrl.envs.patrol import patrol
from psconrl.envs.random_models import garnet
from psconrl.envs.random_walk import random_walk
from psconrl.envs.taxicab import taxicab
from psconrl.errors import ModelError
from psconrl.markov.structure import is_communicating


def loaded(name):
    env, options, *_ = HELD_OUT[name]
    return psconrl.load(env, **options)


@pytest.mark.parametrize("name", HELD_OUT)
def test_every_one_has_a_certified_optimum_and_a_constraint_with_a_price(name):
    """No stationary policy attains the optimum of the patrol and of the gate, so that the referee's comes close."""
    cmdp, optimum = loaded(name), HELD_OUT[name][3]
    assert is_communicating(cmdp)
    assert cmdp.available.all()
    assert cmdp.n_states <= 60
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert best.certificate.holds
    assert best.multipliers.max() > 0.05
    assert best.value == pytest.approx(optimum, abs=1e-9)
    referee = plan(cmdp, method="lp").value
    assert optimum - (2e-4 if name in ("patrol", "gate") else 1e-7) <= referee <= optimum + 1e-7


def test_the_thresholds_are_as_hard_as_their_names_say():
    none = loaded("no-breakdown")
    assert none.thresholds.tolist() == [0.0] == [cost_ranges(none)[1, 0]]
    tight = loaded("tight-limit")
    low, high = cost_ranges(tight)[1]
    assert 0.0 < (tight.thresholds[0] - low) / (high - low) < 0.006
    five = loaded("five-limits")
    assert five.n_constraints == 5
    np.testing.assert_array_equal(five.costs[4], five.costs[5])
    assert five.thresholds[3] == five.thresholds[4]
    assert (plan(five).costs[1:3] < five.thresholds[:2] - 0.02).all()  # the first two do not bind


def test_a_machine_without_breakdowns_runs_as_new_and_is_repaired_once_worn():
    """A cycle has 1 / wearing rounds as new and 1 / repaired rounds of repair: 5 / (5 + 2)."""
    best = plan(machine(damaged=0.0))
    assert best.value == pytest.approx(5 / 7, abs=1e-12)
    assert best.policy[0, 0] == 1.0


def test_a_machine_with_no_limit_that_binds_is_a_renewal_process():
    """Run fast until it breaks: 1/w rounds in each of two conditions, 1/(w + b - wb) in the last, 1/r broken."""
    w, b, r = 0.5, 0.25, 0.125
    cmdp = machine(conditions=2, wearing=w, breaking=b, repaired=r, damage=10.0, damaged=10.0)
    fast = np.array([0, 0, 2])
    found = psconrl.evaluate(cmdp, fast)
    rounds = 1 / w + 1 / b + 1 / r
    assert found.value == pytest.approx((1 / w + 1 / b) / rounds, abs=1e-12)
    assert found.costs[1] == pytest.approx(10.0 / r / rounds, abs=1e-12)


@pytest.mark.parametrize("length", [2, 5, 10])
def test_the_optimum_of_a_walk_that_always_pushes(length):
    """Detailed balance: the stationary distribution is geometric with ratio up / down."""
    ratio = 0.7 / 0.3
    weights = ratio ** np.arange(length)
    assert plan(random_walk(length, effort=1.0)).value == pytest.approx(weights[-1] / weights.sum(), abs=1e-12)


def test_the_patrol_divides_its_time_between_the_posts_for_its_moves_are_rare():
    best = plan(patrol(first=0.9, second=0.75))
    assert best.value == pytest.approx(1.0 - 0.1 - 0.25, abs=1e-9)
    np.testing.assert_allclose(best.multipliers, [1.0, 1.0], atol=1e-6)


def test_the_exception_of_a_patrol_has_its_probability():
    rows = patrol(length=5, success=0.25).transition.toarray().reshape(5, 3, 5)
    assert rows[4, 0].tolist() == [0.25, 0.0, 0.0, 0.0, 0.75]
    assert np.count_nonzero((rows > 0) & (rows < 1)) == 2


def test_the_taxicab_is_that_of_howard():
    """His policy, stands in all towns, and its gain: 13 41/119, or 13.34."""
    free = plan(taxicab(stands=1.0))
    assert free.policy[:, 1].tolist() == [1.0, 1.0, 1.0]
    P = [[Fraction(n, 16) for n in row] for row in ((1, 12, 3), (1, 14, 1), (2, 12, 2))]
    shares = [Fraction(8, 119), Fraction(102, 119), Fraction(9, 119)]
    assert [sum(shares[s] * P[s][t] for s in range(3)) for t in range(3)] == shares
    fares = [Fraction(8 + 24 + 12, 16), Fraction(8 + 224 + 8, 16), Fraction(12 + 48 + 4, 16)]
    assert free.value == pytest.approx(float(sum(x * y for x, y in zip(shares, fares, strict=True))), abs=1e-12)
    assert free.value == pytest.approx(13.34, abs=0.005)


def test_a_payment_behind_the_gate_opens_it_for_five_rounds():
    """It closes with probability 1/5, so that a limit of 1/5 on open rounds pays 1/25; without one, every sixth."""
    assert plan(gate(right=1.0)).value == pytest.approx(0.2 / 5, abs=1e-12)
    assert plan(gate(opened=1.0, right=1.0)).value == pytest.approx(1 / 6, abs=1e-12)
    cmdp = gate(length=4)
    names = list(cmdp.state_names)
    P = cmdp.transition.toarray().reshape(8, 3, 8)
    before, behind = names.index("cell 1, gate closed"), names.index("cell 2, gate closed")
    assert P[before, 1, before] == P[behind, 0, behind] == 1.0  # closed
    assert P[before + 4, 1, behind + 4] == pytest.approx(0.8)
    assert P[before + 4, 1, behind] == pytest.approx(0.2)
    assert P[before, 2, before] == P[0, 2, 4] == P[3, 2, 7] == 1.0  # the switches are at the ends


def test_copies_of_a_constraint_change_nothing():
    one, three = garnet(seed=5, constraints=2), garnet(seed=5, constraints=2, copies=2)
    assert (one.n_constraints, three.n_constraints) == (2, 4)
    np.testing.assert_array_equal(three.costs[2], three.costs[4])
    assert plan(one).value == pytest.approx(plan(three).value, abs=1e-9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: machine(conditions=1), "conditions must be a whole number from 2 on; got 1"),
        (lambda: machine(repaired=0.0), "repaired must be a probability above 0; got 0.0"),
        (lambda: random_walk(1), "length must be a whole number from 2 on; got 1"),
        (lambda: random_walk(drift=0.5), "drift must lie strictly between 0 and 1/2; got 0.5"),
        (lambda: patrol(2), "length must be a whole number from 3 on; got 2"),
        (lambda: patrol(success=0.0), "success must be a probability above 0; got 0.0"),
        (lambda: gate(7), "length must be an even number from 4 on; got 7"),
        (lambda: gate(closing=0.0), "closing must lie strictly between 0 and 1; got 0.0"),
        (lambda: gate(closing=1.0), "closing must lie strictly between 0 and 1; got 1.0"),
        (lambda: garnet(copies=-1), "copies must be a whole number from 0 on; got -1"),
        (lambda: garnet(copies=0.5), "copies must be a whole number from 0 on; got 0.5"),
        (lambda: garnet(copies=float("nan")), "copies must be a whole number from 0 on; got nan"),
        (lambda: garnet(copies=True), "copies must be a whole number from 0 on; got True"),
        (lambda: garnet(copies=10**9), "a table of 1,000,000,002 costs takes 480 GB, more than"),
        (lambda: garnet(constraints=0, copies=1), "copies repeat the last constraint, but constraints is 0"),
    ],
)
def test_parameters_out_of_range_get_one_clear_line(build, message):
    with pytest.raises(ModelError, match=message):
        build()
