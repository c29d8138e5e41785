"""Long-run behaviour of a policy, against closed forms, exact fractions and a slow loop."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import random_cmdp
from psconrl import CMDP, evaluate, load, plan
from psconrl.errors import PolicyError, SolverError
from psconrl.markov import factorisation as direct
from psconrl.markov.chain import DenseChain, SparseChain
from psconrl.markov.select_solver import solve_sparse
from psconrl.model.policy_validation import as_policy

FORMS = pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
KINDS = ("dense", "sparse", "periodic", "tied", "degenerate", "near_reducible", "masked")


def chain(P, *costs, form=np.array, **options):
    """A model with one action, so that its only policy is the chain."""
    n = len(P)
    layers = np.reshape(costs or [np.zeros(n)], (-1, n, 1))
    return CMDP(form(np.array(P, float)), layers, np.full(len(layers) - 1, 9e99), **options)


def run(P, *costs, **options):
    return evaluate(chain(P, *costs, **options), np.zeros(len(P), int))


def distribution(result):
    return result.occupancy[:, 0]


def random_policy(cmdp, seed):
    weights = np.random.default_rng(seed).random((cmdp.n_states, cmdp.n_actions)) * cmdp.available
    return weights / weights.sum(axis=1, keepdims=True)


def cesaro_limit(P, doublings=45):
    """The average of P^0, ..., P^(N-1) for N = 2^doublings, by A_2N = (A_N + P^N A_N) / 2; the error is O(1/N)."""
    average, power = np.eye(len(P)), P
    for _ in range(doublings):
        average = (average + power @ average) / 2
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return average


def exact_distribution(P):
    """The stationary distribution in rational numbers, by Gaussian elimination; 1 - P_ii is the sum of the others."""
    n = len(P)
    A = [[Fraction(float(P[j][i])) for j in range(n)] for i in range(n)]
    for i in range(n):
        A[i][i] = -sum(Fraction(float(P[i][j])) for j in range(n) if j != i)
    A[-1] = [Fraction(1)] * n
    b = [Fraction(0)] * (n - 1) + [Fraction(1)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if A[i][k])
        A[k], A[pivot], b[k], b[pivot] = A[pivot], A[k], b[pivot], b[k]
        for i in range(n):
            if i != k and A[i][k]:
                f = A[i][k] / A[k][k]
                A[i] = [x - f * y for x, y in zip(A[i], A[k], strict=True)]
                b[i] -= f * b[k]
    return [x / A[k][k] for k, x in enumerate(b)]


@FORMS
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.25), (1.0, 1.0), (1e-3, 0.7), (1e-9, 1e-7)])
def test_two_states(form, a, b):
    result = run([[1 - a, a], [b, 1 - b]], [3.0, 1.0], form=form)
    np.testing.assert_allclose(distribution(result), [b / (a + b), a / (a + b)], rtol=1e-7)
    assert result.costs[0] == pytest.approx((3 * b + a) / (a + b))
    assert result.biases[0, 0] - result.biases[0, 1] == pytest.approx(2 / (a + b))
    assert result.value == result.costs[0]


def birth_death(up, down):
    n = len(up)
    P = np.zeros((n, n))
    P[np.arange(n - 1), np.arange(1, n)] = up[:-1]
    P[np.arange(1, n), np.arange(n - 1)] = down[1:]
    P[np.arange(n), np.arange(n)] = 1 - P.sum(axis=1)
    return P


@FORMS
@pytest.mark.parametrize("n", [2, 7, 40, 90])
@pytest.mark.parametrize("shape", ["drift", "two wells", "random"])
def test_birth_and_death(form, n, shape):
    states = np.arange(n)
    up = {
        "drift": np.full(n, 0.25),
        "two wells": np.where(states < n // 2, 0.25, 0.75),  # crossing takes 3^(n/2) steps
        "random": np.random.default_rng(n).uniform(0.2, 0.8, n),
    }[shape]
    down = 1 - up
    mu = np.cumprod(np.append(1.0, up[:-1] / down[1:]))
    mu /= mu.sum()
    result = run(birth_death(up, down), states, form=form)
    np.testing.assert_allclose(distribution(result), mu, **({"rtol": 1e-12} if form is np.array else {"atol": 1e-9}))
    assert result.costs[0] == pytest.approx(mu @ states, rel=1e-9)


@FORMS
def test_gambler_from_an_initial_distribution(form):
    n = 9
    P = birth_death(np.full(n, 0.5), np.full(n, 0.5))
    P[0], P[-1] = np.eye(n)[0], np.eye(n)[-1]
    inside = np.array([0.0] + [1.0] * (n - 2) + [0.0])
    beta = np.random.default_rng(0).dirichlet(np.ones(n))
    result = run(P, np.eye(n)[-1], inside, form=form, initial=beta)
    states = np.arange(n)
    win = states / (n - 1)
    np.testing.assert_allclose(result.gains[0], win, atol=1e-14)
    assert result.costs[0] == pytest.approx(beta @ win)
    np.testing.assert_allclose(
        distribution(result), np.eye(n)[0] * (1 - beta @ win) + np.eye(n)[-1] * (beta @ win), atol=1e-14
    )
    np.testing.assert_allclose(result.biases[1], states * (n - 1 - states), atol=1e-12)  # the time until it ends
    assert [c.tolist() for c in result.classes] == [[0], [n - 1]]


@FORMS
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_ring_is_periodic(form, n):
    result = run(np.roll(np.eye(n), 1, axis=1), np.eye(n)[0], form=form)
    np.testing.assert_allclose(distribution(result), 1 / n)
    np.testing.assert_allclose(result.biases[0], np.append(0, np.arange(1, n) / n - 1) + (n - 1) / (2 * n), atol=1e-14)


@FORMS
def test_transient_states_feeding_two_rings(form):
    P = [[0, 0.5, 0.25, 0, 0.25], [0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    result = run(P, [9, 0, 1, 4, 2], form=form)
    np.testing.assert_allclose(distribution(result), [0, 3 / 8, 3 / 8, 1 / 8, 1 / 8], atol=1e-15)
    np.testing.assert_allclose(result.gains[0], [0.5 * 0.75 + 3 * 0.25, 0.5, 0.5, 3, 3])
    assert [c.tolist() for c in result.classes] == [[1, 2], [3, 4]]


def induce(cmdp, policy):
    """The chain (S, S) and the costs (m+1, S) of a policy (S, A), by a plain sum."""
    P = cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)
    return np.einsum("sa,sat->st", policy, P), np.einsum("isa,sa->is", cmdp.costs, policy)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_evaluate_is_the_average_of_matrix_powers(kind, seed):
    cmdp = random_cmdp(kind, S=2 + seed, A=3, m=2, seed=seed)
    policy = random_policy(cmdp, seed) if seed % 2 else random_policy(cmdp, seed).argmax(axis=1)
    result = evaluate(cmdp, policy)
    P, C = induce(cmdp, as_policy(cmdp, policy))
    limit = cesaro_limit(P)
    atol = 1e-7 if kind == "near_reducible" else 1e-11  # the loop squares its rounding until the halves have mixed
    np.testing.assert_allclose(result.gains, C @ limit.T, rtol=0, atol=atol)
    np.testing.assert_allclose(result.occupancy.sum(axis=1), cmdp.initial @ limit, rtol=0, atol=atol)
    np.testing.assert_allclose(result.costs, np.einsum("isa,sa->i", cmdp.costs, result.occupancy), rtol=0, atol=1e-12)
    assert result.occupancy.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("kind", [*KINDS, "near_deterministic"])
@pytest.mark.parametrize("seed", range(8))
def test_bias_solves_the_poisson_equation_with_mean_zero_in_every_class(kind, seed):
    cmdp = random_cmdp(kind, S=2 + seed, A=2, m=1, seed=seed)
    policy = random_policy(cmdp, seed)
    result = evaluate(cmdp, policy)
    P, C = induce(cmdp, policy)
    g, h = result.gains, result.biases
    scale = 1 + np.abs(h).max()
    np.testing.assert_allclose(g + h, C + (P @ h.T).T, atol=1e-13 * scale)
    np.testing.assert_allclose(g, (P @ g.T).T, atol=1e-13)
    for states in result.classes:
        mu = distribution(run(P[np.ix_(states, states)]))
        np.testing.assert_allclose(h[:, states] @ mu, 0, atol=1e-13 * scale)
        np.testing.assert_allclose(g[:, states], (C[:, states] @ mu)[:, None].repeat(states.size, axis=1), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_sparse_is_dense(kind, seed):
    cmdp = random_cmdp(kind, S=9, A=3, m=1, seed=seed)
    P = cmdp.transition
    other = P.toarray() if P.is_sparse else P.csr()
    twin = CMDP(other, cmdp.costs, cmdp.thresholds, initial=cmdp.initial, available=cmdp.available)
    policy = random_policy(cmdp, seed)
    one, two = evaluate(cmdp, policy), evaluate(twin, policy)
    for name in ("costs", "occupancy", "gains"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.biases, two.biases, rtol=0, atol=1e-9 * np.abs(one.biases).max())
    assert [c.tolist() for c in one.classes] == [c.tolist() for c in two.classes]


@FORMS
def test_long_sparse_chains_are_factorised(form):
    n = 300  # GMRES gives up on a walk this long
    result = run(birth_death(np.full(n, 0.5), np.full(n, 0.5)), np.arange(n), form=form)
    np.testing.assert_allclose(distribution(result), 1 / n, rtol=1e-10)
    assert np.ptp(result.biases) == pytest.approx((n**3 - n) / 6)


@pytest.mark.parametrize("kind", ["dense", "near_reducible", "sparse"])
@pytest.mark.parametrize("seed", range(5))
def test_the_price_of_a_wrong_model_is_the_bias_times_the_error(kind, seed):
    """J(pi, p') - J(pi, p) = mu' (P' - P) h, for the same costs."""
    cmdp = random_cmdp("dense", S=6, A=2, m=2, seed=seed)
    truth = CMDP(random_cmdp(kind, 6, 2, 0, seed + 100).transition, cmdp.costs, cmdp.thresholds)
    policy = random_policy(cmdp, seed)
    believed, real = evaluate(cmdp, policy), evaluate(truth, policy)
    P, P_true = induce(cmdp, policy)[0], induce(truth, policy)[0]
    mu = real.occupancy.sum(axis=1)
    np.testing.assert_allclose(real.costs - believed.costs, mu @ ((P_true - P) @ believed.biases.T), atol=1e-12)


RARE = {  # probability of leaving each state
    "rare way in": lambda e: [[0, e, 0], [0, 0, 0.5], [0.7, 0, 0]],
    "rare way out": lambda e: [[0, e, 2 * e], [e, 0, 0], [e / 3, 0, 0]],
    "two halves": lambda e: [[0, 0.5, 0, 0], [0.4, 0, e, 0], [0, 0, 0, 0.6], [0, 2 * e, 0.7, 0]],
    "rare and rarer": lambda e: [[0, e, 0, 0], [0.3, 0, e, 0.4], [e, 0, 0, 0.9], [0, 0, 0.8, 0]],
}


def completed(leaving):
    P = np.array(leaving, float)
    return P + np.diag(1 - P.sum(axis=1))


@FORMS
@pytest.mark.parametrize("rare", [1e-8, 1e-12, 1e-16, 1e-30, 1e-200])
@pytest.mark.parametrize("shape", RARE)
def test_rare_transitions_keep_every_component_accurate(form, rare, shape):
    P = completed(RARE[shape](rare))
    result = run(P, np.arange(len(P)), form=form)
    exact = exact_distribution(P)
    for ours, truth in zip(distribution(result), exact, strict=True):
        # GMRES guarantees small absolute errors only; so does a sparse chain whose states are not loosely coupled.
        assert abs(Fraction(ours) - truth) < (1e-14 * truth if form is np.array else 1e-13)
    assert result.costs[0] == pytest.approx(float(sum(i * mu for i, mu in enumerate(exact))), rel=1e-14)


@FORMS
@pytest.mark.parametrize("rare", [1e-8, 1e-16, 1e-30, 1e-200])
def test_rare_exits_still_lead_to_the_right_class(form, rare):
    alone = run(completed([[0, rare, 2 * rare], [0, 0, 0], [0, 0, 0]]), [0, 0, 3], form=form)
    np.testing.assert_allclose(distribution(alone), [0, 1 / 3, 2 / 3], rtol=1e-14)
    assert alone.gains[0, 0] == pytest.approx(2, rel=1e-14)
    P = completed([[0, 0.5, 2 * rare, 0], [0.5, 0, 0, rare], [0, 0, 0, 0], [0, 0, 0, 0]])
    together = run(P, [1, 1, 0, 0], form=form)
    np.testing.assert_allclose(distribution(together), [0, 0, 2 / 3, 1 / 3], rtol=10 * rare + 1e-14)
    np.testing.assert_allclose(together.biases[0, :2], 2 / 3 / rare, rtol=10 * rare + 1e-14)


def test_a_sparse_chain_too_large_and_too_loose_is_refused_not_guessed(monkeypatch):
    monkeypatch.setattr(direct, "GTH_STATES", 10)
    two_wells = birth_death(np.repeat([0.25, 0.75], 60), np.repeat([0.75, 0.25], 60))
    with pytest.raises(SolverError, match=r"some of 120 states are left too rarely.*give dense transitions"):
        run(two_wells, np.arange(120), form=csr_array)
    n = 20
    lazy = csr_array(np.roll(np.eye(n), 1, axis=1) * 1e-30 + np.eye(n))  # left rarely, but with known probabilities
    assert solve_sparse(lazy, np.arange(n, dtype=float)[None, :]).gains == pytest.approx([9.5])


def classes_of(P):
    chain = DenseChain(P) if isinstance(P, np.ndarray) else SparseChain(P)
    return [states.tolist() for states in chain.closed_classes()]


@FORMS
def test_closed_classes(form):
    P = np.zeros((6, 6))
    P[0, [1, 4]] = 0.5
    P[1, 1] = P[2, 3] = P[3, 2] = P[5, 0] = 1
    P[4, [0, 2]] = [1 - 1e-300, 1e-300]
    assert classes_of(form(P)) == [[1], [2, 3]]
    assert classes_of(form(np.eye(3))) == [[0], [1], [2]]


def test_a_stored_zero_is_no_edge():
    P = csr_array(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert len(classes_of(P)) == 2


def test_a_policy_is_an_action_or_a_distribution_per_state():
    two = load("counterexample")
    np.testing.assert_array_equal(as_policy(two, [1, 0]), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(as_policy(two, [[0.5, 0.5], [1, 0]]), [[0.5, 0.5], [1, 0]])
    policy = np.full((2, 2), 0.5)
    as_policy(two, policy)[:] = 0
    assert (policy == 0.5).all()
    assert evaluate(two, [0, 0]).value == 1.0  # a reward


BAD = {
    "too few": ([0], r"policy must have shape \(S,\) = \(2,\) of actions or \(S, A\) = \(2, 2\); got \(1,\)"),
    "three axes": (np.ones((2, 2, 1)), r"policy must have shape .*got \(2, 2, 1\)"),
    "number": (0, r"policy must have shape .*got \(\)"),
    "a plan": (plan(load("counterexample")), r"policy must be an array; got Plan: give its \.policy"),
    "ragged": ([[1, 0], [1]], "policy must be an array of numbers with equal rows; got list"),
    "text": ([["stay", "go"]] * 2, "policy must be an array of numbers"),
    "no such action": ([0, 2], r"policy\[1\] must be an action from 0 to 1; got 2"),
    "negative action": ([-1, 0], r"policy\[0\] must be an action from 0 to 1; got -1"),
    "half an action": ([0.5, 0], r"policy\[0\] must be an action from 0 to 1; got 0.5"),
    "not a distribution": ([[0.5, 0.4], [1, 0]], r"policy\[0\] must be a distribution; got \[0.5, 0.4\]"),
    "negative": ([[1, 0], [2, -1]], r"policy\[1\] must be a distribution; got \[2.0, -1.0\]"),
    "nan": ([[1, 0], [np.nan, 1]], r"policy\[1\] must be a distribution; got \[nan, 1.0\]"),
    "unavailable": ([[1, 0], [0.5, 0.5]], r"policy\[1\] plays action 'go', which is not available there"),
}


@pytest.mark.parametrize(("policy", "message"), BAD.values(), ids=BAD)
def test_bad_policies_are_refused_in_one_clear_line(policy, message):
    full = load("counterexample")
    cmdp = CMDP(full.transition, full.costs, [1], available=[[1, 1], [1, 0]], action_names=full.action_names)
    with pytest.raises(PolicyError, match=message) as refusal:
        evaluate(cmdp, policy)
    assert "\n" not in str(refusal.value)
