"""Optimism over L1 balls, against linear programs, value iteration and enumeration."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import psconrl
from psconrl.errors import SolverError
from psconrl.planning.optimism import ball
from psconrl.planning.optimism.ball import evaluate_in_balls, least_in_ball, plan_in_balls


def balls(S=4, A=3, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    p_bar = rng.dirichlet(np.full(S, 0.5), S * A)
    return p_bar, size * rng.random(S * A) + 0.01, rng.random((S, A))


@pytest.mark.parametrize("seed", range(5))
def test_the_least_mean_of_a_ball_is_that_of_a_linear_program(seed):
    p_bar, radius, _ = balls(seed=seed, size=1.5)
    values = np.random.default_rng(seed).normal(size=4)
    found = least_in_ball(p_bar, radius, values)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    assert (np.abs(found - p_bar).sum(axis=1) <= radius + 1e-12).all()
    for p, d, moved in zip(p_bar, radius, found, strict=True):
        # p' = p + up - down with up + down of at most d
        least = linprog(
            np.concatenate([values, -values]),
            A_ub=[np.ones(8)], b_ub=[d], A_eq=[np.repeat([1.0, -1.0], 4)], b_eq=[0.0],
            bounds=[(0, 1 - x) for x in p] + [(0, x) for x in p],
        )  # fmt: skip
        assert moved @ values == pytest.approx(p @ values + least.fun, abs=1e-9)


def test_a_ball_of_radius_two_holds_every_distribution():
    p_bar = np.array([[0.2, 0.8], [0.0, 0.0]])  # an untried pair may have no frequencies at all
    found = least_in_ball(p_bar, np.array([2.0, 2.0]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(found, [[0.0, 1.0], [0.0, 1.0]], atol=1e-15)


def extended_value_iteration(p_bar, radius, costs, policy=None, sweeps=4000):
    """As in Jaksch et al.; returns the least average cost."""
    h = np.zeros(len(costs))
    for _ in range(sweeps):
        values = costs + (least_in_ball(p_bar, radius, h) @ h).reshape(costs.shape)
        new = values.min(axis=1) if policy is None else (policy * values).sum(axis=1)
        gain, h = (new - h).mean(), new - new.min()
    return gain


@pytest.mark.part(2)
@pytest.mark.parametrize("seed", range(5))
def test_gains_are_those_of_extended_value_iteration(seed):
    p_bar, radius, costs = balls(seed=seed)
    policy = np.random.default_rng(seed).dirichlet(np.ones(3), 4)
    fixed, best = evaluate_in_balls(p_bar, radius, costs, policy), plan_in_balls(p_bar, radius, costs)
    assert fixed.gain == pytest.approx(extended_value_iteration(p_bar, radius, costs, policy), abs=1e-10)
    assert best.gain == pytest.approx(extended_value_iteration(p_bar, radius, costs), abs=1e-10)
    bias = (policy * fixed.pairs).sum(axis=1)
    assert bias.min() == pytest.approx(0.0, abs=1e-10)
    moved = least_in_ball(p_bar, radius, bias) @ bias
    np.testing.assert_allclose(fixed.pairs, costs - fixed.gain + moved.reshape(4, 3), atol=1e-10)


def test_the_plan_is_the_best_of_all_policies():
    p_bar, radius, costs = balls(S=3, A=2, seed=3)
    gains = [
        evaluate_in_balls(p_bar, radius, costs, np.eye(2)[list(actions)]).gain
        for actions in itertools.product(range(2), repeat=3)
    ]
    assert plan_in_balls(p_bar, radius, costs).gain == pytest.approx(min(gains), abs=1e-12)


def test_a_tiny_radius_gives_the_plan_of_the_frequencies():
    rover = psconrl.load("garnet", states=6, seed=2)
    found = plan_in_balls(rover.transition.toarray(), np.full(6 * rover.n_actions, 1e-9), rover.costs[0])
    free = psconrl.plan(psconrl.CMDP(rover.transition, rover.costs[:1]))
    assert found.gain == pytest.approx(free.value, abs=1e-6)


def test_what_cannot_be_settled_is_said(monkeypatch):
    p_bar, radius, costs = balls()
    with pytest.raises(SolverError, match="no communicating model"):
        evaluate_in_balls(np.eye(4).repeat(3, axis=0), np.zeros(12), costs, np.full((4, 3), 1 / 3))
    monkeypatch.setattr(ball, "MOST_MODELS", 1)
    with pytest.raises(SolverError, match="has not settled within 1 steps"):
        plan_in_balls(p_bar, radius, costs)
