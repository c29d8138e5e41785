"""Transitions and chains: dense, sparse and brute-force results agree."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from psconrl import CMDP, load
from psconrl.kernels.graphs import graph
from psconrl.markov.chain import DenseChain, SparseChain, chain_of
from psconrl.markov.policy_iteration import policy_steps
from psconrl.markov.structure import attractor_policy, end_components
from psconrl.model.transition import DenseTransition, SparseTransition, Transition

SEEDS = pytest.mark.parametrize("seed", range(30))


def distributions(seed, S=None, A=None):
    """Distributions (S*A, S) with few or many successors."""
    rng = np.random.default_rng(seed)
    S, A = S or int(rng.integers(1, 9)), A or int(rng.integers(1, 4))
    P = rng.random((S * A, S)) * (rng.random((S * A, S)) < rng.choice([0.0, 0.15, 0.4, 1.0]))
    P[np.arange(S * A), rng.integers(0, S, S * A)] += 0.1
    return P / P.sum(axis=1, keepdims=True), A, rng


def both(P):
    return DenseTransition(P), SparseTransition(csr_array(P))


@SEEDS
def test_dense_and_sparse_answer_alike(seed):
    P, A, rng = distributions(seed)
    S = P.shape[1]
    dense, sparse = both(P)
    h, mass, actions = rng.normal(size=S), rng.random(S * A), rng.integers(0, A, S)
    mixed = rng.dirichlet(np.ones(A), size=S)
    some = rng.permutation(S)[: rng.integers(1, S + 1)]
    for one, two in (
        (dense @ h, sparse @ h),
        (mass @ dense, mass @ sparse),
        (dense.drift(h), sparse.drift(h)),
        (dense.rows(np.arange(0, S * A, 2)), sparse.rows(np.arange(0, S * A, 2))),
        (dense.under(actions), sparse.under(actions).toarray()),
        (dense.under(mixed), sparse.under(mixed).toarray()),
        (dense.restrict(some).toarray(), sparse.restrict(some).toarray()),
        (dense.toarray(), sparse.toarray()),
        (dense.csr().toarray(), sparse.csr().toarray()),
    ):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)
    for one, two in zip(dense.support, sparse.support, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (dense.shape, dense.n_states, dense.n_actions) == (sparse.shape, sparse.n_states, sparse.n_actions)
    assert dense.n_possible == sparse.n_possible == np.count_nonzero(P)
    assert dense.communicates == sparse.communicates
    start = rng.random(S) < 0.4
    np.testing.assert_array_equal(dense.reachable_from(start), sparse.reachable_from(start))


@SEEDS
def test_answers_by_hand(seed):
    P, A, rng = distributions(seed)
    S = P.shape[1]
    h, actions = rng.normal(size=S), rng.integers(0, A, S)
    mixed = rng.dirichlet(np.ones(A), size=S)
    some = rng.permutation(S)[: rng.integers(1, S + 1)]
    for transition in both(P):
        np.testing.assert_allclose(transition @ h, [sum(p * x for p, x in zip(row, h, strict=True)) for row in P])
        np.testing.assert_allclose(transition.drift(h), (P @ h).reshape(S, A) - h[:, None], atol=1e-14)
        np.testing.assert_array_equal(
            chain_of(transition, actions).toarray(), [P[s * A + a] for s, a in enumerate(actions)]
        )
        by_hand = [sum(mixed[s, a] * P[s * A + a] for a in range(A)) for s in range(S)]
        np.testing.assert_allclose(chain_of(transition, mixed).toarray(), by_hand, atol=1e-15)
        part = transition.restrict(some).toarray()
        np.testing.assert_array_equal(part, [[P[s * A + a, t] for t in some] for s in some for a in range(A)])


@SEEDS
def test_the_graph_is_searched_as_others_search_it(seed):
    P, _, rng = distributions(seed, A=1)
    S = P.shape[1]
    for chain in (DenseChain(P), SparseChain(csr_array(P))):
        count, labels = connected_components(csr_array(P), directed=True, connection="strong")
        closed = [
            sorted(np.flatnonzero(labels == k).tolist())
            for k in range(count)
            if not P[np.ix_(labels == k, labels != k)].any()
        ]
        assert [c.tolist() for c in chain.closed_classes()] == sorted(closed)
    indptr, indices = DenseTransition(P).support
    ours, label = graph.strong_components(indptr, indices, S)
    assert ours == count
    assert (np.equal.outer(label, label) == np.equal.outer(labels, labels)).all()
    lead = np.linalg.matrix_power(np.eye(S) + (P > 0), S) > 0
    start = rng.random(S) < 0.3
    np.testing.assert_array_equal(DenseTransition(P).reachable_from(start), (lead & start[:, None]).any(axis=0))


def test_a_long_path_needs_no_recursion():
    n = 200_000
    ahead = csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    assert [c.size for c in SparseChain(ahead).closed_classes()] == [n]
    assert SparseTransition(ahead).communicates


@SEEDS
def test_what_is_collected_on_the_way_out(seed):
    P, _, rng = distributions(seed, S=6, A=1)
    leak = rng.random(6) * 0.5 + 0.05
    W = np.zeros((7, 7))
    W[:6, :6], W[:6, 6], W[6, 6] = P * (1 - leak)[:, None], leak, 1.0
    inside, C = np.arange(6), rng.random((6, 2))
    expected = np.linalg.solve(np.eye(6) - W[:6, :6], C)
    for chain in (DenseChain(W), SparseChain(csr_array(W))):
        np.testing.assert_allclose(chain.collect(inside, C), expected, rtol=1e-11)


def test_a_potential_that_is_huge_where_it_is_hard_to_leave_drifts_exactly():
    """P h - h would lose everything: the difference is 0.5, h is 1e17."""
    h, P = np.array([0.0, 1e17, 1e17 + 16]), np.array([[1.0, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    for transition in both(P):
        np.testing.assert_array_equal(transition.drift(h)[:, 0], [0.0, 8.0, -8.0])


def test_transitions_are_arrays_where_numpy_wants_one():
    P = load("counterexample").transition
    assert np.asarray(P).shape == (4, 2)
    assert np.array(P, dtype=np.float32).dtype == np.float32
    assert Transition.of(P) is P
    assert repr(Transition.of(csr_array(np.eye(3)))) == "Transition(3 states, 1 actions, sparse)"
    assert CMDP(P, np.zeros((1, 2, 2))).transition.toarray().tolist() == P.toarray().tolist()


def test_small_sparse_models_are_planned_as_dense_ones():
    P = SparseTransition(csr_array(np.eye(3)))
    assert not P.dense_up_to(3).is_sparse
    assert P.dense_up_to(2) is P


def test_unlikely_moves_need_not_count():
    """The second state leads to the first by a move of 1e-12 alone."""
    P = np.array([[1.0, 0.0], [0.0, 1.0], [1e-12, 1 - 1e-12], [0.0, 1.0]])
    everything, first = np.ones((2, 2), dtype=bool), np.array([True, False])
    for transition in both(P):
        assert attractor_policy(transition, everything, first, np.array([0, 1])).tolist() == [0, 0]
        assert attractor_policy(transition, everything, first, np.array([0, 1]), 1e-10).tolist() == [0, 1]


@SEEDS
def test_end_components_are_closed_connected_and_largest(seed):
    P, A, _ = distributions(seed)
    S = P.shape[1]
    for form in (P, csr_array(P)):
        found = end_components(CMDP(form, np.zeros((1, S, A))))
        assert [int(c.states[0]) for c in found] == sorted(int(c.states[0]) for c in found)
        for component in found:
            inside = np.isin(np.arange(S), component.states)
            assert not P[component.pairs][:, ~inside].any()
            edges = np.zeros((S, S))
            np.add.at(edges, component.pairs // A, P[component.pairs])
            part = edges[np.ix_(component.states, component.states)] > 0
            assert connected_components(csr_array(part), connection="strong")[0] == 1


@SEEDS
def test_the_steps_of_policy_iteration_are_the_same_on_all_kinds(seed):
    """Evaluation and improvement, dense, sparse and in double-double precision, against plain sums."""
    P, A, rng = distributions(seed, S=6)
    P = 0.9 * P + 0.1 / 6  # one class
    costs, weights, available = rng.random((2, 6 * A)), rng.dirichlet(np.ones(2)), np.ones((6, A), dtype=bool)
    available[rng.random((6, A)) < 0.3] = False
    available[:, 0] = True
    policy = np.zeros(6, dtype=np.int64)
    dense, sparse = both(P)
    for P_of_kind, double_double in ((dense, False), (sparse, False), (dense, True)):
        steps = policy_steps(P_of_kind, costs, available, double_double)
        chain = steps.evaluate(policy, 0)
        rows = np.arange(6) * A
        np.testing.assert_allclose(chain.stationary @ P[rows], chain.stationary, atol=1e-12)
        np.testing.assert_allclose(
            chain.gains[:, None] + chain.biases, costs[:, rows] + (P[rows] @ chain.biases.T).T, atol=1e-10
        )
        h = weights @ chain.biases
        values = (weights @ costs + P @ h).reshape(6, A) - h[:, None]
        values[~available] = np.inf
        bound, better, _ = steps.improve(policy, chain, weights, 1e-9)
        assert bound == pytest.approx(values.min(), abs=1e-10)
        gains = values[:, 0] - values.min(axis=1) > 1e-8
        expected = np.where(gains, values.argmin(axis=1), 0)
        assert (policy if better is None else better).tolist() == expected.tolist()
