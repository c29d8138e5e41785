r"""GTH elimination of dense transient states: expected total costs and visits until they are left.

This is the elimination used for recurrent chains (``kernels.linear.elimination``): the probability of leaving to the
outside is given for each state, and grows as states are censored.
"""

import cython
from cython.cimports.psconrl.kernels._lanes import row_sum
from cython.cimports.psconrl.kernels._types import ConstMatrix, Matrix, Vector


def censor_transient(W, C, exits, n, q):
    """Censor the first n states of W one after the other; return whether each is left with positive probability.

    The costs of a censored state, the first q columns of C, and its exits are added to the states from which it is
    entered. On return the probabilities of leaving are on the diagonal of W.
    """
    for k in range(n - 1, -1, -1):
        out: cython.double = exits[k] + row_sum(W, k, k)
        if out == 0.0:
            return False
        W[k, k] = out
        for i in range(k):
            f: cython.double = W[i, k]
            if f > 0.0:
                f /= out
                for j in range(k):
                    W[i, j] += f * W[k, j]
                for j in range(q):
                    C[i, j] += f * C[k, j]
                exits[i] += f * exits[k]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _column_dot(
    W: ConstMatrix, i: cython.Py_ssize_t, x: ConstMatrix, k: cython.Py_ssize_t, n: cython.Py_ssize_t
) -> cython.double:
    """Return the product of the first n entries of row i of W and column k of x, in four lanes."""
    a: cython.double = 0.0
    b: cython.double = 0.0
    c: cython.double = 0.0
    d: cython.double = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        a += W[i, j] * x[j, k]
        b += W[i, j + 1] * x[j + 1, k]
        c += W[i, j + 2] * x[j + 2, k]
        d += W[i, j + 3] * x[j + 3, k]
    rest: cython.double = 0.0
    for j in range(whole, n):
        rest += W[i, j] * x[j, k]
    return ((a + b) + (c + d)) + rest


def solve_transient(W, C, exits, n):
    """Compute ``transient`` for the first n states, in place; return whether each is left with positive probability."""
    q = C.shape[1]
    if not censor_transient(W, C, exits, n, q):
        return False
    for k in range(n):
        for j in range(q):
            C[k, j] = (C[k, j] + _column_dot(W, k, C, j, k)) / W[k, k]
    return True


def solve_visits(W, y, exits, n):
    """Solve y = b + y W for the first n states; return whether each is left with positive probability.

    On entry y holds the arrivals b from outside; on return, the visits. W and exits are overwritten.
    """
    if not censor_transient(W, W, exits, n, 0):
        return False
    for k in range(n - 1, 0, -1):  # visits to each state until a state before it is visited; then the arrivals there
        visits: cython.double = y[k] / W[k, k]
        if visits > 0.0:
            for j in range(k):
                y[j] += visits * W[k, j]
    for k in range(n):
        y[k] /= W[k, k]
        for j in range(k + 1, n):
            y[j] += y[k] * W[k, j]
    return True


def transient(W: Matrix, C: Matrix, exits: Vector):
    r"""Solve :math:`x = C + W x` for transient states, given for each the total probability of leaving.

    W (n, n) are the transitions among the states, C (n, q) the cost of each, exits (n,) one minus the row sums of W,
    but computed free of cancellation. W, C and exits are overwritten, C by x. O(n^3). Raises ``ZeroDivisionError`` if
    some state is left with probability zero.
    """
    n = W.shape[0]
    if W.shape[1] != n or C.shape[0] != n or exits.shape[0] != n:
        raise ValueError("transitions (n, n), what is collected (n, q) and exits (n,) are needed")
    with cython.nogil:
        solved = solve_transient(W, C, exits, n)
    if not solved:
        raise ZeroDivisionError("a state is left with probability zero")
