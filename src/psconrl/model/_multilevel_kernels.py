"""Compiled: what a multilevel method does on each of its levels. See ``multilevel``.

A level is a chain without its diagonal: rates W of moving on in CSR form, and their sums D. Its equation is
:math:`D h - W h = r`.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints, Places

_FAST = {"reassoc", "contract", "nsz"}
_ROWS = {"contract", "nsz"}  # rows are short: several entries at a time, where that can be done, take twice as long


@njit(cache=True, nogil=True)
def moves_of(indptr: Ints, indices: Places, data: Floats) -> tuple[Ints, Places, Floats, Floats]:
    """The moves of a chain to other states, and how likely a state is left."""
    n = indptr.size - 1
    new_indptr = np.zeros(n + 1, np.int64)
    new_indices, new_data = np.empty(indices.size, np.int32), np.empty(data.size)
    leaving = np.zeros(n)
    k = 0
    for s in range(n):
        for e in range(indptr[s], indptr[s + 1]):
            if indices[e] != s and data[e] > 0.0:
                new_indices[k], new_data[k] = indices[e], data[e]
                leaving[s] += data[e]
                k += 1
        new_indptr[s + 1] = k
    return new_indptr, new_indices[:k].copy(), new_data[:k].copy(), leaving


@njit(cache=True, nogil=True)
def scaled(indptr: Ints, data: Floats, mass: Floats) -> Floats:
    """Every row times the mass of its state."""
    out = np.empty_like(data)
    for s in range(mass.size):
        for e in range(indptr[s], indptr[s + 1]):
            out[e] = mass[s] * data[e]
    return out


@njit(cache=True, nogil=True)
def pairs_of(
    indptr: Ints, indices: Places, flow: Floats, t_indptr: Ints, t_indices: Places, t_flow: Floats, strong: float
) -> Ints:  # fmt: skip
    """Pair every state with the free one that it exchanges most with; the number of the pair, (n,).

    ``strong``: of its strongest tie to any state; weaker ones do not make a pair.
    """
    n = indptr.size - 1
    pair = np.full(n, -1)
    tie = np.zeros(n)
    k = 0
    for s in range(n):
        if pair[s] >= 0:
            continue
        for e in range(indptr[s], indptr[s + 1]):
            tie[indices[e]] += flow[e]
        for e in range(t_indptr[s], t_indptr[s + 1]):
            tie[t_indices[e]] += t_flow[e]
        strongest, best, of_best = 0.0, -1, 0.0
        for e in range(indptr[s], indptr[s + 1]):
            t = indices[e]
            strongest = max(strongest, tie[t])
            if pair[t] < 0 and tie[t] > of_best:
                best, of_best = t, tie[t]
        for e in range(t_indptr[s], t_indptr[s + 1]):
            t = t_indices[e]
            strongest = max(strongest, tie[t])
            if pair[t] < 0 and tie[t] > of_best:
                best, of_best = t, tie[t]
        for e in range(indptr[s], indptr[s + 1]):
            tie[indices[e]] = 0.0
        for e in range(t_indptr[s], t_indptr[s + 1]):
            tie[t_indices[e]] = 0.0
        pair[s] = k
        if best >= 0 and of_best >= strong * strongest:
            pair[best] = k
        k += 1
    return pair


@njit(cache=True, nogil=True)
def gathered(indptr: Ints, indices: Places, flow: Floats, group: Ints, k: int) -> tuple[Ints, Places, Floats]:
    """The flow between groups."""
    n = indptr.size - 1
    count = np.zeros(k + 1, np.int64)
    for s in range(n):
        count[group[s] + 1] += 1
    first = np.cumsum(count)
    member = np.empty(n, np.int64)
    at = first[:-1].copy()
    for s in range(n):
        member[at[group[s]]] = s
        at[group[s]] += 1
    place = np.full(k, -1)
    new_indptr = np.zeros(k + 1, np.int64)
    new_indices, new_flow = np.empty(indices.size, np.int32), np.empty(indices.size)
    q = 0
    for a in range(k):
        begin = q
        for i in range(first[a], first[a + 1]):
            s = member[i]
            for e in range(indptr[s], indptr[s + 1]):
                b = group[indices[e]]
                if b == a:
                    continue
                if place[b] < begin:
                    place[b] = q
                    new_indices[q], new_flow[q] = b, 0.0
                    q += 1
                new_flow[place[b]] += flow[e]
        new_indptr[a + 1] = q
    return new_indptr, new_indices[:q].copy(), new_flow[:q].copy()


@njit(cache=True, nogil=True)
def per_mass(indptr: Ints, flow: Floats, mass: Floats) -> Floats:
    """Flow over mass, in place, and the sums of rows."""
    sums = np.zeros(mass.size)
    for a in range(mass.size):
        for e in range(indptr[a], indptr[a + 1]):
            flow[e] /= mass[a]
            sums[a] += flow[e]
    return sums


@njit(cache=True, nogil=True)
def sums_of(group: Ints, values: Floats, k: int) -> Floats:
    """The sum over every group."""
    out = np.zeros(k)
    for s in range(group.size):
        out[group[s]] += values[s]
    return out


@njit(cache=True, nogil=True, fastmath=_ROWS)
def first_sweep(indptr: Ints, indices: Places, data: Floats, inverse: Floats, r: Floats, z: Floats) -> None:
    """Gauss and Seidel's from z = 0, upwards."""
    for s in range(r.size):
        v = r[s]
        for e in range(indptr[s], indptr[s + 1]):
            t = indices[e]
            if t < s:
                v += data[e] * z[t]
        z[s] = v * inverse[s]


@njit(cache=True, nogil=True, fastmath=_ROWS)
def sweep(
    indptr: Ints, indices: Places, data: Floats, inverse: Floats, r: Floats, gain: float, z: Floats, down: bool
) -> None:  # fmt: skip
    """Gauss and Seidel's for D z - W z = r - gain, upwards or downwards, in place."""
    n = r.size
    for i in range(n):
        s = n - 1 - i if down else i
        v = r[s] - gain
        for e in range(indptr[s], indptr[s + 1]):
            v += data[e] * z[indices[e]]
        z[s] = v * inverse[s]


@njit(cache=True, nogil=True, fastmath=_ROWS)
def law_sweep(t_indptr: Ints, t_indices: Places, t_data: Floats, inverse: Floats, x: Floats, down: bool) -> None:
    """Gauss and Seidel's for x D = x W, in place; a state that is never left keeps its mass."""
    n = x.size
    for i in range(n):
        s = n - 1 - i if down else i
        if inverse[s] > 0.0:
            v = 0.0
            for e in range(t_indptr[s], t_indptr[s + 1]):
                v += t_data[e] * x[t_indices[e]]
            x[s] = v * inverse[s]


@njit(cache=True, nogil=True, fastmath=_ROWS)
def imbalance(t_indptr: Ints, t_indices: Places, t_data: Floats, leaving: Floats, x: Floats) -> float:
    """How much of the mass of a law moves more out than in, or in than out, in one step."""
    total = 0.0
    for s in range(x.size):
        v = -leaving[s] * x[s]
        for e in range(t_indptr[s], t_indptr[s + 1]):
            v += t_data[e] * x[t_indices[e]]
        total += abs(v)
    return total


@njit(cache=True, nogil=True, fastmath=_ROWS)
def drift(
    indptr: Ints, indices: Places, data: Floats, leaving: Floats, z: Floats, gain: float, out: Floats
) -> None:  # fmt: skip
    """D z - W z + gain."""
    for s in range(z.size):
        v = leaving[s] * z[s] + gain
        for e in range(indptr[s], indptr[s + 1]):
            v -= data[e] * z[indices[e]]
        out[s] = v


@njit(cache=True, nogil=True, fastmath=_ROWS)
def lowered(
    indptr: Ints, indices: Places, data: Floats, leaving: Floats, r: Floats, z: Floats, share: Floats, group: Ints,
    out: Floats,
) -> None:  # fmt: skip
    """The residual r - (D z - W z), its mean over every group by the shares of its members."""
    out[:] = 0.0
    for s in range(z.size):
        v = r[s] - leaving[s] * z[s]
        for e in range(indptr[s], indptr[s + 1]):
            v += data[e] * z[indices[e]]
        out[group[s]] += share[s] * v


@njit(cache=True, nogil=True, fastmath=_ROWS)
def raised(group: Ints, share: Floats, e: Floats, z: Floats) -> None:
    """Add its share in the correction of its group to every state."""
    for s in range(z.size):
        z[s] += share[s] * e[group[s]]


@njit(cache=True, nogil=True, fastmath=_FAST)
def against(
    weights: Floats, basis: Floats, found: Floats, gains: Floats, k: int, v: Floats, c: Floats, gain: float
) -> float:  # fmt: skip
    """Make v orthogonal to the first k rows of the basis and its length 1, c and the gain with it; the gain.

    Lengths and angles by the weights of states.
    """
    n = v.size
    for i in range(k):
        b = 0.0
        for s in range(n):
            b += weights[s] * basis[i, s] * v[s]
        gain -= b * gains[i]
        for s in range(n):
            v[s] -= b * basis[i, s]
            c[s] -= b * found[i, s]
    length = 0.0
    for s in range(n):
        length += weights[s] * v[s] * v[s]
    if length > 0.0:
        scale = 1.0 / np.sqrt(length)
        for s in range(n):
            v[s] *= scale
            c[s] *= scale
        gain *= scale
    else:
        gain = np.nan
    return gain


@njit(cache=True, nogil=True, fastmath=_FAST)
def step_along(weights: Floats, v: Floats, c: Floats, r: Floats, x: Floats) -> tuple[float, float]:
    """Take the part of r along v away, and add as much of c to x; how much, and the length of what is left."""
    a = 0.0
    for s in range(v.size):
        a += weights[s] * v[s] * r[s]
    left = 0.0
    for s in range(v.size):
        x[s] += a * c[s]
        r[s] -= a * v[s]
        left += weights[s] * r[s] * r[s]
    return a, np.sqrt(left)


@njit(cache=True, nogil=True, fastmath=_FAST)
def largest(r: Floats) -> float:
    """The largest entry, by its size; infinite if one is no number."""
    worst = 0.0
    for s in range(r.size):
        size = abs(r[s])
        if not size < np.inf:
            return np.inf
        worst = max(worst, size)
    return worst
