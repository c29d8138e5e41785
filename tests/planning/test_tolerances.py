"""Tolerances: all in one table, and stated in the units of the user's costs, as worked out by hand."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, Status
from psconrl.planning.proof.proof_files import plain_model, proof_of

SOURCE = Path(psconrl.__file__).parent
SMALL = 1e-5  # smaller literals are tolerances; larger ones may be shares or steps


def small_literals(path):
    """The lines with a small number that is no named constant of the module."""
    tree = ast.parse(path.read_text())
    named = {
        id(part)
        for node in tree.body
        if isinstance(node, ast.Assign) and all(isinstance(x, ast.Name | ast.Tuple) for x in node.targets)
        for part in ast.walk(node)
    }
    numbers = [part for part in ast.walk(tree) if isinstance(part, ast.Constant) and type(part.value) is float]
    small = [part for part in numbers if 0 < abs(part.value) <= SMALL]
    return [part.lineno for part in small if id(part) not in named], [part.lineno for part in small]


def test_the_planners_have_no_tolerance_outside_the_table():
    found = {}
    for path in (SOURCE / "planning").rglob("*.py"):
        if path.name != "tolerances.py":
            found[path.name] = small_literals(path)[1]
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_tolerances_of_solvers_have_names():
    for path in (SOURCE / "markov").rglob("*.py"):
        assert small_literals(path)[0] == [], path.name


def test_every_tolerance_has_a_reason():
    lines = (SOURCE / "planning" / "tolerances.py").read_text().splitlines()
    named = [line for line in lines if line[:1].isupper() and " = " in line and not line.startswith(("SEARCH ", "A "))]
    assert len(named) > 40
    assert [line for line in named if "#" not in line] == []


def ward(scale, units=True):
    """One state: a bed each day, or a death. The plan plays both: prices are 1, and both ranges are ``scale``."""
    said = {"round": "day", "counted": {"beds": "beds", "deaths": "deaths"}} if units else None
    costs = scale * np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    return CMDP(np.ones((1, 2, 1)), costs, [0.25 * scale], cost_names=["beds", "deaths"], units=said)


@pytest.mark.parametrize("scale", [1.0, 1024.0, 2.0**-20])
def test_tolerances_are_absolute_and_follow_the_unit_of_the_cost(scale):
    """Of the limit 2e-9 ranges; of the gap 1e-9 of the range of the objective and of the priced cost."""
    proof = psconrl.plan(ward(scale)).certificate
    np.testing.assert_allclose(proof.limit_tolerances, [2e-9 * scale], rtol=1e-12)
    np.testing.assert_allclose(proof.tolerance, 1e-9 * 2 * scale, rtol=1e-12)


def test_an_entry_that_is_never_paid_does_not_widen_the_tolerance():
    """The policy is 1/2 from the threshold on average, so the unit is 50: 2e-9 * 50; for the gap, 1e-9 * (1 + 50)."""
    model = CMDP(np.ones((1, 3, 1)), [[[0.0, 1, 1]], [[1.0, 0, 1e11]]], [0.5])
    proof = psconrl.plan(model).certificate
    np.testing.assert_allclose(proof.limit_tolerances, [1e-7], rtol=1e-9)
    np.testing.assert_allclose(proof.tolerance, 5.1e-8, rtol=1e-9)


def test_a_margin_counts_from_a_tolerance_on():
    """A threshold of -1/4 on a cost of 0 or 1: the margin is 1/4, and only rounding of the entries is allowed for."""
    model = ward(1.0).with_thresholds([-0.25])
    plan = psconrl.plan(model)
    assert plan.status is Status.INFEASIBLE
    assert plan.certificate.margin == pytest.approx(0.25)
    assert plan.certificate.tolerance == pytest.approx(1e-15 * 0.25)
    assert plan.proven == ("no policy meets all limits: margin 0.25, which counts from 2.5e-16 on",)


def test_what_is_printed():
    plan = psconrl.plan(ward(1024.0))
    assert str(plan).splitlines() == [
        "Plan(optimal, value=768, costs=[256], gap=0.0e+00)",
        "  beds: no policy within the limits is better by more than 0 beds a day (tolerance 2e-06)",
        "  limit on deaths: kept (tolerance 2e-06 deaths a day)",
    ]
    over = replace(plan, certificate=replace(plan.certificate, excess=np.array([3e-12]), lower=767.5))
    assert over.proven == (
        "beds: no policy within the limits is better by more than 0.5 beds a day (tolerance 2e-06)",
        "limit on deaths: kept within 3e-12 deaths a day (tolerance 2e-06 deaths a day)",
    )
    assert replace(over, status=Status.STOPPED).proven[0].endswith("better by more than 0.5 beds a day")
    unproven = replace(plan, certificate=replace(plan.certificate, holds=False))
    assert unproven.proven == ("nothing is proven: the certificate does not hold",)
    assert psconrl.plan(ward(1.0, units=False)).proven[1] == "limit on deaths: kept (tolerance 2e-09)"


def test_a_quantity_kept_above_a_threshold_has_its_own_unit():
    costs = [[[0.0, 1.0]], [[-1.0, -3.0]]]
    units = {"levels": {"served": "patients"}}
    options = {"cost_names": ["beds", "served"], "at_least": ["served"], "units": units}
    plan = psconrl.plan(CMDP(np.ones((1, 2, 1)), costs, {"served": 2.0}, **options))
    assert plan.proven[1] == "limit on served: kept (tolerance 4e-09 patients)"  # 2e-9 of the range, from 1 to 3


def test_the_same_tolerances_are_saved_and_decide(tmp_path):
    model = ward(1024.0)
    plan = psconrl.plan(model)
    plan.save(tmp_path / "plan.npz")
    again = psconrl.Plan.load(tmp_path / "plan.npz")
    assert again.proven == plan.proven
    assert again.certificate.limit_tolerances.tolist() == plan.certificate.limit_tolerances.tolist()
    assert not [name for name in proof_of(model, plan, plain_model(model)) if "tolerance" in name]
    (limit,) = plan.certificate.limit_tolerances
    for share, kept in ((0.99, True), (1.01, False)):
        excess = replace(plan.certificate, excess=np.array([share * limit]))
        assert replace(plan, status=Status.STOPPED, certificate=excess).meets_constraints is kept
