"""The master problem against a linear program on the same points, and against what it proves itself."""

import numpy as np
import pytest
from scipy.optimize import linprog

from psconrl.planning.mixture.master import LineMaster, SimplexMaster


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
        assert found.feasible == (best.status == 0)
        if found.feasible:
            assert mixed[0] == pytest.approx(best.fun, abs=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_simplex_is_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
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
    for k in range(100_000):
        points, limits = random_points(rng)
        check(SimplexMaster(limits), points, limits, referee=k % 10 == 0)


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
        master.add(np.array([2.0, 0.1]))  # dearer, and below the limit as it was: nobody needs it now
        assert master.solve().mix == pytest.approx({0: 1.0})
        if isinstance(master, SimplexMaster):
            assert master._right == pytest.approx([0.3, 1.0])
