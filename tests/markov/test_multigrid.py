"""Large sparse chains by aggregation multigrid, against elimination, closed forms and each other."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array, random_array

from psconrl.base.arrays import in_32_bits
from psconrl.base.sizes import COARSEST_STATES
from psconrl.errors import SolverError
from psconrl.kernels.linear import multigrid_steps
from psconrl.markov import multigrid as multilevel
from psconrl.markov import sparse_solver
from psconrl.markov.gain_bias import solve_dense
from psconrl.markov.multigrid import Hierarchy, Level, first_distribution, multigrid_distribution
from psconrl.markov.select_solver import solve_sparse
from psconrl.markov.sparse_solver import SparseSolver


def grid(side, up=0.25, down=0.35, seed=0):
    """A walk on a square, drawn to one corner, with rates that vary."""
    rng = np.random.default_rng(seed)
    n = side * side
    x, y = np.divmod(np.arange(n), side)
    rows, columns, data = [], [], []
    stay = np.ones(n)
    for dx, dy, rate in ((1, 0, up), (-1, 0, down), (0, 1, up), (0, -1, down)):
        to_x, to_y = x + dx, y + dy
        possible = (to_x >= 0) & (to_x < side) & (to_y >= 0) & (to_y < side)
        p = np.where(possible, 0.5 * rate * rng.uniform(0.8, 1.2, n), 0.0)
        rows.append(np.arange(n)[possible])
        columns.append((to_x * side + to_y)[possible])
        data.append(p[possible])
        stay -= p
    rows.append(np.arange(n)), columns.append(np.arange(n)), data.append(stay)
    matrix = csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n))
    return in_32_bits(matrix)


def line(n, up, down):
    """Birth and death."""
    stay = np.full(n, 1.0 - up - down)
    stay[0], stay[-1] = 1.0 - up, 1.0 - down
    return csr_array(diags_array([np.full(n - 1, down), stay, np.full(n - 1, up)], offsets=[-1, 0, 1]))


def level_of(P):
    P = in_32_bits(P)
    return Level.of_chain(P.indptr, P.indices, P.data)


def test_a_level_by_hand():
    P = csr_array(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.125, 0.0, 0.875]]))
    level = level_of(P)
    np.testing.assert_array_equal(level.indptr, [0, 2, 2, 3])
    np.testing.assert_array_equal(level.leaving, [0.5, 0.0, 0.125])
    np.testing.assert_array_equal(level.inverse, [2.0, 0.0, 8.0])
    np.testing.assert_array_equal(level.dense(), np.eye(3) - P.toarray())
    indptr, rows, entries = level.columns()
    assert (indptr.tolist(), rows.tolist(), entries.tolist()) == ([0, 1, 2, 3], [2, 0, 0], [0.125, 0.25, 0.25])


def test_groups_move_as_their_members_by_their_masses():
    P = grid(9, seed=3)
    level = level_of(P)
    mass = np.random.default_rng(1).random(level.size)
    group, coarse, of_groups = level.grouped(mass)
    indicator = np.eye(coarse.size)[group]
    np.testing.assert_allclose(of_groups, mass @ indicator)
    moves = (indicator.T * mass) @ P.toarray() @ indicator / of_groups[:, None]
    np.fill_diagonal(moves, 0.0)
    np.testing.assert_allclose(coarse.leaving, moves.sum(axis=1))
    np.testing.assert_allclose(np.diag(coarse.leaving) - coarse.dense(), moves, atol=1e-15)
    assert coarse.size <= 0.4 * level.size  # pairs of pairs


def test_sweeps_by_hand():
    P = grid(6, seed=2)
    level, A = level_of(P), np.eye(36) - grid(6, seed=2).toarray()
    rng = np.random.default_rng(0)
    r, z = rng.normal(size=36), rng.normal(size=36)
    for down in (False, True):
        by_hand = z.copy()
        for s in range(35, -1, -1) if down else range(36):
            by_hand[s] += (r[s] - 0.25 - A[s] @ by_hand) / A[s, s]
        swept = z.copy()
        multigrid_steps.sweep(*level.moves, level.inverse, r, 0.25, swept, down)
        np.testing.assert_allclose(swept, by_hand, atol=1e-14)
    first = np.full(36, np.nan)
    multigrid_steps.first_sweep(*level.moves, level.inverse, r, first)
    zero = np.zeros(36)
    multigrid_steps.sweep(*level.moves, level.inverse, r, 0.0, zero, False)
    np.testing.assert_allclose(first, zero, atol=1e-15)
    out = np.empty(36)
    multigrid_steps.drift(*level.moves, level.leaving, z, 0.5, out)
    np.testing.assert_allclose(out, A @ z + 0.5, atol=1e-15)
    x = rng.random(36)
    assert multigrid_steps.imbalance(*level.columns(), level.leaving, x) == pytest.approx(
        np.abs(x @ A).sum(), rel=1e-12
    )


def test_residuals_are_lowered_and_corrections_raised_by_shares():
    P, rng = grid(6, seed=2), np.random.default_rng(3)
    level, A = level_of(P), np.eye(36) - P.toarray()
    r, z, share, group = rng.normal(size=36), rng.normal(size=36), rng.random(36), rng.integers(9, size=36)
    lowered = np.full(9, np.nan)
    multigrid_steps.lowered(*level.moves, level.leaving, r, z, share, group, lowered)
    np.testing.assert_allclose(lowered, (share * (r - A @ z)) @ np.eye(9)[group], atol=1e-13)
    raised, correction = z.copy(), rng.normal(size=9)
    multigrid_steps.raised(group, share, correction, raised)
    np.testing.assert_allclose(raised, z + share * correction[group], atol=1e-15)


def test_directions_are_orthogonal_by_the_weights():
    rng = np.random.default_rng(4)
    weights, basis, found, gains = rng.random(8), np.zeros((3, 8)), rng.random((3, 8)), rng.random(3)
    basis[0] = 1.0 / np.sqrt(weights.sum())
    v, c, gain = rng.random(8), rng.random(8), 0.7
    along = (weights * basis[0]) @ v
    length = np.sqrt((weights * (v - along * basis[0])) @ (v - along * basis[0]))
    wanted = (c - along * found[0]) / length, (gain - along * gains[0]) / length
    got = multigrid_steps.against(weights, basis, found, gains, 1, v, c, gain)
    assert (weights * basis[0]) @ v == pytest.approx(0.0, abs=1e-15)
    assert (weights * v) @ v == pytest.approx(1.0)
    np.testing.assert_allclose(c, wanted[0])
    assert got == pytest.approx(wanted[1])
    r, x = rng.random(8), np.zeros(8)
    before = r.copy()
    step, left = multigrid_steps.step_along(weights, v, c, r, x)
    assert step == pytest.approx((weights * v) @ before)
    np.testing.assert_allclose(r, before - step * v)
    np.testing.assert_allclose(x, step * c)
    assert left == pytest.approx(np.sqrt((weights * r) @ r))


@pytest.mark.parametrize(
    ("side", "up", "down"),
    [(30, 0.25, 0.35), (35, 0.3, 0.3), (32, 0.35, 0.25), pytest.param(60, 0.35, 0.25, marks=pytest.mark.full)],
)
def test_biases_and_distributions_of_a_walk(side, up, down):
    P = grid(side, up, down)
    n = side * side
    costs = np.random.default_rng(5).random((2, n))
    exact = solve_dense(P.toarray(), np.arange(n), costs)
    level = level_of(P)
    distribution = first_distribution(level)
    found = multigrid_distribution(level, distribution, 1e-13, 80)
    np.testing.assert_allclose(found, exact.stationary, atol=1e-10)
    mass = np.sqrt(distribution)
    cycles = Hierarchy(level, mass / mass.sum()).for_biases()
    for i in range(2):
        h = np.zeros(n)
        gain, off = cycles.solve(costs[i], h, 1e-12, 80)
        assert off <= 1e-12
        assert gain == pytest.approx(exact.gains[i], abs=1e-11)
        wrong = h - h[exact.reference] - exact.biases[i]
        np.testing.assert_allclose(wrong, 0.0, atol=1e-9 * np.abs(exact.biases[i]).max())


def test_a_line_of_ten_thousand_states_in_closed_form(monkeypatch):
    n, up, down = 10_000, 0.2, 0.3
    monkeypatch.setattr(sparse_solver, "cycle_solve", None)  # no factorisation
    monkeypatch.setattr(sparse_solver, "solve_directly", None)
    costs = np.vstack([np.arange(n) / n, np.ones(n)])
    found = solve_sparse(line(n, up, down), costs)
    ratio = up / down
    distribution = (1 - ratio) * ratio ** np.arange(n)
    np.testing.assert_allclose(found.stationary, distribution, atol=1e-12)
    np.testing.assert_allclose(found.gains, [ratio / (1 - ratio) / n, 1.0], atol=1e-11)
    # From state k to k - 1 it takes 1 / (down - up) steps, far from the end, in which the cost falls from k / n.
    k = np.arange(1, n // 2)
    steps = np.diff(found.biases[0])[: k.size]
    wanted = (k / n + up / (down - up) / n - found.gains[0]) / (down - up)
    np.testing.assert_allclose(steps, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.biases[1], 0.0, atol=1e-6)


def test_rough_solutions_are_within_what_was_asked_for_and_can_be_refined():
    P, n = grid(80), 6400
    costs = np.random.default_rng(6).random((2, n))
    solver = SparseSolver()
    exact = solver.solve(P, costs)
    rough = SparseSolver().solve(P, costs, within=1e-4)
    assert rough.rough
    assert not exact.rough
    residual = costs - rough.gains[:, None] + (P @ rough.biases.T).T - rough.biases
    assert np.abs(residual).max() <= 1e-4 * (1 + 1e-9)
    assert np.abs(residual).max() > 1e-9  # otherwise no work was saved
    assert (np.abs(rough.gains - exact.gains) <= np.abs(residual).max()).all()
    finer = SparseSolver().solve(P, costs, guess=rough)
    np.testing.assert_allclose(finer.gains, exact.gains, atol=1e-11)
    np.testing.assert_allclose(rough.stationary, exact.stationary, atol=1e-9)


def test_levels_are_not_tried_where_states_lead_anywhere():
    rng = np.random.default_rng(0)
    P = random_array((3000, 3000), density=0.005, rng=rng, format="csr") + csr_array(np.eye(3000) * 1e-3)
    P = csr_array(P / P.sum(axis=1)[:, None])
    assert not Hierarchy(level_of(P), np.full(3000, 1 / 3000)).usable
    assert Hierarchy(level_of(grid(50)), np.full(2500, 1 / 2500)).usable
    assert len(Hierarchy(level_of(grid(50)), np.full(2500, 1 / 2500)).levels) >= 2
    assert COARSEST_STATES < 2500


def test_transient_states_follow_the_closed_class():
    """A walk behind a long transient path: one class, and the transient states are solved in one pass."""
    walk = grid(20)
    n, m = 400, 300
    P = np.zeros((n + m, n + m))
    P[:n, :n] = walk.toarray()
    for s in range(n, n + m):
        P[s, s] = 0.5
        P[s, s - 1 if s > n else 7] = 0.5
    costs = np.random.default_rng(8).random((2, n + m))
    exact = solve_dense(P, np.arange(n + m), costs)
    found = solve_sparse(csr_array(P), costs)
    np.testing.assert_allclose(found.gains, exact.gains, atol=1e-11)
    np.testing.assert_allclose(found.biases - found.biases[:, [exact.reference]], exact.biases, atol=1e-7)
    np.testing.assert_allclose(found.stationary, exact.stationary, atol=1e-10)
    assert (found.stationary[n:] == 0).all()


def test_where_levels_fail_a_factorisation_is_next(monkeypatch):
    P, n = grid(75), 5625
    costs = np.random.default_rng(9).random((1, n))
    wanted = solve_sparse(P, costs)
    asked = []
    direct = sparse_solver.solve_directly
    monkeypatch.setattr(sparse_solver, "solve_directly", lambda *a: asked.append(1) or direct(*a))
    monkeypatch.setattr(SparseSolver, "KRYLOV_STEPS_OF_LARGE", 3)
    monkeypatch.setattr(SparseSolver, "PATIENT", 3)
    monkeypatch.setattr(multilevel, "_STALLED", 0.0)
    found = SparseSolver().solve(P, costs)
    assert asked == [1]
    np.testing.assert_allclose(found.gains, wanted.gains, atol=1e-10)


@pytest.mark.full
def test_a_chain_of_two_wells_is_solved_or_refused():
    """Twenty thousand states, and a way between the wells that is taken once in 1e12 steps."""
    n = 20_000
    up, down = np.repeat([0.2, 0.4], n // 2), np.repeat([0.4, 0.2], n // 2)
    up[n // 2 - 1 : n // 2 + 1] = [1e-12, 0.4]
    stay = 1.0 - up - down
    stay[0] += down[0]
    stay[-1] += up[-1]
    k = np.arange(n)
    rows, columns = np.concatenate([k, k[:-1], k[1:]]), np.concatenate([k, k[1:], k[:-1]])
    P = in_32_bits(csr_array((np.concatenate([stay, up[:-1], down[1:]]), (rows, columns)), shape=(n, n)))
    costs = np.vstack([k < n // 2, np.ones(n)]).astype(float)
    logs = np.append(0.0, np.cumsum(np.log(up[:-1]) - np.log(down[1:])))  # by detailed balance
    masses = np.exp(logs - logs.max())
    assert solve_sparse(P, 1.0 - costs).gains[0] == pytest.approx(masses[n // 2 :].sum() / masses.sum(), rel=1e-9)
    try:
        found = SparseSolver().solve(P, costs)
    except SolverError:
        return
    residual = costs - found.gains[:, None] + (P @ found.biases.T).T - found.biases
    assert np.abs(residual).max() <= 1e-7
    assert abs(found.gains[1] - 1.0) <= 1e-9
