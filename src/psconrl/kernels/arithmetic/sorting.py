"""A stable argsort for use inside kernels: merge sort of indices.

Equal values keep their order, so that results do not depend on the sorting algorithm. As in NumPy, every NaN comes
after every number, and -0.0 equals 0.0.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstVector, Ints

# Pieces of this many values are sorted by insertion before they are merged.
_PIECE = cython.declare(cython.Py_ssize_t, 16)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _before(x: cython.double, y: cython.double) -> cython.bint:
    """Return whether x comes strictly before y."""
    return x < y or (y != y and x == x)


def argsort_into(values, order, scratch):
    """Write the indices (n,) of values (n,) in ascending order to ``order``; ``scratch`` (n,) is overwritten.

    O(n log n), and O(n) if the values are already sorted.
    """
    n = values.shape[0]
    begin: cython.Py_ssize_t = 0
    while begin < n:
        for i in range(begin, min(begin + _PIECE, n)):
            v: cython.double = values[i]
            k: cython.Py_ssize_t = i
            while k > begin and _before(v, values[order[k - 1]]):
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
        begin += _PIECE
    width: cython.Py_ssize_t = _PIECE
    while width < n:
        begin = 0
        while begin + width < n:
            _merge(values, order, scratch, begin, begin + width, min(begin + 2 * width, n))
            begin += 2 * width
        width *= 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge(
    values: ConstVector,
    order: Ints,
    scratch: Ints,
    begin: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.void:
    """Merge two sorted pieces of the order, [begin, middle) and [middle, end)."""
    if not _before(values[order[middle]], values[order[middle - 1]]):
        return
    n = middle - begin
    for i in range(n):
        scratch[i] = order[begin + i]
    left: cython.Py_ssize_t = 0
    right: cython.Py_ssize_t = middle
    k: cython.Py_ssize_t = begin
    x: cython.double = values[scratch[0]]
    y: cython.double = values[order[middle]]
    while True:
        if _before(y, x):
            order[k] = order[right]
            right += 1
            if right == end:
                break
            y = values[order[right]]
        else:
            order[k] = scratch[left]
            left += 1
            if left == n:
                return  # the rest of the second piece is in place
            x = values[scratch[left]]
        k += 1
    for i in range(left, n):
        k += 1
        order[k] = scratch[i]


def argsort(values: ConstVector):
    """Return the indices (n,) that sort values (n,) in ascending order; stable, NaN last."""
    n = values.shape[0]
    order, scratch = np.empty(n, np.int64), np.empty(n, np.int64)
    argsort_into(values, order, scratch)
    return order
