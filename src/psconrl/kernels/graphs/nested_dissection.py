"""Nested dissection of a graph (George 1973), and the fill-in of an elimination in that order (Liu 1990).

See ``psconrl.markov.elimination_order``. A symmetric graph is given by the starts of the states' neighbour lists and by
all these lists; positions are those of states in the order of elimination.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlags, ConstInts, ConstPlaces, Flags, IntMatrix, Ints, Places
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers, check_starts

_LEAF = cython.declare(cython.Py_ssize_t, 24)  # parts of this many states are not cut again


def neighbours(indptr: ConstPlaces, indices: ConstPlaces, n_states: cython.Py_ssize_t):
    """Return the neighbours of each state in either direction, except itself: a symmetric graph, no repetitions."""
    n, pairs = n_states, indptr.shape[0] - 1
    check_graph(indptr, indices, indices.shape[0], n)
    A = pairs // n if n else 0
    every: Ints = np.zeros(n + 2, np.int64)  # counted two places ahead, see ``csr.sort_by_columns``
    with cython.nogil:
        for s in range(n):
            for e in range(indptr[s * A], indptr[(s + 1) * A]):
                if indices[e] != s:
                    every[s + 2] += 1
                    every[indices[e] + 2] += 1
        for s in range(n + 1):
            every[s + 1] += every[s]
    if every[n + 1] >= 2**31:
        raise ValueError("a graph of fewer than 2**31 edges, counted from both ends, is needed")
    full: Places = np.empty(every[n + 1], np.intc)
    seen: Ints = np.full(n, -1, np.int64)
    first = np.zeros(n + 1, np.intc)
    starts: Places = first
    k: cython.Py_ssize_t = 0
    with cython.nogil:
        for s in range(n):
            for e in range(indptr[s * A], indptr[(s + 1) * A]):
                t: cython.Py_ssize_t = indices[e]
                if t != s:
                    full[every[s + 1]] = t
                    every[s + 1] += 1
                    full[every[t + 1]] = s
                    every[t + 1] += 1
        for s in range(n):
            seen[s] = s
            for e in range(every[s], every[s + 1]):
                t = full[e]
                if seen[t] != s:
                    seen[t] = s
                    full[k] = t
                    k += 1
            starts[s + 1] = k
    return first, np.array(full[:k])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _levels(
    first: ConstPlaces,
    near: ConstPlaces,
    inside: ConstInts,
    part: cython.Py_ssize_t,
    root: cython.Py_ssize_t,
    level: Ints,
    queue: Ints,
) -> cython.Py_ssize_t:
    """Run a breadth-first search in one part; return the number of states found. The last in the queue is farthest."""
    level[root] = 0
    queue[0] = root
    i: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 1
    while i < n:
        s = queue[i]
        i += 1
        for e in range(first[s], first[s + 1]):
            t = near[e]
            if inside[t] == part and level[t] < 0:
                level[t] = level[s] + 1
                queue[n] = t
                n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _side(level: cython.Py_ssize_t, cut: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return one half, the other, or the separator; without a cut, the states found or the rest."""
    if cut < 0:
        return 0 if level >= 0 else 1
    return 2 if level == cut else 0 if level < cut else 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _dissect(
    first: ConstPlaces, near: ConstPlaces, nodes: Ints, inside: Ints, level: Ints, queue: Ints, stack: IntMatrix
) -> cython.void:
    """Order all nodes; ``inside`` is the part that a state belongs to, zero on entry."""
    stack[0, 0] = 0
    stack[0, 1] = nodes.shape[0]
    size: cython.Py_ssize_t = 1
    part: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    side: cython.Py_ssize_t
    while size > 0:
        size -= 1
        low: cython.Py_ssize_t = stack[size, 0]
        high: cython.Py_ssize_t = stack[size, 1]
        if high - low <= _LEAF:
            continue
        part += 1
        for i in range(low, high):
            inside[nodes[i]] = part
            level[nodes[i]] = -1
        n: cython.Py_ssize_t = _levels(first, near, inside, part, nodes[low], level, queue)
        if n == high - low:  # from a state that is far away, levels are thin
            root: cython.Py_ssize_t = queue[n - 1]
            for i in range(low, high):
                level[nodes[i]] = -1
            n = _levels(first, near, inside, part, root, level, queue)
        cut: cython.Py_ssize_t = level[queue[n // 2]] if n == high - low else -1
        halves: cython.Py_ssize_t[2] = [0, 0]
        for i in range(low, high):
            side = _side(level[nodes[i]], cut)
            if side < 2:
                halves[side] += 1
        at: cython.Py_ssize_t[3] = [0, halves[0], halves[0] + halves[1]]
        for i in range(low, high):
            side = _side(level[nodes[i]], cut)
            queue[at[side]] = nodes[i]
            at[side] += 1
        for i in range(high - low):
            nodes[low + i] = queue[i]
        if cut >= 0 and max(halves[0], halves[1], high - low - halves[0] - halves[1]) == high - low:
            continue  # all are neighbours of one: no cut
        stack[size, 0] = low
        stack[size, 1] = low + halves[0]
        stack[size + 1, 0] = low + halves[0]
        stack[size + 1, 1] = low + halves[0] + halves[1]
        size += 2


def dissected(first: ConstPlaces, near: ConstPlaces):
    """Return all states of a symmetric graph, separators after the states that they separate."""
    n = first.shape[0] - 1
    check_graph(first, near, near.shape[0], n)
    state = np.arange(n, dtype=np.int64)
    nodes: Ints = state
    inside: Ints = np.zeros(n, np.int64)
    level: Ints = np.empty(n, np.int64)
    queue: Ints = np.empty(n, np.int64)
    stack: IntMatrix = np.empty((2 * n + 2, 2), np.int64)
    with cython.nogil:
        _dissect(first, near, nodes, inside, level, queue, stack)
    return state


def outward(indptr: ConstPlaces, indices: ConstPlaces, root: cython.Py_ssize_t, skipped: ConstFlags):
    """Return all states of a graph of pairs, the farthest from the root first; states to skip on the way come last.

    The distance is the least number of steps from the root. States that it does not reach come first.
    """
    n = skipped.shape[0]
    check_graph(indptr, indices, indices.shape[0], n)
    if not 0 <= root < n:
        raise ValueError("there is no such state")
    A = (indptr.shape[0] - 1) // n
    state = np.empty(n, np.int64)
    nodes: Ints = state
    seen: Flags = np.array(skipped)
    end: cython.Py_ssize_t = n
    s: cython.Py_ssize_t
    t: cython.Py_ssize_t
    with cython.nogil:
        for s in range(n):
            if skipped[s] and s != root:
                end -= 1
                nodes[end] = s
        low: cython.Py_ssize_t = end - 1  # filled from the end; the states from here on have been reached
        high: cython.Py_ssize_t = end - 1
        seen[root] = True
        nodes[low] = root
        while high >= low:
            s = nodes[high]
            high -= 1
            for e in range(indptr[s * A], indptr[(s + 1) * A]):
                t = indices[e]
                if not seen[t]:
                    seen[t] = True
                    low -= 1
                    nodes[low] = t
        for s in range(n):
            if not seen[s]:
                low -= 1
                nodes[low] = s
    return state


@cython.cfunc
def _check_order(first: ConstPlaces, near: ConstPlaces, state: ConstInts, position: ConstInts):
    """Raise a ValueError unless this is a graph with one state per position and one position per state."""
    n = state.shape[0]
    if first.shape[0] != n + 1 or position.shape[0] != n:
        raise ValueError("a state at every position and the position of every state are needed")
    check_graph(first, near, near.shape[0], n)
    check_numbers(state, n, "there is no such state")
    check_numbers(position, n, "there is no such position")


def tree(first: ConstPlaces, near: ConstPlaces, state: ConstInts, position: ConstInts):
    """Return the elimination tree by positions, the entries of each row before and after the diagonal, and the work."""
    n = state.shape[0]
    _check_order(first, near, state, position)
    parents, rows, columns = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    parent: Ints = parents
    before: Ints = rows
    after: Ints = columns
    seen: Ints = np.full(n, -1, np.int64)  # initially the oldest known ancestor
    work: cython.double = 0.0
    k: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            for e in range(first[state[i]], first[state[i] + 1]):
                k = position[near[e]]
                while k != -1 and k < i:
                    onward: cython.Py_ssize_t = seen[k]
                    seen[k] = i
                    if onward == -1:
                        parent[k] = i
                    k = onward
        for i in range(n):
            seen[i] = -1
        for i in range(n):
            seen[i] = i
            for e in range(first[state[i]], first[state[i] + 1]):
                k = position[near[e]]
                while k < i and seen[k] != i:
                    seen[k] = i
                    before[i] += 1
                    after[k] += 1
                    k = parent[k]
        for i in range(n):
            work += cython.cast(cython.double, after[i]) * after[i]
    return parents, rows, columns, work


def filled(
    first: ConstPlaces,
    near: ConstPlaces,
    state: ConstInts,
    position: ConstInts,
    parent: ConstInts,
    lower: ConstInts,
    upper: ConstInts,
):
    """Compute the positions of all rows' entries before and after the diagonal, ascending, from the row starts."""
    n = state.shape[0]
    _check_order(first, near, state, position)
    if parent.shape[0] != n or lower.shape[0] != n + 1 or upper.shape[0] != n + 1 or lower[n] != upper[n]:
        raise ValueError("the parent of every state is needed, and where each row begins")
    check_starts(lower, lower[n])
    check_starts(upper, upper[n])
    befores, afters = np.empty(lower[n], np.uint32), np.empty(upper[n], np.uint32)
    before: cython.uint[::1] = befores
    after: cython.uint[::1] = afters
    seen: Ints = np.full(n, -1, np.int64)
    at: Ints = np.array(upper)
    fits: cython.bint = True
    k: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            seen[i] = i
            left: cython.Py_ssize_t = lower[i + 1] - lower[i]
            for e in range(first[state[i]], first[state[i] + 1]):
                k = position[near[e]]
                while 0 <= k < i and seen[k] != i and at[k] < upper[k + 1]:
                    seen[k] = i
                    after[at[k]] = i
                    at[k] += 1
                    left -= 1
                    k = parent[k]
            fits &= left == 0
    if not fits:  # if every row has all earlier entries, no later ones are missing
        raise ValueError("the tree and the beginnings of rows must be those of the graph")
    with cython.nogil:
        # Entries after one are before another: processed in this order, they need no sorting.
        for i in range(n):
            at[i] = lower[i]
        for i in range(n):
            for e in range(upper[i], upper[i + 1]):
                k = after[e]
                before[at[k]] = i
                at[k] += 1
    return befores, afters
