"""Decomposition into components and the choice among them, against the linear program and brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from psconrl import CMDP, Status, certify, evaluate, plan
from psconrl.errors import SolverError
from psconrl.markov import evaluation
from psconrl.markov import transient_costs as passage
from psconrl.markov import transient_visits as visits
from psconrl.markov.structure import end_components, find_end_components
from psconrl.model.transition import Transition
from psconrl.planning.components import stationary
from psconrl.planning.components.inside import Inside
from psconrl.planning.components.optimal_stopping import STAY, Moves
from psconrl.planning.components.oracle import ComponentsOracle
from psconrl.planning.components.quotient import Quotient
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.problem import Problem


def multichain(S, A, m, seed):
    """A third of all pairs stay, half lead on to later states, the rest anywhere."""
    rng = np.random.default_rng(seed)
    P = np.zeros((S * A, S))
    for i, row in enumerate(P):
        s, kind = i // A, rng.random()
        onward = np.arange(s, S) if kind < 0.8 else np.arange(S)
        some = np.array([s]) if kind < 0.3 else rng.choice(onward, min(onward.size, 2), replace=False)
        row[some] = rng.dirichlet(np.ones(some.size))
    form = csr_array(P) if seed % 2 else P
    initial = rng.dirichlet(np.ones(S)) if seed % 3 else 0
    return CMDP(form, rng.random((m + 1, S, A)).round(2), rng.uniform(0.2, 0.7, m), initial=initial)


def by_brute_force(model):
    """The least cost of a feasible mixture of deterministic policies; None if there is none."""
    every = itertools.product(range(model.n_actions), repeat=model.n_states)
    points = np.array([evaluate(model, np.array(actions)).costs for actions in every])
    limits = {"A_ub": points[:, 1:].T, "b_ub": model.thresholds} if model.n_constraints else {}
    found = linprog(points[:, 0], A_eq=np.ones((1, len(points))), b_eq=[1.0], **limits)
    return found.fun if found.status == 0 else None


@pytest.mark.part(3)
@pytest.mark.parametrize("m", [0, 1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_components_the_program_and_all_policies_agree(m, seed):
    """Every policy, stationary or not, has the averages of a mixture of deterministic ones."""
    model = multichain(2 + seed % 4, 1 + seed % 3, m, seed)
    ours, program, least = plan(model), plan_unexplained(model, "lp"), by_brute_force(model)
    assert certify(model, ours).holds
    if least is None:
        assert ours.status is program.status is Status.INFEASIBLE
    else:
        assert ours.status is Status.OPTIMAL
        assert ours.value == pytest.approx(least, abs=1e-9)
        assert ours.value == pytest.approx(program.certificate.lower, abs=1e-9)
        assert (ours.costs[1:] <= model.thresholds + 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_oracle_and_program_agree_for_weights(seed):
    """The bound of the oracle is valid and attained: without constraints the least weighted cost is the program's."""
    model = multichain(8, 3, 2, seed)
    reached = model.restricted(np.flatnonzero(model.transition.reachable_from(model.initial > 0)))
    parts = find_end_components(reached.transition, reached.available)
    if parts.number < 2:
        return
    problem = Problem.of(reached)
    weights = np.random.default_rng(seed).dirichlet(np.ones(3))
    oracle = ComponentsOracle(problem, reached.initial, parts)
    first = oracle.first(np.array([1.0, 0.0, 0.0]))
    bound, better = oracle.improve(first, weights)
    best = first if better is None else better
    assert oracle.improve(best, weights)[1] is None
    weighted = CMDP(
        reached.transition, (weights @ problem.costs).reshape(1, *reached.available.shape), initial=reached.initial
    )
    least = plan(weighted, method="lp").value
    assert bound <= least + 1e-12
    assert bound == pytest.approx(least, abs=1e-9)
    assert weights @ best.costs == pytest.approx(least, abs=1e-9)
    exact = evaluate(reached, best.policy).occupancy  # independently, from the whole chain
    np.testing.assert_allclose(problem.costs @ exact.ravel(), best.costs, atol=1e-12)


def tower(n, p):
    """Layers of two states: stay for n - k in layer k, or go up with probability p, else into a pit."""
    S = 2 * n + 1
    P, cost = np.zeros((S, 2, S)), np.zeros((S, 2))
    for k in range(n):
        a, b = 2 * k, 2 * k + 1
        P[a, 0, b] = P[b, 0, a] = P[b, 1, a] = 1.0  # back and forth
        cost[[a, b], :] = n - k
        if k + 1 < n:
            P[a, 1, a + 2], P[a, 1, 2 * n] = p, 1 - p
        else:
            P[a, 1, b] = 1.0
    P[2 * n, :, 2 * n] = 1.0
    cost[2 * n] = n + 1
    return CMDP(csr_array(P.reshape(-1, S)), cost[None])


@pytest.mark.parametrize(
    ("n", "p"), [(2, Fraction(9, 10)), (5, Fraction(3, 4)), (6, Fraction(19, 20)), (4, Fraction(0))]
)
def test_a_tower_is_climbed_as_high_as_it_pays_in_exact_arithmetic(n, p):
    """Going up from layer k is worth p V(k+1) + (1-p)(n+1), staying n - k."""
    value = Fraction(1)  # of the top layer
    for k in range(n - 2, -1, -1):
        value = min(Fraction(n - k), p * value + (1 - p) * (n + 1))
    found = plan(tower(n, float(p)))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(float(value), abs=1e-12)
    assert len(end_components(tower(n, float(p)))) == n + (1 if p < 1 else 0)


def test_thousands_of_small_components():
    """From the start to one of n pairs of states, evenly; each costs the cheaper of its two ways to stay."""
    n = 4000
    rng = np.random.default_rng(0)
    first = 1 + 2 * np.arange(n)
    rows, columns, values = [np.repeat([0, 1], n)], [np.tile(first, 2)], [np.full(2 * n, 1 / n)]
    for a, target in ((0, first + 1), (1, first)):  # away and back, or not at all
        rows += [2 * first + a, 2 * (first + 1) + a]
        columns += [target, first]
        values += [np.ones(n), np.ones(n)]
    S = 2 * n + 1
    P = csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(2 * S, S))
    cost = rng.random((1, S, 2))
    cost[0, first + 1, 1] = cost[0, first + 1, 0]
    found = plan(CMDP(P, cost))
    there_and_back = 0.5 * (cost[0, first, 0] + cost[0, first + 1, 0])
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(np.minimum(there_and_back, cost[0, first, 1]).mean(), abs=1e-12)
    assert len(evaluate(CMDP(P, cost), found.policy).classes) == n


def nested(size, seed, m=0):
    """Two rings in a row, the first left by choice or not, with a transient layer before and between."""
    rng = np.random.default_rng(seed)
    layers = [3, size, 4, size, 1]
    begin = np.concatenate([[0], np.cumsum(layers)])
    S, A = int(begin[-1]), 3
    P = np.zeros((S * A, S))
    for layer, (low, high) in enumerate(itertools.pairwise(begin)):
        for s in range(low, high):
            for a in range(A):
                if layer % 2 == 0 and layer < 4:  # transient: goes on, or remains in the layer
                    P[s * A + a, rng.integers(high, S, 2)] += 0.4
                    P[s * A + a, rng.integers(low, high)] += 0.2
                elif a == 2 and layer == 1 and s % 3 == 0:  # leaves
                    P[s * A + a, rng.integers(low, S, 3)] += 1 / 3
                else:
                    P[s * A + a, low + (s - low + 1) % (high - low)] += 0.5
                    P[s * A + a, rng.integers(low, high)] += 0.5
    P /= P.sum(axis=1, keepdims=True)
    return CMDP(csr_array(P), rng.random((m + 1, S, A)), np.full(m, 0.5))


@pytest.mark.part(3)
@pytest.mark.parametrize("size", [5, 40, 90, 300])
@pytest.mark.parametrize("m", [0, 1, 2])
def test_components_of_all_sizes_by_components_and_by_the_program(size, m):
    """Small ones are planned in one compiled call, those of 90 states as dense models, of 300 as sparse ones."""
    model = nested(size, size, m)
    ours, program = plan(model), plan(model, "lp")
    assert ours.method == "mixture"
    assert ours.certificate.holds
    assert ours.feasible == program.feasible
    if ours.feasible:
        assert ours.value == pytest.approx(program.certificate.lower, abs=1e-9)


def test_a_component_that_is_left_is_crossed_to_where_it_is_left():
    """A ring of expensive states, one of which has an exit: the policy goes there and leaves."""
    n = 6
    P = np.zeros((n + 1, 3, n + 1))
    for s in range(n):
        P[s, 0, (s + 1) % n] = P[s, 1, (s - 1) % n] = P[s, 2, s] = 1.0
    P[4, 2] = np.eye(n + 1)[n]
    P[n, :, n] = 1.0
    cost = np.ones((1, n + 1, 3))
    cost[0, n] = 0.25
    found = plan(CMDP(P, cost, initial=0))
    assert found.value == 0.25
    at, steps = 0, 0
    while at != n:
        at, steps = int(P[at, found.policy[at].argmax()].argmax()), steps + 1
    assert steps == 3  # 0, 5, 4, out: the nearer way


def test_limits_that_no_component_keeps():
    model = multichain(5, 2, 1, 3).with_thresholds([-0.1])
    found = plan(model)
    assert found.status is Status.INFEASIBLE
    assert found.certificate.holds
    assert found.infeasibility.alone[0] == pytest.approx(
        plan(CMDP(model.transition, model.costs[1:], initial=model.initial), "lp").value
    )


def test_moves_by_hand():
    """Node 2 may go to 0 or 1 for certain, node 3 to 2 or, in half of the cases, to either end."""
    distribution = csr_array(np.array([[0, 0, 1.0, 0], [1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1.0, 0, 0]]))
    moves = Moves(distribution, source=np.array([3, 2, 3, 2]))
    assert moves.order.tolist() == [1, 3, 0, 2]
    found = moves.cheapest(np.array([3.0, 1.0, np.inf, np.inf]), 0.0, 1e-13)
    assert found.values.tolist() == [3.0, 1.0, 1.0, 1.0]
    assert found.choice.tolist() == [STAY, STAY, 1, 2]
    dear = moves.cheapest(np.array([3.0, 1.0, np.inf, np.inf]), 2.0, 1e-13)  # moves cost 2: 3 randomises
    assert dear.values.tolist() == [3.0, 1.0, 3.0, 4.0]
    assert dear.choice.tolist() == [STAY, STAY, 1, 3]
    assert moves.ends(dear.choice, np.array([0.0, 0.2, 0.2, 0.6])).tolist() == pytest.approx([0.3, 0.7, 0, 0])
    assert moves.largest_fall(np.array([0.0, 2.0, 1.0, 3.0])) == pytest.approx(2.0)
    assert moves.largest_fall(np.array([1.0, 1.0, 1.0, 1.0])) == 0.0
    with pytest.raises(SolverError, match="neither stay nor move on"):
        Moves(distribution, source=np.array([3, 3, 3, 3])).cheapest(np.array([3.0, 1.0, np.inf, np.inf]), 0.0, 1e-13)


def test_the_distribution_of_moves_leaves_out_the_node_they_come_from():
    """States 1 and 2 are one component; state 0 waits with probability 0.6, and leads to both of them."""
    P = np.zeros((3, 1, 3))
    P[0, 0] = [0.6, 0.1, 0.3]
    P[1, 0, 2] = P[2, 0, 1] = 1.0
    model = CMDP(P, np.zeros((1, 3, 1)))
    quotient = Quotient(model.transition, model.available, find_end_components(model.transition, model.available))
    assert quotient.node.tolist() == [1, 0, 0]
    assert quotient.moves.distribution.toarray().tolist() == [[1.0, 0.0]]
    assert quotient.pairs.tolist() == [0]
    assert quotient.of_nodes(np.array([0.5, 0.2, 0.3])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("together", [0, 8, 1000])
@pytest.mark.parametrize(("n", "density", "exit"), [(1, 1.0, 0.5), (40, 0.04, 0.3), (40, 0.3, 0.3), (90, 0.05, 1e-4)])
def test_passages_against_a_dense_inverse(together, n, density, exit, monkeypatch):
    rng = np.random.default_rng(n)
    W = np.where(rng.random((n, n)) < density, rng.random((n, n)), 0.0)
    out = exit * rng.random(n)
    total = W.sum(axis=1) + out
    W, out = W / total[:, None], out / total
    N = np.linalg.inv(np.eye(n) - W)
    C, begin = rng.normal(size=(n, 2)), rng.random(n)
    size = abs(N).sum(axis=1).max()
    for module in (passage, visits):
        monkeypatch.setattr(module, "DENSE_GROUP_STATES", together)
    np.testing.assert_allclose(passage.collect_onward(csr_array(W), C, out), N @ C, atol=1e-13 * size)
    np.testing.assert_allclose(visits.visit_onward(csr_array(W), begin, out), begin @ N, rtol=1e-9)


def test_a_passage_without_a_way_out():
    with pytest.raises(SolverError):
        passage.collect_onward(csr_array(np.array([[1.0]])), np.ones((1, 1)), np.zeros(1))
    with pytest.raises(SolverError):
        visits.visit_onward(csr_array(np.array([[1.0]])), np.ones(1), np.zeros(1))


@pytest.mark.parametrize("seed", range(12))
def test_many_classes_are_evaluated_like_few(seed, monkeypatch):
    """By the probability of ending in each of them, and by the visits on the way."""
    dense = multichain(12, 2, 2, 2 * seed + 1)
    sparse = dense.stored(Transition.of(dense.transition.csr()))
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), size=12)
    few = evaluate(sparse, policy)
    monkeypatch.setattr(evaluation, "FEW_CLASSES", 0)
    many = evaluate(sparse, policy)
    for other in (few, evaluate(dense, policy)):
        for name in ("costs", "occupancy", "gains", "biases"):
            np.testing.assert_allclose(getattr(many, name), getattr(other, name), atol=1e-11, err_msg=name)
        assert [states.tolist() for states in many.classes] == [states.tolist() for states in other.classes]


def test_components_that_are_planned_again_begin_where_they_were():
    model = nested(90, 7)
    parts = find_end_components(model.transition, model.available)
    inside = Inside(Problem.of(model), parts)
    cost = np.random.default_rng(1).random(model.n_states * model.n_actions)
    once, again = inside.plan(cost), inside.plan(cost)
    np.testing.assert_array_equal(once.policy, again.policy)
    np.testing.assert_allclose(once.bounds, again.bounds, atol=1e-12)


def test_with_one_constraint_few_states_are_randomised(monkeypatch):
    """Halving the states in which two optimal policies differ leaves one of them, in models of moderate size."""
    model = nested(30, 5, 1)
    cheap = evaluate(model, plan(CMDP(model.transition, model.costs[:1])).policy).costs[1]
    least = plan(CMDP(model.transition, model.costs[1:])).value
    model = model.with_thresholds([0.5 * (cheap + least)])
    found = plan_unexplained(model)
    assert found.mixture is None
    assert found.randomised_states.size <= 1
    monkeypatch.setattr(stationary, "BISECTED_STATES", 0)
    assert plan_unexplained(model).value == pytest.approx(found.value, abs=1e-10)


def chain_of_traps(n):
    """Every state leads to the next or drops out: whole rounds of the plain algorithm lose one state each."""
    P = np.zeros((n * 2, n))
    for s in range(n):
        P[2 * s, (s + 1) % n] = 1.0
        P[2 * s + 1, s - 1 if s else n - 1] = 1.0
    P[2 * (n - 1)] = P[2 * (n - 1) + 1] = np.eye(n)[n - 1]
    return CMDP(csr_array(P), np.zeros((1, n, 2)))


def test_end_components_of_a_chain_that_unravels():
    n = 300
    found = find_end_components(chain_of_traps(n).transition, np.ones((n, 2), dtype=bool))
    assert found.number == 2
    assert found.of_state.tolist() == [0] * (n - 1) + [1]
    assert found.inside.sum() == 2 * (n - 1) - 2 + 2


def test_frequencies_are_those_of_the_policy_where_averages_tie():
    """Found by a fuzzer: a mixture and its policy had the same averages but different frequencies."""
    S, A = 7, 3
    goes = {
        (0, 0): {0: 1.0}, (0, 1): {3: 1.0}, (0, 2): {4: 0.5, 5: 0.5}, (1, 0): {5: 1.0}, (1, 2): {1: 0.5, 5: 0.5},
        (2, 0): {2: 1.0}, (2, 2): {3: 1.0}, (3, 0): {3: 1.0}, (3, 2): {3: 1.0}, (4, 0): {4: 1.0}, (4, 1): {5: 1.0},
        (5, 0): {5: 1.0}, (5, 1): {5: 1.0}, (5, 2): {5: 1.0}, (6, 0): {6: 1.0}, (6, 1): {1: 0.9, 6: 0.1},
    }  # fmt: skip
    P, available = np.zeros((S, A, S)), np.zeros((S, A), dtype=bool)
    for (s, a), distribution in goes.items():
        available[s, a] = True
        for t, p in distribution.items():
            P[s, a, t] = p
    objective = [[0, 1, 0], [1, 1, 1], [2, 3, 1], [3, 1, 1], [2, 0, 0], [3, 0, 0], [1, 1, 3]]
    limited = [[1, 3, 2], [2, 2, 3], [1, 2, 2], [0, 0, 2], [1, 0, 3], [3, 1, 1], [2, 1, 0]]
    initial = [0.18, 0.13, 0.09, 0.02, 0.19, 0.03, 0.36]
    model = CMDP(P, [objective, limited], [1.0], initial=initial, available=available)
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert found.mixture is None
    np.testing.assert_allclose(found.occupancy, evaluate(model, found.policy).occupancy, atol=1e-12)


@pytest.mark.parametrize("size", [1e-6, 1e-10, 1e-15])
def test_a_tiny_constant_cost_above_its_limit_is_infeasible(size):
    apart = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    model = CMDP(apart, [[[1], [1]], [[size], [size]]], [0.5 * size], initial=[0.5, 0.5])
    assert plan(model).status is Status.INFEASIBLE
    assert plan(model.with_thresholds([2 * size])).status is Status.OPTIMAL


def test_certify_judges_what_can_be_reached_as_the_plan_did():
    """The threshold is exceeded by 5e-10, which is allowed; costs of an unreachable state do not matter."""
    apart = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    model = CMDP(apart, [[[1], [1]], [[0.5], [0]]], [0.5 - 5e-10])
    found = plan(model)
    assert found.certificate.holds == certify(model, found).holds
