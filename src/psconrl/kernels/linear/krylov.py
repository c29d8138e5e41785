r"""Gains, biases and the stationary distribution of a sparse chain by BiCGSTAB (van der Vorst 1992).

With q the uniform distribution, the matrix :math:`A = I - P + \mathbf 1 q^T` is regular if the chain has one closed
class. The solution of :math:`A h = c` is the bias, up to a constant such that q h is the gain; that of :math:`\mu A =
q` is the stationary distribution. No factorisation is needed: if a chain mixes fast, some dozen products suffice,
whatever its graph. Every unknown is scaled by its diagonal entry (Jacobi).

Chains are given in CSR form.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import dot
from cython.cimports.psconrl.kernels._types import ConstMatrix, ConstPlaces, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph
from cython.cimports.psconrl.kernels.linear.sweeps import invert_diagonal, product, relax

_INFINITE = cython.declare(cython.double, float("inf"))
_SMALL = cython.declare(cython.double, 1e-3)  # corrections ignore entries below this,
_CORE = cython.declare(cython.double, 0.7)  # if at most this share of all entries remains,
_INNER = cython.declare(cython.double, 1e-3)  # and are solved to this relative residual,
_SWEEPS = cython.declare(cython.Py_ssize_t, 12)  # or by this many sweeps,
_SLOW = cython.declare(cython.double, 0.1)  # as long as each reduces the residual to this share or less


@cython.cclass
class Workspace:
    """Workspace for chains of n states with a maximum number of entries: the large entries, and vectors."""

    def __init__(self, n: cython.Py_ssize_t, entries: cython.Py_ssize_t):
        """Allocate the workspace, for any number of chains."""
        self.indptr = np.empty(n + 1, np.intc)
        self.indices = np.empty(entries, np.intc)
        self.data = np.empty(entries)
        self.scale, self.residual, self.correction, self.kept = np.empty((4, n))
        self.shadow, self.p, self.v, self.t, self.y = np.empty((5, n))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _keep_core(indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, work: Workspace) -> cython.void:
    """Copy the entries of at least ``_SMALL`` to the workspace."""
    n = work.scale.shape[0]
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    work.indptr[0] = 0
    for s in range(n):
        for e in range(indptr[s], indptr[s + 1]):
            if data[e] >= _SMALL:
                work.indices[k] = indices[e]
                work.data[k] = data[e]
                k += 1
        work.indptr[s + 1] = k


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bicgstab(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    transposed: cython.bint,
    goal: cython.double,
    products: cython.Py_ssize_t,
    work: Workspace,
) -> cython.Py_ssize_t:
    """Solve A x = residual from x = 0 until no entry of the residual exceeds the goal; x is left in the correction.

    A breakdown ends it early. Returns the number of products left.
    """
    scale, residual, x = work.scale, work.residual, work.correction
    shadow, p, v, t, y = work.shadow, work.p, work.v, work.t, work.y
    n = x.shape[0]
    i: cython.Py_ssize_t
    for i in range(n):
        shadow[i] = residual[i]
        p[i] = residual[i]
    rho: cython.double = dot(shadow, residual)
    while products >= 2:
        for i in range(n):
            y[i] = scale[i] * p[i]
        product(indptr, indices, data, transposed, y, v)
        along: cython.double = dot(shadow, v)
        if along == 0.0:
            break
        alpha: cython.double = rho / along
        for i in range(n):
            x[i] += alpha * y[i]
            residual[i] -= alpha * v[i]
            y[i] = scale[i] * residual[i]
        product(indptr, indices, data, transposed, y, t)
        products -= 2
        length: cython.double = dot(t, t)
        if length == 0.0:
            break
        omega: cython.double = dot(t, residual) / length
        worst: cython.double = 0.0
        for i in range(n):
            x[i] += omega * y[i]
            left: cython.double = residual[i] - omega * t[i]
            residual[i] = left
            if abs(left) > worst:
                worst = abs(left)
        if worst <= goal or not worst < 1e300:
            break
        before: cython.double = rho
        rho = dot(shadow, residual)
        if rho == 0.0 or omega == 0.0:
            break
        beta: cython.double = rho / before * alpha / omega
        for i in range(n):
            p[i] = residual[i] + beta * (p[i] - omega * v[i])
    return products


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _solve_one(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    transposed: cython.bint,
    right: ConstVector,
    x: Vector,
    tolerance: cython.double,
    most: cython.double,
    products: cython.Py_ssize_t,
    work: Workspace,
) -> cython.double:
    """Compute ``solve`` for one right-hand side (n,): large entries and inverse diagonal are in the workspace."""
    n = x.shape[0]
    residual, correction, kept = work.residual, work.correction, work.kept
    without: cython.bint = work.indptr[n] < _CORE * indptr[n]
    sweeping: cython.bint = not transposed
    cleared: cython.bint = False
    before: cython.double = _INFINITE
    worst: cython.double
    s: cython.Py_ssize_t
    while True:
        product(indptr, indices, data, transposed, x, residual)
        products -= 1
        worst = 0.0
        size: cython.double = 0.0
        for s in range(n):
            left: cython.double = right[s] - residual[s]
            residual[s] = left
            if not abs(left) <= worst:
                worst = abs(left) if abs(left) < _INFINITE else _INFINITE  # also if it is NaN
            if abs(x[s]) > size:
                size = abs(x[s])
            if abs(right[s]) > size:
                size = abs(right[s])
        goal: cython.double = min(tolerance * size, most)
        if worst <= goal < _INFINITE or products < 2:
            break
        if worst == _INFINITE and before == _INFINITE:  # the guess is invalid
            if cleared:
                break
            cleared = True
            for s in range(n):
                x[s] = 0.0
            continue
        if not worst <= _SLOW * before:
            if not worst < before:  # no improvement: undo the correction
                for s in range(n):
                    x[s] = kept[s]
                if not sweeping and not without:
                    worst = before
                    break
                before = _INFINITE
            elif not sweeping and not without and worst > 0.9 * before:
                break
            # Sweeps do not suffice, or the omitted entries matter.
            if sweeping:
                sweeping = False
            else:
                without = False
            if before == _INFINITE:
                continue
        before = worst
        for s in range(n):
            correction[s] = 0.0
            kept[s] = x[s]
        if sweeping:
            relax(work.indptr, work.indices, work.data, work.scale, residual, correction, _SWEEPS)
            products -= _SWEEPS
        elif without:
            aim: cython.double = max(_INNER * worst, 0.3 * goal)
            products = _bicgstab(work.indptr, work.indices, work.data, transposed, aim, products, work)
        else:
            products = _bicgstab(indptr, indices, data, transposed, 0.5 * goal, products, work)
        for s in range(n):
            x[s] += correction[s]
    return worst


def solve_into(indptr, indices, data, transposed, right, x, tolerance, most, products, work):
    """Compute ``solve`` in a given workspace."""
    _keep_core(indptr, indices, data, work)
    invert_diagonal(indptr, indices, data, work.scale)
    largest: cython.double = 0.0
    for i in range(x.shape[0]):
        worst: cython.double = _solve_one(
            indptr, indices, data, transposed, right[i], x[i], tolerance, most, products, work
        )
        if worst > largest:
            largest = worst
    return largest


def distribution_into(indptr, indices, data, uniform, x, tolerance, products, work, stationary):
    """Compute the stationary distribution (n,) of a chain from a guess x (1, n), which is improved."""
    solve_into(indptr, indices, data, True, uniform, x, tolerance, _INFINITE, products, work)
    mass: cython.double = 0.0
    for s in range(stationary.shape[0]):
        stationary[s] = max(x[0, s], 0.0)
        mass += stationary[s]
    for s in range(stationary.shape[0]):
        stationary[s] /= mass


def solve(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    transposed: cython.bint,
    right: ConstMatrix,
    x: Matrix,
    tolerance: cython.double,
    most: cython.double,
    products: cython.Py_ssize_t,
):
    """Solve A x = right for every row of ``right`` (q, n), or with the transpose of A, from a guess and in its place.

    Stops when no entry of a residual exceeds ``most``, nor the tolerance times the largest of right-hand side and
    solution, or when the products are used up. Returns the largest entry of a residual. Rows drawn from a posterior
    have many tiny entries: corrections are computed without them, and their effect is corrected in turn.
    """
    n = x.shape[1]
    if right.shape[0] != x.shape[0] or right.shape[1] != n or indptr.shape[0] != n + 1:
        raise ValueError("a chain (n, n), right sides and guesses (q, n) are needed")
    check_graph(indptr, indices, data.shape[0], n)
    work: Workspace = Workspace(n, indices.shape[0])
    with cython.nogil:
        worst: cython.double = solve_into(indptr, indices, data, transposed, right, x, tolerance, most, products, work)
    return worst
