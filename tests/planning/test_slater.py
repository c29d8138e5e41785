"""The Slater gap: closed forms, and a linear program over all deterministic policies."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import psconrl
from psconrl.errors import ModelError
from psconrl.planning.analysis.pareto import cost_ranges
from psconrl.planning.analysis.slater import slater_gap


def arms(costs, thresholds):
    """One state whose actions cost (m+1, A)."""
    costs = np.array(costs, dtype=float)
    return psconrl.CMDP(np.ones((1, costs.shape[1], 1)), costs[:, None, :], thresholds)


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_two_costs_that_exclude_each_other_share_what_is_left(unit):
    """Shares p and 1 - p of the actions: min(0.7 - p, 0.8 - (1 - p)) is largest where both are equal, 0.25."""
    model = arms(unit * np.array([[0, 0], [1, 0], [0, 1]]), unit * np.array([0.7, 0.8]))
    assert slater_gap(model) == pytest.approx(0.25 * unit, rel=1e-9)


def test_costs_of_different_units_are_compared_as_they_are():
    """Costs (10, 0) and (0, 1) under 5 and 0.5: 5 - 10 p = 0.5 - (1 - p) at p = 0.5, where the gap is 0."""
    assert slater_gap(arms([[0, 0], [10, 0], [0, 1]], [5.0, 0.5])) == pytest.approx(0.0, abs=1e-9)
    assert slater_gap(arms([[0, 0], [10, 0], [0, 1]], [5.0, 0.6])) == pytest.approx(5.0 / 55.0, rel=1e-9)


def test_it_is_negative_if_no_policy_meets_the_constraints_and_infinite_without_any():
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1]], [0.3, 0.3])) == pytest.approx(-0.2, rel=1e-9)
    assert slater_gap(arms([[0, 0], [1, 0]], [-0.5])) == pytest.approx(-0.5, rel=1e-12)
    assert slater_gap(arms([[0, 1]], [])) == math.inf


def test_a_threshold_that_no_policy_can_exceed_counts_too():
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1]], [0.7, 1.1])) == pytest.approx((0.7 + 1.1 - 1.0) / 2, rel=1e-9)
    assert slater_gap(arms([[0, 0], [0, 1], [0, 1]], [5.0, 0.2])) == pytest.approx(0.2, rel=1e-9)


def test_with_one_constraint_it_is_the_threshold_minus_the_least_average():
    chain = psconrl.load("chain")
    assert slater_gap(chain) == float(chain.thresholds[0] - cost_ranges(chain)[1, 0])


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_best_mixture_of_all_deterministic_policies(seed):
    """In a model without transient states these mixtures have all the averages that a policy can have."""
    rng = np.random.default_rng(seed)
    S, A, m = 3, 2, 2 + seed % 2
    costs = rng.random((m + 1, S, A)) * rng.choice([1.0, 20.0], size=(m + 1, 1, 1))
    model = psconrl.CMDP(rng.dirichlet(np.ones(S), size=(S, A)), costs, rng.random(m))
    everywhere = np.arange(S)
    averages = []
    for actions in itertools.product(range(A), repeat=S):
        P = model.transition.toarray().reshape(S, A, S)[everywhere, list(actions)]
        mass = np.linalg.lstsq(np.vstack([P.T - np.eye(S), np.ones(S)]), np.eye(S + 1)[S], rcond=None)[0]
        averages.append(costs[1:, everywhere, list(actions)] @ mass)
    n = len(averages)  # the shares of the policies, then the gap
    limits = np.column_stack([np.array(averages).T, np.ones(m)])
    best = linprog(
        -np.eye(n + 1)[n],
        limits,
        model.thresholds,
        np.append(np.ones(n), 0.0)[None],
        [1.0],
        bounds=[*[(0, None)] * n, (None, None)],
    )
    assert slater_gap(model) == pytest.approx(-best.fun, abs=1e-8)


def test_what_cannot_be_reached_gives_no_slack():
    """From state 0 one action leads to state 1 for good, with costs (0.2, 0.6), the other to state 2, with (0.5, 0.1).

    A share p goes to state 1: min(1 - 0.5 + 0.3 p, 1 - 0.1 - 0.5 p) is largest at p = 0.5. State 3 costs nothing.
    """
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1, :, 1] = P[2, :, 2] = P[3, :, 3] = 1.0
    costs = np.zeros((3, 4, 2))
    costs[1:, 1] = np.array([[0.2], [0.6]])
    costs[1:, 2] = np.array([[0.5], [0.1]])
    model = psconrl.CMDP(P, costs, [1.0, 1.0], initial=0)
    assert slater_gap(model) == pytest.approx(0.65, rel=1e-9)
    assert slater_gap(psconrl.CMDP(P, costs, [1.0, 1.0], initial=1)) == pytest.approx(0.4, rel=1e-9)


def test_only_models_have_one():
    with pytest.raises(ModelError, match="slater_gap"):
        slater_gap("chain")
