"""Plans in rational arithmetic: against the reference solver, closed forms, and models that doubles leave open."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from adversarial import KINDS, adversarial
from exact import averages, optimum, rationals
from models import random_cmdp
from psconrl import CMDP, ConfigError, Plan, Status, certify, plan
from psconrl.base.sizes import EXACT_STATES, LAST_RESORT_STATES
from psconrl.errors import PolicyError, SolverError
from psconrl.markov.structure import is_weakly_communicating
from psconrl.planning import planner
from psconrl.planning.exact.checking import rational_bound
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.judgement import BEYOND_DOUBLES
from psconrl.planning.exact.last_resort import is_open, settled
from psconrl.planning.exact.linear import solve_integers
from psconrl.planning.exact.master import solve_small
from psconrl.planning.exact.rational_model import RationalModel
from psconrl.planning.exact.solve import solve_rationals
from psconrl.planning.proof.shortfall import shortfall
from psconrl.planning.restriction import Restriction

HALF = Fraction(1, 2)


def solved(cmdp, start=()):
    part = Restriction(cmdp).apply()
    return solve_rationals(RationalModel.of(part), start, [Fraction(1)] * cmdp.n_constraints)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 15])
def test_linear_systems_are_solved_exactly(n):
    draw = random.Random(n)
    A = [[draw.getrandbits(draw.choice([5, 60, 200])) * draw.choice([1, -1, 0]) for _ in range(n)] for _ in range(n)]
    for k in range(n):
        A[k][k] += 1 << 220  # not singular
    B = [[draw.getrandbits(90) for _ in range(n)] for _ in range(3)]
    numerators, denominator = solve_integers(A, B)
    expected = solve_small([[Fraction(x) for x in row] for row in A], [[Fraction(x) for x in b] for b in B])
    assert [[Fraction(x, denominator) for x in column] for column in numerators] == expected


def test_a_singular_system_is_refused():
    with pytest.raises(SolverError, match="singular"):
        solve_integers([[1, 2], [2, 4]], [[1, 1]])


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_reference_solver(kind, full):
    """Every fraction is equal: values, least excess, bound of the dual point."""
    for seed in range(12 if full else 3):
        cmdp = adversarial(kind, seed)
        if not is_weakly_communicating(cmdp):
            continue
        found = solved(cmdp)
        best, least = optimum(cmdp)
        bound = rational_bound(RationalModel.of(Restriction(cmdp).apply()), found.dual)
        assert found.feasible == (best is not None)
        if best is None:
            assert found.excess == least
            assert bound > 0
        else:
            assert found.averages[0] == best == bound
            assert all(x <= tau for x, tau in zip(found.averages[1:], rationals(cmdp.thresholds), strict=True))


def test_one_third_is_one_third():
    p = plan(CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], costs=[[[0.0], [1.0]]]), exact=True)
    assert p.exact.value == Fraction(1, 3)
    assert p.exact.policy == ((1,), (1,))
    assert p.value == 1 / 3
    assert p.method == "exact"


def test_a_binding_constraint_by_hand():
    """Two states and a choice to move: the share of state 1 is half at the optimum, exactly."""
    P = np.array([[[1, 0], [0.5, 0.5]], [[1, 0], [0.25, 0.75]]])
    p = plan(CMDP(P, [[[2, 2], [0, 0]], [[0, 0], [1, 1]]], [0.5]), exact=True)
    assert p.exact.value == 1
    assert p.exact.costs == (1, HALF)
    assert p.exact.multipliers == (2,)
    assert p.exact.excess == (0,)
    shares = [[x for x in row if x] for row in p.exact.policy]
    assert max(len(row) for row in shares) == 2
    assert all(sum(row) == 1 for row in shares)
    chain = RationalChain(
        RationalModel.of(CMDP(P, [[[2, 2], [0, 0]], [[0, 0], [1, 1]]], [0.5])),
        [{a: x for a, x in enumerate(row) if x} for row in p.exact.policy],
    )
    assert chain.averages == [1, HALF]
    assert chain.distribution == [HALF, HALF]


def test_rewards_are_reported_as_rewards():
    p = plan(CMDP.from_rewards([[[0.5, 0.5]], [[1.0, 0.0]]], rewards=[[3.0], [0.0]]), exact=True)
    assert p.exact.value == 2
    assert p.exact.costs == (-2,)


def islands(threshold):
    """A start that may go to either of two islands: costs (0, 1) on one of them, (1, 0) on the other."""
    P = [[[0, 1, 0], [0, 0, 1]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2]
    return CMDP(P, [[[0, 0], [0, 0], [1, 1]], [[0, 0], [1, 1], [0, 0]]], [threshold])


def test_islands_and_a_randomised_start():
    p = plan(islands(0.25), exact=True)
    assert p.status is Status.OPTIMAL
    assert p.exact.value == Fraction(3, 4)
    assert p.exact.multipliers == (1,)
    assert p.exact.shares in ((Fraction(1, 4), Fraction(3, 4)), (Fraction(3, 4), Fraction(1, 4)))
    assert p.exact.policy is None or certify(islands(0.25), p).holds
    assert p.certificate.holds


def test_several_thresholds_that_are_met_one_by_one_only():
    """One state, three actions with costs e_1, e_2, e_3: shares of a third each, or an excess of 1/12."""
    costs = [[[0.0, 0, 0]], [[1.0, 0, 0]], [[0, 1.0, 0]], [[0, 0, 1.0]]]
    met = plan(CMDP(np.ones((1, 3, 1)), costs, [0.5, 0.5, 0.5]), exact=True)
    assert met.exact.feasible
    beyond = plan(CMDP(np.ones((1, 3, 1)), costs, [0.25, 0.25, 0.25]), exact=True)
    assert beyond.status is Status.INFEASIBLE
    assert beyond.exact.excess == (Fraction(1, 12),) * 3
    assert beyond.exact.multipliers == (1, 1, 1)
    assert beyond.certificate.margin == 0.25


@pytest.mark.parametrize("by", [1e-12, 1e-9, 1e-8, 3e-7])
def test_infeasible_by_little_in_one_state(by):
    """Two thresholds that are missed together by 1e-12 of the range."""
    costs = [[[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]]
    p = plan(CMDP(np.ones((1, 2, 1)), costs, [0.5, 0.5 - by]), exact=True)
    assert p.status is Status.INFEASIBLE
    assert p.certificate.holds
    assert certify(CMDP(np.ones((1, 2, 1)), costs, [0.5, 0.5 - by]), p).holds
    q = plan(CMDP(np.ones((1, 2, 1)), costs, [0.5, 0.5 + by]), exact=True)
    assert q.exact.feasible
    assert q.status is Status.OPTIMAL


def ring(n):
    P = np.zeros((n, 2, n))
    P[np.arange(n), 0, (np.arange(n) + 1) % n] = 1.0
    P[np.arange(n), 1, np.arange(n)] = 0.5
    P[np.arange(n), 1, (np.arange(n) + 1) % n] += 0.5
    return csr_array(P.reshape(2 * n, n))


@pytest.mark.parametrize("n", [1, 3, LAST_RESORT_STATES + 20])
@pytest.mark.parametrize("by", [1e-12, 1e-9, 1e-8, 1e-7])
def test_a_constant_cost_is_compared_exactly(n, by):
    """No rounding is involved if a cost is the same everywhere, however large the model is."""
    objective = np.tile([[1.0, 2.0]], (n, 1))
    above = CMDP(ring(n), [objective, np.full((n, 2), 0.3)], [0.3 - 0.3 * by])
    p = plan(above)
    assert p.status is Status.INFEASIBLE
    assert p.certificate.holds
    assert certify(above, p).holds
    assert plan(CMDP(ring(n), [objective, np.full((n, 2), 0.3)], [0.3])).status is Status.OPTIMAL
    assert plan(CMDP(ring(n), [objective, np.full((n, 2), 0.3)], [0.3 + 0.3 * by])).status is Status.OPTIMAL


def test_rounded_entries_are_no_excess():
    assert plan(CMDP([[[1.0]]], [[[0.0]], [[0.1 + 0.2]]], [0.3])).status is Status.OPTIMAL


@pytest.mark.parametrize("by", [1e-9, 1e-8])
def test_one_reachable_state_is_compared_exactly(by):
    """The cheapest entry is above the threshold by 1e-9 of the range."""
    P = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    p = plan(CMDP(P, [np.zeros((2, 2)), [[0.4 + by, 1.0], [0.0, 0.0]]], [0.4]))
    assert p.status is Status.INFEASIBLE
    assert p.certificate.holds
    assert "1 of 2 states" in p.note


def test_a_proof_beyond_doubles_is_kept_in_rational_numbers():
    leak = CMDP(np.array([[1, 1e-320], [1e-320, 1]]).reshape(2, 1, 2), [[[0.1], [0.3]]])
    p = plan(leak)
    assert p.status is Status.OPTIMAL
    assert p.exact.value == (Fraction(0.1) + Fraction(0.3)) / 2
    assert p.value == pytest.approx(0.2, rel=1e-15)
    assert BEYOND_DOUBLES in p.note
    assert certify(leak, p).holds
    forged = replace(p.exact, potential=(Fraction(0), Fraction(0)))
    assert not certify(leak, replace(p, exact=forged)).holds
    forged = replace(p.exact, gains=(Fraction(1), Fraction(1)))
    assert not certify(leak, replace(p, exact=forged)).holds


def test_plans_in_rational_numbers_are_saved(tmp_path):
    leak = CMDP(np.array([[1, 1e-320], [1e-320, 1]]).reshape(2, 1, 2), [[[0.1], [0.3]]])
    p = plan(leak)
    p.save(tmp_path / "plan.npz")
    again = Plan.load(tmp_path / "plan.npz")
    assert again.exact.record() == p.exact.record()
    assert again.exact.potential == p.exact.potential
    assert certify(leak, again).holds
    assert p.record()["exact"]["value"].count("/") == 1
    wrong = replace(p, exact=replace(p.exact, potential=p.exact.potential[:1]))
    wrong.save(tmp_path / "wrong.npz")
    with pytest.raises(PolicyError, match="rational numbers"):
        Plan.load(tmp_path / "wrong.npz")


def test_states_out_of_reach_are_idle():
    P = np.array([[[0.5, 0.5, 0]], [[1, 0, 0]], [[0.5, 0, 0.5]]])
    p = plan(CMDP(P, [[[0.0], [1.0], [7.0]]]), exact=True)
    assert p.exact.value == Fraction(1, 3)
    assert len(p.exact.potential) == len(p.exact.policy) == 3
    assert p.exact.policies == ((0, 0, 0),)


def test_large_models_are_refused():
    n = EXACT_STATES + 1
    with pytest.raises(ConfigError, match=f"up to {EXACT_STATES} reachable states; got {n}"):
        plan(CMDP(ring(n), np.zeros((1, n, 2))), exact=True)
    with pytest.raises(ConfigError, match="exact must be True or False"):
        plan(CMDP(ring(2), np.zeros((1, 2, 2))), exact=1)


def failing(*_, **__):
    raise SolverError("rounding spoiled it")


@pytest.mark.parametrize("n", [3, LAST_RESORT_STATES + 20])
def test_a_search_that_fails_ends_in_a_status(monkeypatch, n):
    """Neither the search nor the evaluation works: small models are planned anyway, large ones say what is missing."""
    monkeypatch.setattr(planner, "find_candidate", failing)
    monkeypatch.setattr(planner, "certified", failing)
    costs = [np.tile([[1.0, 2.0]], (n, 1)), np.tile([[2.0, 0.0]], (n, 1))]
    p = plan(CMDP(ring(n), costs, [1.0]))
    if n == 3:
        # Half of all rounds with each action: a third of the visits moves at once.
        assert p.status is Status.OPTIMAL
        assert p.exact.value == Fraction(3, 2)
    else:
        assert p.status is Status.UNCERTIFIED
        assert "rounding spoiled it" in p.note
        assert "could not be evaluated" in p.note
        assert np.isnan(p.value)


def test_ctrl_c_keeps_the_plan_in_doubles(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(planner, "asked_for", interrupted)
    cmdp = CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], costs=[[[0.0], [1.0]]])
    p = plan(cmdp, exact=True, progress=lambda progress: None)
    assert p.status is Status.OPTIMAL
    assert p.exact is None
    assert "stopped by hand" in p.note
    with pytest.raises(KeyboardInterrupt):
        plan(cmdp, exact=True)


def test_averages_of_an_infeasible_plan_are_accurate():
    """An average that deviates from its frequencies by 1e-6 is computed again."""
    cmdp = CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[[0.0], [1.0]], [[3.0], [0.0]]], [1.0])
    p = plan(cmdp)
    assert p.status is Status.INFEASIBLE
    assert not is_open(cmdp, p)
    off = replace(p, costs=p.costs * (1 + 1e-6), certificate=replace(p.certificate, policy_error=1e-6))
    assert is_open(cmdp, off)
    again = settled(cmdp, off)
    np.testing.assert_array_equal(again.costs, [1 / 3, 2.0])
    assert again.exact.costs == (Fraction(1, 3), 2)


def test_what_is_not_proven_is_named():
    cmdp = CMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[[0.0], [1.0]], [[3.0], [0.0]]], [2.5], state_names=["low", "high"])
    p = plan(cmdp)
    assert "no bound" in shortfall(cmdp, replace(p, certificate=replace(p.certificate, lower=-np.inf)))
    assert shortfall(cmdp, replace(p, potential=np.zeros(2))).endswith("less, by action 0 in state low")
    beyond = replace(p.certificate, excess=np.array([0.25]))
    assert shortfall(cmdp, replace(p, certificate=beyond)) == "not proven: the policy exceeds 'cost 1' by 0.25"
    unknown = replace(p, costs=np.full(2, np.nan))
    assert "could not be evaluated" in shortfall(cmdp, unknown)


def test_ordinary_plans_need_no_rational_arithmetic():
    for seed in range(20):
        p = plan(adversarial("ordinary", seed))
        assert p.exact is None
        assert p.method == "mixture"


@pytest.mark.full
def test_one_constraint_needs_one_randomised_state(full):
    """Policies that differ in every state: the pair in between differs in one, with the same averages."""
    for seed in range(6 if full else 1):
        cmdp = random_cmdp("dense", 6, 3, 1, seed)
        p = plan(cmdp, exact=True)
        if p.status is Status.OPTIMAL:
            assert sum(len([x for x in row if x]) > 1 for row in p.exact.policy) <= 1
            assert p.exact.costs[0] == optimum(cmdp)[0]


def test_the_rounded_policy_has_the_averages_that_the_plan_states():
    """Averages of a plan are those of its policy in doubles, evaluated without rounding by the reference solver."""
    for seed in range(12):
        cmdp = adversarial("leak", seed)
        p = plan(cmdp, exact=True)
        if p.mixture is None and p.status is Status.OPTIMAL:
            assert p.costs.tolist() == [float(x) for x in averages(cmdp, p.policy)]
            assert abs(p.exact.costs[0] - averages(cmdp, p.policy)[0]) <= Fraction(1e-12)
