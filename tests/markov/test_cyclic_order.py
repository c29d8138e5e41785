"""Elimination orders of chains that go round in groups, against plain loops, dense elimination and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import rationals, stationary
from psconrl.kernels.linear import elimination, sparse_elimination
from psconrl.markov import direct_solver
from psconrl.markov.cyclic_order import cyclic_order
from psconrl.markov.direct_solver import DirectSolver, narrow_order
from psconrl.markov.elimination_order import NO_ORDER, order_for


def going_round(sizes, rng, density=0.5, tiny=(0, -3)):
    """A chain that leads from each group of states to the next, in a random numbering, and the groups (S,)."""
    n, ends = sum(sizes), np.cumsum([0, *sizes])
    P, groups = np.zeros((n, n)), np.repeat(np.arange(len(sizes)), sizes)
    for k in range(len(sizes)):
        here = slice(ends[k], ends[k + 1])
        to = (k + 1) % len(sizes)
        shape = (sizes[k], sizes[to])
        block = rng.random(shape) * (rng.random(shape) < density) * 10.0 ** rng.choice(tiny, size=shape)
        block[np.arange(sizes[k]), rng.integers(sizes[to], size=sizes[k])] = 0.5
        block[rng.integers(sizes[k], size=sizes[to]), np.arange(sizes[to])] = 0.5
        P[here, ends[to] : ends[to + 1]] = block
    shuffled = rng.permutation(n)
    P = P[np.ix_(shuffled, shuffled)]
    return P / P.sum(axis=1, keepdims=True), groups[shuffled]


def order_of(P, most=np.inf):
    matrix = csr_array(P)
    return cyclic_order(matrix.indptr, matrix.indices, matrix.shape[1], most)


def eliminated(P, costs, reference, probability=0.0):
    matrix = csr_array(P)
    return sparse_elimination.unichain(
        matrix.indptr, matrix.indices, matrix.data, np.arange(len(P)), costs, reference, probability, order_of(P)
    )


SIZES = ((5, 3, 6), (1, 4, 1, 2), (7, 7, 7, 7, 7), (9, 6, 12, 8, 30, 11), (2, 1, 1, 1, 1, 1))


@pytest.mark.parametrize("sizes", SIZES)
def test_the_smallest_group_comes_last_and_only_its_rows_fill_in(sizes):
    rng = np.random.default_rng(0)
    for _ in range(4):
        P, groups = going_round(sizes, rng)
        order, n, width = order_of(P), len(P), min(sizes)
        assert sorted(order.state.tolist()) == list(range(n))
        np.testing.assert_array_equal(order.position[order.state], np.arange(n))
        in_turn = groups[order.state]
        assert len(set(in_turn[n - width :].tolist())) == 1
        turns = in_turn[np.append(True, in_turn[1:] != in_turn[:-1])]
        assert ((turns[1:] - turns[:-1]) % len(sizes) == 1).all()
        assert len(turns) == len(sizes)
        rows = (P > 0)[np.ix_(order.state, order.state)]
        for i in range(n):
            after = order.after[order.upper[i] : order.upper[i + 1]].tolist()
            before = order.before[order.lower[i] : order.lower[i + 1]].tolist()
            in_last = i >= n - width
            assert before == (list(range(i)) if in_last else [])
            assert after == (list(range(i + 1, n)) if in_last else np.flatnonzero(rows[i]).tolist())
        assert order.work == pytest.approx(width * rows[: n - width].sum() + width**3 / 3)
        assert order_of(P, order.work) is not NO_ORDER
        assert order_of(P, order.work * (1 - 1e-12)) is NO_ORDER


@pytest.mark.parametrize("sizes", SIZES)
def test_elimination_that_goes_round_finds_what_dense_elimination_finds(sizes):
    rng = np.random.default_rng(1)
    for probability in (0.0, 1e-9, 1e-3):
        P, _ = going_round(sizes, rng)
        n = len(P)
        reference, costs = int(rng.integers(n)), rng.random((3, n))
        stuck, gains, biases, distribution = eliminated(P, costs, reference, probability)
        whole = (1.0 - probability) * P
        whole[:, reference] += probability
        anchor, wanted, h, mu, _ = elimination.unichain(whole, costs, reference)
        assert stuck < 0 <= anchor
        np.testing.assert_allclose(distribution, mu, rtol=1e-11)
        np.testing.assert_allclose(gains, wanted, rtol=1e-11)
        atol = 1e-13 * max(1.0, np.abs(h - h[:, [reference]]).max())
        np.testing.assert_allclose(biases, h - h[:, [reference]], rtol=0.0, atol=atol)


@pytest.mark.parametrize("seed", range(4))
def test_rare_states_keep_all_digits(seed):
    """Probabilities down to 1e-60, against exact fractions."""
    rng = np.random.default_rng(seed)
    P, _ = going_round((3, 2, 4, 3), rng, tiny=(0, -5, -60))
    exact = stationary([rationals(row) for row in P], range(len(P)))
    for reference in range(len(P)):
        stuck, _, _, distribution = eliminated(P, np.zeros((1, len(P))), reference)
        assert stuck < 0
        for s, mass in enumerate(distribution):
            if exact[s] > Fraction(1, 10**290):
                assert abs(Fraction(float(mass)) / exact[s] - 1) < 1e-13


def test_transient_states_and_all_actions_count():
    """Two actions, of which the second closes a way: the order is that of both, and the chain that of either."""
    rng = np.random.default_rng(2)
    both, _ = going_round((4, 5, 6), rng, density=0.9)
    n = len(both)
    P = np.repeat(both, 2, axis=0)
    for row in range(1, 2 * n, 2):
        kept = P[row].argmax()
        P[row] = 0.0
        P[row, kept] = 1.0
    matrix = csr_array(P)
    order = cyclic_order(matrix.indptr, matrix.indices, n, np.inf)
    first = order_of(both)
    for mine, other in zip(order, first, strict=True):
        np.testing.assert_array_equal(mine, other)
    rows = 2 * np.arange(n) + (rng.random(n) < 0.7)
    chain, costs = P[rows], rng.random((2, n))
    reached = np.linalg.matrix_power(np.eye(n) + chain, n)[0] > 0
    recurrent = np.flatnonzero((np.linalg.matrix_power(np.eye(n) + chain, n)[reached] > 0).all(axis=0))
    reference = int(recurrent[0]) if recurrent.size else 0
    part = csr_array(chain)
    stuck, gains, _, mu = sparse_elimination.unichain(
        part.indptr, part.indices, part.data, np.arange(n), costs, reference, 1e-6, order
    )
    ahead = (1 - 1e-6) * chain
    ahead[:, reference] += 1e-6
    _, wanted, _, masses, _ = elimination.unichain(ahead, costs, reference)
    assert stuck < 0
    np.testing.assert_allclose(mu, masses, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(gains, wanted, rtol=1e-11)


def test_chains_that_do_not_go_round_have_no_such_order():
    rng = np.random.default_rng(3)
    P, groups = going_round((4, 4, 4), rng)
    assert order_of(P) is not NO_ORDER
    stays = P.copy()
    stays[5, 5] = 0.1
    assert order_of(stays) is NO_ORDER
    skips = P.copy()
    skips[0, np.flatnonzero(groups == (groups[0] + 2) % 3)[0]] = 0.1
    assert order_of(skips) is NO_ORDER
    assert order_of(going_round((4, 4), rng)[0]) is NO_ORDER  # half of the states would fill in
    unreached = np.zeros((13, 13))
    unreached[:12, :12] = P
    unreached[12] = np.append(P[0], 0.0)
    assert order_of(unreached) is NO_ORDER


def test_of_two_orders_the_one_with_less_work_is_taken(monkeypatch):
    """A line of 200 places by the hour: the direction of time saves little, and neighbours are few."""
    hours, places = 4, 200
    at = np.arange(hours * places).reshape(hours, places)
    ahead = np.roll(at, -1, axis=0)
    to = np.stack([ahead, np.roll(ahead, 1, axis=1)], axis=-1).reshape(-1, 2)
    P = csr_array((np.full(to.size, 0.5), to.ravel(), 2 * np.arange(hours * places + 1)))
    graph = (P.indptr.astype(np.intc), P.indices.astype(np.intc), hours * places)
    round_order, dissected = cyclic_order(*graph, np.inf), order_for(*graph, np.inf)
    assert dissected.work < round_order.work
    chosen = narrow_order(*graph)
    np.testing.assert_array_equal(chosen.state, dissected.state)
    monkeypatch.setattr(direct_solver, "LITTLE_PER_ENTRY", 1e9)
    np.testing.assert_array_equal(narrow_order(*graph).state, round_order.state)
    monkeypatch.setattr(direct_solver, "order_for", lambda *_: NO_ORDER)
    monkeypatch.setattr(direct_solver, "LITTLE_PER_ENTRY", 0.0)
    np.testing.assert_array_equal(narrow_order(*graph).state, round_order.state)


def test_a_chain_by_the_hour_is_eliminated_in_turn():
    """Successors at random within the next hour, which a nested dissection would fill in completely."""
    rng = np.random.default_rng(4)
    P, _ = going_round((50,) * 24, rng, density=0.1)
    matrix = csr_array(P)
    order = narrow_order(matrix.indptr, matrix.indices, len(P))
    assert order.work < 0.2 * order_for(matrix.indptr, matrix.indices, len(P), np.inf).work
    costs = rng.random((2, len(P)))
    found = DirectSolver(order).solve(matrix, costs, np.arange(len(P)), 0)
    np.testing.assert_allclose(found.stationary @ P, found.stationary, rtol=1e-12)
    left = costs + found.biases @ P.T - found.biases
    np.testing.assert_allclose(left, found.gains[:, None].repeat(len(P), axis=1), atol=1e-10)
