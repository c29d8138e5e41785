"""Models on which a plan once failed, found by ``make test-exact`` and shrunk; and the referee that found them."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import explore_exact
from exact import end_components, optimum, points, rational_bound_by_components
from exact_attainment import is_attained
from exact_cases import FOLDER, candidates, read_case, shrunk, write_case
from exact_families import FAMILIES, drawn
from exact_simplex import least, least_within
from exact_verdict import ESCAPED, NOT_ATTAINED, RIGHT, UNPROVEN, WRONG, Reference, Verdict, judged
from explore_exact import explored, reference_of, verdict_on
from psconrl import CMDP, Status, plan


def cases():
    for path in sorted(FOLDER.glob("*.json")):
        model, record = read_case(path)
        reason = record["expected_to_fail"]
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        yield pytest.param(model, record["form"], marks=marks, id=path.stem)


@pytest.mark.parametrize(("model", "form"), list(cases()))
def test_a_model_that_once_failed(model, form):
    verdict = verdict_on(model, form, reference_of(model))
    assert verdict.kind not in (WRONG, ESCAPED, UNPROVEN), verdict


@pytest.mark.fuzz
@pytest.mark.parametrize("family", FAMILIES)
def test_no_plan_of_a_family_is_wrong(family, full):
    for seed in range(10) if full else (1,):
        for one in explored((family, seed)):
            assert not one.verdict.is_failure, one


def test_rational_simplex():
    assert least([1, 2], [[1, 1]], [3]) == 3
    assert least([1, 2], [[1, 1], [2, 2]], [3, 6]) == 3  # a redundant row
    assert least([1, 2], [[1, 1]], [-3]) is None
    assert least_within([0, 1], [[1, 0]], [Fraction(1, 3)]) == Fraction(2, 3)


# From s0 to s1 or s2, which are closed. Staying costs (0, 1) in s1 and (1, 0) in s2.
FORK = CMDP(
    [[[0, 1, 0], [0, 0, 1]], [[0, 1, 0]] * 2, [[0, 0, 1]] * 2],
    [[[5, 5], [0, 0], [1, 1]], [[5, 5], [1, 1], [0, 0]]],
    [0.25],
)
# Staying costs (0, 1) in s0 and (1, 0) in s1, moving (1, 1): the optimum needs ever rarer moves, or a mixture.
ISLANDS = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 1], [1, 1]], [[1, 1], [0, 1]]], [0.5])


def test_optimum_of_several_components():
    assert points(FORK) == [(0, 1), (1, 0)]
    assert optimum(FORK) == (Fraction(3, 4), 0)
    assert sorted(map(sorted, end_components(FORK))) == [[(1, 0), (1, 1)], [(2, 0), (2, 1)]]
    half = FORK.with_initial([0.0, 0.5, 0.5])
    assert points(half) == [(Fraction(1, 2), Fraction(1, 2))]
    assert optimum(half) == (None, Fraction(1, 4))


def test_bound_by_components():
    dual = SimpleNamespace(potential=np.zeros(3), low_potential=np.zeros(3), multipliers=np.ones(1), exact=None)
    assert rational_bound_by_components(FORK, dual) == Fraction(3, 4)


def test_whether_a_stationary_policy_attains_the_optimum():
    assert is_attained(FORK, optimum(FORK)[0])  # by a randomised action in s0
    assert optimum(ISLANDS)[0] == Fraction(1, 2)
    assert not is_attained(ISLANDS, Fraction(1, 2))
    assert is_attained(ISLANDS, Fraction(1))


def changed(found, **claims):
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return type(found)(**(fields | claims))


def test_false_claims_are_found():
    """Each forged plan is found out by the part of the referee that it lies to."""
    reference, right = Reference(ISLANDS), plan(ISLANDS)
    assert judged(ISLANDS, right, reference) == Verdict(RIGHT, "mixture")
    stationary = changed(right, mixture=None)
    assert judged(ISLANDS, stationary, reference).kind == WRONG  # its averages are those of the mixture
    safe = np.array([[0.0, 1.0], [1.0, 0.0]])
    alone = changed(right, mixture=None, policy=safe, costs=np.array([1.0, 0.0]), value=1.0)
    assert judged(ISLANDS, alone, reference).reason == "not the optimum"
    dear = np.array([[1.0, 0.0], [1.0, 0.0]])
    beyond = changed(right, mixture=None, policy=dear, costs=np.array([0.0, 1.0]), value=0.0)
    assert judged(ISLANDS, beyond, reference).reason == "exceeds a threshold"
    unpriced = changed(right, multipliers=np.zeros(1))
    assert judged(ISLANDS, unpriced, reference).reason == "the certificate does not prove the value"
    refused = changed(right, status=Status.INFEASIBLE)
    assert judged(ISLANDS, refused, reference).reason == "infeasible, but some policy meets all thresholds"
    high = changed(right, certificate=changed(right.certificate, lower=0.6))
    assert "bound is above" in judged(ISLANDS, high, reference).reason
    assert judged(ISLANDS, changed(right, status=Status.NOT_ATTAINED), reference).kind == NOT_ATTAINED
    attained = changed(plan(FORK), status=Status.NOT_ATTAINED)
    assert "some stationary policy attains" in judged(FORK, attained, Reference(FORK)).reason


def test_an_exception_is_a_verdict(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("no")

    monkeypatch.setattr(explore_exact, "plan", fail)
    assert verdict_on(ISLANDS, "dense", None) == Verdict(ESCAPED, "ZeroDivisionError in fail", "no")


def test_a_failure_is_shrunk_and_kept(monkeypatch, tmp_path):
    """Of a random model only what the failure needs remains: one cost above 0.5."""
    big = drawn("coincident", 3)
    small = shrunk(big, lambda model: bool((model.costs[0] > 0.5).any()), seconds=60)
    assert (small.n_states, small.n_actions, small.n_constraints) == (1, 1, 0)
    assert small.costs.tolist() == [[[1.0]]]
    assert list(candidates(small)) == [] or all((c.costs <= 0.5).all() for c in candidates(small))
    monkeypatch.setattr("exact_cases.FOLDER", tmp_path)
    name = write_case(big, "coincident", 3, "sparse", Verdict(WRONG, "a reason", "1e-3"))
    again, record = read_case(tmp_path / name)
    np.testing.assert_array_equal(again.transition.toarray(), big.transition.toarray())
    np.testing.assert_array_equal(again.costs, big.costs)
    np.testing.assert_array_equal(again.initial, big.initial)
    assert record["found"] == "WRONG: a reason 1e-3"


def test_the_same_seed_draws_the_same_model(capsys):
    assert explore_exact.main(["--seed", "5", "--cases", "2", "--family", "resets"]) == 0
    first = capsys.readouterr().out
    assert explore_exact.main(["--seed", "5", "--cases", "2", "--family", "resets"]) == 0
    assert first.splitlines()[0] == "base seed 5"
    assert [line for line in first.splitlines() if line.startswith("|")] == [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("|")
    ]
