"""L1 balls of models: the distribution of the next state within a ball that is best for given values."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstVector, Matrix
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers


def move_to_first(p_bar: ConstMatrix, radius: ConstVector, order: ConstInts):
    """Return the distributions (n, S) in L1 balls around ``p_bar`` (n, S) that are best for an order of the states.

    Each moves half of its radius (n,), or what is left, to the first state of the order, and takes it from the last.
    """
    n, S = p_bar.shape[0], p_bar.shape[1]
    if S == 0 or radius.shape[0] != n or order.shape[0] != S:
        raise ValueError("distributions (n, S), radii (n,) and an order of all states are needed")
    check_numbers(order, S, "an order of all states is needed")
    result = np.empty((n, S))
    moved: Matrix = result
    with cython.nogil:
        first: cython.Py_ssize_t = order[0]
        for row in range(n):
            gained: cython.double = min(p_bar[row, first] + radius[row] / 2.0, 1.0)
            to_take: cython.double = gained - p_bar[row, first]
            total: cython.double = 0.0
            for k in range(S - 1, 0, -1):
                p: cython.double = p_bar[row, order[k]]
                total += p
                moved[row, order[k]] = p - min(max(to_take - (total - p), 0.0), p)
            moved[row, first] = gained
    return result
