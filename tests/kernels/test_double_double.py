"""Sums in double-double precision, and what is built on them, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from exact import rationals
from psconrl.kernels.chains import double_double
from psconrl.kernels.linear.elimination import unichain
from psconrl.kernels.search.drive_to_best import driven_to_best
from psconrl.markov.chain import DenseChain, SparseChain
from psconrl.model.transition import Transition

numbers = st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-100)


@given(numbers, numbers)
def test_sums_and_products_lose_nothing(a, b):
    s, lost = double_double.two_sum(a, b)
    assert Fraction(s) + Fraction(lost) == Fraction(a) + Fraction(b)
    p, lost = double_double.two_product(a, b)
    assert Fraction(p) + Fraction(lost) == Fraction(a) * Fraction(b)


def exact_drift(P, high, low):
    h = [x + y for x, y in zip(rationals(high), rationals(low), strict=True)]
    S = len(h)
    A = len(P) // S
    return [
        [float(sum(p * (h[j] - h[s]) for j, p in enumerate(rationals(P[s * A + a])))) for a in range(A)]
        for s in range(S)
    ]


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12, 1e18])
def test_the_drift_of_a_huge_potential_is_exact(size):
    """Two blocks far apart in the potential; single doubles would lose all but four digits at 1e12."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), size=12)
    P[:, 3:] *= 1.0 / size
    offset = np.array([0, 0, 0, size, size, size]) * 0.7
    high, low = double_double.combine(np.ones(2), np.array([offset, rng.normal(size=6)]), np.zeros((2, 6)))
    expected = exact_drift(P, high, low)
    np.testing.assert_allclose(Transition.of(P).drift(high, low), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(Transition.of(csr_array(P)).drift(high, low), expected, rtol=1e-14, atol=1e-15)


def test_the_low_part_drifts_like_the_high_one():
    P = np.array([[0.5, 0.5], [0.25, 0.75]])
    for high, low in (([0.0, 3.0], [0.0, 0.0]), ([0.0, 0.0], [0.0, 3.0])):
        np.testing.assert_allclose(Transition.of(P).drift(np.array(high), np.array(low)), [[1.5], [-0.75]])


@pytest.mark.parametrize("leak", [1e-3, 1e-8, 1e-12, 1e-16])
def test_refined_biases_solve_their_equation(leak):
    """g + h = c + P h, which single doubles miss by some 1e-16 / leak."""
    rng = np.random.default_rng(1)
    half = np.arange(8) < 4
    P = rng.dirichlet(np.ones(8), size=8) * np.where(half[:, None] == half[None, :], 1.0, leak)
    costs = rng.random((2, 8))
    _, gains, high, low, stationary, slowest = double_double.refined_unichain(P, np.arange(8), costs, 0, 3)
    for i in range(2):
        moved = np.array(exact_drift(P, high[i], low[i]))[:, 0]
        np.testing.assert_allclose(costs[i] + moved, gains[i], atol=1e-14)
    np.testing.assert_allclose(gains, costs @ stationary, rtol=1e-12)
    assert slowest < 10 * leak
    plain = unichain(P, costs, 0)
    np.testing.assert_allclose(gains, plain[1], rtol=1e-12)


def chain(edges, S):
    P = np.zeros((S, S))
    for s, t, p in edges:
        P[s, t] = p
    P[np.arange(S), np.arange(S)] = 1 - P.sum(axis=1)
    return P


@pytest.mark.parametrize("form", [DenseChain, lambda P: SparseChain(csr_array(P))], ids=["dense", "sparse"])
def test_sets_that_are_hardly_left_count_as_closed(form):
    P = chain([(0, 1, 0.5), (1, 0, 0.5), (1, 2, 1e-12), (2, 3, 1.0), (3, 2, 1.0), (3, 0, 1e-30), (4, 0, 0.5)], 5)
    assert [c.tolist() for c in form(P).closed_classes(1e-10)] == [[0, 1], [2, 3]]
    assert [c.tolist() for c in form(P).closed_classes(1e-14)] == [[2, 3]]
    assert [c.tolist() for c in form(P).closed_classes()] == [[0, 1, 2, 3]]
    left_for_good = chain([(0, 1, 0.5)], 3)
    assert [c.tolist() for c in form(left_for_good).closed_classes(1e-10)] == [[1], [2]]


def test_all_states_are_driven_to_the_cheapest_class():
    """Two states that stay where they are but for 1e-20; the second action goes to the other at once."""
    stay, leave = [[1.0, 1e-20], [1e-20, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    P = np.array([stay[0], leave[0], stay[1], leave[1]])
    available = np.ones((2, 2), dtype=bool)
    both = np.zeros(2, dtype=np.int64)
    costs = np.array([[1.0, 9.0, 2.0, 9.0]])
    assert driven_to_best(P, costs, np.ones(1), available, both, 1, 1e-10, 1e-12).tolist() == [0, 1]
    assert driven_to_best(P, -costs, np.ones(1), available, both, 0, 1e-10, 1e-12).tolist() == [1, 0]
    tied = np.array([[1.0, 9.0, 1.0, 9.0]])  # then the favoured one
    assert driven_to_best(P, tied, np.ones(1), available, both, 1, 1e-10, 1e-12).tolist() == [1, 0]
    assert driven_to_best(P, tied, np.ones(1), available, both, 0, 1e-10, 1e-12).tolist() == [0, 1]
    only_stay = np.array([[True, False], [True, False]])  # no state can be driven anywhere: the policy is unchanged
    assert driven_to_best(P, costs, np.ones(1), only_stay, both, 1, 1e-10, 1e-12).tolist() == [0, 0]
