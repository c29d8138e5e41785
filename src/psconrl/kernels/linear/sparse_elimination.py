r"""Gains, biases and stationary distribution of a sparse chain by GTH elimination in a fixed order.

As ``elimination`` for dense chains, on the entries of an ``Order``: the states are censored one after the other. The
pivot :math:`1 - P_{kk}` of each is the sum of its remaining transitions (Grassmann, Taksar and Heyman 1985). The
elimination is row-oriented: each row absorbs the rows before it. The reference is censored last, whatever its position,
and transitions to it are stored separately, so that a chain may restart there from every state without fill-in.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstPlaces, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers
from cython.cimports.psconrl.kernels.linear.elimination_workspace import Elimination

_LONG = cython.declare(cython.double, 1e3)  # steps: biases relative to a state with a longer return time are refined
_SHORT = cython.declare(cython.Py_ssize_t, 8)  # shorter runs of consecutive entries are processed one by one


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _take_in_one(work: Elimination, k: cython.Py_ssize_t, e: cython.Py_ssize_t) -> cython.void:
    """Add row k, times the entry that leads to it, to the accumulated row; the factor is entry e."""
    r: cython.Py_ssize_t
    t: cython.Py_ssize_t
    x: cython.Py_ssize_t
    f: cython.double = work.w[k]
    work.w[k] = 0.0
    if f > 0.0:
        f /= work.outs[k]
        if work.upper[k + 1] - work.upper[k] < _SHORT * (work.runs[k + 1] - work.runs[k]):
            for t in range(work.upper[k], work.upper[k + 1]):
                work.w[work.after[t]] += f * work.U[t]
        else:
            for r in range(work.runs[k], work.runs[k + 1]):  # consecutive entries are added several at a time
                to: cython.Py_ssize_t = work.first[r]
                begin: cython.Py_ssize_t = work.begins[r]
                length: cython.Py_ssize_t = work.begins[r + 1] - begin
                for x in range(length):
                    work.w[to + x] += f * work.U[begin + x]
    work.F[e] = f


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _take_in_four(work: Elimination, k: cython.Py_ssize_t, e: cython.Py_ssize_t) -> cython.void:
    """Add four rows of the same pattern to the accumulated row at once; see ``_take_in_one``."""
    r: cython.Py_ssize_t
    x: cython.Py_ssize_t
    a: cython.Py_ssize_t = work.upper[k]
    b: cython.Py_ssize_t = work.upper[k + 1]
    c: cython.Py_ssize_t = work.upper[k + 2]
    d: cython.Py_ssize_t = work.upper[k + 3]
    f: cython.double = work.w[k] / work.outs[k]
    g: cython.double = (work.w[k + 1] + f * work.U[a]) / work.outs[k + 1]
    h: cython.double = ((work.w[k + 2] + f * work.U[a + 1]) + g * work.U[b]) / work.outs[k + 2]
    i: cython.double = (((work.w[k + 3] + f * work.U[a + 2]) + g * work.U[b + 1]) + h * work.U[c]) / work.outs[k + 3]
    for x in range(4):
        work.w[k + x] = 0.0
    work.F[e] = f
    work.F[e + 1] = g
    work.F[e + 2] = h
    work.F[e + 3] = i
    if not (f > 0.0 or g > 0.0 or h > 0.0 or i > 0.0):
        return
    a += 3 - d
    b += 2 - d
    c += 1 - d
    for r in range(work.runs[k + 3], work.runs[k + 4]):
        to: cython.Py_ssize_t = work.first[r]
        begin: cython.Py_ssize_t = work.begins[r]
        length: cython.Py_ssize_t = work.begins[r + 1] - begin
        for x in range(length):
            work.w[to + x] = (
                ((work.w[to + x] + f * work.U[a + begin + x]) + g * work.U[b + begin + x]) + h * work.U[c + begin + x]
            ) + i * work.U[begin + x]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _censor(work: Elimination, i: cython.Py_ssize_t) -> cython.bint:
    """Absorb the earlier rows into a row, and store its later entries; return whether there are any."""
    columns = work.C.shape[1]
    c: cython.Py_ssize_t
    k: cython.Py_ssize_t
    t: cython.Py_ssize_t
    e: cython.Py_ssize_t = work.lower[i]
    end: cython.Py_ssize_t = work.lower[i + 1]
    while e < end:
        k = work.before[e]
        if work.alike[k] >= 4 and k + 4 <= i:
            _take_in_four(work, k, e)
            e += 4
        else:
            _take_in_one(work, k, e)
            e += 1
    for e in range(work.lower[i], end):
        f = work.F[e]
        if f > 0.0:
            k = work.before[e]
            for c in range(columns):
                work.C[i, c] += f * work.C[k, c]
    work.w[i] = 0.0
    out: cython.double = work.C[i, columns - 1]
    for t in range(work.upper[i], work.upper[i + 1]):
        k = work.after[t]
        value = work.w[k]
        work.w[k] = 0.0
        work.U[t] = value
        out += value
    work.outs[i] = out
    return out > 0.0


def eliminate_unichain(indptr, indices, data, rows, costs, reference, probability, work, gains, biases, stationary):
    """Compute ``unichain`` in a given workspace; the last three arrays are filled in."""
    S, q = rows.shape[0], costs.shape[0]
    last = work.position[reference]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    c: cython.Py_ssize_t
    e: cython.Py_ssize_t
    row: cython.Py_ssize_t
    for i in range(S):
        work.w[i] = 0.0
    for i in range(S):
        row = rows[work.state[i]]
        for c in range(q):
            work.C[i, c] = costs[c, row]
        work.C[i, q] = 1.0
        work.C[i, q + 1] = 0.0
        if i == last:
            for e in range(work.lower[i], work.lower[i + 1]):
                work.F[e] = 0.0
            for e in range(work.upper[i], work.upper[i + 1]):
                work.U[e] = 0.0
            work.outs[i] = 1.0
            continue
        leave: cython.double = probability
        for e in range(indptr[row], indptr[row + 1]):
            j = work.position[indices[e]]
            if j == last:
                leave += (1.0 - probability) * data[e]
            else:
                work.w[j] += (1.0 - probability) * data[e]
        work.C[i, q + 1] = leave
        if not _censor(work, i):
            return work.state[i]
    # The cycle from the reference back to it.
    row = rows[reference]
    for e in range(indptr[row], indptr[row + 1]):
        j = work.position[indices[e]]
        if j != last:
            work.w[j] += (1.0 - probability) * data[e]
    _go_round(work, last)
    time: cython.double = work.C[last, q]
    for c in range(q):
        gains[c] = work.C[last, c] / time
        for i in range(S):
            work.left[i] = work.C[i, c]
        _solve_upwards(work, last, work.left, gains[c], work.h[c])
    if time > _LONG:
        _refine(indptr, indices, data, rows, costs, probability, last, work, gains)
    mass: cython.double = _visits(work, last)
    for i in range(S):
        j = work.state[i]
        stationary[j] = work.w[i] / mass
        for c in range(q):
            biases[c, j] = work.h[c, i]
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _go_round(work: Elimination, last: cython.Py_ssize_t) -> cython.void:
    """Collect in the reference's row the totals of a cycle, from where its own row leads: w becomes the visits.

    The visits are those of the censored chains: each state counts while the states after it are not yet included.
    """
    k: cython.Py_ssize_t
    t: cython.Py_ssize_t
    c: cython.Py_ssize_t
    for k in range(work.w.shape[0]):
        f: cython.double = work.w[k]
        if f > 0.0:
            f /= work.outs[k]
            work.w[k] = f
            for t in range(work.upper[k], work.upper[k + 1]):
                work.w[work.after[t]] += f * work.U[t]
            for c in range(work.C.shape[1] - 1):
                work.C[last, c] += f * work.C[k, c]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _solve_upwards(
    work: Elimination, last: cython.Py_ssize_t, collected: ConstVector, gain: cython.double, h: Vector
) -> cython.void:
    """Compute the bias h of the costs collected until a state is left for later ones, from last to first position."""
    q = work.C.shape[1] - 2
    k: cython.Py_ssize_t
    t: cython.Py_ssize_t
    h[last] = 0.0
    for k in range(h.shape[0] - 1, -1, -1):
        if k != last:
            total: cython.double = collected[k] - gain * work.C[k, q]
            for t in range(work.upper[k], work.upper[k + 1]):
                total += work.U[t] * h[work.after[t]]
            h[k] = total / work.outs[k]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _visits(work: Elimination, last: cython.Py_ssize_t) -> cython.double:
    """Compute the expected visits to all positions in a cycle, in w; return their sum."""
    mass: cython.double = 0.0
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    work.w[last] = 1.0
    for i in range(work.w.shape[0] - 1, -1, -1):
        visited = work.w[i]
        mass += visited
        if i != last:
            for e in range(work.lower[i], work.lower[i + 1]):
                work.w[work.before[e]] += visited * work.F[e]
    return mass


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _refine(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    rows: ConstInts,
    costs: ConstMatrix,
    probability: cython.double,
    last: cython.Py_ssize_t,
    work: Elimination,
    gains: Vector,
) -> cython.void:
    """Solve again for the residual of the equation, in place, by position.

    Biases are differences of the totals of a cycle, which is long if the reference is hardly ever visited: they have
    lost as many digits as the length of the cycle has. w: initial mass of a cycle, by position.
    """
    S, q = rows.shape[0], costs.shape[0]
    left, more = work.left, work.more
    i: cython.Py_ssize_t
    c: cython.Py_ssize_t
    e: cython.Py_ssize_t
    row: cython.Py_ssize_t
    for c in range(q):
        h = work.h[c]
        for i in range(S):
            row = rows[work.state[i]]
            moved: cython.double = 0.0
            for e in range(indptr[row], indptr[row + 1]):
                moved += data[e] * (h[work.position[indices[e]]] - h[i])
            left[i] = costs[c, row] - gains[c] + (1.0 - probability) * moved + probability * (h[last] - h[i])
        gain: cython.double = left[last]
        for i in range(S):
            if i != last:
                total: cython.double = left[i]
                for e in range(work.lower[i], work.lower[i + 1]):
                    total += work.F[e] * left[work.before[e]]
                left[i] = total
                gain += work.w[i] * total
        gain /= work.C[last, q]
        gains[c] += gain
        _solve_upwards(work, last, left, gain, more)
        for i in range(S):
            h[i] += more[i]


def unichain(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    rows: ConstInts,
    costs: ConstMatrix,
    reference: cython.Py_ssize_t,
    probability: cython.double,
    order,
):
    """Return gains (q,), biases (q, S) and stationary distribution (S,) of the chain of some rows of a matrix.

    Every step leads to the reference with a probability, and otherwise as the row says. The first value is -1, or a
    state of a closed class without the reference. Costs (q, number of rows in the matrix); entries as in the order,
    unsorted.
    """
    S, q = rows.shape[0], costs.shape[0]
    if order.position.size != S or not 0 <= reference < S or indptr.shape[0] - 1 != costs.shape[1]:
        raise ValueError("an order of S states, S rows, costs of all rows and one of the states are needed")
    check_graph(indptr, indices, data.shape[0], S)
    check_numbers(rows, indptr.shape[0] - 1, "there is no such row")
    work: Elimination = Elimination(order, q)
    gains, biases, stationary = np.zeros(q), np.zeros((q, S)), np.zeros(S)
    g: Vector = gains
    h: Matrix = biases
    mu: Vector = stationary
    with cython.nogil:
        stuck: cython.Py_ssize_t = eliminate_unichain(
            indptr, indices, data, rows, costs, reference, probability, work, g, h, mu
        )
    return stuck, gains, biases, stationary


def censored(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    reference: cython.Py_ssize_t,
    probability: cython.double,
    order,
):
    """Return the rows of a censored chain (S, S) and its stationary distribution; arguments as in ``unichain``.

    The rows are those that ``outward_improvement.until_reference`` takes, for any number of costs.
    """
    S = indptr.shape[0] - 1
    if order.position.size != S or not 0 <= reference < S:
        raise ValueError("an order of S states and one of the states are needed")
    check_graph(indptr, indices, data.shape[0], S)
    work: Elimination = Elimination(order, 0)
    nothing, stationary = np.zeros((0, S)), np.zeros(S)
    every: ConstInts = np.arange(S)
    mu: Vector = stationary
    g: Vector = nothing[:, 0].copy()
    h: Matrix = nothing
    with cython.nogil:
        stuck: cython.Py_ssize_t = eliminate_unichain(
            indptr, indices, data, every, h, reference, probability, work, g, h, mu
        )
    return stuck, (np.asarray(work.F), np.asarray(work.U), np.asarray(work.outs)), stationary
