"""Plans under several thresholds share what they evaluate, and are what they would be alone."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl import CMDP, certify, pareto, pareto_surface
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.markov.policy_iteration import SparseSteps
from psconrl.planning.mixture import known as known_policies
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.mixture.solve import solve
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem

S, A = PLANNED_DENSE_STATES + 44, 3


@pytest.fixture(scope="module")
def model():
    """A sparse model of 300 states with two constraints that bind."""
    rng = np.random.default_rng(5)
    rows, to = np.repeat(np.arange(S * A), 4), rng.integers(S, size=S * A * 4)
    weights = rng.random(S * A * 4)
    P = csr_array((weights, (rows, to)), shape=(S * A, S))
    P = csr_array(P / np.asarray(P.sum(axis=1))[:, None])
    return CMDP(P, rng.integers(11, size=(3, S, A)) / 10, [0.35, 0.42], cost_names=["pay", "delay", "noise"])


@pytest.fixture
def evaluated(monkeypatch):
    """The policies that are evaluated in searches, in turn."""
    seen, plain = [], SparseSteps.evaluate

    def evaluate(self, policy, *args, **options):
        seen.append(policy.tobytes())
        return plain(self, policy, *args, **options)

    monkeypatch.setattr(SparseSteps, "evaluate", evaluate)
    return seen


def test_points_of_a_curve_are_those_of_plans_from_scratch(model, evaluated):
    numbers = [0.31, 0.33, 0.36, 0.33]
    curve = pareto(model, "delay", numbers)
    shared = evaluated.copy()
    evaluated.clear()
    alone = [plan_unexplained(model.with_thresholds({"delay": x})) for x in numbers]
    np.testing.assert_allclose(curve.values, [one.value for one in alone], rtol=1e-9)
    for one, other, x in zip(curve.plans, alone, numbers, strict=True):
        np.testing.assert_allclose(one.multipliers, other.multipliers, rtol=1e-6)
        assert certify(model.with_thresholds({"delay": x}), one).holds
    assert len(set(shared)) == len(shared) < 0.8 * len(evaluated)
    assert len(set(evaluated)) < len(evaluated)
    again = pareto(model, "delay", numbers)
    for one, other in zip(curve.plans, again.plans, strict=True):
        assert one.policy.tobytes() == other.policy.tobytes()
        assert one.costs.tobytes() == other.costs.tobytes()


def test_a_surface_evaluates_no_policy_twice(model, evaluated):
    surface = pareto_surface(model, ["delay", "noise"], [[0.33, 0.36], [0.41, 0.43]])
    assert len(set(evaluated)) == len(evaluated)
    for x, row in zip((0.33, 0.36), surface.values, strict=True):
        for y, value in zip((0.41, 0.43), row, strict=True):
            alone = plan_unexplained(model.with_thresholds({"delay": x, "noise": y}))
            assert value == pytest.approx(alone.value, rel=1e-9)


def test_policies_of_another_model_are_forgotten(model):
    known = KnownPolicies()
    first = Problem.of(model)
    solve(first, known=known)
    kept = len(known.columns)
    assert kept > 3
    solve(Problem.of(model.with_thresholds({"delay": 0.36})), known=known)
    more = len(known.columns)
    assert more > kept
    P = model.transition.matrix.copy()
    P.data = P.data[::-1].copy()
    P = csr_array(P / np.asarray(P.sum(axis=1))[:, None])
    others = [
        model.with_costs(model.costs[[1, 0, 2]]),
        CMDP(P, model.costs, model.thresholds),
        CMDP(model.transition.matrix, model.costs, model.thresholds, available=np.arange(S * A).reshape(S, A) != 7),
    ]
    for other in others:
        problem = Problem.of(other)
        found = solve(problem, known=known)
        alone = solve(problem)
        assert found.value == pytest.approx(alone.value, abs=1e-9)
        steps = known.oracle(problem, False)
        for column in known.columns:
            fresh = steps.steps.evaluate(column.policy, 0)
            np.testing.assert_allclose(fresh.gains, column.costs, rtol=1e-9)


def test_only_the_last_policies_are_kept_if_they_are_large(model, monkeypatch):
    monkeypatch.setattr(known_policies, "MOST_BYTES_OF_BIASES", 3 * 3 * S * 8)
    known = KnownPolicies()
    solve(Problem.of(model), known=known)
    assert len(known.columns) == 3
    found = solve(Problem.of(model.with_thresholds({"delay": 0.36})), known=known)
    assert found.settled
    assert len(known.columns) == 3
