"""The master problem against a linear program on the same points, and against its own certificates."""

import numpy as np
import pytest
from scipy.optimize import linprog

from exact import least_cost, least_excess, rationals
from psconrl.kernels.linear.lu import solved
from psconrl.planning.mixture.master import LineMaster, SimplexMaster

# Averages lie in [0, 1] and bases of up to six columns are well conditioned: both simplex methods are then right to
# 1e-14. Thresholds that can just be met may look infeasible to one of them, by no more than that.
AGREE = 1e-11


def random_points(rng):
    """Averages (n, m+1) of policies and limits (m,), with ties, zeros and limits that can just be met."""
    m, n = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    points, limits = rng.random((n, m + 1)), rng.uniform(-0.05, 0.6, m)
    if rng.random() < 0.4:
        points = points.round(1)
    if rng.random() < 0.3:
        points[:, 1:] *= rng.random((n, m)) < 0.5
    if rng.random() < 0.4:
        limits = np.maximum(limits, 0.0).round(1)
    return points, limits


def check(master, points, limits, referee):
    """Columns one by one, as a planner adds them; then primal, dual and referee must agree."""
    for point in points:
        master.add(point)
        found = master.solve()
    w = found.weights
    mixed = sum(share * points[j] for j, share in found.mix.items())
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0)
    assert sum(found.mix.values()) == pytest.approx(1.0)
    bound = float((points @ w).min() - w[1:] @ limits)
    assert found.value == pytest.approx(bound, abs=1e-11)  # no point is cheaper at these weights
    if found.feasible:
        assert (mixed[1:] <= limits + 1e-12).all()
        assert mixed[0] * w[0] == pytest.approx(found.value, abs=1e-11)
    else:
        assert (mixed[1:] - limits).max() == pytest.approx(found.value, abs=1e-11)
    if referee:
        best = linprog(points[:, 0], points[:, 1:].T, limits, np.ones((1, len(points))), [1.0])
        assert found.feasible == (best.status == 0) or found.value < AGREE
        if found.feasible:
            assert mixed[0] == pytest.approx(best.fun, abs=AGREE)


@pytest.mark.part(2)
@pytest.mark.parametrize("seed", range(40))
def test_simplex_is_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    for _ in range(13):
        points, limits = random_points(rng)
        check(SimplexMaster(limits), points, limits, referee=True)


@pytest.mark.parametrize("seed", range(40))
def test_the_hull_of_one_limit_is_the_simplex_on_two_rows(seed):
    rng = np.random.default_rng(seed)
    points, limits = random_points(rng)
    points, limits = points[:, :2], limits[:1]
    line, simplex = LineMaster(limits), SimplexMaster(limits)
    for point in points:
        line.add(point)
        simplex.add(point)
    one, two = line.solve(), simplex.solve()
    assert one.feasible == two.feasible
    best = [sum(share * points[j] for j, share in found.mix.items()) for found in (one, two)]
    np.testing.assert_allclose(*[b[0 if one.feasible else 1] for b in best], atol=1e-12)


@pytest.mark.slow
def test_a_hundred_thousand_masters():
    rng = np.random.default_rng(7)
    for _ in range(100_000):
        points, limits = random_points(rng)
        check(SimplexMaster(limits), points, limits, referee=True)


def test_relaxing_leaves_the_excess_where_it_is():
    """No point is within the limit 0.2; after relaxing the one with the least excess is, and only that."""
    for master in (SimplexMaster(np.array([0.2])), LineMaster(np.array([0.2]))):
        for point in ([1.0, 0.3], [0.0, 0.9]):
            master.add(np.array(point))
        assert not master.solve().feasible
        master.relax()
        found = master.solve()
        assert found.feasible
        assert found.mix == pytest.approx({0: 1.0})
        master.add(np.array([2.0, 0.1]))  # more expensive, and below the old threshold: not needed now
        assert master.solve().mix == pytest.approx({0: 1.0})
        if isinstance(master, SimplexMaster):
            assert list(master._table.right) == pytest.approx([0.3, 1.0])


def awkward_points(kind, rng):
    """Averages and limits on which a basis is nearly singular, or exactly."""
    m, n = int(rng.integers(2, 5)), int(rng.integers(3, 10))
    points, limits = rng.random((n, m + 1)), rng.uniform(0.2, 0.6, m)
    few = rng.integers(0, max(2, n // 2), n)
    if kind == "nearly parallel":
        close = 10.0 ** rng.uniform(-10, -6, 2)
        points = points[0] + close[0] * rng.normal(size=(n, m + 1))
        limits = points[0, 1:] + close[1] * rng.normal(size=m)
    elif kind == "twice":
        points = points[few]
    elif kind == "a hair apart":
        points = points[few] + 1e-12 * rng.normal(size=(n, m + 1))
    elif kind == "on one line":
        points = points[0] + rng.random((n, 1)) * (points[1] - points[0])
    elif kind == "at a kink":
        limits = points[rng.integers(n), 1:].copy()
    elif kind == "on an edge":
        limits = rng.dirichlet(np.ones(2)) @ points[:2, 1:]
    elif kind == "of all sizes":
        sizes = 10.0 ** rng.uniform(-6, 6, m + 1)
        points, limits = points * sizes, limits * sizes[1:]
    return points, limits


def rational_optimum(points, limits):
    """The least excess over all limits and, if there is none, the least cost, without rounding."""
    points, limits = [rationals(p) for p in points], rationals(limits)
    excess = least_excess(points, limits)
    return float(excess), float(least_cost(points, limits)) if excess <= 0 else None


KINDS = ("nearly parallel", "twice", "a hair apart", "on one line", "at a kink", "on an edge", "of all sizes")


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_masters_against_rational_arithmetic(kind, full):
    """A column is only taken if it gains 1e-13 of its cost: so much may be missing, in the largest of the units."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(40 if full else 15):
        points, limits = awkward_points(kind, rng)
        master = SimplexMaster(limits)
        for point in points:
            master.add(point)
            found = master.solve()
        excess, value = rational_optimum(points, limits)
        units = np.abs(points).max(axis=0)
        mixed = sum(share * points[j] for j, share in found.mix.items())
        if not found.feasible:
            assert found.value == pytest.approx(excess, abs=1e-12 * units[1:].max())
        else:
            assert excess <= 1e-15 * units[1:].max()
            assert (mixed[1:] <= limits + 1e-14 * units[1:]).all()
            assert value is None or mixed[0] == pytest.approx(value, abs=1e-12 * units[0])


@pytest.mark.parametrize("k", [1, 2, 3, 6, 20])
def test_small_systems_are_solved_both_ways(k):
    rng = np.random.default_rng(k)
    for _ in range(20):
        A, b = rng.normal(size=(k, k)), rng.normal(size=(k, 3))
        A[rng.random((k, k)) < 0.3] = 0.0  # so that rows must trade places
        A += np.roll(np.eye(k), 1, axis=0)
        tolerance = 1e-14 * np.linalg.cond(A)
        np.testing.assert_allclose(solved(A, b), np.linalg.solve(A, b), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(solved(A, b, True), np.linalg.solve(A.T, b), rtol=tolerance, atol=tolerance)
    assert solved(np.ones((2, 2)), np.ones((2, 1))) is None
    assert solved(np.full((k, k), np.nan), np.ones((k, 1))) is None
