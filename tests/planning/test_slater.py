"""The Slater gap: closed forms, and a linear program over all deterministic policies."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import psconrl
from psconrl.answers.pareto import cost_ranges
from psconrl.errors import ModelError
from psconrl.learning.safe.baseline import safest_policy
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.scaling import cost_units
from psconrl.planning.slater import slater_gap


def arms(costs, thresholds):
    """One state whose actions cost (m+1, A)."""
    costs = np.array(costs, dtype=float)
    return psconrl.CMDP(np.ones((1, costs.shape[1], 1)), costs[:, None, :], thresholds)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1000.0, 1000.0), (1.0, 100.0), (1e9, 1.0), (1e-9, 1e9)])
def test_two_costs_that_exclude_each_other_share_what_is_left_in_any_units(units):
    """Shares p and 1 - p of the actions: min(0.7 - p, 0.8 - (1 - p)) is largest where both are equal, 0.25."""
    scale = np.array(units)
    model = arms([[1e6, 0], [scale[0], 0], [0, scale[1]]], scale * [0.7, 0.8])
    assert slater_gap(model) == pytest.approx(0.25, rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, -3.0, 1e4])
def test_what_is_added_to_a_cost_and_to_its_threshold_changes_nothing(shift):
    model = arms([[0, 0], [1 + shift, shift], [0, 1]], [0.7 + shift, 0.8])
    assert slater_gap(model) == pytest.approx(0.25, rel=1e-9)


def test_it_is_negative_if_no_policy_meets_the_constraints_and_infinite_without_any():
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1]], [0.3, 0.3])) == pytest.approx(-0.2, rel=1e-9)
    assert slater_gap(arms([[0, 0], [10, 0]], [-5.0])) == pytest.approx(-0.5, rel=1e-12)
    assert slater_gap(arms([[0, 0], [3, 3]], [1.5])) == pytest.approx(-0.5, rel=1e-12)  # a constant is its own unit
    assert slater_gap(arms([[0, 0], [0, 0]], [-0.5])) == pytest.approx(-0.5, rel=1e-12)  # and that of 0 is 1
    assert slater_gap(arms([[0, 1]], [])) == math.inf


def test_constraints_that_no_pair_can_violate_are_left_out():
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1]], [0.7, 1.0])) == pytest.approx(0.7, rel=1e-12)
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1], [3, 3]], [0.7, 0.8, 3.0])) == pytest.approx(0.25, rel=1e-9)
    assert slater_gap(arms([[0, 0], [1, 0], [0, 1]], [1.0, 1.1])) == math.inf


def test_with_one_constraint_it_is_the_threshold_minus_the_least_average():
    chain = psconrl.load("chain")
    assert slater_gap(chain) == float(chain.thresholds[0] - cost_ranges(chain)[1, 0])
    slow = psconrl.CMDP(chain.transition, chain.costs * 8.0, chain.thresholds * 8.0)
    assert slater_gap(slow) == slater_gap(chain)


# From state 0, action 0 leads to state 1 and action 1 to state 2, for good.
FORK = np.zeros((3, 2, 3))
FORK[0, 0, 1] = FORK[0, 1, 2] = 1.0
FORK[1, :, 1] = FORK[2, :, 2] = 1.0
COST_OF_FORK = np.array([[0.0, 0.0], [0.2, 0.2], [0.7, 1.0]])


@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize(("initial", "least"), [(0, 0.2), (1, 0.2), (2, 0.7)])
def test_only_what_is_reached_from_the_initial_state_counts(constraints, initial, least):
    costs = np.array([np.zeros((3, 2)), *[COST_OF_FORK] * constraints])
    model = psconrl.CMDP(FORK, costs, [0.9] * constraints, initial=initial)
    assert slater_gap(model) == pytest.approx(0.9 - least, rel=1e-9)


@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("unavailable", [-50.0, 50.0])
def test_actions_that_are_not_available_count_neither_for_averages_nor_for_ranges(constraints, shift, unavailable):
    """Without the way to state 1 the least average is 0.7. The range is that from 0 to 1 of all other pairs."""
    available = np.array([[False, True], [True, True], [True, True]])
    costs = np.array([np.zeros((3, 2)), *[COST_OF_FORK + shift] * constraints])
    costs[1:, 0, 0] = unavailable
    model = psconrl.CMDP(FORK, costs, [0.9 + shift] * constraints, initial=0, available=available)
    assert slater_gap(model) == pytest.approx(0.2, rel=1e-9)
    assert slater_gap(model.with_thresholds([1.0 + shift] * constraints)) == math.inf


@pytest.mark.parametrize("name", ["queue", "inventory"])
def test_the_safest_policy_attains_it(name):
    model = psconrl.load(name)
    below = model.thresholds - evaluate_policy(model, safest_policy(model)).gains[1:].max(axis=1)
    distance = float((below / cost_units(model.costs[1:])).min())
    assert slater_gap(model) - 2.0**-12 <= distance <= slater_gap(model) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_best_mixture_of_all_deterministic_policies(seed):
    """In a model without transient states these mixtures have all the averages that a policy can have."""
    rng = np.random.default_rng(seed)
    S, A, m = 3, 2, 2 + seed % 2
    costs = rng.random((m + 1, S, A)) * rng.choice([1.0, 20.0], size=(m + 1, 1, 1))
    model = psconrl.CMDP(rng.dirichlet(np.ones(S), size=(S, A)), costs, 0.9 * rng.random(m))
    everywhere = np.arange(S)
    averages = []
    for actions in itertools.product(range(A), repeat=S):
        P = model.transition.toarray().reshape(S, A, S)[everywhere, list(actions)]
        mass = np.linalg.lstsq(np.vstack([P.T - np.eye(S), np.ones(S)]), np.eye(S + 1)[S], rcond=None)[0]
        averages.append(costs[1:, everywhere, list(actions)] @ mass)
    n = len(averages)  # the shares of the policies, then the gap
    units = np.ptp(costs[1:], axis=(1, 2))
    limits = np.column_stack([np.array(averages).T / units[:, None], np.ones(m)])
    best = linprog(
        -np.eye(n + 1)[n],
        limits,
        model.thresholds / units,
        np.append(np.ones(n), 0.0)[None],
        [1.0],
        bounds=[*[(0, None)] * n, (None, None)],
    )
    assert slater_gap(model) == pytest.approx(-best.fun, abs=1e-8)


def test_what_cannot_be_reached_gives_no_slack():
    """From state 0 one action leads to state 1 for good, with costs (0.2, 0.6), the other to state 2, with (0.5, 0.1).

    A share p goes to state 1: min(1 - 0.5 + 0.3 p, 1 - 0.1 - 0.5 p) is largest at p = 0.5. State 3 is not reached.
    """
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1, :, 1] = P[2, :, 2] = P[3, :, 3] = 1.0
    costs = np.zeros((3, 4, 2))
    costs[1:, 1] = np.array([[0.2], [0.6]])
    costs[1:, 2] = np.array([[0.5], [0.1]])
    costs[1:, 3, 1] = 1.1  # that only state 3 has
    model = psconrl.CMDP(P, costs, [1.0, 1.0], initial=0)
    assert slater_gap(model) == pytest.approx(0.65 / 1.1, rel=1e-9)
    assert slater_gap(psconrl.CMDP(P, costs, [1.0, 1.0], initial=1)) == pytest.approx(0.4 / 1.1, rel=1e-9)


def test_only_models_have_one():
    with pytest.raises(ModelError, match="slater_gap"):
        slater_gap("chain")
