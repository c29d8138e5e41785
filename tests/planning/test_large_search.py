"""The search on large models: its start, inexact answers, few randomised states, the attractor of a set."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import psconrl
from models import tandem
from psconrl.base.arrays import in_32_bits
from psconrl.kernels.linear import krylov, sweeps
from psconrl.markov import policy_iteration, sparse_solver
from psconrl.markov.sparse_solver import SparseSolver
from psconrl.markov.structure import attractor_policy
from psconrl.model.transition import Transition
from psconrl.planning import methods, randomisation
from psconrl.planning.methods import guessed_weights
from psconrl.planning.mixture import solve as solving
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.mixture.oracle import Oracle
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.planning.proof.certificate import Status


def test_where_the_search_begins():
    model = tandem(20)
    problem = Problem.of(model)
    room = model.thresholds[0] / 38.0  # of a cost from 0 to 38
    assert guessed_weights(problem) == pytest.approx(np.array([1.0, 1.0 / room]) / (1.0 + 1.0 / room))
    none_left = problem._replace(thresholds=np.zeros(1))
    assert guessed_weights(none_left)[1] == pytest.approx(1e4 / (1e4 + 1))
    assert guessed_weights(Problem.of(tandem(5))) is None  # planned as a dense one
    unlimited = psconrl.CMDP(model.transition.matrix, [model.costs[0]], [])
    assert guessed_weights(Problem.of(unlimited)) is None


@pytest.mark.parametrize("limit", [3.0, 5.0, 8.0])
def test_a_hasty_search_ends_where_an_exact_one_does(limit, monkeypatch):
    problem = Problem.of(tandem(20, limit))
    exact = solve(problem, least_excess=True)
    monkeypatch.setattr(solving, "HASTY_STATES", 1)
    hasty = solve(problem, least_excess=True, near=guessed_weights(problem))
    assert exact.settled
    assert hasty.settled
    assert hasty.value == pytest.approx(exact.value, abs=1e-10)
    assert hasty.weights == pytest.approx(exact.weights, abs=1e-7)
    assert not any(column.chain.rough for column in hasty.mixture.answers)


def test_large_and_small_models_have_the_same_plan(monkeypatch):
    model = tandem(20)
    plain = psconrl.plan(model)
    monkeypatch.setattr(solving, "HASTY_STATES", 1)
    hasty = psconrl.plan(model)
    assert hasty.status is Status.OPTIMAL
    assert hasty.value == pytest.approx(plain.value, abs=1e-9)
    assert hasty.randomised_states.size <= 1
    assert hasty.value == pytest.approx(psconrl.plan(model, method="lp").value, abs=1e-7)


class Point(NamedTuple):
    costs: np.ndarray
    exact: np.ndarray


class RoughCatalogue(Oracle):
    """An oracle that looks answers up, each slightly inexact until it is refined."""

    def __init__(self, points, off):
        rng = np.random.default_rng(0)
        self.points = [Point(p + rng.uniform(-off, off, p.size), p) for p in map(np.array, points)]
        self.refinements = 0

    def first(self, weights):
        return self.points[0]

    def improve(self, answer, weights):
        best = min(self.points, key=lambda point: weights @ point.exact)
        bound = float(weights @ best.exact)
        return bound, best if weights @ best.exact < weights @ answer.exact - 1e-12 else None

    def refined(self, answer):
        if answer.costs is answer.exact:
            return None
        self.refinements += 1
        return Point(answer.exact, answer.exact)


def test_what_is_mixed_is_refined_first():
    oracle = RoughCatalogue([(0.0, 1.0), (1.0, 0.0), (0.4, 0.3), (0.9, 0.9)], off=1e-3)
    found = mix(oracle, np.array([0.5]))
    # Between (0, 1) and (0.4, 0.3) at 0.5: two sevenths of the first.
    assert found.shares @ [p.costs[0] for p in found.answers] == pytest.approx(0.4 * 5 / 7, abs=1e-12)
    assert found.gap == pytest.approx(0.0, abs=1e-11)
    assert oracle.refinements == 2
    assert all(p.costs is p.exact for p in found.answers)


def test_two_policies_that_differ_in_unvisited_states_need_no_halving(monkeypatch):
    """States without mass in which two columns differ are made equal by one evaluation."""
    problem = Problem.of(tandem(20))
    solution = solve(problem, least_excess=True, near=guessed_weights(problem))
    low, high = sorted(solution.mixture.answers, key=lambda column: float(column.costs[1]))
    oracle = Howard(problem)
    monkeypatch.setattr(randomisation, "UNVISITED", 1e-9)
    mass = low.stationary + high.stationary
    policy = high.policy.copy()
    far = np.flatnonzero(mass <= 1e-12)
    policy[far] = (policy[far] + 1) % 4
    odd = oracle.evaluate(policy, solution.mixture.weights)
    alike = randomisation._alike_where_unvisited(oracle, odd, low, solution.mixture.weights)
    assert (alike.policy[mass <= 1e-12] == low.policy[mass <= 1e-12]).all()
    assert (alike.policy[mass > 1e-6] == high.policy[mass > 1e-6]).all()
    monkeypatch.setattr(randomisation, "SAME_LINE", -1.0)
    assert randomisation._alike_where_unvisited(oracle, odd, low, solution.mixture.weights) is odd


@pytest.mark.parametrize("seed", range(6))
def test_the_way_into_a_set_is_the_same_dense_and_sparse(seed):
    rng = np.random.default_rng(seed)
    S, A = 40, 3
    P = np.where(rng.random((S * A, S)) < 0.04, rng.random((S * A, S)), 0.0)
    P[np.arange(S * A), rng.integers(0, S, S * A)] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    available = rng.random((S, A)) < 0.8
    available[:, 0] |= ~available.any(axis=1)
    policy = available.argmax(axis=1)
    inside = rng.random(S) < 0.1
    for least in (0.0, 0.2):
        dense = attractor_policy(Transition.of(P), available, inside, policy, least)
        sparse = attractor_policy(Transition.of(csr_array(P)), available, inside, policy, least)
        np.testing.assert_array_equal(dense, sparse)
        assert available[np.arange(S), sparse].all()


def test_probabilities_of_moving_closer_are_summed_in_the_order_of_the_states():
    """0.1 + 0.2 + 0.3 exceeds 0.6 in floating point, 0.3 + 0.2 + 0.1 does not."""
    P = np.zeros((8, 4))
    P[:6, 0] = 1.0
    P[6], P[7] = [0.6, 0.0, 0.0, 0.4], [0.1, 0.2, 0.3, 0.4]
    for transition in (Transition.of(P), Transition.of(csr_array(P))):
        inside, everything = np.array([True, True, True, False]), np.ones((4, 2), dtype=bool)
        changed, grown = transition.attract(everything, inside, np.zeros(4, dtype=np.int64), 0.6)
        assert changed.tolist() == [0, 0, 0, 1]
        assert grown.all()
        assert transition.attract(everything, inside, changed, 0.7)[1].tolist() == inside.tolist()


def test_sweeps_until_a_residual_is_small():
    rng = np.random.default_rng(2)
    n = 300
    P = csr_array(rng.dirichlet(np.ones(n), size=n))
    c = rng.random(n)
    A = np.eye(n) - P.toarray() + 1.0 / n
    for most in (1e-3, 1e-8):
        x = np.zeros(n)
        left = sweeps.sweep_until(P.indptr, P.indices, P.data, c, x, most, 400)
        assert left <= most
        assert np.abs(c - A @ x).max() == pytest.approx(left, rel=1e-6)
        assert x.mean() == pytest.approx(np.linalg.solve(A, c).mean(), abs=2 * most)
    x = np.zeros(n)
    assert sweeps.sweep_until(P.indptr, P.indices, P.data, c, x, 1e-8, 2) > 1e-8  # not enough products
    stuck = csr_array(np.roll(np.eye(n), 1, axis=1))
    assert sweeps.sweep_until(stuck.indptr, stuck.indices, stuck.data, c, np.zeros(n), 1e-8, 10_000) > 1e-3


def test_a_distribution_is_iterated_until_it_is_stationary():
    rng = np.random.default_rng(3)
    P = csr_array(rng.dirichlet(np.ones(40), size=40))
    distribution = np.eye(1, 40)[0]
    moved = sweeps.step_until(P.indptr, P.indices, P.data, distribution, 1e-12, 100)
    assert moved <= 1e-12
    assert distribution.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.abs(distribution @ P - distribution).sum() <= 1e-12
    few = np.eye(1, 40)[0]
    assert sweeps.step_until(P.indptr, P.indices, P.data, few, 1e-12, 2) > 1e-6  # no more steps than that
    assert few == pytest.approx(np.eye(1, 40)[0] @ P.toarray() @ P.toarray())
    circle = csr_array(np.roll(np.eye(40), 1, axis=1))  # periodic: it never converges, and that is noticed
    assert sweeps.step_until(circle.indptr, circle.indices, circle.data, np.eye(1, 40)[0], 1e-12, 10**9) == 2.0


def test_large_chains_that_mix_fast_take_sweeps_and_steps_alone(monkeypatch):
    rng = np.random.default_rng(4)
    n = 6000
    places = rng.integers(0, n, size=(n, 8))
    drawn = (rng.dirichlet(np.ones(8), size=n).ravel(), (np.repeat(np.arange(n), 8), places.ravel()))
    P = in_32_bits(csr_array(drawn, shape=(n, n)))
    costs = rng.random((2, n))
    wanted = SparseSolver()
    monkeypatch.setattr(sparse_solver, "MULTIGRID_STATES", n + 1)  # as a small one
    slow = wanted.solve(P, costs)
    monkeypatch.undo()

    def none_of_these(*_):
        raise AssertionError

    monkeypatch.setattr(krylov, "solve", none_of_these)
    fast = SparseSolver().solve(P, costs)
    assert fast.off <= 1e-12
    assert fast.gains == pytest.approx(slow.gains, abs=1e-12)
    assert np.abs(fast.biases - fast.biases[:, :1] - slow.biases + slow.biases[:, :1]).max() < 1e-10
    assert np.abs(fast.stationary @ P - fast.stationary).sum() < 2e-13


def test_rough_gains_of_small_costs_need_no_other_way():
    rng = np.random.default_rng(0)
    P, costs = csr_array(rng.dirichlet(np.ones(60), size=60)), 0.5 * rng.random((2, 60))
    solver = SparseSolver()
    found = solver.solve(P, costs, within=1e-3)
    assert found.rough
    assert not solver.slow  # though nothing is as large as one
    assert found.gains == pytest.approx(SparseSolver().solve(P, costs).gains, abs=1e-3)


def test_rough_gains_are_off_by_no_more_than_that_however_large_biases_are():
    n = 60
    step = np.full(n - 1, 0.5)
    P = csr_array(diags_array([step, np.r_[0.5, np.zeros(n - 2), 0.5], step], offsets=[-1, 0, 1]))
    costs = np.arange(n)[None, :] / n
    solver = SparseSolver()
    found = solver.solve(P, costs, within=1e-6)
    assert np.abs(found.biases).max() > 100.0
    assert not solver.slow
    assert found.off <= 1e-6
    assert found.gains == pytest.approx([costs.mean()], abs=1e-6)


def test_transient_states_are_looked_ahead_in(monkeypatch):
    """Returning home from anywhere costs 5, a step towards it .1: stepping pays in a state once it pays in the next."""
    monkeypatch.setattr(policy_iteration, "MULTIGRID_STATES", 10)
    n = 40
    pairs = np.arange(2 * n)
    onward = np.where(pairs % 2, np.maximum(pairs // 2 - 1, 0), 0)
    costs = np.where(pairs % 2, 0.1, 5.0)[None, :]
    costs[0, :2] = 0.0  # at home
    P = in_32_bits(csr_array((np.ones(2 * n), (pairs, onward)), shape=(2 * n, n)))
    steps = policy_iteration.SparseSteps(P, costs, np.ones((n, 2), bool), None)
    policy = np.zeros(n, dtype=np.int64)
    chain = steps.evaluate(policy, 0)
    assert steps._solver.passing
    for ahead, walk in ((None, [1]), (0.0, list(range(1, n)))):
        better = steps.improve(policy, chain, np.ones(1), 1e-13, ahead).policy
        assert np.flatnonzero(better).tolist() == walk


def test_least_room():
    assert methods.LEAST_ROOM == 1e-4


def test_the_drift_on_several_cores_is_that_on_one(monkeypatch):
    problem = Problem.of(tandem(20))
    steps = policy_iteration.policy_steps(problem.transition, problem.costs, problem.available)
    h = np.random.default_rng(3).normal(size=400)
    one = steps._drift(h)
    monkeypatch.setattr(policy_iteration, "MULTIGRID_STATES", 1)
    monkeypatch.setattr(policy_iteration.os, "cpu_count", lambda: 3)
    np.testing.assert_array_equal(steps._drift(h), one)
    moved = (problem.transition.matrix @ h).reshape(400, 4) - h[:, None]
    np.testing.assert_allclose(one, moved, atol=1e-14)
