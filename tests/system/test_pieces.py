"""The building blocks of planners, learners and measures, each against numbers worked out by hand."""

import numpy as np
import pytest

from psconrl import CMDP, Status, plan, regret
from psconrl.kernels.search.certificates import deviations
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.markov.chain import DenseChain
from psconrl.markov.evaluation import evaluate
from psconrl.markov.gain_bias import solve_dense
from psconrl.markov.hitting_times import diameter, hitting_times
from psconrl.planning.linear_programs.lp import solve_lp
from psconrl.planning.mixture.master import LineMaster, SimplexMaster
from psconrl.planning.optimism.horizon import solve_horizon
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate_units import CAPS
from psconrl.planning.proof.certify import Dual, certificate_of, lower_bound
from psconrl.planning.scaling import Scaling
from psconrl.simulation.regret import largest_excess, paper_regret
from psconrl.simulation.trace import EpisodeLog, PolicyLog, Trace

# Spend 2 and pay nothing, or spend nothing and pay 10: each unit of spending saves 5.
CHOICE = CMDP(np.ones((2, 1)), [[[0.0, 10.0]], [[2.0, 0.0]]], [0.5])


# The master problem. Points (objective, cost): (1, 0), (0.4, 0.5), (0, 1.5); limit 0.75.
POINTS = ([1.0, 0.0], [0.4, 0.5], [0.0, 1.5], [0.9, 0.9])


@pytest.mark.parametrize("make", [LineMaster, SimplexMaster])
def test_the_master_cuts_the_lower_hull_at_the_limit(make):
    master = make(np.array([0.75]))
    for point in POINTS:
        master.add(np.array(point))
    found = master.solve()
    assert found.feasible
    assert found.mix == {1: pytest.approx(0.75), 2: pytest.approx(0.25)}
    price = 0.4  # from (0.4, 0.5) to (0, 1.5)
    assert found.weights == pytest.approx(np.array([1.0, price]) / (1 + price))
    assert found.value == pytest.approx((0.75 * 0.4 + 0.25 * 0.0) / (1 + price))


@pytest.mark.parametrize("make", [LineMaster, SimplexMaster])
def test_a_master_without_a_feasible_point_has_the_least_excess(make):
    master = make(np.array([-0.25]))
    for point in POINTS:
        master.add(np.array(point))
    found = master.solve()
    assert not found.feasible
    assert (found.mix, found.value) == ({0: pytest.approx(1.0)}, pytest.approx(0.25))
    assert found.weights == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("make", [LineMaster, SimplexMaster])
def test_a_limit_that_does_not_bind_has_no_price(make):
    master = make(np.array([2.0]))
    for point in POINTS:
        master.add(np.array(point))
    found = master.solve()
    assert (found.mix, found.value) == ({2: pytest.approx(1.0)}, pytest.approx(0.0, abs=1e-12))
    assert found.weights == pytest.approx([1.0, 0.0])


# Certificates


def test_the_lagrangian_bound_by_hand():
    """``min over actions of c0 + lambda (c1 - 0.5)``: 0 + 3 (2 - 0.5) and 10 + 3 (0 - 0.5)."""
    for price, bound in ((3.0, 4.5), (5.0, 7.5)):
        dual = Dual(np.array([price]), np.zeros(1), np.zeros(1), None)
        found = lower_bound(CHOICE, np.array([1.0, price]), dual, 0.0, 0.0)
        assert found == (pytest.approx(bound), pytest.approx(bound), 0.0)
        assert found.sure < found.computed
        assert lower_bound(CHOICE, np.array([1.0, price]), dual, 2.0, 0.0).computed == pytest.approx(bound - 2.0)


def test_a_potential_enters_by_its_drift():
    """Two states in turn, costs 0 and 2: with h = (0, 1) both pairs bound the average by 1."""
    ring = CMDP([[0.0, 1.0], [1.0, 0.0]], [[[0.0], [2.0]]])
    for potential, bound in (([0.0, 1.0], 1.0), ([0.0, 0.0], 0.0)):
        dual = Dual(np.empty(0), np.array(potential), np.zeros(2), None)
        assert lower_bound(ring, np.ones(1), dual, 0.0, 0.0).computed == pytest.approx(bound)


def test_unreachable_states_do_not_bound():
    apart = CMDP(np.eye(2), [[[2.0], [0.0]]], initial=0)
    dual = Dual(np.empty(0), np.zeros(2), np.zeros(2), None)
    assert lower_bound(apart, np.ones(1), dual, 0.0, 0.0).computed == 2.0


def test_what_a_certificate_says_by_hand():
    policy = np.array([[0.75, 0.25]])  # spends 1.5, which is 1 too much
    exact = evaluate(CHOICE, policy)
    proof = certificate_of(
        CHOICE, Status.OPTIMAL, 0.9 * policy, Dual(np.array([5.0]), np.zeros(1), np.zeros(1), None), exact
    )
    assert (proof.upper, proof.lower) == (pytest.approx(2.5), pytest.approx(7.5))
    assert proof.excess == pytest.approx([1.0])
    assert proof.flow_residual == pytest.approx(0.1)  # a tenth of the time is missing
    assert not proof.holds


def test_how_far_frequencies_are_from_a_distribution_and_from_a_policy():
    """They average 5 and 1 where the policy has 8 and 0.5: off by 3/10 and 0.5/2; a fifth does not return.

    The units are the ranges, 10 and 2, since the costs met are of that size. The costs met are 1 from the threshold on
    average, so that a violation is judged by the range, too.
    """
    costs, half = np.array([[[0.0, 10.0]], [[2.0, 0.0]]]), np.array([[0.5, 0.5]])
    model = costs, np.array([0.5]), np.ones((1, 2), dtype=bool)
    flow_residual, policy_error, unit, excess_unit = deviations(
        *model, half, np.array([0.8]), np.array([8.0, 0.5]), *CAPS
    )
    assert (flow_residual, policy_error) == (pytest.approx(0.2), pytest.approx(0.3))
    assert (unit.tolist(), excess_unit.tolist()) == ([10.0, 2.0], [2.0])
    negative = deviations(*model, -half, np.array([-1.0]), np.zeros(2), *CAPS)
    assert negative[0] == pytest.approx(3.0)  # 1 negative, 2 off
    for averages in ([np.nan, 0.5], [8.0, np.nan]):
        assert np.isnan(deviations(*model, half, np.ones(1), np.array(averages), *CAPS)[1])


@pytest.mark.parametrize("method", ["mixture", "lp"])
def test_prices_are_in_the_user_s_units(method):
    found = plan(CHOICE, method)
    assert (found.status, found.method) == (Status.OPTIMAL, method)
    assert (found.value, found.multipliers.tolist()) == (pytest.approx(7.5), [pytest.approx(5.0)])


def test_scaled_costs_by_hand():
    problem = Problem.of(CHOICE)
    assert (problem.costs.tolist(), problem.thresholds.tolist()) == ([[0, 1], [1, 0]], [0.25])
    priced = Dual(np.ones(1), np.array([2.0]), np.zeros(1), np.array([0.5]))
    inverted = problem.scaling.invert_dual(priced, feasible=True)
    assert inverted.multipliers == pytest.approx([5.0])
    assert inverted.potential == pytest.approx([20.0])
    assert inverted.gains == pytest.approx([5.0])
    assert problem.scaling.invert(np.array([0.75, 0.25])) == pytest.approx([7.5, 0.5])


@pytest.mark.parametrize(
    ("feasible", "price", "potential", "gain"),
    [(True, 5.0, 30.0, 16.0), (False, 1.0, 6.0, 3.0)],
    ids=["prices", "Farkas"],
)
def test_a_dual_is_translated_with_the_offsets_of_its_costs(feasible, price, potential, gain):
    """Costs 1 + 10 c and 2 + 4 c, a scaled price of 2: 2 * 10/4 = 5, and 0.5 * 10 + 1 + 5 * 2 for a scaled gain of .5.

    A Farkas weight of 2/4 is scaled to 1: then the objective and its offset have no part in it.
    """
    scaling = Scaling(np.array([1.0, 2.0]), np.array([10.0, 4.0]))
    dual = Dual(np.array([2.0]), np.array([3.0]), np.zeros(1), np.array([0.5]))
    found = scaling.invert_dual(dual, feasible)
    assert (found.multipliers[0], found.potential[0], found.gains[0]) == (price, potential, gain)


def test_the_dual_of_the_linear_program():
    solution = solve_lp(Problem.of(CHOICE))
    assert solution.dual.multipliers == pytest.approx([1.0])
    assert solution.occupancy == pytest.approx(np.array([[0.25, 0.75]]))


def test_a_mixture_over_a_horizon_has_the_shares_of_its_columns():
    """Two rounds in the only state there is: the share that spends is the limit."""
    costs, stay = np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((2, 1))
    policy = solve_horizon(stay, stay, costs, np.array([0.2]), 2, 0)[1]
    assert policy[:, 0, 0] == pytest.approx([0.2, 0.2])


# Chains and distances


def test_closed_classes_are_those_that_are_not_left():
    chain = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert [c.tolist() for c in DenseChain(chain).closed_classes()] == [[1, 2], [3]]


def test_gain_bias_and_distribution_of_two_states():
    """Leaves the first with .4, the second with .2; the first costs 3: distribution (1/3, 2/3), gain 1."""
    chain = solve_dense(np.array([[0.6, 0.4], [0.2, 0.8]]), np.arange(2), np.array([[3.0, 0.0]]))
    assert chain.stationary == pytest.approx([1 / 3, 2 / 3])
    assert chain.gains == pytest.approx([1.0])
    assert chain.biases[0, 0] - chain.biases[0, 1] == pytest.approx(3.0 / 0.6)


def test_times_and_the_longest_of_them():
    """Leaves the first state for the second with .25, the second for the first with .5."""
    model = CMDP([[0.75, 0.25], [0.5, 0.5]], [[[0.0], [0.0]]])
    assert hitting_times(model, 1) == pytest.approx([4.0, 0.0])
    assert hitting_times(model, 0) == pytest.approx([0.0, 2.0])
    assert diameter(model) == pytest.approx(4.0)


def test_the_faster_of_two_ways_is_taken():
    """Directly with probability 1/4 each round, or surely through a second state."""
    P = np.zeros((3, 2, 3))
    P[0, 0, [0, 2]], P[0, 1, 1], P[1, :, 2], P[2, :, 0] = (0.75, 0.25), 1.0, 1.0, 1.0
    assert hitting_times(CMDP(P, [np.zeros((3, 2))]), 2) == pytest.approx([2.0, 1.0, 0.0])


# Records and measures


def test_counts_add_up_episode_by_episode():
    counts = Counts(2, 1, 2)
    for times in (2, 3):
        record = Record.empty(counts)
        for _ in range(times):
            record.step(1, 0, 0, np.array([0.5, 2.0]))
        counts.add(record)
    assert (counts.visits.tolist(), counts.transitions.tolist()) == ([0, 5], [[0, 0], [5, 0]])
    assert counts.cost_sums.tolist() == [[0.0, 2.5], [0.0, 10.0]]


def trace_of(rounds, cumulative, lengths=(), costs=()):
    limits, totals = np.array([0.5]), np.array(cumulative, float)
    return Trace(
        np.array(rounds),
        totals,
        largest_excess(totals, rounds, limits),
        EpisodeLog(),
        limits,
        ("objective", "cost"),
        {},
        policies=PolicyLog(list(lengths), [*map(np.array, costs)]),
    )


def test_regret_and_violation_by_hand():
    """The optimum of CHOICE is 7.5 a round, the limit 0.5."""
    trace = trace_of([2, 4], [[20, 2], [20, 1]], lengths=[3, 1], costs=[[10.0, 0.0], [0.0, 2.0]])
    measured = regret(trace, plan(CHOICE))
    assert measured.regret == pytest.approx([20 - 15, 20 - 30])
    assert measured.violation[:, 0] == pytest.approx([2 - 1, 1 - 2])
    assert measured.worst_violation[:, 0] == pytest.approx([1, 1])
    assert measured.positive_regret == pytest.approx([5, 0])
    assert measured.positive_violation[:, 0] == pytest.approx([1, 0])
    assert measured.strong == pytest.approx([3 * (10 - 7.5), 1 * (2 - 0.5)])


def test_the_paper_s_metric_by_hand():
    """Windows of two rounds: the objective's averages 10, 9 and 5 are above 7.5 by 2.5, 1.5 and nothing.

    In the second run they are 4, 6 and 10. The average over both runs, 7.5 at most in the first two windows, would give
    nothing there.
    """
    first = trace_of([1, 2, 3, 4], [[10, 0], [20, 0], [28, 0], [30, 4]])
    second = trace_of([1, 2, 3, 4], [[5, 0], [8, 0], [17, 0], [28, 0]])
    rounds, curves = paper_regret([first, second], plan(CHOICE), window=2)
    assert rounds.tolist() == [1, 2, 3, 4]
    assert curves[:, :, 0] == pytest.approx(np.array([[0, 2.5, 4.0, 4.0], [0, 0, 0, 2.5]]))
    assert curves[:, :, 1] == pytest.approx(np.array([[0, 0, 0, 1.5], [0, 0, 0, 0]]))
