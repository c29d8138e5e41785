"""Pure-Python stand-in for ``_lanes.pxd``, for kernels that run uncompiled: the same sums to the last bit."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, mul

Row = Sequence[float]
Rows = Sequence[Row]


def _in_lanes(terms: Sequence[float]) -> float:
    """Return the sum of some terms in eight lanes."""
    whole = len(terms) - len(terms) % 8
    a, b, c, d, e, f, g, h = (_in_order(terms[k:whole:8]) for k in range(8))
    return (((a + b) + (c + d)) + ((e + f) + (g + h))) + _in_order(terms[whole:])


def _in_order(terms: Iterable[float]) -> float:
    return reduce(add, terms, 0.0)  # sum() compensates for rounding


def total(x: Row) -> float:
    """Return the sum of a vector."""
    return _in_lanes([*x])


def dot(x: Row, y: Row) -> float:
    """Return the product of two vectors."""
    return _in_lanes([*map(mul, x, y)])


def weighted_dot(weights: Row, x: Row, y: Row, begin: int, end: int) -> float:
    """Return the weighted product of x and y over a range of entries."""
    return _in_lanes([weights[i] * x[i] * y[i] for i in range(begin, end)])


def row_sum(W: Rows, i: int, n: int) -> float:
    """Return the sum of the first n entries of row i."""
    return total(W[i][:n])


def row_times(W: Rows, i: int, x: Row, n: int) -> float:
    """Return the product of the first n entries of row i of W and of x."""
    return dot(W[i][:n], x[:n])


def row_dot(W: Rows, i: int, x: Rows, k: int, n: int) -> float:
    """Return the product of the first n entries of row i of W and row k of x."""
    return dot(W[i][:n], x[k][:n])
