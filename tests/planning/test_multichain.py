"""Models with several end components, and plans whose policy has several classes: correct value, or a note."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models import examples
from psconrl import CMDP, Status, certify, evaluate, plan
from psconrl.errors import SolverError
from psconrl.planning import planner, repair
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.components.optimal_stopping import Moves
from psconrl.planning.components.quotient import most_moves
from psconrl.planning.methods import find_candidate
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.problem import Problem
from psconrl.planning.proof import candidate_to_plan
from psconrl.planning.proof.candidate_to_plan import certified

LEAKS = (0.5, 1e-6, 1e-9, 1e-10, 1e-13, 1e-30, 1e-200)


def slow_choice(leak, costs, thresholds=()):
    """From s0 action 0 leads to s1 and action 1 to s2, but only once in 1/leak steps; both are traps."""
    P = np.zeros((3, 2, 3))
    P[0, 0] = [1 - leak, leak, 0]
    P[0, 1] = [1 - leak, 0, leak]
    P[1, :, 1] = P[2, :, 2] = 1.0
    return CMDP(P, np.repeat(np.array(costs, float)[:, :, None], 2, axis=2), thresholds)


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("costs", [[0.5, 0, 1], [0.5, 1, 0], [0, 0.25, 1], [0, 1, 0.25], [1, 0.5, 0.75]])
def test_however_slowly_a_state_is_left_only_the_end_counts(leak, costs):
    p = plan(slow_choice(leak, [costs]))
    assert p.status is Status.OPTIMAL
    assert p.value == pytest.approx(min(costs[1:]), abs=1e-9)
    assert p.certificate.lower <= min(costs[1:]) + 1e-15


@pytest.mark.parametrize("leak", LEAKS)
def test_a_mixture_keeps_the_constraint_however_slowly_the_choice_is_made(leak):
    p = plan(slow_choice(leak, [[0.5, 1, 0], [0, 0, 1]], [0.3]))
    assert p.status is Status.OPTIMAL
    assert p.value == pytest.approx(0.7, abs=1e-9)
    assert p.multipliers == pytest.approx([1.0])


@pytest.mark.parametrize("leak", LEAKS)
def test_gains_that_fall_a_little_in_each_of_many_steps_prove_nothing(leak):
    """Action 1 throughout costs 1; gains of 1 in s0 would make that look optimal, though action 0 leads to 0."""
    model = slow_choice(leak, [[0.5, 0, 1]])
    right = plan(model)
    wrong = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    forged = replace(
        right, policy=wrong, occupancy=evaluate(model, wrong).occupancy, gains=np.array([1.0, 0, 1]), value=1.0
    )
    assert certify(model, right).holds
    assert not certify(model, forged).holds


def layered(S, A, m, seed):
    """Most steps lead on to later states or stay, some for very long."""
    rng = np.random.default_rng(seed)
    P = np.zeros((S * A, S))
    for i, row in enumerate(P):
        targets = np.arange(i // A, S) if rng.random() < 0.7 else np.arange(S)
        some = rng.choice(targets, min(targets.size, 2), replace=False)
        row[some] = rng.dirichlet(np.ones(some.size))
        if rng.random() < 0.4:
            leak = 10.0 ** rng.uniform(-40, -2)
            row *= leak
            row[i // A] += 1 - leak
    P /= P.sum(axis=1, keepdims=True)
    thresholds = rng.uniform(0.2, 0.9, m)
    return CMDP(csr_array(P) if seed % 3 == 0 else P, rng.random((m + 1, S, A)).round(2), thresholds)


@examples(60)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_no_certificate_holds_for_a_bound_that_some_policy_beats(S, A, m, seed):
    model = layered(S, A, m, seed)
    p = plan(model)
    assert certify(model, p).holds == p.certificate.holds
    points = np.array([evaluate(model, np.array(pi)).costs for pi in itertools.product(range(A), repeat=S)])
    within = points[(points[:, 1:] <= model.thresholds).all(axis=1), 0]
    if p.certificate.holds and within.size:
        assert p.status is not Status.INFEASIBLE
        assert p.certificate.lower <= within.min() + 1e-9 * (1 + p.multipliers.sum())
    if m == 0:
        assert p.status in (Status.OPTIMAL, Status.UNCERTIFIED)
        if p.status is Status.OPTIMAL:
            assert p.value == pytest.approx(within.min(), abs=1e-8)


def test_most_moves_is_twice_the_longest_mean_path():
    """From 1 to 2, from there back or to the end, evenly: 4 moves from 1; another pair of 1 ends at once."""
    distribution = csr_array(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]))
    assert most_moves(Moves(distribution, source=np.array([1, 1, 2])), np.array([True, False, False])) == pytest.approx(
        8.0
    )
    round_and_round = Moves(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), np.array([0, 1]))
    assert most_moves(round_and_round, np.zeros(2, dtype=bool)) == np.inf


two_homes = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 1], [0, 1]], [[0, 1], [1, 1]]], [0.5])


def staying(share, m=1, feasible=True):
    """A candidate that stays in s0 for that share of the time, otherwise in s1, with zero multipliers."""
    occupancy = np.array([[share, 0.0], [1 - share, 0.0]])
    return Candidate(feasible, occupancy, np.eye(2)[[0, 0]], Dual.nothing(2, m), (np.array([0, 0]),), "mixture")


def test_if_one_class_alone_is_optimal_the_others_are_driven_to_it():
    """Both ways to stay are free, and one of them is feasible: no need to switch between them."""
    p = certified(two_homes, Problem.of(two_homes), staying(0.7))
    assert p.status is Status.OPTIMAL
    assert p.policy.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert p.costs.tolist() == [0.0, 0.0]
    assert certify(two_homes, p).holds


def test_a_failed_retry_leaves_a_plan_that_says_so(monkeypatch):
    """Switching evenly between two states with conflicting constraints needs a retry, which may fail."""
    clash = CMDP(two_homes.transition, [[[0, 0], [0, 0]], [[0, 1], [1, 1]], [[1, 1], [0, 1]]], [0.5, 0.5])

    def fail(*_, **__):
        raise SolverError("no")

    monkeypatch.setattr(repair, "solve", fail)
    p = certified(clash, Problem.of(clash), staying(0.5, m=2))
    assert p.status is Status.NOT_ATTAINED
    assert "beyond the thresholds" in p.note


def test_weights_of_nothing_prove_nothing():
    p = certified(two_homes, Problem.of(two_homes), staying(0.7, feasible=False))
    assert p.status is Status.UNCERTIFIED
    assert np.isfinite(p.potential).all()


def test_a_margin_of_rounding_size_is_no_proof_of_infeasibility():
    sure = CMDP([[[1.0]]], [[[0.0]], [[1.0]]], [1.0 - 1e-15])
    p = replace(plan(sure), status=Status.INFEASIBLE, multipliers=np.ones(1), potential=np.zeros(1))
    assert not certify(sure, p).holds


def test_what_rounding_spoils_is_planned_a_second_time(monkeypatch):
    def spoiled(part, problem, method, start, watch, known):
        found = find_candidate(part, problem, method, start, watch, known)
        dual = found.dual._replace(potential=1e9 * np.arange(part.n_states))
        return found if method == "lp" else found._replace(dual=dual)

    monkeypatch.setattr(planner, "find_candidate", spoiled)
    model = CMDP(np.full((2, 2, 2), 0.5), [[[0, 1], [2, 3]], [[1, 0], [1, 0]]], [0.5])
    p = plan(model)
    assert p.status is Status.OPTIMAL
    assert p.method == "lp"
    assert "rounding spoiled" in p.note


def test_a_mixture_that_falls_into_classes_is_planned_a_second_time(monkeypatch):
    """By ties the mixture may stay in two places where HiGHS stays in one."""

    def split(part, problem, method, start, watch, known):
        return find_candidate(part, problem, method, start, watch, known) if method == "lp" else staying(0.5)

    monkeypatch.setattr(planner, "find_candidate", split)
    monkeypatch.setattr(candidate_to_plan, "repairs", lambda *_: iter(()))
    p = plan(two_homes)
    assert p.status is Status.OPTIMAL
    assert p.note == "planned by HiGHS, since the mixture fell into several classes"


def test_policy_iteration_does_not_go_round_in_circles():
    oracle = Howard(Problem.of(two_homes))
    w = np.array([0.5, 0.5])
    first = oracle.first(w)
    bound, _ = oracle.improve(first, w)
    assert oracle.improve(first, w) == (bound, None)  # the same question again: rounding, and the gap will say so
