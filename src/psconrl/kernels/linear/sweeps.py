r"""Products with a sparse chain, Gauss-Seidel sweeps, and steps of a distribution.

For the matrix :math:`A = I - P + \mathbf 1 q^T` of ``krylov``. The chain P is in CSR form.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._lanes import total
from cython.cimports.psconrl.kernels._types import ConstPlaces, ConstVector, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph

_INFINITE = cython.declare(cython.double, float("inf"))
_FEW_SWEEPS = cython.declare(cython.Py_ssize_t, 3)  # sweeps between two checks,
_FEW_LEAVE = cython.declare(cython.double, 0.3)  # and the share of the residual that they must get below
_FEW_STEPS = cython.declare(cython.Py_ssize_t, 6)  # the number of steps of a distribution between two checks


def product(indptr, indices, data, transposed, x, out):
    """Compute A x, or its transpose times x."""
    n = x.shape[0]
    mean: cython.double = total(x) / n
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    if transposed:
        for i in range(n):
            out[i] = x[i] + mean
        for i in range(n):
            value = x[i]
            for e in range(indptr[i], indptr[i + 1]):
                out[indices[e]] -= data[e] * value
        return
    for i in range(n):
        moved: cython.double = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            moved += data[e] * x[indices[e]]
        out[i] = x[i] - moved + mean


def invert_diagonal(indptr, indices, data, inverse):
    """Compute the inverse diagonal of A; 1 where a state hardly ever moves."""
    n = inverse.shape[0]
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for s in range(n):
        d: cython.double = 1.0 + 1.0 / cython.cast(cython.double, n)
        for e in range(indptr[s], indptr[s + 1]):
            if indices[e] == s:
                d -= data[e]
        inverse[s] = 1.0 / d if d > 1e-6 else 1.0


def relax(indptr, indices, data, scale, right, x, sweeps):
    """Run Gauss-Seidel sweeps for A x = right, in place."""
    n = x.shape[0]
    share: cython.double = 1.0 / cython.cast(cython.double, n)
    mean: cython.double = total(x) * share
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for _ in range(sweeps):
        for s in range(n):
            moved: cython.double = 0.0
            for e in range(indptr[s], indptr[s + 1]):
                moved += data[e] * x[indices[e]]
            change: cython.double = (right[s] - x[s] + moved - mean) * scale[s]
            x[s] += change
            mean += change * share


def sweep_until(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    right: ConstVector,
    x: Vector,
    most: cython.double,
    products: cython.Py_ssize_t,
):
    """Sweep for A x = right (n,), in place, until no entry of the residual exceeds ``most`` or sweeps help little.

    Returns the largest entry. For large chains that mix fast: the residual is checked after a few sweeps.
    """
    n = x.shape[0]
    if right.shape[0] != n or indptr.shape[0] != n + 1:
        raise ValueError("a chain (n, n), its right side and a guess (n,) are needed")
    check_graph(indptr, indices, data.shape[0], n)
    scale: Vector = np.empty(n)
    residual: Vector = np.empty(n)
    before: cython.double = _INFINITE
    worst: cython.double
    s: cython.Py_ssize_t
    with cython.nogil:
        invert_diagonal(indptr, indices, data, scale)
        while True:
            product(indptr, indices, data, False, x, residual)
            worst = 0.0
            for s in range(n):
                left: cython.double = abs(right[s] - residual[s])
                if left > worst:
                    worst = left
            products -= 1 + _FEW_SWEEPS
            if worst <= most or products < 0 or not worst <= _FEW_LEAVE * before:
                break
            before = worst
            relax(indptr, indices, data, scale, right, x, _FEW_SWEEPS)
    return worst


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _step(
    indptr: ConstPlaces, indices: ConstPlaces, data: ConstVector, distribution: Vector, onward: Vector
) -> cython.double:
    """Advance a distribution by one step, in place; return the mass that moved."""
    n = distribution.shape[0]
    s: cython.Py_ssize_t
    e: cython.Py_ssize_t
    for s in range(n):
        onward[s] = 0.0
    for s in range(n):
        mass = distribution[s]
        for e in range(indptr[s], indptr[s + 1]):
            onward[indices[e]] += data[e] * mass
    moved: cython.double = 0.0
    sum_: cython.double = 0.0
    for s in range(n):
        moved += abs(onward[s] - distribution[s])
        sum_ += onward[s]
    for s in range(n):
        distribution[s] = onward[s] / sum_
    return moved


def step_until(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    distribution: Vector,
    most: cython.double,
    products: cython.Py_ssize_t,
):
    """Advance a distribution (n,), in place, until a step moves at most ``most`` of its mass, or steps help little.

    Returns the mass moved by the last step. For large chains that mix fast: a step takes less than a sweep.
    """
    n = distribution.shape[0]
    if indptr.shape[0] != n + 1:
        raise ValueError("a chain (n, n) and a distribution (n,) are needed")
    check_graph(indptr, indices, data.shape[0], n)
    onward: Vector = np.empty(n)
    before: cython.double = _INFINITE
    moved: cython.double = _INFINITE
    k: cython.Py_ssize_t
    with cython.nogil:
        for k in range(products):
            moved = _step(indptr, indices, data, distribution, onward)
            if moved <= most:
                break
            if k % _FEW_STEPS == _FEW_STEPS - 1:
                if not moved <= _FEW_LEAVE * before:
                    break
                before = moved
    return moved
