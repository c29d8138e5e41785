"""Queues near full load: two regimes that are hardly ever left, and an optimum between them."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from psconrl import CMDP, Status, certify, evaluate, plan
from psconrl.kernels.linear import wide_elimination
from psconrl.markov.anchored_bias import RingingChain, best_level
from psconrl.markov.direct_solver import narrow_order
from psconrl.markov.elimination_order import NO_ORDER, order_for
from psconrl.markov.select_solver import solve_sparse
from psconrl.markov.sparse_solver import SparseSolver
from psconrl.planning import planner
from psconrl.planning.candidate import Dual
from psconrl.planning.proof.certify import certificate_of
from psconrl.planning.proof.corrected_potential import corrected, is_coarse

SPEEDS = np.array([0.8, 1.0, 1.25])


def queue(places, load, limit, speeds=SPEEDS, gates=(1.0,)):
    """Pay the square of the speed and 2 per refused customer; a limit on the number waiting."""
    n = np.arange(places)
    speed, gate = (x.ravel() for x in np.meshgrid(speeds, gates, indexing="ij"))
    scale = load + speeds.max()
    up = (n < places - 1)[:, None] * gate * load / scale
    down = (n > 0)[:, None] * speed / scale
    A = speed.size
    rows, columns = np.arange(places * A), np.repeat(n, A)
    P = csr_array(
        (
            np.concatenate([up.ravel(), down.ravel(), np.maximum(1.0 - up - down, 0.0).ravel()]),
            (
                np.tile(rows, 3),
                np.concatenate([np.minimum(columns + 1, places - 1), np.maximum(columns - 1, 0), columns]),
            ),
        ),
        shape=(places * A, places),
    )
    P.eliminate_zeros()
    pay = (n > 0)[:, None] * speed**2 + 2.0 * load * (1.0 - gate)
    return CMDP(P, [pay, np.repeat(n[:, None], A, axis=1).astype(float)], [limit])


def birth_death(up, down):
    """A chain, and the logarithms of its stationary masses by detailed balance; the largest is zero."""
    n = up.size
    up, down = np.append(up[:-1], 0.0), np.append(0.0, down[1:])
    k = np.arange(n)
    rows, columns = np.concatenate([k, k[:-1], k[1:]]), np.concatenate([k, k[1:], k[:-1]])
    P = csr_array((np.concatenate([1.0 - up - down, up[:-1], down[1:]]), (rows, columns)), shape=(n, n))
    P.indices, P.indptr = P.indices.astype(np.intc), P.indptr.astype(np.intc)
    logs = np.append(0.0, np.cumsum(np.log(up[:-1]) - np.log(down[1:])))
    return P, logs - logs.max()


def two_regimes(n):
    """Drift down in the lower half and up in the upper half."""
    lower = np.arange(n) < n // 2
    return birth_death(np.where(lower, 0.2, 0.35), np.where(lower, 0.3, 0.25))


@pytest.mark.part(2)
@pytest.mark.parametrize("gates", [(1.0,), (1.0, 0.0)])
@pytest.mark.parametrize("load", [0.8, 0.95, 1.02, 1.1])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.45, 0.9])
def test_queues_are_proven_and_agree_with_highs(load, share, gates):
    model = queue(300, load, 300 * share, gates=gates)
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert certify(model, found).holds
    assert (found.costs[1:] <= model.thresholds * (1 + 1e-9)).all()
    S, A = model.n_states, model.n_actions
    balance = np.vstack([np.repeat(np.eye(S), A, axis=1) - model.transition.toarray().T, np.ones((1, S * A))])
    cost, waiting = model.costs.reshape(2, S * A)
    program = linprog(cost, waiting[None, :], model.thresholds, balance, np.append(np.zeros(S), 1.0))
    assert program.fun == pytest.approx(found.value, rel=1e-5)  # its tolerance is 1e-7, times shadow prices


@pytest.mark.parametrize(("places", "load", "limit"), [(500, 0.95, 225), (2000, 1.02, 900), (500, 1.1, 450)])
@pytest.mark.parametrize("gates", [(1.0,), (1.0, 0.0)])
def test_a_loose_limit_between_two_regimes_is_proven(places, load, limit, gates):
    """The value is that of the line between the regimes: it is linear in the limit, at the shadow price."""
    model = queue(places, load, limit, gates=gates)
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert found.costs[1] == pytest.approx(limit, rel=1e-9)
    looser = plan(model.with_thresholds([1.01 * limit]))
    assert looser.value - found.value == pytest.approx(-found.multipliers[0] * 0.01 * limit, rel=1e-6)


def test_one_speed_has_the_masses_of_a_truncated_geometric_distribution():
    model = queue(2000, 1.1, 1999.0, speeds=np.array([1.0]))
    masses = 1.1 ** (np.arange(2000.0) - 1999.0)
    masses /= masses.sum()
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert found.costs[1] == pytest.approx(masses @ np.arange(2000), rel=1e-12)


def test_rarer_switches_than_a_double_can_express_are_drawn_at_the_start():
    model = queue(10_000, 1.02, 4500.0, gates=(1.0, 0.0))
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert found.mixture is not None
    assert "rarer than a double" in found.note
    assert certify(model, found).holds


@pytest.mark.parametrize("n", [40, 1000, 30_000])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_masses_of_any_size_satisfy_detailed_balance(n, place):
    P, logs = two_regimes(n)
    order = order_for(P.indptr, P.indices, n, np.inf)
    stuck, found = wide_elimination.log_masses(P.indptr, P.indices, P.data, int(place * n), order)
    assert stuck == -1
    assert np.abs(found - logs).max() <= 1e-12 * max(1.0, np.abs(logs).max())


def test_a_trap_is_reported_and_wrong_sizes_are_refused():
    P = csr_array(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]))
    P.indices, P.indptr = P.indices.astype(np.intc), P.indptr.astype(np.intc)
    order = order_for(P.indptr, P.indices, 3, np.inf)
    assert wide_elimination.log_masses(P.indptr, P.indices, P.data, 0, order)[0] == 1
    with pytest.raises(ValueError, match="one of the states"):
        wide_elimination.log_masses(P.indptr, P.indices, P.data, 3, order)


@pytest.mark.parametrize("n", [400, 1200, 20_000])
def test_gains_of_two_regimes_are_those_of_exact_masses(n):
    """At 1,200 states the masses between the regimes are 1e-100, at 20,000 far below the range of doubles."""
    P, logs = two_regimes(n)
    masses = np.exp(logs)
    masses /= masses.sum()
    found = solve_sparse(P, np.arange(n, dtype=float)[None, :])
    assert found.gains == pytest.approx([masses @ np.arange(n)], rel=1e-9)
    assert np.abs(found.log_masses - found.log_masses.max() - logs).max() <= 1e-12 * np.abs(logs).max()


def test_the_anchored_bias_is_the_bias_where_regimes_are_left():
    P, _ = birth_death(np.full(200, 0.3), np.full(200, 0.3))
    cost = np.linspace(0.0, 1.0, 200)
    order = order_for(P.indptr, P.indices, 200, np.inf)
    chain = RingingChain(P, 7, order)
    h = chain.anchored_bias(cost, np.sin(np.arange(200.0)))
    g = cost + P @ h - h
    assert np.ptp(g) <= 1e-11  # biases are of order 1e4
    assert g[0] == pytest.approx(0.5)
    assert chain.regimes() is None


def test_the_anchor_sets_the_level_of_a_regime_that_is_never_left():
    n = 4000
    P, _ = two_regimes(n)
    order = order_for(P.indptr, P.indices, n, np.inf)
    cost = 0.25 * np.ones(n)
    anchor = np.where(np.arange(n) < n // 2, 0.0, 40.0)
    chain = RingingChain(P, 0, order)
    h = chain.anchored_bias(cost, anchor)
    assert h[-1] == pytest.approx(40.0, abs=1e-3)  # rounding of the gain, times 1e12 steps
    apart = chain.regimes()
    assert apart[0] == 0.0
    assert apart[-1] == pytest.approx(1.0)
    assert np.abs(P @ apart - apart).max() <= 1e-11


def test_the_best_level_maximises_the_least_value():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, change = rng.normal(size=50), rng.normal(size=50)
        x = best_level(values, change)
        best = (values + x * change).min()
        assert all((values + y * change).min() <= best + 1e-12 for y in x + np.linspace(-3, 3, 61))


def test_random_successors_are_not_eliminated_and_lines_are():
    rng = np.random.default_rng(1)
    P = csr_array((np.ones(60_000), (np.repeat(np.arange(6000), 10), rng.integers(0, 6000, 60_000))))
    assert narrow_order(P.indptr.astype(np.intc), P.indices.astype(np.intc), 6000) is NO_ORDER
    P, _ = two_regimes(6000)
    assert narrow_order(P.indptr, P.indices, 6000) is not NO_ORDER


def test_a_reference_at_the_wrong_end_is_replaced():
    n = 5000
    P, logs = birth_death(np.full(n, 0.4), np.full(n, 0.2))
    order = order_for(P.indptr, P.indices, n, np.inf)
    found = SparseSolver(order).solve(P, np.arange(n, dtype=float)[None, :])
    assert found.reference > n - 50
    assert np.isfinite(found.biases).all()
    assert found.gains == pytest.approx([np.exp(logs) @ np.arange(n) / np.exp(logs).sum()], rel=1e-12)


def test_a_share_of_rounds_that_is_hardly_ever_met_is_certified():
    """P(waiting > 30) <= 1e-10: prices are so high that one double per state is too coarse for the potential."""
    places, load, speeds = 300, 0.5, np.array([0.9, 1.2])
    model = queue(places, load, 1.0, speeds)
    rare = np.repeat((np.arange(places) > 30)[:, None].astype(float), 2, axis=1)
    found = plan(CMDP(model.transition.csr(), [model.costs[0], rare], [1e-10]))
    assert found.status is Status.OPTIMAL
    assert found.costs[1] <= 1e-10 * (1 + 1e-6)


def test_a_shadow_price_that_is_rounded_by_more_than_the_gap_is_certified():
    """P(waiting > 30) <= 1e-12, with a price of 1e11: its last digit is worth 1e-5, and the potential must fit it."""
    places, load, speeds = 300, 0.49, np.array([0.9, 1.2])
    model = queue(places, load, 1.0, speeds)
    rare = np.repeat((np.arange(places) > 30)[:, None].astype(float), 2, axis=1)
    cmdp = CMDP(model.transition.csr(), [model.costs[0], rare], [1e-12])
    found = plan(cmdp)
    assert found.status is Status.OPTIMAL
    assert found.multipliers[0] > 1e10
    assert found.certificate.tolerance < 1e-6
    assert certify(cmdp, found).holds
    dual = Dual(found.multipliers, found.potential, np.zeros(places), None)
    assert is_coarse(cmdp, dual, found.certificate.tolerance)
    bounds = [corrected(cmdp, dual, actions, found.value) for actions in found.columns]
    proofs = [
        certificate_of(cmdp, Status.OPTIMAL, found.occupancy, each, evaluate(cmdp, found.policy)) for each in bounds
    ]
    assert any(proof.holds for proof in proofs)
    assert not is_coarse(cmdp, Dual.nothing(places, 1), 1e-12)


def test_priced_costs_are_coarse_if_their_rounding_is_a_hundredth_of_the_tolerance():
    """The largest objective is 2, the largest constrained cost 3 at a price of 5; what is not available is left out."""
    costs = np.array([[[-2.0, 1.0, 9.0]], [[3.0, -1.0, 9.0]]])
    cmdp = CMDP(np.ones((1, 3, 1)), costs, [4.0], available=[[True, True, False]])
    dual = Dual(np.array([5.0]), np.zeros(1), np.zeros(1), None)
    limit = 100.0 * np.finfo(float).eps * (2.0 + 5.0 * 3.0)
    assert is_coarse(cmdp, dual, 0.99 * limit)
    assert not is_coarse(cmdp, dual, 1.01 * limit)


def test_a_rare_share_just_below_what_can_be_attained_is_infeasible_without_a_second_opinion(monkeypatch):
    """The least share is about 1e-12: its proof is open by less than the rounding of a cost of one."""
    monkeypatch.setattr(planner, "_second_opinion", None)  # HiGHS, to 1e-10, has nothing to add
    places, load, speeds = 300, 0.49, np.array([0.9, 1.2])
    model = queue(places, load, 1.0, speeds)
    rare = np.repeat((np.arange(places) > 30)[:, None].astype(float), 2, axis=1)
    least = float(evaluate(model, np.ones(places, dtype=int)).occupancy[31:].sum())
    assert 1e-13 < least < 1e-11
    found = plan(CMDP(model.transition.csr(), [model.costs[0], rare], [0.98 * least]))
    assert found.status is Status.INFEASIBLE
    assert found.certificate.holds


@pytest.mark.parametrize(("load", "share"), [(0.8, 0.45), (0.95, 0.45), (1.02, 0.02)])
def test_long_queues_are_certified_after_few_policies(load, share):
    """Before actions were chosen outward, the number of policies grew with the number of places."""
    places, seen = 5000, []
    found = plan(queue(places, load, share * places), progress=seen.append)
    assert found.status is Status.OPTIMAL
    assert len(seen) < 60
