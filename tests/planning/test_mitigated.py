"""Projected mitigated extended value iteration: the projection, the mitigation and the stopping rule in closed form."""

import numpy as np
import pytest

from psconrl.errors import SolverError
from psconrl.planning.optimism import mitigated
from psconrl.planning.optimism.ball import plan_in_balls
from psconrl.planning.optimism.mitigated import closed_bounds, mitigated_values, plan_mitigated, projected

FREE = np.full((2, 2), np.inf)
np.fill_diagonal(FREE, 0.0)


def random_bounds(rng, n):
    """Bounds around the differences of some vector, so that it satisfies them."""
    inside = rng.random(n)
    bounds = inside[:, None] - inside[None, :] + rng.random((n, n))
    np.fill_diagonal(bounds, 0.0)
    return bounds, inside


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_greatest_vector_below_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    bounds, inside = random_bounds(rng, 5)
    closed = closed_bounds(bounds)
    values = 3.0 * rng.random(5)
    found = projected(values, closed)
    differences = found[:, None] - found[None, :]
    assert (found <= values).all()
    assert (differences <= bounds + 1e-12).all()
    other = inside + (values - inside).min()  # it touches values from below
    assert (found >= other - 1e-12).all()
    touching = values[None, :] + closed
    assert (np.isclose(found, touching.min(axis=1))).all()
    assert projected(found, closed) == pytest.approx(found)
    assert projected(values + 7.0, closed) == pytest.approx(found + 7.0)


def test_bounds_that_no_vector_satisfies_are_found():
    bounds = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    assert closed_bounds(bounds) is None  # v0 <= v1 + 1 <= v2 + 0 <= v0 - 1
    bounds[2, 0] = 0.0
    assert closed_bounds(bounds).tolist() == [[0.0, 1.0, 0.0], [-1.0, 0.0, -1.0], [0.0, 1.0, 0.0]]


def test_the_mitigation_limits_what_optimism_adds_to_the_mean():
    p_bar = np.array([[0.5, 0.5], [1.0, 0.0]])
    values, rewards = np.array([0.0, 4.0]), np.array([[0.25], [0.5]])
    radius = np.array([0.5, 2.0])  # means 3 and 4 instead of 2 and 0
    for most, means in ((np.inf, [3.0, 4.0]), (0.0, [2.0, 0.0]), (0.75, [2.75, 0.75]), (1.5, [3.0, 1.5])):
        found = mitigated_values(p_bar, radius, rewards, np.full((2, 1), most), values)
        assert found.ravel() == pytest.approx([means[0] + 0.25, means[1] + 0.5])


def test_without_mitigation_and_bounds_the_plan_is_that_of_ucrl2():
    rng = np.random.default_rng(3)
    S, A = 4, 3
    p_bar, costs = rng.dirichlet(np.ones(S), S * A), rng.random((S, A))
    radius = rng.uniform(0.1, 0.6, S * A)
    exact = plan_in_balls(p_bar, radius, costs)
    free = np.full((S, S), np.inf)
    np.fill_diagonal(free, 0.0)
    plan = plan_mitigated(p_bar, radius, 1.0 - costs, np.full((S, A), np.inf), free, 1e-10, np.zeros(S))
    assert plan.gain == pytest.approx(1.0 - exact.gain, abs=1e-9)
    assert plan.policy.tolist() == exact.policy.tolist()
    assert plan.values.min() == 0.0


def test_a_bound_on_the_bias_lowers_the_gain():
    """State 0 yields 0 and moves to 1 with probability .1; state 1 yields 1 for ever. The gain is .1 c, not 1."""
    p_bar, rewards = np.array([[0.9, 0.1], [0.0, 1.0]]), np.array([[0.0], [1.0]])
    for c in (0.5, 4.0):
        bounds = np.array([[0.0, c], [c, 0.0]])
        plan = plan_mitigated(p_bar, np.zeros(2), rewards, np.full((2, 1), np.inf), bounds, 1e-12, np.zeros(2))
        assert plan.gain == pytest.approx(0.1 * c)
        assert plan.values.tolist() == pytest.approx([0.0, c])


def test_the_gain_with_mitigation_in_closed_form():
    """In state 0 any successor is possible, but the mean may exceed the estimated one by at most .2."""
    p_bar, rewards = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.0], [1.0]])
    mitigation = np.array([[0.2], [0.0]])
    plan = plan_mitigated(p_bar, np.array([2.0, 0.0]), rewards, mitigation, FREE, 1e-12, np.zeros(2))
    d = (1.0 - 0.2) / 0.6  # .1 d + .2 = 1 - .5 d
    assert plan.values.tolist() == pytest.approx([0.0, d])
    assert plan.gain == pytest.approx(0.1 * d + 0.2)


def test_a_periodic_model_is_settled():
    p_bar, rewards = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [1.0]])
    plan = plan_mitigated(p_bar, np.zeros(2), rewards, np.zeros((2, 1)), FREE, 1e-9, np.zeros(2))
    assert plan.gain == pytest.approx(0.5)
    assert plan.values.tolist() == pytest.approx([0.0, 0.5])


def test_iteration_stops_once_the_changes_differ_by_less_than_the_accuracy(monkeypatch):
    """From (0, 0) the changes are (0, 1), then (.25, .75): the span halves with every sweep."""
    p_bar, rewards = np.full((2, 2), 0.5), np.array([[0.0], [1.0]])
    given = (p_bar, np.zeros(2), rewards, np.zeros((2, 1)), FREE)
    swept = []
    original = mitigated.mitigated_values
    monkeypatch.setattr(mitigated, "mitigated_values", lambda *x: swept.append(1) or original(*x))
    for accuracy, sweeps, gain in ((1.1, 1, 1.0), (1.0, 2, 0.75), (0.5, 3, 0.625), (0.2, 4, 0.5625)):
        swept.clear()
        plan = plan_mitigated(*given, accuracy, np.zeros(2))
        assert (len(swept), plan.gain) == (sweeps, gain)  # an upper bound on the gain, 1/2
    monkeypatch.setattr(mitigated, "MOST_MITIGATED_SWEEPS", 3)
    with pytest.raises(SolverError, match="has not settled within 3 sweeps"):
        plan_mitigated(*given, 0.2, np.zeros(2))
