"""How a certificate is judged: units, tolerances, and effects of rounding, each worked out by hand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

import psconrl
from adversarial import adversarial
from exact import rational_bound
from exact_verdict import played_averages
from psconrl import CMDP, Status, certify, plan
from psconrl.errors import SolverError
from psconrl.kernels.chains.costs import ordinary_distance
from psconrl.kernels.search.certificates import distances
from psconrl.kernels.search.improvement import improve, rounding_of_bound
from psconrl.kernels.search.mixture_search import newton
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.planning.candidate import Dual
from psconrl.planning.mixture import solve as solving
from psconrl.planning.mixture.column_generation import is_settled
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.mixture.solve import solve, solve_compiled
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate_units import units
from psconrl.planning.proof.certify import lower_bound
from psconrl.planning.tolerances import SWITCH_TOL

one_state = CMDP(np.ones((1, 3, 1)), [[[0.0, 1, 1]], [[1.0, 0, 1e11]]], [0.5])


def test_ordinary_costs_are_judged_by_their_range():
    rover = psconrl.load("marsrover-4x4")
    assert units(rover, plan(rover).occupancy).tolist() == [1.0, 1.0]


def test_huge_entries_that_are_never_paid_are_not_the_unit():
    """Half of each of the first two actions: 0.5 from the threshold on average; the unit is a hundred times that."""
    np.testing.assert_allclose(units(one_state, np.array([[0.5, 0.5, 0.0]])), [1.0, 50.0])
    np.testing.assert_allclose(units(one_state, np.array([[0.0, 0.0, 1.0]])), [1.0, 1e11])  # unless they are paid


def test_a_policy_that_meets_nothing_is_judged_by_the_ordinary_entries():
    """At a threshold of 0 the policy pays 0; the nearest other entry is 2, and the unit is a hundred times that."""
    free = CMDP(np.ones((1, 3, 1)), [[[1.0, 0, 0]], [[0.0, 2, 1e11]]], [0.0])
    np.testing.assert_allclose(units(free, np.array([[1.0, 0.0, 0.0]])), [1.0, 200.0])


def test_an_average_is_not_judged_finer_than_it_can_be_written():
    far = CMDP(np.ones((1, 2, 1)), [[[1e6, 1e6 + 1.0]]])
    assert units(far, np.array([[1.0, 0.0]])).tolist() == [1.0]
    nearly = CMDP(np.ones((1, 3, 1)), [[[1e6, 1e6 + 1e-7, 1e6 + 1e4]]])
    assert units(nearly, np.array([[1.0, 0.0, 0.0]]))[0] == pytest.approx(1.0)  # a millionth of the average
    constant = CMDP(np.ones((1, 2, 1)), [[[0.0, 1.0]], [[0.3, 0.3 + 1e-12]]], [0.3])
    assert units(constant, np.array([[1.0, 0.0]]))[1] == pytest.approx(3e-7)  # more than its range


def test_the_ordinary_size_is_the_nearest_entry_that_differs():
    costs, everywhere = np.array([[0.0, 1e9, 3.0], [1e9, -1.0, 5.0]]), np.ones((2, 3), bool)
    met = np.array([[0.5, 0.0, 0.0], [0.0, 0.25, 0.25]])
    assert distances(costs, everywhere, met, 0.0) == (1.5, 1.0)
    assert distances(costs, costs >= 0.0, met, 0.0) == (1.5, 3.0)
    assert distances(costs, everywhere, met, 3.0) == (3.0, 2.0)
    assert distances(np.zeros((1, 5)), np.ones((1, 5), bool), np.ones((1, 5)), 0.0) == (0.0, 1.0)


def test_entries_far_beyond_the_ordinary_do_not_set_the_scale():
    problem = Problem.of(one_state)
    assert problem.scaling.scale[0] == 1.0
    assert problem.scaling.scale[1] == pytest.approx(0.5e4)
    assert problem.scaling.shift[1] == 0.5
    np.testing.assert_allclose(problem.costs[1], np.array([0.5, -0.5, 1e11]) / 0.5e4)
    np.testing.assert_allclose(problem.scaling.invert(np.array([0.3, problem.thresholds[0]])), [0.3, 0.5])


def test_one_entry_next_to_the_middle_does_not_set_the_scale_of_thousands():
    everywhere = np.ones((2500, 1), bool)
    costs = np.arange(2500.0)[:, None] + 1e-6  # the second is 1e6 times as far as the first
    assert ordinary_distance(costs, everywhere, 0.0, 1e-3, 1e6) == pytest.approx(2.0)  # two of 2,500 are nearer
    assert ordinary_distance(costs, everywhere, 0.0, 1e-3, 6e5) == pytest.approx(1e-6)  # they are of another magnitude
    assert ordinary_distance(costs, everywhere, 0.0, 0.0, 1e6) == pytest.approx(1e-6)
    assert ordinary_distance(costs, costs > 9.5, 0.0, 0.0, 1e6) == pytest.approx(10.0)
    assert ordinary_distance(np.zeros((1, 5)), np.ones((1, 5), bool), 0.0, 1e-3, 1e6) == 1.0
    P = np.full((2500, 1, 2500), 1 / 2500)
    smooth = np.arange(2500.0)[:, None] ** 2
    np.testing.assert_allclose(Problem.of(CMDP(P, [smooth, smooth], [0.9])).scaling.scale, [9e4, 3.1e4])
    rng = np.random.default_rng(0)
    scales = Problem.of(CMDP(csr_array(eye_array(30_000)), rng.random((2, 30_000, 1)), [0.3])).scaling.scale
    np.testing.assert_allclose(scales, 1.0, atol=1e-3)
    penalty = np.where(np.arange(2500) < 2400, 1e9, np.arange(2500.0))[:, None]  # all but a hundred are to be avoided
    np.testing.assert_allclose(Problem.of(CMDP(P, [penalty])).scaling.scale, [3e4])  # the third nearest
    one = np.where(np.arange(2500) > 0, 1e9, 0.3)[:, None]
    one[7] = 0.0  # two affordable entries: they set the scale
    np.testing.assert_allclose(Problem.of(CMDP(P, [one])).scaling.scale, [0.3e4])


def test_a_few_ordinary_costs_among_thousands_of_huge_ones_are_planned_exactly():
    """A policy can stay in a ring of ten states; leaving it, and everything else, costs 1e9."""
    n, ring = 2000, 10
    pairs = np.arange(2 * n)
    home = np.where(pairs < 2 * ring, (pairs // 2 + 1) % ring, pairs // 2 % ring)
    onward = np.where(pairs % 2, pairs * 7919 % n, home)
    P = csr_array((np.ones(2 * n), (pairs, onward)), shape=(2 * n, n))
    costs = np.full((2, n, 2), 1e9)
    costs[:, :ring, 0] = 0.0
    costs[0, 0, 0] = costs[1, 3, 0] = 1.0
    for limit in (0.5, 0.1):
        found = plan(CMDP(P, costs, [limit]))
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(0.1, abs=1e-12)
        assert found.gap <= 1e-12
    assert plan(CMDP(P, costs, [0.0])).status is Status.INFEASIBLE


def test_an_excess_beyond_the_tolerance_is_not_optimal():
    rover = psconrl.load("marsrover-4x4")
    p = plan(rover)
    for excess, holds in ((1e-9, True), (4e-9, False)):
        assert certify(rover.with_thresholds(rover.thresholds - excess), p).holds == holds


@pytest.mark.parametrize("price", [1.0, 1e3, 1e6])
@pytest.mark.parametrize(("times", "holds"), [(0.5, True), (2.0, False)])
def test_a_gap_beyond_the_tolerance_is_not_optimal_however_dear_the_limit(price, times, holds):
    """Two alternating states cost -1 and 1 less the slack: the gap is the price of the slack.

    The objective is free, with the unit 1; the range of the other cost is 2.
    """
    gap = times * 1e-9 * min(1.0 + 2.0 * price, 1e3)
    left = gap / price
    turns = CMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [np.zeros((2, 1)), [[-1.0 - left], [1.0 - left]]], [0.0])
    p = replace(plan(turns), multipliers=np.array([price]), potential=np.array([0.0, price]))
    proof = certify(turns, p)
    assert units(turns, p.occupancy).tolist() == [1.0, 2.0]
    assert proof.gap == pytest.approx(gap, rel=1e-3)  # 1 - left is rounded
    assert proof.holds == holds


def test_the_low_part_of_a_potential_counts():
    """Two states joined by a leak: moving one by 1e5 moves the bound by that times the leak."""
    leak = 1e-13
    P = np.array([[1 - leak, leak], [leak, 1 - leak]]).reshape(2, 1, 2)
    model = CMDP(P, [[[0.1], [0.7]]])
    p = plan(model)
    assert p.status is Status.OPTIMAL
    assert p.value == pytest.approx(0.4, abs=1e-12)
    moved = replace(p, low_potential=p.low_potential + np.array([0.0, 1e5]))
    assert certify(model, moved).gap == pytest.approx(1e5 * leak, rel=1e-3)
    assert not certify(model, moved).holds


def test_what_rounding_may_hide_by_hand():
    P = np.array([[0.5, 0.5], [0.25, 0.75]])
    for h in ([0.0, 3.0], [3.0, 0.0]):
        assert rounding_of_bound(P, np.array([2.0]), np.array([h])) == pytest.approx(2 * 1.2e-16 * 0.5 * 6.0, abs=0)


def test_an_open_gap_is_not_settled():
    assert is_settled(True, 0.9e-9)
    assert not is_settled(True, 1.1e-9)
    assert is_settled(False, -2e-9)
    assert not is_settled(False, -0.5e-9)
    assert solve(Problem.of(psconrl.load("box"))).settled


def test_the_bound_of_an_improvement_leaves_room_for_rounding():
    problem = Problem.of(psconrl.load("marsrover-4x4"))
    oracle, w, P = Howard(problem), np.array([0.7, 0.3]), problem.transition.array
    column = oracle.first(w)
    bare, _, _ = improve(P, problem.costs, w, problem.available, column.policy, column.biases, SWITCH_TOL)
    bound, _ = oracle.improve(column, w)
    assert bound == pytest.approx(bare - rounding_of_bound(P, w, column.biases), abs=1e-18)
    assert bound < bare


@pytest.mark.parametrize(
    ("outcome", "gap", "used"), [(1, 1e-10, True), (1, 1e-8, False), (0, -1e-8, True), (0, 0.0, False)]
)
def test_the_loop_looks_at_the_gap(monkeypatch, outcome, gap, used):
    """Only a closed gap is used, whatever the compiled method claims."""
    rover = psconrl.load("marsrover-4x4")
    problem = Problem.of(rover)
    start, settled = solve(problem).policies, solving.solve_carefully(problem)
    monkeypatch.setattr(solving, "newton", lambda *a: newton(*a)._replace(outcome=outcome, gap=gap))
    assert solve_compiled(problem, start).settled == used
    planner, asked = EpisodePlanner(16, 4), []
    planner.last = start
    monkeypatch.setattr(solving, "solve_carefully", lambda *_, **__: asked.append("carefully") or settled)
    planner.optimal(problem.transition, rover.costs, rover.thresholds, 0)
    assert asked == ([] if used else ["carefully"])
    monkeypatch.setattr(solving, "solve_carefully", lambda *_, **__: solve_compiled(problem, start))
    monkeypatch.setattr(planner, "_from_general_planner", lambda *_: asked.append("generally"))
    planner.optimal(problem.transition, rover.costs, rover.thresholds, 0)
    assert asked == ([] if used else ["carefully", "generally"])


def test_a_sample_that_nothing_settles_is_not_played(monkeypatch):
    """The agent explores, and the episode says why."""
    rover = psconrl.load("marsrover-4x4")
    agent = psconrl.PSConRL(16, 4, rover.thresholds, rover.costs, seed=0)

    def give_up(*_, **__):
        raise SolverError("no")

    monkeypatch.setattr(agent.planner, "optimal", give_up)
    episode = agent.begin(0)
    assert episode.kind == "unsettled"
    assert (episode.policy.max(axis=1) == 1.0).all()  # the shortest path to a state, no randomised action


@pytest.mark.parametrize("size", [1.0, 1e11])
def test_the_sure_bound_is_below_the_exact_one(size):
    """Random potentials of two parts, with costs whose sum is much smaller than their terms."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        cmdp = CMDP(rng.dirichlet(np.ones(4), size=8), size * rng.normal(size=(3, 4, 2)), rng.random(2))
        p = plan(cmdp.with_thresholds([1e12, 1e12]))
        dual = Dual(rng.random(2), size * rng.normal(size=4), 1e-9 * rng.normal(size=4), None)
        exact = rational_bound(cmdp, replace(p, multipliers=dual.multipliers, potential=dual[1], low_potential=dual[2]))
        start = rng.random()
        weights = np.append(1.0, dual.multipliers)
        plain = lower_bound(cmdp, weights, dual, start, -np.inf)
        careful = lower_bound(cmdp, weights, dual, start, plain.computed)
        for bound in (plain, careful):
            assert bound.sure <= exact - Fraction(start)
            assert bound.sure == pytest.approx(bound.computed)
        assert careful.computed - careful.sure <= 4e-16 * abs(careful.computed) < plain.computed - plain.sure


@pytest.mark.parametrize("seed", [9, 10, 31])
def test_a_certificate_holds_only_if_it_does_without_rounding(seed):
    """Reduced costs of 1e11 in doubles have an error of 1e-5, which hid gaps of 1e-7."""
    cmdp = adversarial("both_signs", seed)
    p = plan(cmdp)
    assert p.status is Status.OPTIMAL
    assert played_averages(cmdp, p)[0] - rational_bound(cmdp, p) <= Fraction(p.certificate.tolerance)
