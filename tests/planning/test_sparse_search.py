"""The compiled search on sparse transitions with restarts, against the dense one, the linear program, slow loops."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl import CMDP, Status, evaluate, plan
from psconrl.kernels.search.mixture_search import GIVE_UP, newton
from psconrl.kernels.search.sparse_improvement import look_ahead
from psconrl.markov.chain import chain_of
from psconrl.markov.elimination_order import NO_ORDER, order_for
from psconrl.model.transition import DenseTransition, RestartingTransition, SparseTransition, Transition
from psconrl.planning.mixture import solve as solving
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.mixture.solve import solve, solve_compiled
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import SEARCH

SAME = 1e-9  # both search until the gap is below 1e-11, products until gains are right to 1e-10
AGREE = 1e-7  # against HiGHS, whose own tolerances are 1e-9 at best


def distributions(kind, S, A, rng, twice=False):
    """Sparse transitions to neighbours on a line with some long jumps, or anywhere; ``twice``: entries in two parts."""
    rows, columns, data = [], [], []
    for row in range(S * A):
        s = row // A
        to = np.clip([s - 1, s, s + 1, s + 5], 0, S - 1) if kind == "line" else rng.choice(S, min(3, S), replace=False)
        p = rng.dirichlet(np.ones(len(to)))
        rows += [row] * len(to) * (2 if twice else 1)
        columns += [*to] * (2 if twice else 1)
        data += [*(0.25 * p), *(0.75 * p)] if twice else [*p]
    counts = np.bincount(rows, minlength=S * A)
    indptr = np.append(0, np.cumsum(counts)).astype(np.int32)
    return csr_array((np.array(data), np.array(columns, dtype=np.int32), indptr), shape=(S * A, S))


def problems(m, count, seed=0):
    """Sparse problems that restart in some state; with an elimination order; and the model in dense form."""
    rng = np.random.default_rng(100 * m + seed)
    for trial in range(count):
        S, A = int(rng.integers(2, 40)), int(rng.integers(2, 4))
        base = distributions("line" if trial % 2 else "random", S, A, rng, twice=trial % 3 == 0)
        probability = (1e-12, 1e-6, 1e-3, 0.1, 0.5)[trial % 5]
        P = SparseTransition(base).restarting(int(rng.integers(S)), probability)
        costs, limits = rng.random((m + 1, S, A)), rng.uniform(0.25, 0.7, m)
        available = np.ones((S, A), dtype=bool)
        available[:, 0] = rng.random(S) < 0.8
        problem = Problem.scaled(P, costs, limits, available)
        model = CMDP(P.toarray(), costs, limits, available=available)
        yield problem, order_for(base.indptr, base.indices, S, np.inf), model


def averages(found):
    return found.mixture.shares @ [column.costs for column in found.mixture.answers]


@pytest.mark.parametrize("m", [0, 1, *(pytest.param(m, marks=pytest.mark.full) for m in (2, 3))])
def test_sparse_dense_and_linear_programs_agree(m, full):
    """With an order and, where Krylov methods converge, without one: verdicts, values, valid gaps."""
    verdicts, by_products = set(), 0
    for problem, order, model in problems(m, 30 if full else 10):
        dense = solve_compiled(problem.with_transition(DenseTransition(problem.transition.toarray())))
        referee = plan(model, method="lp")
        shift, scale = problem.scaling
        best = (referee.costs[0] - shift[0]) / scale[0]
        for chosen in (order, NO_ORDER):
            found = solve_compiled(problem, order=chosen)
            by_products += found is not None and chosen is NO_ORDER
            if found is None:
                assert chosen is NO_ORDER  # a chain that mixes slowly
                continue
            assert found.settled
            assert found.feasible == dense.feasible == (referee.status is not Status.INFEASIBLE)
            verdicts.add(found.feasible)
            if not found.feasible:
                assert found.weights[0] == 0.0
                continue
            assert found.value == pytest.approx(dense.value, abs=SAME)
            assert found.value - best <= found.gap + AGREE  # which is a bound...
            assert found.gap <= SAME  # ... that is small
            assert found.value == pytest.approx(best, abs=AGREE)
            assert averages(found)[0] == pytest.approx(found.value, abs=1e-14)
            assert (averages(found)[1:] <= problem.thresholds + 2e-9).all()
            played = evaluate(model, found.policy).costs
            assert (played - shift) / scale == pytest.approx(averages(found), abs=1e-8)
            assert (found.policy[~problem.available] == 0.0).all()
    assert by_products > (10 if full else 2)
    assert verdicts == ({True} if m == 0 else {True, False})


@pytest.mark.full
def test_the_gap_is_a_bound_at_every_column_that_the_search_may_stop_at():
    """The weights and biases of the certificate, combined by hand, bound the value of the linear program."""
    verdicts = []
    for problem, order, model in problems(2, 20, seed=1):
        for chosen in (order, NO_ORDER):
            found = solve_compiled(problem, order=chosen, least_excess=True)
            if found is None:
                continue
            w, proof = found.weights, found.mixture.proof
            h = w @ proof.biases
            drift = problem.transition.drift(h)
            cost = (w @ problem.costs).reshape(drift.shape) + drift
            lower = cost[problem.available].min() - w[1:] @ problem.thresholds
            verdicts.append(found.feasible)
            if found.feasible:
                best = (plan(model, method="lp").costs[0] - problem.scaling[0][0]) / problem.scaling[1][0]
                assert lower / w[0] <= best + AGREE
                assert found.value - lower / w[0] <= found.gap + 1e-13
            else:
                assert lower > 0.0
                assert -lower <= found.gap + 1e-13
    assert min(verdicts.count(True), verdicts.count(False)) > 3


def test_distributions_of_the_mixture_are_stationary():
    columns = 0
    for problem, order, _ in problems(1, 15, seed=2):
        for chosen in (order, NO_ORDER):
            found = solve_compiled(problem, order=chosen)
            if found is not None:
                for column in found.mixture.answers:
                    distribution, chain = column.stationary, chain_of(problem.transition, column.policy)
                    assert distribution.sum() == pytest.approx(1.0)
                    np.testing.assert_allclose(distribution @ chain.toarray(), distribution, atol=1e-9)
                    columns += 1
    assert columns > 10


GUESSES = {
    "of nothing": [],
    "of the objective alone": [1.0, 0.0, 0.0],
    "of too few": [1.0],
    "far too low": [1.0, 1e-8, 1e-8],
    "far too high": [1e-6, 1.0, 1.0],
    "of one limit": [0.5, 0.0, 0.5],
    "beyond all": [1e-300, 1.0, 1.0],
    "below what there is": [5e-324, 1.0, 1.0],
    "endless": [1.0, np.inf, 1.0],
    "no numbers": [np.nan, np.nan, np.nan],
    "negative": [0.5, 1.0, -0.5],
    "without the objective": [0.0, 0.5, 0.5],
}


@pytest.mark.parametrize("guess", GUESSES)
def test_a_guess_changes_the_work_but_no_verdict_and_no_value(guess):
    """Compiled, sparse and dense, and in the general loop."""
    near = np.array(GUESSES[guess])
    verdicts = []
    for problem, order, _ in problems(2, 12, seed=3):
        dense = problem.with_transition(DenseTransition(problem.transition.toarray()))
        plain = solve_compiled(dense)
        general = mix(Howard(dense), problem.thresholds, near=near) if near.size == 3 else None
        for found in (
            solve_compiled(problem, near=near, order=order),
            solve_compiled(problem, near=near, order=NO_ORDER),
            solve_compiled(dense, near=near),
        ):
            if found is None:
                continue
            assert found.settled
            assert found.feasible == plain.feasible
            verdicts.append(found.feasible)
            if plain.feasible:
                assert found.value == pytest.approx(plain.value, abs=SAME)
                assert abs(found.gap) <= SAME
        if general is not None:
            assert general.feasible == plain.feasible
            if plain.feasible:
                assert general.shares @ [c.costs[0] for c in general.answers] == pytest.approx(plain.value, abs=SAME)
    assert set(verdicts) == {True, False}


@pytest.mark.parametrize("guess", ["beyond all", "below what there is", "endless", "no numbers", "negative"])
def test_weights_that_give_no_prices_are_no_guess(guess):
    """Their bound would be accurate to 1e-16 of their sum only: the search is the same as without them."""
    for problem, order, _ in problems(2, 6, seed=3):
        plain = solve_compiled(problem, order=order)
        found = solve_compiled(problem, near=np.array(GUESSES[guess]), order=order)
        assert found.mixture.evaluated == plain.mixture.evaluated
        np.testing.assert_array_equal(found.policy, plain.policy)
        np.testing.assert_array_equal(found.weights, plain.weights)


def test_the_right_guess_is_the_shorter_way():
    """From one policy of another sample, as an agent plans: at the prices of the optimum it takes fewer policies."""
    rng, S, A, plain, guessed = np.random.default_rng(4), 150, 4, 0, 0
    for _ in range(10):
        base = distributions("line", S, A, rng)
        order = order_for(base.indptr, base.indices, S, np.inf)
        P = SparseTransition(base).restarting(0, 0.01)
        problem = Problem.scaled(P, rng.random((3, S, A)), np.array([0.4, 0.45]), np.ones((S, A), dtype=bool))
        first = solve_compiled(problem, order=order)
        assert first.feasible
        start = [rng.integers(A, size=S)]
        plain += solve_compiled(problem, start, order=order).mixture.evaluated
        guessed += solve_compiled(problem, start, near=first.weights, order=order).mixture.evaluated
    assert guessed < plain


def test_a_search_that_gives_up_tries_the_order_and_then_the_general_loop(monkeypatch):
    (problem, order, _), *_ = problems(1, 1, seed=5)
    asked = []

    def stubborn(distributions, *arguments):
        asked.append(distributions.order.position.size)
        return newton(distributions, *arguments)._replace(outcome=GIVE_UP)

    value = solve(problem, order=order).value
    monkeypatch.setattr(solving, "newton", stubborn)
    monkeypatch.setattr(solving, "QUICK", 0.0)  # Krylov first
    found = solve(problem, order=order)
    assert asked == [0, problem.available.shape[0]]
    assert found.settled
    assert found.value == pytest.approx(value, abs=SAME)
    monkeypatch.setattr(solving, "QUICK", np.inf)  # the order first
    asked.clear()
    assert solve(problem, order=order).settled
    assert asked == [problem.available.shape[0]]
    asked.clear()
    assert solve(problem, order=NO_ORDER).settled
    assert asked == [0, 0]  # with more patience
    asked.clear()
    assert solve(problem).settled
    assert asked == []


def test_a_plan_that_is_not_settled_is_searched_for_in_general(monkeypatch):
    (problem, order, _), *_ = problems(1, 1, seed=5)
    value = solve(problem, order=order).value

    def with_gap(*arguments):
        return newton(*arguments)._replace(gap=1.0)

    monkeypatch.setattr(solving, "newton", with_gap)
    monkeypatch.setattr(solving, "solve_carefully", None)  # not asked
    found = solve(problem, order=order)
    assert found.settled
    assert found.value == pytest.approx(value, abs=SAME)


def test_as_many_products_are_tried_as_are_allowed():
    rng, S, A = np.random.default_rng(0), 80, 2
    P = SparseTransition(distributions("line", S, A, rng)).restarting(0, 0.01)
    problem = Problem.scaled(P, rng.random((2, S, A)), np.array([0.45]), np.ones((S, A), dtype=bool))
    assert solve_compiled(problem, order=NO_ORDER, products=20) is None
    found = solve_compiled(problem, order=NO_ORDER, products=solving.PATIENT * solving.KRYLOV_STEPS)
    order = order_for(P.base.matrix.indptr, P.base.matrix.indices, S, np.inf)
    assert found.value == pytest.approx(solve_compiled(problem, order=order).value, abs=SAME)


def test_transitions_that_never_restart_are_searched_unless_a_policy_is_multichain():
    """With an order, from a reference that a policy may never visit; else by Krylov. Against the linear program."""
    rng, given_up = np.random.default_rng(6), 0
    for trial in range(40):
        S, A, m = int(rng.integers(2, 30)), 3, trial % 3
        base = SparseTransition(distributions("line" if trial % 2 else "random", S, A, rng))
        if not base.communicates:
            continue
        costs, limits = rng.random((m + 1, S, A)), rng.uniform(0.35, 0.7, m)
        problem = Problem.scaled(base, costs, limits, np.ones((S, A), dtype=bool))
        referee = plan(CMDP(base.toarray(), costs, limits), method="lp")
        order = order_for(base.matrix.indptr, base.matrix.indices, S, np.inf)
        assert solve_compiled(problem) is None  # not asked for
        found = [solve_compiled(problem, order=order), solve_compiled(problem, order=NO_ORDER)]
        given_up += found.count(None)
        found += [solve(problem, order=order), solve(problem, order=NO_ORDER), solve(problem)]
        for each in found:
            if each is not None:
                assert each.settled
                assert each.feasible == (referee.status is not Status.INFEASIBLE)
                if each.feasible:
                    value = problem.scaling.invert(averages(each))[0]
                    assert value == pytest.approx(referee.costs[0], abs=AGREE)
    assert given_up < 20


def test_a_policy_that_falls_apart_is_left_to_others():
    """Two states, each of which may be kept forever: the myopic policy stays in either."""
    P = SparseTransition(csr_array(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])))
    costs = np.array([[[0.0, 1.0], [0.5, 1.0]]])
    problem = Problem.scaled(P, costs, np.empty(0), np.ones((2, 2), dtype=bool))
    order = order_for(P.matrix.indptr, P.matrix.indices, 2, np.inf)
    assert solve_compiled(problem, order=order) is None
    assert solve_compiled(problem, order=NO_ORDER) is None
    for chosen in (order, NO_ORDER, None):
        found = solve(problem, order=chosen)
        assert found.settled
        assert found.value == pytest.approx(0.0, abs=1e-12)
    # A first state that is left for good is no reason to give up: elimination is retried from where it got stuck.
    dearer = problem._replace(costs=np.array([[0.5, 1.0, 0.0, 1.0]]))
    found = solve_compiled(dearer, [np.array([1, 0])], order=order)
    assert found.settled
    assert found.value == 0.0


@pytest.mark.parametrize("probability", [1e-8, 1e-10, 1e-12])
def test_a_plan_from_a_state_that_is_never_seen_again(probability):
    """It restarts there once in 1 / probability rounds: cycles are that long, and biases counted from there would lose
    as many digits. The value is that of the states behind it, up to the probability times the longest path."""
    rng, S, A = np.random.default_rng(0), 300, 2
    P = distributions("line", S, A, rng).toarray()
    P[:, 0] = 0.0  # nothing leads to the first state
    P[np.arange(2 * A), 1] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    base = SparseTransition(csr_array(P))
    costs, limits = rng.random((2, S, A)), np.array([0.45])
    problem = Problem.scaled(base.restarting(0, probability), costs, limits, np.ones((S, A), dtype=bool))
    found = solve_compiled(problem, order=order_for(base.matrix.indptr, base.matrix.indices, S, np.inf))
    assert found.settled
    assert abs(found.gap) <= 1e-11
    shift, scale = problem.scaling
    behind = plan(CMDP(P[A:, 1:], costs[:, 1:], limits))
    assert shift[0] + scale[0] * found.value == pytest.approx(behind.costs[0], abs=1e3 * probability)


# One step ahead and more


def sweeps_by_hand(P, cost, available, policy, h, gain, sweeps, tol):
    """``look_ahead`` as a slow loop over dense transitions."""
    S, A = available.shape
    h, policy = h.copy(), policy.copy()
    for _ in range(sweeps):
        changed = False
        for s in range(S):
            values = [cost[s * A + a] - gain + P[s * A + a] @ h if available[s, a] else np.inf for a in range(A)]
            best = int(np.argmin(values))
            if values[policy[s]] - values[best] > tol * max(1.0, abs(h[s])):
                policy[s], changed = best, True
            h[s] = values[best]
        if not changed:
            break
    return policy


@pytest.mark.parametrize("sweeps", [0, 1, 2, 5, 30])
def test_looking_ahead_is_value_iteration_state_by_state(sweeps):
    rng = np.random.default_rng(sweeps)
    for trial in range(20):
        S, A = int(rng.integers(2, 25)), 3
        base, probability, state = (
            distributions("random", S, A, rng, trial % 2 == 0),
            (0.0, 0.2)[trial % 2],
            int(rng.integers(S)),
        )
        cost, h = rng.random(S * A), rng.random(S)
        available = rng.random((S, A)) < 0.7
        policy = rng.integers(A, size=S)
        available[np.arange(S), policy] = True
        arguments = (cost, available, policy, h, 0.4, sweeps, 1e-13)
        found = look_ahead(base.indptr, base.indices, base.data, state, probability, *arguments)
        P = SparseTransition(base).restarting(state, probability).toarray()
        np.testing.assert_array_equal(found, sweeps_by_hand(P, *arguments))
        if sweeps == 0:
            np.testing.assert_array_equal(found, policy)


def test_one_sweep_is_the_greedy_policy_where_states_lead_to_later_ones():
    """Values already changed by a sweep are then not used, and a gain within the tolerance changes nothing."""
    rng, S, A = np.random.default_rng(0), 20, 3
    P = np.triu(rng.random((S, S)), 1)[np.repeat(np.arange(S), A)] * rng.random((S * A, S))
    P[-A:, -1] = 1.0
    P /= P.sum(axis=1, keepdims=True)
    matrix, cost, h = csr_array(P), rng.random(S * A), rng.random(S)
    values = (cost + P @ h).reshape(S, A)
    everything = np.ones((S, A), dtype=bool)
    policy = rng.integers(A, size=S)
    arguments = (matrix.indptr, matrix.indices, matrix.data, 0, 0.0, cost, everything, policy, h, 0.3, 1)
    np.testing.assert_array_equal(look_ahead(*arguments, 1e-13)[:-1], values.argmin(axis=1)[:-1])
    np.testing.assert_array_equal(look_ahead(*arguments, 10.0), policy)


# Transitions with restarts


@pytest.mark.parametrize("twice", [False, True])
def test_restarting_is_a_mixture_with_one_state(twice):
    rng, S, A = np.random.default_rng(0), 12, 2
    base = SparseTransition(distributions("random", S, A, rng, twice))
    P = base.toarray()
    for probability in (0.0, 1e-9, 0.3, 1.0):
        ahead = base.restarting(4, probability)
        wanted = (1.0 - probability) * P + probability * np.eye(S)[4]
        assert isinstance(ahead, RestartingTransition)
        np.testing.assert_allclose(ahead.toarray(), wanted, rtol=1e-15)
        np.testing.assert_allclose(ahead.matrix.sum(axis=1), 1.0)
        np.testing.assert_allclose(DenseTransition(P).restarting(4, probability).toarray(), wanted, rtol=1e-15)
        assert (ahead.shape, ahead.restarts_in) == ((S * A, S), 4)
        assert (ahead.n_states, ahead.n_actions, ahead.n_possible) == (S, A, base.n_possible)
        policy = rng.integers(A, size=S)
        np.testing.assert_allclose(ahead.under(policy).toarray(), wanted[np.arange(S) * A + policy], rtol=1e-15)
        h = rng.random(S)
        np.testing.assert_allclose(ahead @ h, wanted @ h, rtol=1e-13)
        np.testing.assert_allclose(ahead.drift(h), (wanted @ h).reshape(S, A) - h[:, None], atol=1e-14)
        again = ahead.restarting(7, 0.5).toarray()
        np.testing.assert_allclose(again, 0.5 * wanted + 0.5 * np.eye(S)[7], rtol=1e-15)
    assert base.restarts_in is None
    np.testing.assert_array_equal(base.toarray(), P)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_without_what_is_less_likely(form):
    """Entries exactly at the threshold stay; the remaining ones are rescaled."""
    P = np.array([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [0.85, 0.05, 0.1]])
    transition = Transition.of(form(P))
    found = transition.without(0.1)
    np.testing.assert_allclose(found.toarray(), [P[0], P[1], [0.85 / 0.95, 0.0, 0.1 / 0.95]], rtol=1e-15)
    assert found.n_possible == 7
    assert found.is_sparse == transition.is_sparse
    np.testing.assert_array_equal(transition.toarray(), P)  # as it was
    some = transition.without(0.6, np.array([True, False, True]), np.array([False, True, True]))
    np.testing.assert_allclose(some.toarray(), [[1, 0, 0], P[1], [1, 0, 0]], rtol=1e-15)


@pytest.mark.parametrize(("within", "off"), [(1e-9, 1e-10), (1e-6, 1e-8)])
def test_products_are_as_exact_as_the_plan_needs(monkeypatch, within, off):
    """The gap is closed to a hundredth of the tolerance, and gains are as accurate: closer policies count as equal."""
    calls = []

    def noticed(distributions, *arguments):
        calls.append((getattr(distributions, "off", None), arguments[6:]))
        return newton(distributions, *arguments)

    monkeypatch.setattr(solving, "newton", noticed)
    problem, order, _ = next(problems(1, 1))
    assert solve(problem, order=NO_ORDER, within=within).settled_within(within)
    assert calls[0][0] == pytest.approx(off, rel=1e-12)
    np.testing.assert_allclose(
        calls[0][1], (0.01 * within, max(1e-13, 0.01 * off), 1e-9, off, 1e-10, 1e-12, 1e-9), rtol=1e-12
    )
    monkeypatch.setattr(solving, "QUICK", np.inf)
    calls.clear()
    assert solve(problem, order=order, within=within).settled_within(within)
    np.testing.assert_allclose(calls[0][1], (0.01 * within, *SEARCH), rtol=1e-12)  # elimination is exact
