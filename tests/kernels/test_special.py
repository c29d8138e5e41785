"""Exponentials, logarithms and the gamma function: accurate, and the same to the last bit wherever they run."""

import hashlib
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from psconrl.kernels.arithmetic import special

INF, NAN = math.inf, math.nan


def numbers(seed, n, draw):
    return [float(draw(rng)) for rng in [np.random.default_rng(seed)] for _ in range(n)]


def off_by(computed, exact):
    """Units in the last place."""
    return float(abs(Decimal(computed) - exact) / Decimal(math.ulp(float(exact))))


def worst(function, exact, points):
    with localcontext() as context:
        context.prec = 60
        return max(off_by(function(x), exact(Decimal(x))) for x in points)


SIGNED_POWERS = [s * 10.0**e for e in np.linspace(-20, 0.3, 500) for s in (-0.5, 0.5)]


@pytest.mark.parametrize(
    ("points", "ulps"),
    [
        (numbers(1, 1500, lambda rng: rng.uniform(-1, 1)), 0.9),
        (numbers(2, 1500, lambda rng: rng.uniform(-708, 709.7)), 0.9),
        (numbers(3, 300, lambda rng: rng.uniform(-745, -708)), 0.9),
        (SIGNED_POWERS, 0.9),
    ],
)
def test_the_exponential_is_off_by_less_than_a_unit_in_the_last_place(points, ulps):
    assert worst(special.exp, lambda x: x.exp(), points) < ulps
    assert special.exp_array(points).tolist() == [special.exp(x) for x in points]


@pytest.mark.parametrize(
    "points",
    [
        numbers(4, 1500, lambda rng: rng.uniform(0.5, 2)),
        numbers(5, 1500, lambda rng: 10.0 ** rng.uniform(-307, 308)),
        numbers(6, 300, lambda rng: 10.0 ** rng.uniform(-322, -307)),
        [1.0 + x for x in SIGNED_POWERS if 1e-14 < abs(x) < 0.3],
    ],
)
def test_the_logarithm_is_off_by_less_than_a_unit_in_the_last_place(points):
    assert worst(special.log, lambda x: x.ln(), points) < 0.9
    assert special.log_array(points).tolist() == [special.log(x) for x in points]


def test_logarithms_and_exponentials_of_what_is_near_1():
    with_one = [*SIGNED_POWERS, *numbers(7, 1000, lambda rng: rng.uniform(-0.999, 3))]
    assert worst(special.log1p, lambda x: (1 + x).ln(), with_one) < 1.7
    assert worst(special.log1p, lambda x: (1 + x).ln(), [10.0**e for e in np.linspace(0, 300, 200)]) < 1.0
    assert worst(special.expm1, lambda x: x.exp() - 1, with_one) < 1.7
    assert worst(special.expm1, lambda x: x.exp() - 1, numbers(8, 500, lambda rng: rng.uniform(-50, 709))) < 1.0


def log_of_gamma(x):
    """By Stirling's series far out, and the recursion."""
    product = Decimal(1)
    while x < 60:
        product *= x
        x += 1
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    bernoulli = [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798)]
    bernoulli += [(-174611, 330), (854513, 138), (-236364091, 2730), (8553103, 6)]
    series = sum(
        Decimal(p) / q / (2 * k * (2 * k - 1)) / x ** (2 * k - 1) for k, (p, q) in enumerate(bernoulli, start=1)
    )
    return (x - Decimal("0.5")) * x.ln() - x + (2 * pi).ln() / 2 + series - product.ln()


@pytest.mark.parametrize(
    "points",
    [
        numbers(9, 600, lambda rng: rng.uniform(0.001, 12)),
        [1.0 + x / 10 for x in SIGNED_POWERS if abs(x) > 1e-13],
        [2.0 + x / 10 for x in SIGNED_POWERS if abs(x) > 1e-13],
        numbers(10, 300, lambda rng: 10.0 ** rng.uniform(-300, 1)),
        numbers(11, 300, lambda rng: 10.0 ** rng.uniform(1, 20)),
    ],
)
def test_the_gamma_function_is_off_by_a_few_units_also_near_its_zeros(points):
    assert worst(special.lgamma, log_of_gamma, points) < 5.0


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (special.exp, {0.0: 1.0, INF: INF, -INF: 0.0, NAN: NAN, 709.782712893384: 1.7976931348622732e308,
                       709.7827128933841: INF, -745.1332191019411: 5e-324, -745.1332191019412: 0.0, 1e300: INF,
                       -1e300: 0.0, 5e-324: 1.0}),
        (special.log, {0.0: -INF, INF: INF, -INF: NAN, NAN: NAN, -1.0: NAN, -5e-324: NAN, 1.0: 0.0,
                       5e-324: -744.4400719213812, 1.7976931348623157e308: 709.782712893384}),
        (special.log1p, {0.0: 0.0, INF: INF, -INF: NAN, NAN: NAN, -1.0: -INF, -1.5: NAN, 5e-324: 5e-324}),
        (special.expm1, {0.0: 0.0, INF: INF, -INF: -1.0, NAN: NAN, 710.0: INF, -5e-324: -5e-324, -50.0: -1.0}),
        (special.lgamma, {0.0: INF, INF: INF, NAN: NAN, -INF: NAN, -1.5: NAN, 1.0: 0.0, 2.0: 0.0, 1e308: INF,
                          5e-324: 744.4400719213812}),
        (special.cbrt, {0.0: 0.0, INF: INF, NAN: NAN, 27.0: 3.0, 1e-300: 1e-100}),
    ],
    ids=["exp", "log", "log1p", "expm1", "lgamma", "cbrt"],
)  # fmt: skip
def test_ends_of_the_range(function, values):
    for x, y in values.items():
        assert function(x) == y or (math.isnan(function(x)) and math.isnan(y)), x


def test_signs_of_zero_survive():
    assert math.copysign(1.0, special.log1p(-0.0)) == math.copysign(1.0, special.expm1(-0.0)) == -1.0


def test_arrays_with_odd_entries_and_of_any_shape():
    odd = np.array([[0.5, 0.0, 2.0], [-1.0, INF, 5e-324]])
    np.testing.assert_array_equal(special.log_array(odd), [[special.log(x) for x in row] for row in odd.tolist()])
    assert special.exp_array(odd.T).tolist() == [[special.exp(x) for x in row] for row in odd.T.tolist()]
    assert special.exp_array(1).shape == ()
    assert special.log_array([]).shape == (0,)


def test_cube_roots_of_cubes_are_exact():
    assert all(special.cbrt(float(n) ** 3) == n for n in range(1, 20_000))


def test_the_bits_are_the_same_everywhere():
    """They were computed once, on x86."""
    u = np.random.default_rng(12).random(4000)
    small, large = u * 4.0 - 2.0, (u * 2.0 - 1.0) * 600.0
    found = [special.exp_array(small), special.exp_array(large), special.log_array(u), special.log_array(1.0 + u)]
    for function, points in (
        (special.log1p, u), (special.log1p, -u), (special.expm1, small), (special.expm1, large), (special.lgamma, u),
        (special.lgamma, 20.0 * u), (special.lgamma, 1e6 * u), (special.cbrt, u),
    ):  # fmt: skip
        found.append(np.array([function(x) for x in points.tolist()]))
    assert [hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()[:12] for values in found] == [
        "d3b1d08cbb4c", "717d5788fdbd", "43c54728d88f", "5199d12d840b", "9410016c7792", "056abd51f029", "f90449dc499b",
        "49f9e7cc0f52", "2c2053ba709a", "259429414cbd", "461823224413", "0856963cf3b0",
    ]  # fmt: skip
