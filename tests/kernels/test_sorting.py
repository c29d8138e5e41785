"""The stable argsort of the kernels: by hand, and against NumPy's."""

import numpy as np
import pytest

from psconrl.kernels.arithmetic.sorting import argsort


def test_of_equal_values_the_first_comes_first_and_nan_last():
    nan, inf = np.nan, np.inf
    assert argsort(np.array([2.0, nan, 0.0, 2.0, -0.0, -inf, nan, 2.0])).tolist() == [5, 2, 4, 0, 3, 7, 1, 6]
    assert argsort(np.empty(0)).tolist() == []


def test_what_is_sorted_stays_and_what_falls_is_turned_round():
    rising = np.arange(1000.0)
    assert argsort(rising).tolist() == list(range(1000))
    assert argsort(-rising).tolist() == list(range(999, -1, -1))
    assert argsort(np.zeros(1000)).tolist() == list(range(1000))
    assert argsort(np.arange(1000.0) % 2).tolist() == [*range(0, 1000, 2), *range(1, 1000, 2)]


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65, 100, 1000])
def test_it_is_the_order_of_numpy(n):
    rng = np.random.default_rng(n)
    for values in (rng.normal(size=n), np.round(2 * rng.normal(size=n)), np.where(rng.random(n) < 0.3, np.nan, 1.0)):
        np.testing.assert_array_equal(argsort(values), np.argsort(values, kind="stable"))
