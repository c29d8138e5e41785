"""Workspace for the elimination of sparse chains in a fixed order (``sparse_elimination``), and checks of the order."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers, check_starts


@cython.cclass
class Elimination:
    """An order and a workspace for chains of its pattern, with q costs: by position, entries as in the order."""

    def __init__(self, order, q: cython.Py_ssize_t):
        """Allocate the workspace, for any number of chains."""
        self.position, self.state = order.position, order.state
        self.lower, self.before, self.upper, self.after = order.lower, order.before, order.upper, order.after
        self.runs, self.first, self.begins = order.runs, order.first, order.begins
        S = self.position.shape[0]
        _check_order(self)
        self.F, self.U = np.empty(order.before.size), np.empty(order.after.size)
        self.outs, self.w, self.left, self.more = np.zeros((4, S))
        self.C, self.h = np.empty((S, q + 2)), np.empty((q, S))  # costs until leaving, time, moves to the reference
        self.alike = np.ones(S, np.int64)
        _count_alike(self)
        if not _four_together(self):
            raise ValueError("an order whose rows fill in is needed")


@cython.cfunc
def _check_order(work: Elimination):
    """Raise a ValueError unless the arrays of an order are consistent."""
    S, n_runs = work.position.shape[0], work.first.shape[0]
    fits: cython.bint = work.state.shape[0] == S and work.begins.shape[0] == n_runs + 1
    if not fits or work.lower.shape[0] != S + 1 or work.upper.shape[0] != S + 1 or work.runs.shape[0] != S + 1:
        raise ValueError("an order of S states is needed, and S + 1 beginnings of its rows")
    check_numbers(work.position, S, "there is no such position")
    check_numbers(work.state, S, "there is no such state")
    check_starts(work.lower, work.before.shape[0])
    check_starts(work.upper, work.after.shape[0])
    k: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for k in range(S):
        for e in range(work.lower[k], work.lower[k + 1]):
            fits &= work.before[e] < k
        for e in range(work.upper[k], work.upper[k + 1]):
            fits &= k < work.after[e] < S
        fits &= work.runs[k] <= work.runs[k + 1] <= n_runs
    for k in range(n_runs):
        length: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, work.begins[k + 1]) - work.begins[k]
        fits &= length >= 0 and work.first[k] + length <= S
    if fits:
        for k in range(S + 1):
            fits &= work.begins[work.runs[k]] == work.upper[k]
    if not fits:
        raise ValueError("the rows of an order must lead to positions before and after them")


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _four_together(work: Elimination) -> cython.bint:
    """Return whether every row that leads to the first of four rows of the same pattern leads to the others, too."""
    fits: cython.bint = True
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for i in range(work.position.shape[0]):
        for e in range(work.lower[i], work.lower[i + 1]):
            k: cython.Py_ssize_t = work.before[e]
            fits &= work.alike[k] < 4 or k + 4 > i or e + 4 <= work.lower[i + 1]
    return fits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_alike(work: Elimination) -> cython.void:
    """Count, from each row on, the consecutive rows that lead to the same positions after the last of them.

    The entries of the first of two rows fill in the second, so that it is enough to compare counts.
    """
    upper = work.upper
    k: cython.Py_ssize_t
    for k in range(work.alike.shape[0] - 2, -1, -1):
        begin, end = upper[k], upper[k + 1]
        if begin < end and work.after[begin] == k + 1 and end - begin == upper[k + 2] - end + 1:
            work.alike[k] = work.alike[k + 1] + 1
