"""Compiled parts of the Dirichlet sampler: plain arrays in, plain arrays out."""

import math

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints


@njit(cache=True)
def log_gamma_small(shape: Floats, index: Ints, e: Floats, v: Floats, logs: Floats) -> Ints:
    r"""One round of the rejection method GS of Ahrens and Dieter (1974) for shapes below 1, in logarithms.

    With e and v exponential, U = exp(-e): if :math:`U \le 1 - a`, X = U^(1/a) is accepted if it is at most v, else
    :math:`Y = -\log((1 - U)/a)` and X = (1 - a + a Y)^(1/a) if it is at most v + Y. Cheap bounds spare most of the
    transcendental functions. Writes the accepted ones into ``logs`` and returns the indices that are left.
    """
    left = np.empty(index.size, np.int64)
    count = 0
    for k in range(index.size):
        i = index[k]
        a = shape[i]
        # a <= -log(1 - a) <= a / (1 - a)
        if e[k] * (1.0 - a) >= a or (e[k] > a and e[k] >= -math.log1p(-a)):
            log_x = -e[k] / a
            # exp(x) <= 1 / (1 - x) for x <= 0
            accept = v[k] * (1.0 - log_x) >= 1.0 or math.exp(log_x) <= v[k]
        else:
            y = -math.log(-math.expm1(-e[k]) / a)
            log_x = math.log(1.0 - a + a * y) / a
            accept = math.exp(log_x) <= v[k] + y
        if accept:
            logs[i] = log_x
        else:
            left[count] = i
            count += 1
    return left[:count]


@njit(cache=True)
def lower_by_row_maximum(logs: Floats, floor: float) -> None:
    """Subtract the largest entry of every row from it, down to a floor; -inf stays."""
    for row in logs:
        top = row[0]
        for x in row:
            top = max(top, x)
        for j in range(row.size):
            if row[j] > -np.inf:
                row[j] = max(row[j] - top, floor)


@njit(cache=True)
def normalise_rows(rows: Floats) -> None:
    """Divide every row by its sum."""
    for row in rows:
        total = 0.0
        for x in row:
            total += x
        for j in range(row.size):
            row[j] /= total
