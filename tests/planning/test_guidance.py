"""The weights at which the search evaluates: near a guess at first, then where constraints should be tight."""

from typing import NamedTuple

import numpy as np
import pytest

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.mixture.guidance import NearGuess, Secant
from psconrl.planning.mixture.oracle import Oracle


def at(*prices):
    """Weights of sum one with these prices."""
    return np.append(1.0, prices) / (1.0 + sum(prices))


def test_from_a_guess_towards_the_master_by_hand():
    """From prices of 2 and 1 for the constraints, by a factor of 1.5 and then by its squares."""
    near = NearGuess(np.array([0.25, 0.5, 0.25]))
    one_side, nothing_feasible = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    np.testing.assert_allclose(near.weights(one_side), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(near.weights(nothing_feasible), at(2 * 1.5, 1 / 1.5))
    np.testing.assert_allclose(near.weights(nothing_feasible), at(3 * 1.5**2, 1 / 1.5**3))
    np.testing.assert_allclose(near.weights(one_side), at(3 * 1.5**2 / 1.5**4, 1 / 1.5**7))
    np.testing.assert_allclose(near.weights(np.array([1.0, 1e9, 1e9])), at(2 * 1.5**-1 * 1.5**8, 1.5))
    assert near.weights(one_side) is None  # five are enough
    other = NearGuess(np.array([0.25, 0.5, 0.25]))
    other.weights(one_side)
    np.testing.assert_allclose(other.weights(np.array([0.5, 0.9, 0.0])), at(1.8, 1 / 1.5))  # 1.8 is within reach
    assert other.weights(np.array([0.5, 0.9, 0.25])) is None  # all are: from then on the master decides
    assert other.weights(one_side) is None
    for guess in (None, [], [1.0], [1.0, 0.0], [0.0, 1.0], [1e-10, 1.0], [0.5, -0.5], [np.nan, 1.0], [1.0, np.inf]):
        assert NearGuess(None if guess is None else np.array(guess)).weights(one_side) is None


def seen(*pairs, thresholds=(5.0,)):
    """A secant that has seen averages of limited costs at prices."""
    secant = Secant(np.array(thresholds))
    for prices, averages in pairs:
        secant.saw(at(*np.atleast_1d(prices)), np.append(7.0, averages))
    return secant


def test_a_secant_by_hand():
    both_sides = seen((1.0, 5.2), (2.0, 4.9))
    np.testing.assert_allclose(both_sides.weights(at(1.5), 1.0), at(1.0 + 0.2 / 0.3))
    one_side = seen((1.0, 5.4), (1.5, 5.2))
    np.testing.assert_allclose(one_side.weights(at(1.5), 1.0), at(2.0))
    everything_feasible = seen((4.0, 4.0), (3.0, 4.5))
    np.testing.assert_allclose(everything_feasible.weights(np.array([1.0, 0.0]), 1.0), at(2.0))


def test_the_averages_next_to_the_limit_count_and_of_equals_the_newest():
    far_ones_too = seen((0.1, 9.0), (1.0, 5.2), (9.0, 1.0), (2.0, 4.9))
    np.testing.assert_allclose(far_ones_too.weights(at(1.5), 1.0), at(1.0 + 0.2 / 0.3))
    flat = seen((1.0, 5.1), (1.2, 5.1), (2.2, 4.8))  # the last is new
    np.testing.assert_allclose(flat.weights(at(1.5), 1.0), at(1.2 + 0.1 / 0.3))
    # The difference of the nearest two is noise: three times their distance would be too far.
    noisy = seen((1.0, 5.1), (1.1, 5.13), (2.2, 4.8))
    np.testing.assert_allclose(noisy.weights(at(1.5), 1.0), at(1.0 + 1.2 * 0.1 / 0.3))


def test_averages_that_are_linear_in_two_prices_are_met_at_once():
    slope, middle = np.array([[-1.0, 0.3], [0.2, -0.5]]), np.array([2.0, 3.0])

    def averages(prices):
        return np.array([5.0, 6.0]) + slope @ (np.array(prices) - middle)

    at_prices = [(2.1, 3.0), (2.0, 3.4), (1.7, 2.9)]
    secant = seen(*((prices, averages(prices)) for prices in at_prices), thresholds=(5.0, 6.0))
    np.testing.assert_allclose(secant.weights(at(2.5, 2.5), 1.0), at(2.0, 3.0))
    # A constraint without a price keeps none.
    alone = seen(*((prices, averages(prices)) for prices in at_prices), thresholds=(5.0, 6.0))
    found = alone.weights(at(2.5, 0.0), 1.0)
    assert found[2] == 0.0
    assert found[1] > 0.0


def test_when_it_is_left_to_the_master():
    assert seen().weights(at(1.5), 1.0) is None
    assert seen((1.0, 5.2)).weights(at(1.5), 1.0) is None
    assert seen((1.0, 5.2), (1.3, 5.1)).weights(at(1.5), 1.0) is not None
    assert seen((1.0, 5.2), (1.6, 5.1)).weights(at(1.5), 1.0) is not None
    assert seen((1.0, 5.4), (2.0, 5.35)).weights(at(1.5), 1.0) is None  # seven steps away
    assert seen((1.0, 5.2), (1.0, 5.2)).weights(at(1.5), 1.0) is None  # nothing to tell them apart
    assert seen((1.0, 4.0), (0.4, 4.4)).weights(at(1.5), 1.0) is None  # below zero
    assert seen((9.0, 9.0), (1.0, 5.1)).weights(at(0.5), 1.0) is not None
    assert seen((5.0, 9.0), (1.0, 7.0)).weights(at(0.5), 1.0) is None  # the wrong way, beyond zero
    nothing_but_limits = Secant(np.array([5.0]))
    nothing_but_limits.saw(np.array([0.0, 1.0]), np.array([7.0, 5.2]))
    assert nothing_but_limits.weights(at(1.5), 1.0) is None


def test_a_question_that_does_not_pay_is_followed_by_one_beyond_and_the_masters():
    met, beyond = at(2.0 - 0.1 / 0.3), at(2.0 - 2 * 0.1 / 0.3)
    secant = seen((1.0, 5.2), (2.0, 4.9))
    np.testing.assert_allclose(secant.weights(at(1.5), 1.0), met)
    np.testing.assert_allclose(secant.weights(at(1.5), 0.4), met)  # the step was successful
    np.testing.assert_allclose(secant.weights(at(1.5), 0.17), beyond)
    for gap in (0.17, 0.1, 0.01):
        assert secant.weights(at(1.5), gap) is None


@pytest.mark.parametrize(("apart", "again"), [(0.0, False), (0.0009, False), (0.0011, True)])
def test_weights_that_did_not_pay_are_not_repeated(apart, again):
    secant = seen((1.2, 5.24), (1.8, 4.76))
    np.testing.assert_allclose(secant.weights(at(1.4), 1.0), at(1.5))
    assert secant.weights(at(1.4), 0.9) is not None
    assert secant.weights(at(1.4), 0.9) is None
    secant.saw(at(1.4), np.array([7.0, 5.08 + 1.6 * apart]))  # the secant is now at about 1.5 (1 + apart)
    assert (secant.weights(at(1.4), 0.9) is not None) == again


def test_two_answers_that_are_no_news_leave_it_to_the_master():
    corner = [(1.0, 5.1), (2.2, 4.8), (1.5, 5.1 + 5e-10)]
    assert seen(*corner).weights(at(1.5), 1.0) is not None
    assert seen(*corner, (1.6, 4.8)).weights(at(1.5), 1.0) is None
    assert seen(*corner, (1.6, 4.8 + 2e-9)).weights(at(1.5), 1.0) is not None
    assert seen(*corner, (1.6, 4.8), (1.7, 4.9)).weights(at(1.5), 1.0) is not None


class Point(NamedTuple):
    """An answer that consists of its averages alone."""

    costs: Floats


class Curve(Oracle[Point]):
    """All points above (exp(-b_1) + ... , b) are attainable: the dual is smooth."""

    def __init__(self, m):
        self.m, self.asked = m, []

    def first(self, weights):
        return Point(np.append(float(self.m), np.zeros(self.m)))

    def improve(self, answer, weights):
        """The cheapest point: exp(-b) = price of b."""
        self.asked.append(weights)
        prices = np.clip(weights[1:] / max(weights[0], 1e-9), 1e-9, 1.0)
        b = -np.log(prices)
        best = Point(np.append(np.exp(-b).sum(), b))
        bound = float(weights @ best.costs)
        return bound, best if float(weights @ answer.costs) - bound > 1e-13 else None


@pytest.mark.parametrize(("m", "most"), [(1, 10), (2, 25)])
def test_a_smooth_dual_is_closed_in_on_by_leaps(m, most):
    limits = np.array([0.7, 1.1])[:m]
    questions = {}
    for smooth in (False, True):
        oracle = Curve(m)
        found = mix(oracle, limits, [oracle.first(None), Point(np.append(0.0, np.full(m, 20.0)))], smooth=smooth)
        value = float(found.shares @ [answer.costs[0] for answer in found.answers])
        assert value == pytest.approx(np.exp(-limits).sum(), abs=2e-11)
        assert found.gap <= 2e-11
        questions[smooth] = len(oracle.asked)
    assert questions[True] <= most
    assert questions[True] < 0.6 * questions[False]


@pytest.mark.parametrize("fails_at", [1, 6])
def test_a_policy_that_rounding_spoils_ends_the_search_with_what_it_has(fails_at):
    class Fails(Curve):
        def improve(self, answer, weights):
            if len(self.asked) == fails_at - 1:
                raise SolverError
            return super().improve(answer, weights)

    oracle = Fails(1)
    start = [oracle.first(None), Point(np.array([0.0, 20.0]))]
    if fails_at == 1:  # nothing is proven yet
        with pytest.raises(SolverError):
            mix(oracle, np.array([0.7]), start)
        return
    found = mix(oracle, np.array([0.7]), start)
    value = float(found.shares @ [answer.costs[0] for answer in found.answers])
    assert 1e-6 < found.gap < 0.1
    assert not found.settled
    assert value - found.gap <= np.exp(-0.7) < value
