"""Proofs that claim more than is true are refused, however they were made: see ``forgeries``."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from forgeries import PRICES, consistent, searched, six_states, worst_policy_called_optimal
from psconrl import CMDP, check_proof, plan
from psconrl.check_proof import checker, exact
from psconrl.check_proof.plain_model import Scale, rounded_down, rounded_up
from psconrl.planning.exact.rational_model import RationalModel
from psconrl.planning.proof.proof_files import _policy, plain_model, proof_of

TRIES = 40


@pytest.mark.parametrize("raised", [0.0, *PRICES])
def test_free_prices_do_not_widen_the_tolerance(raised):
    """The prices of an equality can be raised together; the bound stays, and the worst policy is 0.31 above it."""
    cmdp, proof = worst_policy_called_optimal(raised)
    with pytest.raises(check_proof.RefusedError, match=r"the gap of 0\.311 is open; tolerance 9\.0\de-10"):
        check_proof.check(plain_model(cmdp), proof | {"tolerances": {"bound": 10.0}})


def test_what_is_proven_of_a_worse_policy_is_its_gap():
    cmdp, proof = worst_policy_called_optimal(1e12)
    first, objective, *_ = check_proof.check(plain_model(cmdp), proof | {"status": "stopped"})
    assert first == "PROVEN: the limits are kept"
    gap = Fraction(proof["averages"][0]) - Fraction(plan(cmdp).value)
    assert gap <= Fraction(objective.split()[-1]) <= gap * Fraction(11, 10)


def between(cmdp: CMDP, share: float):
    """A proof whose mixture plays the worst policy of one state with a share, instead of the best."""
    plain, rationals = plain_model(cmdp), RationalModel.of(cmdp)
    proof = proof_of(cmdp, plan(cmdp), plain)
    policies = (np.array([[1.0, 0.0]]), 1.0 - share), (np.array([[0.0, 1.0]]), share)
    records = [_policy(cmdp, table, None, None, rationals) | {"share": x} for table, x in policies]
    return plain, consistent(plain, proof | {"policies": records})


@pytest.mark.parametrize(("of_range", "accepted"), [(0.99, True), (1.01, False)])
def test_the_tolerance_of_the_gap_is_a_billionth_of_the_range(of_range, accepted):
    cmdp = CMDP(np.ones((1, 2, 1)), [[[2.0, 6.0]]])  # 200 times the distance to the least cost is more than the range
    plain, proof = between(cmdp.with_costs([[[2.0, 6.0]]]), of_range * 1e-9)
    # At the optimum, the least cost, the unit is 1e-6 times the distance to the next value.
    assert (accepted_or_not(plain, proof)) is False
    flat = CMDP(np.ones((1, 2, 1)), [[[2.0, 6.0]], [[1.0, 0.0]]], [0.5])  # the optimum plays both
    plain, proof = between(flat, 0.5 + of_range * 1e-9)
    assert accepted_or_not(plain, proof) is accepted


def accepted_or_not(plain, proof):
    try:
        return bool(check_proof.check(plain, proof))
    except check_proof.RefusedError:
        return False


@pytest.mark.parametrize(("of_range", "accepted"), [(1.99, True), (2.01, False)])
def test_the_tolerance_of_a_limit_is_two_billionths_of_the_range(of_range, accepted):
    model = CMDP(np.ones((1, 2, 1)), [[[6.0, 2.0]], [[0.0, 1.0]]], [0.5])
    plain, proof = between(model, 0.5 + of_range * 1e-9)
    assert accepted_or_not(plain, proof) is accepted
    if accepted:
        assert "kept within 2e-09, at" in check_proof.check(plain, proof)[2]


@pytest.mark.parametrize(
    ("average", "expected"),
    [
        (Fraction(0), Fraction(1, 10**6)),  # at the least cost: a millionth of the distance to the next
        (Fraction(1, 2), Fraction(100)),  # 200 times the distance to the least cost
        (Fraction(30), Fraction(1000)),  # the range
        (Fraction(998), Fraction(400)),  # 200 times the distance to the largest cost
        (Fraction(1000), Fraction(200)),  # but at least to the second largest: nearer is no single entry for "never"
        (Fraction(-7), Fraction(7, 10**6)),
    ],
)
def test_the_unit_of_a_deviation_by_hand(average, expected):
    scale = Scale.of([0.0, 1000.0, 1.0, 999.0, 1.0])
    assert scale == (0, 1, 999, 1000)
    assert scale.unit(average) == expected


@pytest.mark.parametrize(("cost", "expected"), [(0.0, 1), (-3.0, 3), (1e-5, Fraction(1e-5))])
def test_the_unit_of_a_constant_cost_is_its_size(cost, expected):
    assert Scale.of([cost, cost]).unit(Fraction(8)) == expected


def test_the_unit_changes_at_most_200_times_as_much_as_the_average():
    """So a tolerance at the average of a policy is nearly that at the optimum: see ``docs/proofs.md``."""
    draw = np.random.default_rng(0)
    for _ in range(300):
        scale = Scale.of((draw.random(int(draw.integers(2, 6))) * 10.0 ** draw.integers(-6, 7)).tolist())
        one, other = (Fraction(float(x)) for x in draw.random(2) * 2.0 * float(scale.high))
        assert abs(scale.unit(one) - scale.unit(other)) <= 200 * abs(one - other)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(8))
def test_no_forgery_is_accepted(seed, full):
    """Everything that an accepted proof says is compared with an exact optimum: ``make test-forgeries`` tries more."""
    verdicts: Counter = Counter()
    for k in range(20 if full else 4):
        found = searched(1000 * seed + k, TRIES)
        assert found.false == []
        verdicts += found.verdicts
    assert verdicts["not accepted"] > 0


WEAKENED = {
    "gap": (checker, "GAP_TOL", Fraction(1, 1000)),
    "limits": (checker, "LIMIT_TOL", Fraction(1, 1000)),
    "averages": (checker, "AVERAGE_TOL", Fraction(1, 1000)),
    "shares": (checker, "is_distribution", lambda values: True),
    "prices": (checker.Checker, "prices", lambda self: exact.read_vector(self.proof, "multipliers", self.m)),
    "falling gains": (
        checker,
        "bound",
        lambda rows, beta, by, sign=1: exact.bound(
            (row for row in rows if by.g is None or row.drift(by.U) >= 0), beta, by, sign
        ),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("what", WEAKENED)
def test_the_search_finds_what_a_weaker_checker_lets_through(monkeypatch, what):
    monkeypatch.setattr(*WEAKENED[what])
    assert any(searched(seed, 30).false for seed in range(150))


def test_a_tolerance_that_grew_with_the_prices_would_be_found(monkeypatch):
    """As the checker had it: 1e-9 times the range of the objective and of the priced costs."""
    cmdp, proof = worst_policy_called_optimal(1e12)
    monkeypatch.setattr(checker, "GAP_TOL", Fraction(1, 10**9) * (1 + 2 * 10**12))
    assert check_proof.check(plain_model(cmdp), proof)[0] == "PROVEN: optimal"


def test_numbers_of_a_verdict_are_rounded_in_the_safe_direction():
    third = Fraction(1, 3)
    assert (rounded_up(third, 2), rounded_down(third, 2)) == ("0.34", "0.33")
    assert (rounded_up(-third, 2), rounded_down(-third, 2)) == ("-0.33", "-0.34")
    assert (rounded_up(Fraction(0), 2), rounded_up(Fraction(1, 2), 2)) == ("0", "0.5")
    assert rounded_up(Fraction(1, 10**400), 2) == "1E-400"  # no double, and not 0
    assert rounded_down(Fraction(12345), 3) == "1.23e+04"
    assert rounded_up(Fraction(5e-324), 2) == "5.0E-324"  # the smallest double prints as 5e-324, and is less


def test_a_limit_is_printed_with_all_its_digits():
    """Rounded to ten digits, a limit could look looser than it is; averages are rounded, as the documentation says."""
    tight = CMDP(np.ones((1, 2, 1)), [[[0.0, 0.0]], [[0.0, 1.0]]], [0.30000000001])
    assert plain_model(tight).limit(1) == "at most 0.30000000001"
    costs = [[[0.0, 0.0]], [[0.0, -1.0]]]
    served = CMDP(np.ones((1, 2, 1)), costs, {"served": 0.5}, cost_names=["pay", "served"], at_least=["served"])
    assert plain_model(served).limit(1) == "at least 0.5"
    assert plain_model(served.with_thresholds({"served": 2.0})).limit(1) == "at least 2"


def test_the_margin_of_an_infeasible_model_is_stated_in_its_units():
    """The risk is 1/3 at least; the limit is 1/4, and what is stated is rounded down."""
    cmdp = CMDP([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]], [[[0.0]] * 3, [[1.0], [0.0], [0.0]]], [0.25])
    plain = plain_model(cmdp)
    verdict, line = check_proof.check(plain, proof_of(cmdp, plan(cmdp), plain))
    assert verdict == "PROVEN: infeasible"
    assert line.startswith("cost 1: at least 0.3333333333 under every policy; the limit is at most 0.25, which every")
    assert line.endswith("policy misses by 0.0833 or more")


def test_a_model_has_an_equality_of_two_limits():
    cmdp = six_states()
    assert np.array_equal(cmdp.costs[1], -cmdp.costs[2])
    assert plan(cmdp).costs[1] == pytest.approx(0.5, abs=1e-9)


def test_the_margin_of_two_limits_is_divided_by_their_number():
    """Both shares are 1 together, both limits 1/4: the excesses sum to 1/2, so that one of them is 1/4 at least."""
    cmdp = CMDP(np.ones((1, 2, 1)), [[[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]], [0.25, 0.25])
    plain = plain_model(cmdp)
    _, line = check_proof.check(plain, proof_of(cmdp, plan(cmdp), plain))
    assert line == "every policy misses one of these limits at least by so much: cost 1 by 0.25, cost 2 by 0.25"


@pytest.mark.parametrize(("of_range", "accepted"), [(9e-9, True), (11e-9, False)])
def test_the_long_run_shares_may_be_five_times_rougher(of_range, accepted):
    cmdp = CMDP(np.ones((1, 2, 1)), [[[0.0, 1.0]], [[1.0, 0.0]]], [0.5])
    plain = plain_model(cmdp)
    shares = [[0, 0.5 + of_range], [1, 0.5 - of_range]]
    assert accepted_or_not(plain, proof_of(cmdp, plan(cmdp), plain) | {"occupancy": shares}) is accepted
