"""Every plan that is optimal saves a proof that the checker accepts: models on which one was once refused, shrunk."""

import json
from dataclasses import replace

import numpy as np
import pytest

from exact import optimum, rationals
from exact_families import drawn
from psconrl import CMDP, Status, certify, check_proof, evaluate, plan
from psconrl.errors import PolicyError, SolverError
from psconrl.planning.components.stationary import transient_visits
from psconrl.planning.proof.proof_files import checked_proof, plain_model, proof_of

pytestmark = pytest.mark.filterwarnings("error")


def saved(cmdp, path):
    """Return the plan of a model and the verdict of the checker on its proof, read back from a file."""
    found = plan(cmdp)
    found.save_proof(path / "proof.json", cmdp)
    return found, check_proof.check(plain_model(cmdp), json.loads((path / "proof.json").read_text()))


def chain(rows, costs):
    """A model with one action in every state."""
    return CMDP(np.array(rows)[:, None, :], np.array(costs)[:, :, None])


@pytest.mark.parametrize(
    "cmdp",
    [
        chain([[1.0, 0.0, 4e-302], [0.0, 1.0, 0.0], [4e-16, 9e-17, 1 - 4e-16]], [[1.0, 0.0, 0.0]]),
        chain([[1.0, 0.0, 5e-301], [1.0, 0.0, 0.0], [0.0, 2e-309, 1.0]], [[0.5, 0.5, 1.0]]),
        chain([[1.0, 0.0, 1e-100], [0.0, 1.0, 0.0], [0.2, 0.8, 0.0]], [[0.0, -1e90, 0.0]]),
    ],
)
def test_biases_may_be_larger_than_costs_may_be(cmdp, tmp_path):
    """What is left of biases of 1e300 is 1e284: it is no cost, and refining it to 1e-11 takes twenty parts."""
    assert saved(cmdp, tmp_path)[1][0] == "PROVEN: optimal"
    record = proof_of(cmdp, plan(cmdp), plain_model(cmdp))
    assert check_proof.check(plain_model(cmdp), record)[0] == "PROVEN: optimal"  # no rational numbers are needed


def test_a_bound_beyond_doubles_is_proven_in_rational_numbers(tmp_path):
    """Shadow prices are 1e400: with the largest double in their place the bound is below all doubles."""
    P = [[[1, 0], [0, 1]], [[1, 0], [0, 0]]]
    costs = [[[0.0, 1.0], [-1e100, 0.0]], [[-1e100, 0.0], [1e-300, 0.0]], [[-1e-300, 1e100], [-1e100, 0.0]]]
    found, verdict = saved(CMDP(P, costs, [0.0, -1e-300], available=[[1, 1], [1, 0]]), tmp_path)
    assert verdict[0] == f"PROVEN: {found.status.value}"


def test_a_tolerance_is_that_of_the_model_not_of_a_huge_entry(tmp_path):
    """The second action costs too much of the limit, and the first one 1 instead of 9e-150."""
    found, verdict = saved(CMDP(np.ones((1, 3, 1)), [[[1.0, 0.0, 9e-150]], [[0.0, 1.0, 0.0]]], [0.0]), tmp_path)
    assert verdict[0] == "PROVEN: optimal"
    assert found.value == 9e-150
    assert found.gap == 0.0


def steep():
    """A queue that is nearly always full, with a limit on the share of time in which it is: the price is 2e5."""
    P = np.zeros((3, 2, 3))
    P[0, 1] = [0.66, 0.34, 0.0]
    P[1] = [[1.44e-05, 0.65972864, 0.34025696], [1.92e-05, 0.65972384, 0.34025696]]
    P[2] = [[0.0, 1.44e-05, 0.9999856], [0.0, 1.92e-05, 0.9999808]]
    pay, full = [[0.0, 3.0]] * 3, [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    return CMDP(P, [pay, full], [0.99995095], initial=1, available=[[0, 1], [1, 1], [1, 1]])


def test_a_coarse_potential_is_replaced(tmp_path):
    """Rounding of potentials of 1e5 leaves a gap of 1e-7, of which high prices make nothing."""
    found, verdict = saved(steep(), tmp_path)
    assert verdict[0] == "PROVEN: optimal"
    assert abs(found.gap) <= 3e-9
    single = found.potential.astype(np.float32).astype(float)
    coarse = replace(found, potential=single, low_potential=np.zeros(3), exact=None)
    assert "over" in checked_proof(steep(), coarse, plain_model(steep()))["potential"]  # a rational one is found


def with_a_way_out():
    """Two components; a pair that leaves one of them, and potentials of 1e12."""
    P = np.zeros((3, 3, 3))
    P[0, 0, 0] = P[0, 1, 2] = P[0, 2, 2] = P[1, 0, 2] = P[1, 2, 1] = P[2, 2, 0] = 1.0
    available = [[1, 1, 1], [1, 0, 1], [0, 0, 1]]
    return CMDP(P, [[[0.5, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1e12]]], initial=1, available=available)


def test_pairs_that_leave_a_component_do_not_hide_the_others(tmp_path):
    """A multichain bound is the least over the pairs that stay; pairs that leave have none."""
    found, verdict = saved(with_a_way_out(), tmp_path)
    assert verdict[0] == "PROVEN: optimal"
    assert certify(with_a_way_out(), found).holds
    for potential in (1e12 + 1.0, np.inf):  # of the state where leaving costs 1e12
        forged = np.array([0.0, 0.0, potential])
        wrong = replace(found, potential=forged, low_potential=np.zeros(3), gains=np.full(3, 0.5), exact=None)
        assert not certify(with_a_way_out(), wrong).holds


def test_visits_beyond_doubles_are_no_policy():
    leaving = chain([[1.0, 5e-324], [0.0, 1.0]], [[0.0, 1.0]])
    with pytest.raises(SolverError, match="more often than doubles can count"):
        transient_visits(leaving, np.zeros(2, dtype=np.int64))
    rarely = chain([[1.0, 1e-300], [0.0, 1.0]], [[0.0, 1.0]])
    np.testing.assert_allclose(transient_visits(rarely, np.zeros(2, dtype=np.int64)), [1e300, 0.0])
    found = plan(drawn("rare_moves", 392))  # of two policies that are mixed, one never leaves a state
    assert found.status is Status.INFEASIBLE
    assert found.mixture is not None


def test_a_search_that_ends_at_a_price_without_end(tmp_path):
    cmdp = CMDP(
        [[[1.0, 5e-324], [0.0, 0.0]], [[1e-300, 1.0], [0.0, 1.0]]],
        [[[0.0, 0.0], [1.0, 0.7]]],
        available=[[1, 0], [1, 1]],
    )
    found, verdict = saved(cmdp, tmp_path)
    assert verdict[0] == "PROVEN: optimal"
    assert rationals([found.value])[0] == pytest.approx(optimum(cmdp)[0], rel=1e-12)


def test_a_price_beyond_doubles_is_no_warning(tmp_path):
    """One unit of the limit is worth 1e400 of the objective."""
    cmdp = CMDP(np.ones((1, 2, 1)), [[[0.0, 1e100]], [[1e-300, 0.0]]], [5e-301])
    assert saved(cmdp, tmp_path)[1][0] == "PROVEN: optimal"


def test_what_the_linear_program_cannot_mix_is_mixed():
    """Costs of 1e-142 and 1e43 are beyond the components, and HiGHS has no policies to draw from."""
    cmdp = CMDP(
        [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]]],
        [[[0, 9e-101], [6.1e-115, 0], [1.7e-142, 0]], [[0, 0], [-2e43, 0], [1.4978758681107535e-53, 0]]],
        [-6.119178e42],
        initial=2,
        available=[[1, 1], [1, 1], [1, 0]],
    )  # fmt: skip
    found = plan(cmdp)
    assert found.status is Status.OPTIMAL
    assert found.mixture is not None
    best, _ = optimum(cmdp)
    assert abs(rationals([found.value])[0] - best) <= best / 10**12
    assert plan(cmdp, exact=True).exact.value == best


def test_an_infeasible_plan_has_the_least_excess():
    """A state that is left with probability 1e-30: staying there costs 1, leaving it 0.1."""
    P = [[[1 - 1e-15, 1e-15], [1.0, 0.0]], [[0.0, 0.0], [1e-30, 1.0]]]
    cmdp = CMDP(P, [np.zeros((2, 2)), [[0.1, 0.1], [0.0, 1.0]]], [0.0], initial=1, available=[[1, 1], [0, 1]])
    found = plan(cmdp)
    assert found.status is Status.INFEASIBLE
    assert found.costs[1] == 0.1
    assert evaluate(cmdp, found.policy).costs[1] == pytest.approx(0.1)


def test_the_linear_program_ends():
    """The interior-point method of HiGHS repeats its last step forever."""
    assert plan(drawn("never_do_this", 36)).status is Status.OPTIMAL


def test_averages_that_are_0_in_doubles_need_another_unit(tmp_path):
    smallest = 5e-324
    cmdp = CMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[[0.0], [1.0]], [[0.0], [smallest]]], [0.0])
    with pytest.raises(PolicyError, match=r"take a smaller unit for 'cost 1', which is below 2\.2e-308"):
        plan(cmdp).save_proof(tmp_path / "proof.json", cmdp)


def test_averages_below_the_precision_of_doubles_need_another_unit(tmp_path):
    small = chain([[0.5, 0.5], [1.0, 0.0]], [[1e-320, 3.7e-319]])
    with pytest.raises(PolicyError, match=r"take a smaller unit for 'objective', which is below 2\.2e-308"):
        plan(small).save_proof(tmp_path / "proof.json", small)
    assert not (tmp_path / "proof.json").exists()
    assert saved(chain([[0.5, 0.5], [1.0, 0.0]], [[1e-300, 4e-300]]), tmp_path)[1][0] == "PROVEN: optimal"


def test_a_plan_of_unknown_origin_must_have_the_size_of_the_model(tmp_path):
    small, large = chain([[1.0]], [[1.0]]), chain([[0.5, 0.5], [1.0, 0.0]], [[1.0, 4.0]])
    with pytest.raises(PolicyError, match="made for another model"):
        replace(plan(large), origin="").save_proof(tmp_path / "proof.json", small)


@pytest.mark.parametrize("name", ["costs", "multipliers"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_damaged_plan_has_no_proof(name, number, tmp_path):
    found = plan(steep())
    damaged = replace(found, **{name: np.full(getattr(found, name).shape, number)})
    with pytest.raises(PolicyError, match="must be finite"):
        damaged.save_proof(tmp_path / "proof.json", steep())


def test_shares_that_miss_the_averages_by_rounding_are_left_out(tmp_path):
    """The biases prove averages that shares of the mixed pairs, as doubles, have only to 1e-13."""
    P = [[[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1e-200, 1.0], [4e-13, 1 - 4e-13]]]
    costs = [[[0, 0, 0], [0, 0.5, 1]], [[0, 1, 0], [0, 0, 0]], [[0.5, 0, 0], [0, 1, 0]]]
    cmdp = CMDP(P, costs, [1.0, 0.7], initial=1, available=[[1, 1, 0], [0, 1, 1]])
    assert saved(cmdp, tmp_path)[1][0] == "PROVEN: optimal"
    assert "occupancy" not in proof_of(cmdp, plan(cmdp), plain_model(cmdp))
    assert "occupancy" in proof_of(steep(), plan(steep()), plain_model(steep()))


def test_a_departure_beyond_doubles_is_no_warning(tmp_path):
    """The multichain program of HiGHS counts departures, each after 1/p visits."""
    cmdp = drawn("rare_moves", 30032)
    found, verdict = saved(cmdp, tmp_path)
    assert verdict[0] == f"PROVEN: {found.status.value}"


def test_a_rational_proof_states_the_averages_that_it_proves():
    """Those of a plan may be off by its tolerances, which are relative to costs of 1e12 that it hardly meets."""
    found = plan(steep())
    off = replace(found, costs=found.costs * (1.0 + 1e-8), exact=None)
    assert checked_proof(steep(), off, plain_model(steep()))["averages"] == pytest.approx(found.costs, rel=1e-15)


def test_an_excess_that_the_checker_refuses_is_decided_exactly(tmp_path):
    """Two thresholds are missed by 1e-184 together; an excess of 3e-14 over one of them is none of rounding."""
    found, verdict = saved(drawn("nearly_apart", 30091), tmp_path)
    assert found.status is Status.INFEASIBLE
    assert verdict[0] == "PROVEN: infeasible"


def test_moves_that_exceed_one_are_those_of_the_checker(tmp_path):
    """Probabilities of three moves that sum to one and an ulp, in a model with biases of 1e50."""
    found, verdict = saved(drawn("nasty", 30176), tmp_path)
    assert found.status is Status.OPTIMAL
    assert verdict[0] == "PROVEN: optimal"
