"""The compiled search for several constraints, against the general loop, the linear program and closed forms."""

import _thread
import sys
import threading

import numpy as np
import pytest

import psconrl
from models import random_cmdp
from psconrl import CMDP, Status, evaluate, plan
from psconrl.kernels.search.mixture_search import GIVE_UP, newton
from psconrl.planning.mixture import solve as solving
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.mixture.solve import solve, solve_compiled
from psconrl.planning.problem import Problem

SAME = 1e-10  # both loops search until the gap is below 1e-11, in costs scaled to [0, 1]
AGREE = 1e-7  # against HiGHS, whose own tolerances are 1e-9 at best

KINDS = ("dense", "near_deterministic", "tied", "masked", "near_reducible")


def communicating(m, count, slacks, kinds=KINDS):
    """Random models with m limits that the mixture plans by itself."""
    rng = np.random.default_rng(m)
    while count:
        S, A, kind = int(rng.integers(2, 12)), int(rng.integers(2, 5)), str(rng.choice(kinds))
        model = random_cmdp(kind, S, A, m, int(rng.integers(2**32)), float(rng.choice(slacks)))
        if model.transition.communicates:
            count -= 1
            yield model


def averages(mixture):
    return mixture.shares @ [column.costs for column in mixture.answers]


def excess(problem, mixture):
    return float((averages(mixture)[1:] - problem.thresholds).max())


@pytest.mark.parametrize("m", [2, 3, 5])
def test_it_finds_what_the_general_loop_finds(m):
    verdicts = set()
    for model in communicating(m, 60, (-0.5, -0.1, 0.0, 0.02, 0.3)):
        problem = Problem.of(model)
        compiled = solve_compiled(problem, least_excess=True)
        general = mix(Howard(problem), problem.thresholds, least_excess=True)
        assert compiled.settled
        assert compiled.feasible == general.feasible
        verdicts.add(compiled.feasible)
        if general.feasible:
            assert abs(compiled.gap) <= SAME
            assert compiled.value == pytest.approx(averages(compiled.mixture)[0], abs=1e-14)
            assert compiled.value == pytest.approx(averages(general)[0], abs=SAME)
            assert excess(problem, compiled.mixture) <= 1e-9
        else:
            assert excess(problem, compiled.mixture) == pytest.approx(excess(problem, general), abs=SAME)
            assert compiled.gap == pytest.approx(general.gap, abs=SAME)
            assert compiled.mixture.weights[0] == 0.0
    assert verdicts == {True, False}


@pytest.mark.parametrize("m", [2, 3, 5])
def test_it_finds_what_the_linear_program_finds(m):
    verdicts = set()
    for model in communicating(m, 30, (-0.5, -0.1, 0.02, 0.3)):
        problem = Problem.of(model)
        compiled, referee = solve_compiled(problem), plan(model, method="lp")
        assert compiled.feasible == (referee.status is not Status.INFEASIBLE)
        verdicts.add(compiled.feasible)
        if compiled.feasible:
            played = evaluate(model, compiled.policy).costs
            assert problem.scaling.invert(averages(compiled.mixture)) == pytest.approx(played, abs=1e-9)
            assert played[0] == pytest.approx(referee.costs[0], abs=AGREE)
            assert (played[1:] <= model.thresholds + 1e-8).all()
    assert verdicts == {True, False}


@pytest.mark.parametrize("m", [2, 3, 5])
def test_an_earlier_solution_is_a_shorter_way(m):
    for model in communicating(m, 10, (0.0, 0.3), ("dense",)):
        problem = Problem.of(model)
        first = solve_compiled(problem)
        again = solve_compiled(problem, first.policies)
        assert again.value == pytest.approx(first.value, abs=SAME)
        assert again.mixture.evaluated == len(first.policies)


# A state with three actions, of which the first costs and the others spend: (1, 0, 0), (0, 1, 0), (0, 0, 1).
TRIANGLE = CMDP(np.ones((3, 1)), np.eye(3)[:, None, :], [0.25, 0.5])


def solved(limits, model=TRIANGLE, **options):
    """The averages of the compiled solution."""
    problem = Problem.of(model.with_thresholds(limits))
    found = solve_compiled(problem, **options)
    assert found.settled
    return found, problem.scaling.invert(averages(found.mixture))


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ([0.25, 0.5], 0.25),
        ([0.25, 0.25], 0.5),
        ([1.0, 0.0], 0.0),  # exactly at a column
        ([0.0, 0.0], 1.0),
        ([0.5, 0.5], 0.0),  # exactly on an edge
        ([7.0, 0.5], 0.0),  # a threshold that no policy can exceed
        ([7.0, 9.0], 0.0),
    ],
)
def test_limits_by_hand(limits, value):
    found, costs = solved(limits)
    assert found.feasible
    assert costs[0] == pytest.approx(value, abs=1e-12)
    assert (costs[1:] <= np.array(limits) + 1e-12).all()
    assert found.mixture.shares.sum() == pytest.approx(1.0)
    assert (found.mixture.shares > 0.0).all()
    np.testing.assert_allclose(found.policy, found.occupancy)


def test_a_limit_that_stands_there_twice():
    once = psconrl.load("marsrover-4x4")
    thresholds = [once.thresholds[0]] * 2
    twice = CMDP(once.transition, [*once.costs, once.costs[1]], thresholds, initial=once.initial)
    alone, both = plan(once), plan(twice)
    assert solved(thresholds, twice)[1][0] == pytest.approx(alone.costs[0], abs=1e-12)
    assert both.multipliers.sum() == pytest.approx(alone.multipliers[0], abs=1e-9)
    assert not solved([-1.0, -1.0], twice)[0].feasible


def test_limits_that_clash_are_proven_to():
    """The costs of the second and third action, and a third constraint on those of the first: their sum is one."""
    model = CMDP(np.ones((3, 1)), np.vstack([np.zeros((1, 3)), np.eye(3)])[:, None, :], [0.5, 0.5, 0.5])
    found, costs = solved([0.3, 0.3, 0.3], model, least_excess=True)
    assert not found.feasible
    assert found.mixture.weights == pytest.approx([0.0, 1 / 3, 1 / 3, 1 / 3])
    assert costs[1:] == pytest.approx([1 / 3] * 3)
    assert found.gap == pytest.approx(-1 / 30)
    assert solved([0.3, 0.3, 0.4], model)[0].feasible  # exactly feasible


@pytest.mark.parametrize(("beyond", "feasible"), [(-5e-10, True), (5e-10, True), (3e-9, False)])
def test_the_boundary_is_a_hair_wide(beyond, feasible):
    """The first threshold, in scaled costs, is slightly below zero: up to 1e-9 that counts as rounding."""
    limits = np.array([-beyond, 0.5])
    problem = Problem.of(TRIANGLE)._replace(thresholds=limits)
    found, general = solve_compiled(problem), mix(Howard(problem), limits)
    assert found.feasible == general.feasible == feasible
    assert found.settled
    if feasible:
        assert averages(found.mixture) == pytest.approx([0.5, max(-beyond, 0.0), 0.5], abs=1e-9)
    assert averages(found.mixture) == pytest.approx(averages(general), abs=1e-14)


def test_rooms_that_are_hardly_ever_left():
    """Two states, left once in 1e13 rounds unless the agent moves: staying in one of them forever is best."""
    leak = 1e-13
    stay, walk = [[1 - leak, leak], [leak, 1 - leak]], [[0.5, 0.5], [0.5, 0.5]]
    P = np.stack([stay, walk], axis=1)
    costs = [[[0.2, 0.9], [0.6, 0.9]], [[1.0, 0.5], [0.0, 0.5]], [[0.0, 0.5], [1.0, 0.5]]]
    model = CMDP(P, costs, [1.0, 1.0])
    assert solved([1.0, 1.0], model)[1] == pytest.approx([0.2, 1.0, 0.0], abs=1e-9)
    found, mixed = solved([0.5, 1.0], model)
    assert mixed == pytest.approx([0.4, 0.5, 0.5], abs=1e-9)
    assert sorted(column.policy.tolist() for column in found.mixture.answers) == [[0, 1], [1, 0]]


def test_where_it_gives_up_the_general_loop_takes_over(monkeypatch):
    problem = Problem.of(TRIANGLE)
    monkeypatch.setattr(solving, "newton", lambda *a: newton(*a)._replace(outcome=GIVE_UP))
    assert solve_compiled(problem) is None
    assert solve(problem).settled
    assert solve(problem).value == pytest.approx(0.25)


def test_more_policies_to_start_from_than_it_needs():
    """Every policy of a model, many of them twice."""
    problem = Problem.of(TRIANGLE)
    start = [np.array([a]) for a in (0, 0, 1, 2, 2, 1, 0) * 20]
    assert solve_compiled(problem, start).value == pytest.approx(0.25)


def test_a_model_that_falls_apart_is_left_to_others():
    """No action leads from one state to the other: the very first evaluation fails."""
    apart = CMDP(np.eye(2), [[[0.0], [1.0]], [[1.0], [0.0]], [[1.0], [1.0]]], [0.5, 2.0])
    assert solve_compiled(Problem.of(apart)) is None


def test_where_nothing_is_spent_the_heaviest_policy_is_followed():
    """One action for 0.3 of the time, the other for 0.7; neither policy is ever in the second state."""
    stay = CMDP([[[1.0, 0.0]] * 2] * 2, [[[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], [0.3])
    found = solve_compiled(Problem.of(stay), [np.array([0, 0]), np.array([1, 1])])
    np.testing.assert_allclose(found.policy, [[0.3, 0.7], [0.0, 1.0]])
    np.testing.assert_allclose(found.occupancy, [[0.3, 0.7], [0.0, 0.0]])


def test_ctrl_c_ends_a_search_before_its_next_policy():
    problem = Problem.of(random_cmdp("dense", 600, 2, 1, 0, 0.02))
    begun = threading.Event()

    def press():
        begun.wait()
        _thread.interrupt_main()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)  # the other thread runs when the search releases the interpreter lock
    try:
        threading.Thread(target=press, daemon=True).start()
        begun.set()
        with pytest.raises(KeyboardInterrupt):
            solve_compiled(problem)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_costs_that_are_no_numbers_are_refused(bad):
    """A search with them would not terminate."""
    model = random_cmdp("dense", 4, 2, 1, 0, 0.02)
    problem = Problem.of(model)
    costs = problem.costs.copy()
    costs[0, 3] = bad
    with pytest.raises(ValueError, match="costs must be finite"):
        solve_compiled(problem._replace(costs=costs))
