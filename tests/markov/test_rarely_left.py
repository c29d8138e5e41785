"""Sparse chains whose states are left rarely: correct or refused, against closed forms of birth-death chains."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import psconrl
from psconrl.base.arrays import in_32_bits
from psconrl.markov.select_solver import solve_sparse
from psconrl.markov.sparse_solver import SparseSolver


def lazy_cycle(n, decades):
    """A cycle whose mean stays in states range over ``decades`` powers of ten."""
    leave = 10.0 ** -np.random.default_rng(0).uniform(0, decades, n)
    s = np.arange(n)
    rows, columns, data = np.append(s, s), np.append((s + 1) % n, s), np.append(leave, 1.0 - leave)
    return in_32_bits(csr_array((data, (rows, columns)), shape=(n, n))), (1.0 / leave) / (1.0 / leave).sum()


@pytest.mark.parametrize("decades", [9, 12, 15])
def test_a_long_stay_is_known_by_the_probability_of_leaving(decades):
    P, distribution = lazy_cycle(2500, decades)
    costs = np.random.default_rng(1).random((2, 2500))
    solved = solve_sparse(P, costs)
    assert solved.gains == pytest.approx(costs @ distribution, abs=1e-11)
    assert np.abs(solved.stationary - distribution).sum() <= 1e-11


def trapped(n, wide):
    """A walk absorbed at both ends, each behind ``wide`` states that lead back; the probability of the right end."""
    up, down = np.full(n, 0.25), np.full(n, 0.25)
    up[1 : 1 + wide], down[1 : 1 + wide] = 0.3, 0.1
    up[n - 1 - wide : n - 1], down[n - 1 - wide : n - 1] = 0.1, 0.3
    up[1] = 0.6
    up[[0, -1]] = down[[0, -1]] = 0.0
    P = csr_array(diags_array([up[:-1], 1.0 - up - down, down[1:]], offsets=[1, 0, -1]))
    steps = np.append(0.0, np.cumsum(np.log(down[1:-1]) - np.log(up[1:-1])))
    steps = np.exp(steps - steps.max())
    return P, np.append(0.0, np.cumsum(steps)) / steps.sum()


@pytest.mark.parametrize(("wide", "known"), [(5, True), (10, True), (25, False), (36, False), (200, False)])
def test_where_a_path_ends_is_right_or_refused(wide, known):
    n = 2500
    P, right = trapped(n, wide)
    cost = np.zeros((1, n, 1))
    cost[0, -1] = 1.0
    model = psconrl.CMDP(P, cost, [], initial=np.eye(n)[n // 2])
    if known:
        assert np.abs(psconrl.evaluate(model, np.zeros(n, dtype=int)).gains[0] - right).max() <= 1e-9
    else:
        with pytest.raises(psconrl.SolverError, match="left too rarely"):
            psconrl.evaluate(model, np.zeros(n, dtype=int))


def test_two_ends_that_nothing_leaves_are_weighed_exactly_or_refused():
    n = 6000
    s = np.arange(n)
    up, down = np.where(s < n // 2, 0.1, 0.4), np.where(s < n // 2, 0.4, 0.1)
    up[-1] = down[0] = 0.0
    P = csr_array(diags_array([up[:-1], 1.0 - up - down, down[1:]], offsets=[1, 0, -1]))
    costs = np.where(s < n // 2, 1.0, 0.0)[None, :]
    assert solve_sparse(P, costs).gains == pytest.approx([0.5], abs=1e-9)  # half the time at each end, by symmetry
    with pytest.raises(psconrl.SolverError, match="left too rarely"):
        SparseSolver().solve(P, costs)


@pytest.mark.parametrize("n", [3000, 6000])
@pytest.mark.parametrize("huge", [1e9, 1e12])
def test_a_huge_cost_in_an_unvisited_state_drowns_nothing(n, huge):
    up, down = np.full(n, 0.1), np.full(n, 0.4)
    up[-1] = down[0] = 0.0
    P = csr_array(diags_array([up[:-1], 1.0 - up - down, down[1:]], offsets=[1, 0, -1]))
    distribution = 0.25 ** np.arange(n)
    cost = np.random.default_rng(0).random((1, n, 1))
    cost[0, -1] = huge
    found = psconrl.evaluate(psconrl.CMDP(P, cost, []), np.zeros(n, dtype=int))
    assert found.costs[0] == pytest.approx(cost[0, :-1, 0] @ distribution[:-1] / distribution.sum(), abs=1e-11)
