r"""Compiled: gains, biases and the stationary law of a sparse chain by BiCGSTAB (van der Vorst 1992).

With q the uniform law, the matrix :math:`A = I - P + \mathbf 1 q^T` is regular if the chain has one closed class:
:math:`A h = c` has as its solution the bias, up to a constant such that q h is the gain, and :math:`\mu A = q` the
stationary law. No factorisation: where a chain mixes fast, some dozen products settle it, however its states are
connected. Every unknown is counted in units of its diagonal entry (Jacobi).
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints

_FAST = {"reassoc", "contract", "nsz"}
_ROWS = {"contract", "nsz"}  # rows are short: several entries at a time, where that can be done, take twice as long
_SMALL = 1e-3  # entries below this are left out of corrections,
_INNER = 1e-3  # which are found to within this,
_SWEEPS = 12  # or by so many sweeps,
_FEW_SWEEPS, _FEW_LEAVE = 3, 0.3  # of large chains: so many between two looks, and what they must leave
_FEW_STEPS = 6  # the same of a law that is followed
_SLOW = 0.1  # as long as each leaves no more than this of the residual


@njit(cache=True, fastmath=_ROWS)
def _product(indptr: Ints, indices: Ints, data: Floats, transposed: bool, x: Floats, out: Floats) -> None:
    """A x, or its transpose times x."""
    n = x.size
    mean = 0.0
    for s in range(n):
        mean += x[s]
    mean /= n
    if transposed:
        for s in range(n):
            out[s] = x[s] + mean
        for s in range(n):
            for e in range(indptr[s], indptr[s + 1]):
                out[indices[e]] -= data[e] * x[s]
        return
    for s in range(n):
        moved = 0.0
        for e in range(indptr[s], indptr[s + 1]):
            moved += data[e] * x[indices[e]]
        out[s] = x[s] - moved + mean


@njit(cache=True, fastmath=_FAST)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _diagonal(indptr: Ints, indices: Ints, data: Floats) -> Floats:
    """The inverse diagonal of A; 1 where a state hardly ever moves."""
    n = indptr.size - 1
    inverse = np.ones(n)
    for s in range(n):
        d = 1.0 + 1.0 / n
        for e in range(indptr[s], indptr[s + 1]):
            if indices[e] == s:
                d -= data[e]
        if d > 1e-6:
            inverse[s] = 1.0 / d
    return inverse


@njit(cache=True)
def _core(indptr: Ints, indices: Ints, data: Floats) -> tuple[Ints, Ints, Floats]:
    """The entries that matter: without those below ``_SMALL``."""
    n = indptr.size - 1
    new_indptr = np.zeros_like(indptr)
    new_indices, new_data = np.empty_like(indices), np.empty_like(data)
    k = 0
    for s in range(n):
        for e in range(indptr[s], indptr[s + 1]):
            if data[e] >= _SMALL:
                new_indices[k], new_data[k] = indices[e], data[e]
                k += 1
        new_indptr[s + 1] = k
    return new_indptr, new_indices[:k].copy(), new_data[:k].copy()


@njit(cache=True, nogil=True)
def solve(
    indptr: Ints, indices: Ints, data: Floats, transposed: bool, right: Floats, x: Floats, tolerance: float,
    most: float, products: int,
) -> float:  # fmt: skip
    """Solve A x = right for every row of ``right`` (q, n), or with the transpose of A, from a guess and in its place.

    Until no entry of a residual exceeds ``most``, nor the tolerance times the largest of right side and solution, or
    the products are used up. Returns the largest entry of a residual. Rows drawn from a posterior have many tiny
    entries: corrections are found without them, and what they change is corrected in turn.
    """
    q, n = x.shape
    core_indptr, core_indices, core_data = _core(indptr, indices, data)
    pruned = core_data.size < 0.7 * data.size
    scale = _diagonal(indptr, indices, data)
    residual, correction, kept = np.empty(n), np.empty(n), np.empty(n)
    largest = 0.0
    for i in range(q):
        left, before, without, sweeping = products, np.inf, pruned, not transposed
        cleared = False
        while True:
            _product(indptr, indices, data, transposed, x[i], residual)
            left -= 1
            worst, size = 0.0, 0.0
            for s in range(n):
                residual[s] = right[i, s] - residual[s]
                worst = max(worst, abs(residual[s])) if abs(residual[s]) < np.inf else np.inf  # also if it is no number
                size = max(size, abs(x[i, s]), abs(right[i, s]))
            goal = min(tolerance * size, most)
            if worst <= goal < np.inf or left < 2:
                break
            if worst == before == np.inf:  # a guess that is none
                if cleared:
                    break
                cleared = True
                for s in range(n):
                    x[i, s] = 0.0
                continue
            if not worst <= _SLOW * before:
                if not worst < before:  # it was no correction: take it back
                    for s in range(n):
                        x[i, s] = kept[s]
                    if not sweeping and not without:
                        worst = before
                        break
                    before = np.inf
                elif not sweeping and not without and worst > 0.9 * before:
                    break
                # Sweeps do not suffice, or what was left out matters.
                if sweeping:
                    sweeping = False
                else:
                    without = False
                if before == np.inf:
                    continue
            before = worst
            for s in range(n):
                correction[s], kept[s] = 0.0, x[i, s]
            if sweeping:
                _relax(core_indptr, core_indices, core_data, scale, residual, correction, _SWEEPS)
                left -= _SWEEPS
            elif without:
                aim = max(_INNER * worst, 0.3 * goal)
                left = _bicgstab(
                    core_indptr, core_indices, core_data, transposed, scale, residual, correction, aim, left
                )
            else:
                left = _bicgstab(indptr, indices, data, transposed, scale, residual, correction, 0.5 * goal, left)
            for s in range(n):
                x[i, s] += correction[s]
        largest = max(largest, worst)
    return largest


@njit(cache=True, fastmath=_ROWS)
def _relax(
    indptr: Ints, indices: Ints, data: Floats, scale: Floats, right: Floats, x: Floats, sweeps: int
) -> None:  # fmt: skip
    """Sweeps of Gauss and Seidel for A x = right, in place."""
    n = x.size
    total = 0.0
    for s in range(n):
        total += x[s]
    for _ in range(sweeps):
        for s in range(n):
            moved = 0.0
            for e in range(indptr[s], indptr[s + 1]):
                moved += data[e] * x[indices[e]]
            change = (right[s] - x[s] + moved - total / n) * scale[s]
            x[s] += change
            total += change


@njit(cache=True, nogil=True, fastmath=_ROWS)
def sweep_until(
    indptr: Ints, indices: Ints, data: Floats, right: Floats, x: Floats, most: float, products: int
) -> float:  # fmt: skip
    """Sweeps for A x = right (n,), in place, until no entry of the residual exceeds ``most`` or they help little.

    Returns the largest entry. For large chains that mix fast: a residual is looked at after few sweeps.
    """
    n = x.size
    scale, residual = _diagonal(indptr, indices, data), np.empty(n)
    before = np.inf
    while True:
        _product(indptr, indices, data, False, x, residual)
        worst = 0.0
        for s in range(n):
            worst = max(worst, abs(right[s] - residual[s]))
        products -= 1 + _FEW_SWEEPS
        if worst <= most or products < 0 or not worst <= _FEW_LEAVE * before:
            return worst
        before = worst
        _relax(indptr, indices, data, scale, right, x, _FEW_SWEEPS)


@njit(cache=True, nogil=True, fastmath=_ROWS)
def step_until(indptr: Ints, indices: Ints, data: Floats, law: Floats, most: float, products: int) -> float:
    """Follow a law (n,), in place, until a step moves no more than ``most`` of its mass, or steps help little.

    Returns what the last step moved. For large chains that mix fast: a step takes less than a sweep.
    """
    onward, before, moved = np.empty(law.size), np.inf, np.inf
    for k in range(products):
        onward[:] = 0.0
        for s in range(law.size):
            for e in range(indptr[s], indptr[s + 1]):
                onward[indices[e]] += data[e] * law[s]
        moved, total = 0.0, 0.0
        for s in range(law.size):
            moved += abs(onward[s] - law[s])
            total += onward[s]
        for s in range(law.size):
            law[s] = onward[s] / total
        if moved <= most:
            break
        if k % _FEW_STEPS == _FEW_STEPS - 1:
            if not moved <= _FEW_LEAVE * before:
                break
            before = moved
    return moved


@njit(cache=True, fastmath=_FAST)
def _bicgstab(
    indptr: Ints, indices: Ints, data: Floats, transposed: bool, scale: Floats, residual: Floats, x: Floats,
    goal: float, products: int,
) -> int:  # fmt: skip
    """Solve A x = residual from x = 0, in place, until no entry of the residual exceeds the goal. A breakdown ends it
    early. Returns the products that are left.
    """
    n = x.size
    shadow, p = residual.copy(), residual.copy()
    v, t, y = np.empty(n), np.empty(n), np.empty(n)
    rho = _dot(shadow, residual)
    while products >= 2:
        for i in range(n):
            y[i] = scale[i] * p[i]
        _product(indptr, indices, data, transposed, y, v)
        along = _dot(shadow, v)
        if along == 0.0:
            break
        alpha = rho / along
        for i in range(n):
            x[i] += alpha * y[i]
            residual[i] -= alpha * v[i]
            y[i] = scale[i] * residual[i]
        _product(indptr, indices, data, transposed, y, t)
        products -= 2
        length = _dot(t, t)
        if length == 0.0:
            break
        omega = _dot(t, residual) / length
        worst = 0.0
        for i in range(n):
            x[i] += omega * y[i]
            residual[i] -= omega * t[i]
            worst = max(worst, abs(residual[i]))
        if worst <= goal or not worst < 1e300:
            break
        before, rho = rho, _dot(shadow, residual)
        if rho == 0.0 or omega == 0.0:
            break
        beta = rho / before * alpha / omega
        for i in range(n):
            p[i] = residual[i] + beta * (p[i] - omega * v[i])
    return products
