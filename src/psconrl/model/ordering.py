r"""The order in which the states of a sparse chain are eliminated, and what fills in: once for all chains of a pattern.

Nested dissection (George 1973): a level of a breadth-first search that cuts the states in two goes last, and the same
again for either half. What fills in follows from the elimination tree (Liu 1990). Where states are nearly neighbours on
a grid, as in queues and wards, little does; where they are connected at random, nearly everything, and there is no
order worth having.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from psconrl.arrays import Ints

Positions = NDArray[np.uint32]

_LEAF = 24  # parts of so many states are not cut again


class Order(NamedTuple):
    """Where each state stands, and which entries there are in the rows of the eliminated chain, by position."""

    position: Ints  # (S,) of a state
    state: Ints  # (S,) at a position
    lower: Ints  # (S + 1,) where each row begins in...
    before: Positions  # ... the positions before it that it leads to, rising
    upper: Ints  # the same of those
    after: Positions  # after it,
    runs: Positions  # (S + 1,) where the stretches of subsequent ones begin, of each row, in...
    first: Positions  # ... the first position of each, and...
    begins: Positions  # ... where that stands in ``after``; and one more, the end
    work: float  # multiplications that an elimination takes


_NONE, _NO_ENTRIES = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
NO_ORDER = Order(_NONE, _NONE, _NONE, _NO_ENTRIES, _NONE, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, np.inf)


def order_for(indptr: Ints, indices: Ints, n_states: int, most: float) -> Order:
    """An order for the chains of a graph of pairs (see ``_graph``), or ``NO_ORDER`` if it takes more work than that."""
    first, neighbours = _neighbours(indptr, indices, n_states)
    state = _dissected(first, neighbours)
    position = np.empty_like(state)
    position[state] = np.arange(n_states)
    parent, counts, work = _tree(first, neighbours, state, position)
    if not work <= most:
        return NO_ORDER
    lower, before, upper, after = _filled(first, neighbours, state, position, parent, counts)
    runs, begins = _stretches(upper, after)
    return Order(
        position,
        state,
        lower,
        _unsigned(before),
        upper,
        _unsigned(after),
        _unsigned(runs),
        _unsigned(after[begins[:-1]]),
        _unsigned(begins),
        float(work),
    )


def _unsigned(positions: Ints) -> Positions:
    """Then compiled loops need not ask whether an index counts from the end, which takes a fifth of the time."""
    return positions.astype(np.uint32)


@njit(cache=True, nogil=True)
def _neighbours(indptr: Ints, indices: Ints, n_states: int) -> tuple[Ints, Ints]:
    """The states that each one leads to or comes from, itself aside: a symmetric graph without repetitions."""
    A = (indptr.size - 1) // n_states
    count = np.zeros(n_states + 1, np.int64)
    for s in range(n_states):
        for e in range(indptr[s * A], indptr[(s + 1) * A]):
            if indices[e] != s:
                count[s + 1] += 1
                count[indices[e] + 1] += 1
    first = np.cumsum(count)
    full = np.empty(first[n_states], np.int64)
    at = first[:-1].copy()
    for s in range(n_states):
        for e in range(indptr[s * A], indptr[(s + 1) * A]):
            t = indices[e]
            if t != s:
                full[at[s]], full[at[t]] = t, s
                at[s] += 1
                at[t] += 1
    seen = np.full(n_states, -1)
    kept = np.empty_like(full)
    new = np.zeros(n_states + 1, np.int64)
    k = 0
    for s in range(n_states):
        seen[s] = s
        for e in range(first[s], first[s + 1]):
            t = full[e]
            if seen[t] != s:
                seen[t] = s
                kept[k] = t
                k += 1
        new[s + 1] = k
    return new, kept[:k].copy()


@njit(cache=True, nogil=True)
def _levels(first: Ints, neighbours: Ints, inside: Ints, part: int, root: int, level: Ints, queue: Ints) -> int:
    """A breadth-first search in one part; how many states it meets. The last one in the queue is farthest away."""
    level[root], queue[0] = 0, root
    i, n = 0, 1
    while i < n:
        s = queue[i]
        i += 1
        for e in range(first[s], first[s + 1]):
            t = neighbours[e]
            if inside[t] == part and level[t] < 0:
                level[t] = level[s] + 1
                queue[n] = t
                n += 1
    return n


@njit(cache=True, nogil=True)
def _dissected(first: Ints, neighbours: Ints) -> Ints:
    """All states, those that separate others after them."""
    S = first.size - 1
    nodes = np.arange(S)
    inside = np.zeros(S, np.int64)  # the part that a state belongs to
    level = np.full(S, -1)
    queue = np.empty(S, np.int64)
    scratch = np.empty(S, np.int64)
    stack = np.empty((2 * S + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, S
    size, parts = 1, 1
    while size > 0:
        size -= 1
        low, high = stack[size]
        if high - low <= _LEAF:
            continue
        part = parts
        parts += 1
        for i in range(low, high):
            inside[nodes[i]] = part
            level[nodes[i]] = -1
        n = _levels(first, neighbours, inside, part, nodes[low], level, queue)
        if n == high - low:  # from a state that is far away, levels are thin
            root = queue[n - 1]
            for i in range(low, high):
                level[nodes[i]] = -1
            n = _levels(first, neighbours, inside, part, root, level, queue)
        cut = level[queue[n // 2]] if n == high - low else np.int64(-1)
        # One half, then the other, then what separates them; or, if it falls apart, what was met and the rest.
        a, b, c = 0, 0, 0
        for i in range(low, high):
            s = nodes[i]
            if cut >= 0 and level[s] == cut:
                c += 1
            elif (cut >= 0 and level[s] < cut) or (cut < 0 and level[s] >= 0):
                a += 1
            else:
                b += 1
        at, bt, ct = 0, a, a + b
        for i in range(low, high):
            s = nodes[i]
            if cut >= 0 and level[s] == cut:
                scratch[ct] = s
                ct += 1
            elif (cut >= 0 and level[s] < cut) or (cut < 0 and level[s] >= 0):
                scratch[at] = s
                at += 1
            else:
                scratch[bt] = s
                bt += 1
        for i in range(high - low):
            nodes[low + i] = scratch[i]
        if max(a, b, c) == high - low and cut >= 0:
            continue  # all are neighbours of one: no cut
        stack[size, 0], stack[size, 1] = low, low + a
        stack[size + 1, 0], stack[size + 1, 1] = low + a, low + a + b
        size += 2
    return nodes


@njit(cache=True, nogil=True)
def _tree(first: Ints, neighbours: Ints, state: Ints, position: Ints) -> tuple[Ints, Ints, float]:
    """The elimination tree by positions, how many positions each row has before it, and the work."""
    S = state.size
    parent, ancestor = np.full(S, -1), np.full(S, -1)
    for i in range(S):
        s = state[i]
        for e in range(first[s], first[s + 1]):
            k = position[neighbours[e]]
            while k != -1 and k < i:
                onward = ancestor[k]
                ancestor[k] = i
                if onward == -1:
                    parent[k] = i
                k = onward
    counts = np.zeros(S, np.int64)
    columns = np.zeros(S, np.int64)
    seen = np.full(S, -1)
    for i in range(S):
        seen[i] = i
        s = state[i]
        for e in range(first[s], first[s + 1]):
            k = position[neighbours[e]]
            while k < i and seen[k] != i:
                seen[k] = i
                counts[i] += 1
                columns[k] += 1
                k = parent[k]
    work = 0.0
    for k in range(S):
        work += float(columns[k]) * float(columns[k])
    return parent, counts, work


@njit(cache=True, nogil=True)
def _filled(
    first: Ints, neighbours: Ints, state: Ints, position: Ints, parent: Ints, counts: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """The entries of all rows before and after the diagonal."""
    S = state.size
    lower = np.zeros(S + 1, np.int64)
    lower[1:] = np.cumsum(counts)
    before = np.empty(lower[S], np.int64)
    seen = np.full(S, -1)
    columns = np.zeros(S + 1, np.int64)
    for i in range(S):
        seen[i] = i
        s, at = state[i], lower[i]
        for e in range(first[s], first[s + 1]):
            k = position[neighbours[e]]
            while k < i and seen[k] != i:
                seen[k] = i
                before[at] = k
                at += 1
                columns[k + 1] += 1
                k = parent[k]
        ordered = np.sort(before[lower[i] : at])
        for e in range(ordered.size):
            before[lower[i] + e] = ordered[e]
    upper = np.cumsum(columns)
    after = np.empty(upper[S], np.int64)
    at_row = upper[:-1].copy()
    for i in range(S):
        for e in range(lower[i], lower[i + 1]):
            after[at_row[before[e]]] = i
            at_row[before[e]] += 1
    return lower, before, upper, after


def _stretches(upper: Ints, after: Ints) -> tuple[Ints, Ints]:
    """Where stretches of subsequent positions begin: of each row among the stretches, and of each one in ``after``."""
    begins = np.ones(after.size, dtype=bool)
    begins[1:] = np.diff(after) != 1
    begins[upper[:-1][np.diff(upper) > 0]] = True
    runs = np.append(0, np.cumsum(begins))[upper]
    return runs, np.append(np.flatnonzero(begins), after.size)
