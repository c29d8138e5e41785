"""Chains by blocked elimination, sparse elimination and Krylov methods, against plain loops and exact fractions."""

import sys
from fractions import Fraction
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import rationals, stationary
from psconrl import kernels
from psconrl.base.arrays import in_32_bits
from psconrl.kernels.chains import policy_chain
from psconrl.kernels.linear import elimination, krylov, sparse_elimination
from psconrl.markov.chain import DenseChain, SparseChain
from psconrl.markov.elimination_order import NO_ORDER, order_for
from psconrl.markov.sparse_solver import SparseSolver

TINY = (0, -3, -30, -100, -200)  # powers of ten of probabilities


def nearly_apart(n, rng):
    """A chain (n, n) with probabilities down to 1e-200, each row of sum one up to rounding."""
    P = rng.random((n, n)) * 10.0 ** rng.choice(TINY, size=(n, n))
    return P / P.sum(axis=1, keepdims=True)


def source_of(kernel):
    """A kernel as a module of plain Python, which calls no other one."""
    for name in ("_lanes", "_types"):
        sys.modules.setdefault(f"cython.cimports.psconrl.kernels.{name}", import_module(f"psconrl.kernels.{name}"))
    path = Path(kernels.__file__).parent / f"{kernel.__name__.removeprefix('psconrl.kernels.').replace('.', '/')}.py"
    spec = spec_from_file_location(f"plain_{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plainly_eliminated(P, C):
    """The censored chain (n, n) and its costs (n, q) without blocks, one state after the other."""
    W, C = P.copy(), C.copy()
    for k in range(len(W) - 1, 0, -1):
        W[k, k] = W[k, :k].sum()
        W[:k, k] /= W[k, k]
        W[:k, :k] += np.outer(W[:k, k], W[k, :k])
        C[:k] += np.outer(W[:k, k], C[k])
    return W, C


# In blocks


@pytest.mark.parametrize("n", [127, 128, 129, 130, 176, 177, 260])
def test_elimination_in_blocks_is_elimination(n):
    """Every entry of the censored chain agrees with that of the loop without blocks, however small."""
    rng = np.random.default_rng(n)
    P, costs = nearly_apart(n, rng), rng.random((3, n))
    reference, gains, biases, distribution, slowest = elimination.unichain(P, costs, 0)
    order = np.arange(n)
    order[[0, reference]] = order[[reference, 0]]
    W, C = plainly_eliminated(P[np.ix_(order, order)], np.vstack([costs, np.ones(n)]).T[order])
    mass, h = np.zeros(n), np.zeros((3, n))
    mass[0] = 1.0
    for k in range(1, n):
        mass[k] = mass[:k] @ W[:k, k]
        h[:, k] = (C[k, :3] - C[0, :3] / C[0, 3] * C[k, 3] + h[:, :k] @ W[k, :k]) / W[k, k]
    np.testing.assert_allclose(distribution[order], mass / mass.sum(), rtol=1e-11)
    np.testing.assert_allclose(gains, C[0, :3] / C[0, 3], rtol=1e-11)
    np.testing.assert_allclose(biases[:, order], h, atol=1e-11 * abs(h).max())
    assert slowest == pytest.approx(np.diag(W)[1:].min(), rel=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_elimination_in_blocks_against_exact_fractions(seed, monkeypatch):
    """Blocks of four: the kernel runs as plain Python."""
    pytest.importorskip("cython")
    monkeypatch.setattr(plain := source_of(elimination), "_UNBLOCKED", 4)
    monkeypatch.setattr(plain, "_BLOCK", 4)
    P = nearly_apart(13, np.random.default_rng(seed))
    exact = stationary([rationals(row) for row in P], range(13))
    for s, mass in enumerate(plain.unichain(P, np.zeros((1, 13)), 0)[3]):
        assert abs(Fraction(float(mass)) / exact[s] - 1) < 1e-13


def birth_death(n, rng, powers):
    """The chain of a queue under shuffled names, and its distribution in exact fractions."""
    up, down = (rng.uniform(0.1, 0.4, n) * 10.0 ** rng.choice(powers, size=n) for _ in range(2))
    name, P = rng.permutation(n), np.zeros((n, n))
    mass = [Fraction(1)]
    for i in range(n):
        if i + 1 < n:
            P[name[i], name[i + 1]] = up[i]
            P[name[i + 1], name[i]] = down[i + 1]
            mass.append(mass[-1] * Fraction(float(up[i])) / Fraction(float(down[i + 1])))
    P[np.arange(n), np.arange(n)] = 1.0 - P.sum(axis=1)
    distribution, total = [Fraction(0)] * n, sum(mass)
    for i in range(n):
        distribution[name[i]] = mass[i] / total
    return P, distribution


@pytest.mark.parametrize("seed", range(3))
def test_a_long_queue_whose_moves_are_rare_has_its_distribution_to_the_last_digits(seed):
    """200 states, so that there are blocks; with a reference anywhere."""
    rng = np.random.default_rng(seed)
    P, distribution = birth_death(200, rng, (0, -1, -2))
    for form in (DenseChain, lambda P: SparseChain(csr_array(P))):
        chain = form(P).solve(rng.random((1, 200)), int(rng.integers(200)))
        wanted = np.array([float(x) for x in distribution])
        if form is DenseChain:
            np.testing.assert_allclose(chain.stationary, wanted, rtol=1e-12)
        else:  # Krylov or LU, which subtract: relative to the largest entry
            np.testing.assert_allclose(chain.stationary, wanted, atol=1e-7)


def test_a_closed_class_is_found_whichever_block_it_is_in():
    rng = np.random.default_rng(0)
    for closed in ([140, 141], [3, 100], [150]):
        P = rng.dirichlet(np.ones(160), 160)
        P[closed] = 0.0
        P[np.ix_(closed, closed)] = 1.0 / len(closed)
        chain = DenseChain(P).solve(rng.random((1, 160)), 0)
        assert np.flatnonzero(chain.stationary).tolist() == closed
        P[7] = np.eye(160)[7]
        assert DenseChain(P).solve(rng.random((1, 160)), 0) is None


# Orders


def graph(kind, rng):
    """The chain (n, n) of a kind: where it leads, at random."""
    if kind == "grid":
        w, h = int(rng.integers(2, 12)), int(rng.integers(2, 12))
        n, edges = w * h, []
        for x in range(w):
            for y in range(h):
                edges += [(x * h + y, (x + 1) * h + y)] if x + 1 < w else []
                edges += [(x * h + y, x * h + y + 1)] if y + 1 < h else []
    elif kind == "tree":
        n = int(rng.integers(2, 90))
        edges = [(int(rng.integers(s)), s) for s in range(1, n)]
    elif kind == "random":
        n = int(rng.integers(2, 60))
        edges = rng.integers(n, size=(3 * n, 2)).tolist()
    elif kind == "apart":  # several parts, and isolated states
        n = int(rng.integers(30, 90))
        edges = [(s, s + 1) for s in range(n - 1) if rng.random() < 0.8]
    elif kind == "star":
        n = int(rng.integers(2, 60))
        edges = [(0, s) for s in range(1, n)]
    else:  # all lead to all
        n = int(rng.integers(2, 40))
        edges = [(s, t) for s in range(n) for t in range(n)]
    possible = np.zeros((n, n))
    for s, t in edges:
        possible[s, t] = possible[t, s] = 1.0
    possible *= rng.random((n, n)) < 0.85  # some edges are directed
    possible[np.arange(n), np.arange(n)] = rng.random(n) < 0.5  # some states have self-loops
    lost = possible.sum(axis=1) == 0
    possible[lost, lost] = 1.0
    shuffled = rng.permutation(n)
    P = possible[np.ix_(shuffled, shuffled)] * rng.random((n, n)) * 10.0 ** rng.choice([0, 0, -4], size=(n, n))
    return P / P.sum(axis=1, keepdims=True)


KINDS = ("grid", "tree", "random", "apart", "star", "full")
GRAPHS = pytest.mark.parametrize("kind", KINDS)


def order_of(P, most=np.inf):
    matrix = csr_array(P)
    return order_for(matrix.indptr, matrix.indices, matrix.shape[1], most)


def filled(P, state):
    """The neighbours of every position after it when its turn comes, by eliminating one after the other."""
    n = len(state)
    joined = ((P > 0) | (P > 0).T)[np.ix_(state, state)]
    after = []
    for k in range(n):
        later = [j for j in range(k + 1, n) if joined[k, j]]
        after.append(later)
        joined[np.ix_(later, later)] = True
    return after


@GRAPHS
def test_an_order_has_every_state_once_and_knows_what_fills_in(kind):
    rng = np.random.default_rng(1)
    for _ in range(8):
        P = graph(kind, rng)
        n, order = len(P), order_of(P)
        assert sorted(order.state.tolist()) == list(range(n))
        np.testing.assert_array_equal(order.position[order.state], np.arange(n))
        after = filled(P, order.state)
        before = [[k for k in range(i) if i in after[k]] for i in range(n)]
        for i in range(n):
            assert order.after[order.upper[i] : order.upper[i + 1]].tolist() == after[i]
            assert order.before[order.lower[i] : order.lower[i + 1]].tolist() == before[i]
        assert order.work == sum(len(later) ** 2 for later in after)
        assert order_of(P, order.work).position.size == n
        assert order_of(P, order.work - 0.5) is NO_ORDER


def test_all_actions_of_a_state_count():
    """Two actions, one of which leads nowhere new: the graph is that of both."""
    P = np.zeros((4 * 2, 4))
    P[[0, 2, 4, 6], [1, 2, 3, 0]] = 1.0
    P[[1, 3, 5, 7], [0, 1, 2, 3]] = 1.0
    order = order_of(P)
    assert sum(order.upper[1:] - order.upper[:-1]) == 5  # a ring of four: its edges, and one that fills in
    assert order.work == 2**2 + 2**2 + 1


@pytest.mark.parametrize(("w", "h", "most"), [(40, 40, 1.5e6), (1000, 2, 5e4), (1600, 1, 1e4)])
def test_little_fills_in_where_states_are_neighbours_on_a_grid(w, h, most):
    """Of a square some 10 n^1.5 multiplications, whatever the names of the states; without an order, 1e8 and more."""
    rng, n = np.random.default_rng(0), w * h
    at = np.arange(n).reshape(w, h)
    edges = np.vstack(
        [np.column_stack([at[1:].ravel(), at[:-1].ravel()]), np.column_stack([at[:, 1:].ravel(), at[:, :-1].ravel()])]
    )
    edges = rng.permutation(n)[edges]
    matrix = in_32_bits(csr_array((np.ones(len(edges)), edges.T), shape=(n, n)))
    assert order_for(matrix.indptr, matrix.indices, n, np.inf).work < most


# Elimination in an order


def leads_to(P, target):
    """True if every state leads to the target."""
    reached = np.zeros(len(P), dtype=bool)
    reached[target] = True
    for _ in range(len(P)):
        reached |= (P[:, reached] > 0).any(axis=1)
    return reached.all()


def eliminated(P, costs, reference, probability, rows=None):
    matrix = csr_array(P)
    rows = np.arange(len(P)) if rows is None else rows
    order = order_of(P)
    stuck, *chain = sparse_elimination.unichain(
        matrix.indptr, matrix.indices, matrix.data, rows, costs, reference, probability, order
    )
    assert stuck < 0 or not leads_to(P, reference)
    return stuck < 0, *chain


@GRAPHS
def test_sparse_elimination_finds_what_dense_elimination_finds(kind):
    """Distributions in every component, biases, and detection of states that do not lead to the reference."""
    rng, verdicts = np.random.default_rng(2), set()
    for trial in range(30):
        P = graph(kind, rng)
        n, probability = len(P), (0.0, 1e-12, 1e-9, 1e-4, 0.5)[trial % 5]
        reference, costs = int(rng.integers(n)), rng.random((3, n))
        found, gains, biases, distribution = eliminated(P, costs, reference, probability)
        assert found == (probability > 0.0 or leads_to(P, reference))
        verdicts.add(found)
        if not found:
            continue
        whole = (1.0 - probability) * P
        whole[:, reference] += probability
        anchor, wanted, h, mu, _ = elimination.unichain(whole, costs, reference)
        assert anchor >= 0
        np.testing.assert_allclose(distribution, mu, rtol=1e-11)
        np.testing.assert_allclose(gains, wanted, rtol=1e-11)
        assert (biases[:, reference] == 0.0).all()
        # However long the return time of the reference, the largest bias is accurate to all but three digits.
        atol = 1e-13 * max(1.0, np.abs(h - h[:, [reference]]).max())
        np.testing.assert_allclose(biases, h - h[:, [reference]], rtol=0.0, atol=atol)
    assert True in verdicts
    assert False in verdicts or kind == "full"


@pytest.mark.parametrize("seed", range(6))
def test_sparse_elimination_against_exact_fractions(seed):
    """Probabilities down to 1e-200, of which some are missing; the distribution is exact to the last digits."""
    rng, n = np.random.default_rng(seed), 12
    P = nearly_apart(n, rng) * (rng.random((n, n)) < 0.4)
    P[np.arange(n), (np.arange(n) + 1) % n] = 10.0 ** rng.choice(TINY, size=n)
    P[np.arange(n), np.arange(n)] = 0.0
    exact = stationary([rationals(row) for row in P], range(n))
    for reference in range(n):
        found, _, _, distribution = eliminated(P, np.zeros((1, n)), reference, 0.0)
        assert found
        for s, mass in enumerate(distribution):
            if exact[s] > Fraction(1, 10**290):
                assert abs(Fraction(float(mass)) / exact[s] - 1) < 1e-13


def test_the_rows_of_a_policy_are_eliminated_in_the_order_of_the_model():
    """Three actions, of which one a state is taken; the order is that of all of them. Entries may come twice."""
    rng, n, A = np.random.default_rng(3), 40, 3
    P = np.zeros((n * A, n))
    for row in range(n * A):
        P[row, rng.choice([row // A, (row // A + 1) % n, (row // A + 7) % n, 5], 3)] = rng.random(3)
    P[:, 5] += 0.01
    P /= P.sum(axis=1, keepdims=True)
    whole = csr_array(P)
    twice = csr_array(
        (np.repeat(whole.data, 2) * np.tile([0.25, 0.75], whole.nnz), np.repeat(whole.indices, 2), 2 * whole.indptr),
        shape=whole.shape,
    )
    order = order_for(twice.indptr, twice.indices, n, np.inf)
    assert order.work == order_for(whole.indptr, whole.indices, n, np.inf).work
    costs = rng.random((2, n * A))
    for _ in range(10):
        rows = np.arange(n) * A + rng.integers(A, size=n)
        stuck, gains, _, distribution = sparse_elimination.unichain(
            twice.indptr, twice.indices, twice.data, rows, costs, 9, 0.01, order
        )
        ahead = 0.99 * P
        ahead[:, 9] += 0.01
        _, wanted, _, mu, _ = elimination.unichain(*policy_chain.gathered(ahead, rows, costs), 9)
        assert stuck < 0
        np.testing.assert_allclose(distribution, mu, rtol=1e-12)
        np.testing.assert_allclose(gains, wanted, rtol=1e-12)


# Krylov methods


def system(P):
    n = len(P)
    return np.eye(n) - P + np.ones((n, n)) / n


def solved(P, right, transposed, guess=None, tolerance=1e-13, products=400, most=np.inf):
    """The result of the iteration, and the residual it claims."""
    matrix = csr_array(P)
    x = np.zeros_like(right) if guess is None else guess.copy()
    off = krylov.solve(matrix.indptr, matrix.indices, matrix.data, transposed, right, x, tolerance, most, products)
    return x, off


def chains(rng, n=60):
    """Chains with one closed class that mix within some hundred steps."""
    ring = np.eye(n)[(np.arange(n) + 1) % n]
    drifting = 0.6 * ring + 0.3 * ring.T + 0.1 * np.eye(n)[0]
    posterior = rng.dirichlet(np.full(n, 0.02), n)
    posterior[posterior < 1e-12] = 0.0
    yield "dense", rng.dirichlet(np.ones(n), n)
    yield "forward", ring
    yield "backward", ring.T  # here sweeps from the first state to the last lead away from the solution
    yield "lazy", 0.5 * (ring + np.eye(n))
    yield "drifting", drifting
    yield "posterior", 0.95 * posterior / posterior.sum(axis=1, keepdims=True) + 0.05 * np.eye(n)[3]
    yield "absorbed", np.vstack([np.eye(n)[:1], rng.dirichlet(np.ones(n), n - 1)])
    yield "one state", np.ones((1, 1))


@pytest.mark.parametrize("transposed", [False, True])
def test_products_find_what_a_factorisation_finds(transposed):
    rng = np.random.default_rng(4)
    for name, P in chains(rng):
        A = system(P).T if transposed else system(P)
        right = rng.standard_normal((3, len(P)))
        x, off = solved(P, right, transposed)
        wanted = np.linalg.solve(A, right.T).T
        assert off <= 1e-10, name
        np.testing.assert_allclose(x, wanted, atol=1e-9 * np.abs(wanted).max(), err_msg=name)
        again, _ = solved(P, right, transposed, guess=wanted, products=1)
        np.testing.assert_array_equal(again, wanted)  # a solution is left as it is


@pytest.mark.parametrize("transposed", [False, True])
def test_the_residual_that_is_claimed_is_the_residual(transposed):
    """Also without convergence: chains that mix slowly, too few products, values that are not numbers."""
    rng, n = np.random.default_rng(5), 50
    steps = np.clip(np.add.outer(np.arange(n), [-1, 1]), 0, n - 1)
    walk = sum(np.eye(n)[steps[:, k]] for k in range(2)) / 2
    blocks = np.kron(np.eye(2), np.ones((25, 25)) / 25)
    cases = {
        "few": (walk, 7),
        "none": (walk, 0),
        "walk": (walk, 400),
        "parts": ((1 - 1e-5) * blocks + 1e-5 / n, 400),
        "stays": (0.9999 * np.eye(n) + 1e-4 * rng.dirichlet(np.ones(n), n), 400),
        "backward": (np.eye(n)[np.arange(n) - 1], 40),
    }
    for name, (P, products) in cases.items():
        A, right = system(P).T if transposed else system(P), rng.random((2, n))
        x, off = solved(P, right, transposed, products=products)
        residual = np.abs(A @ x.T - right.T).max()
        assert off == pytest.approx(residual, rel=1e-3, abs=1e-12 * (1.0 + np.abs(x).max())), name
        assert off <= max(np.abs(right).max(), 1e-12) * (1 + 1e-9) or transposed, name  # never worse than x = 0


def test_residuals_are_as_small_as_is_asked_for_however_large_the_solution():
    """Of a walk of 50 states, biases reach some hundred: a tolerance relative to them would allow for more."""
    n = 50
    steps = np.clip(np.add.outer(np.arange(n), [-1, 1]), 0, n - 1)
    walk = sum(np.eye(n)[steps[:, k]] for k in range(2)) / 2
    right = np.random.default_rng(0).random((2, n))
    x, off = solved(walk, right, False, tolerance=1e-8)
    assert 1e-10 < off <= 1e-8 * np.abs(x).max()
    x, off = solved(walk, right, False, tolerance=1e-8, most=1e-10)
    assert off <= 1e-10


def test_a_guess_that_is_no_number_is_not_taken_for_a_solution():
    P, right = np.random.default_rng(6).dirichlet(np.ones(20), 20), np.ones((1, 20))
    for nonsense in (np.nan, np.inf, -np.inf):
        x, off = solved(P, right, False, guess=np.full((1, 20), nonsense))
        assert off <= 1e-12
        np.testing.assert_allclose(x, 1.0)
        x, off = solved(P, right, True, guess=np.full((1, 20), nonsense))
        assert off == np.inf or np.abs(system(P).T @ x[0] - 1.0).max() <= 1e-9


def test_entries_that_come_twice_and_tiny_ones_count():
    """Each entry in two parts, one of which is below what corrections leave out; and many tiny ones that add up."""
    rng, n = np.random.default_rng(7), 80
    P = 0.98 * rng.dirichlet(np.full(n, 0.05), n) + 0.02 * rng.dirichlet(np.full(n, 50.0), n)
    assert ((P > 0) & (P < 1e-3)).mean() > 0.3
    whole = csr_array(P)
    twice = csr_array(
        (np.repeat(whole.data, 2) * np.tile([0.999, 0.001], whole.nnz), np.repeat(whole.indices, 2), 2 * whole.indptr),
        shape=whole.shape,
    )
    right = rng.random((2, n))
    for transposed in (False, True):
        A = system(P).T if transposed else system(P)
        x = np.zeros((2, n))
        off = krylov.solve(twice.indptr, twice.indices, twice.data, transposed, right, x, 1e-13, np.inf, 400)
        assert off <= 1e-10
        np.testing.assert_allclose(x, np.linalg.solve(A, right.T).T, rtol=1e-9, atol=1e-10)


# The choice of solver


def test_a_sparse_chain_has_the_gains_biases_and_distribution_of_the_dense_one():
    rng = np.random.default_rng(8)
    for name, P in chains(rng):
        costs = rng.random((2, len(P)))
        sparse, dense = SparseChain(csr_array(P)).solve(costs), DenseChain(P).solve(costs)
        np.testing.assert_allclose(sparse.gains, dense.gains, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(sparse.stationary, dense.stationary, atol=1e-9, err_msg=name)
        assert sparse.stationary is sparse.stationary  # solved for once
        np.testing.assert_allclose(
            sparse.biases - sparse.biases[:, [0]],
            dense.biases - dense.biases[:, [0]],
            atol=1e-7 * (1.0 + np.abs(dense.biases).max()),
            err_msg=name,
        )


def test_one_solver_for_one_chain_after_another():
    """Each solve begins where the last one ended; a chain that mixes slowly makes it switch to factorisations."""
    rng, n, solver = np.random.default_rng(9), 50, SparseSolver()
    steps = np.clip(np.add.outer(np.arange(n), [-1, 1]), 0, n - 1)
    walk = sum(np.eye(n)[steps[:, k]] for k in range(2)) / 2
    slow = (1 - 1e-7) * np.kron(np.eye(2), np.ones((25, 25)) / 25) + 1e-7 / n
    for P in (rng.dirichlet(np.ones(n), n), rng.dirichlet(np.ones(n), n), walk, slow, rng.dirichlet(np.ones(n), n)):
        costs = rng.random((2, n))
        found, wanted = solver.solve(csr_array(P), costs), DenseChain(P).solve(costs)
        np.testing.assert_allclose(found.gains, wanted.gains, rtol=1e-8)
        np.testing.assert_allclose(found.stationary, wanted.stationary, atol=1e-8)
    apart = np.kron(np.eye(2), np.ones((25, 25)) / 25)
    assert solver.solve(csr_array(apart), costs) is None
    again = 0.99 * apart
    again[:, 30] += 0.01
    found = SparseSolver().solve(csr_array(again), costs, restarts_in=30)
    np.testing.assert_allclose(found.gains, DenseChain(again).solve(costs).gains, rtol=1e-9)
