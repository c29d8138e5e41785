"""Compiled searches in the graph of a model: what leads where, and what leads back.

A graph is what is stored of transitions in CSR form: the successors of pair ``s * A + a`` are
``indices[indptr[s * A + a] : indptr[s * A + a + 1]]``, and the successors of state s those of its pairs that are kept.
A chain is the case A = 1.
"""

import numpy as np
from numba import njit

from psconrl.arrays import Bools, Floats, Ints


@njit(cache=True)
def support_of_dense(P: Floats, least: float) -> tuple[Ints, Ints]:
    """The graph (indptr, indices) of the entries above ``least`` of a dense matrix."""
    n, S = P.shape
    indptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        count = 0
        for j in range(S):
            count += P[i, j] > least
        indptr[i + 1] = indptr[i] + count
    indices = np.empty(indptr[n], np.int64)
    for i in range(n):
        k = indptr[i]
        for j in range(S):
            if P[i, j] > least:
                indices[k] = j
                k += 1
    return indptr, indices


@njit(cache=True)
def support_of_sparse(indptr: Ints, indices: Ints, data: Floats, least: float) -> tuple[Ints, Ints]:
    """The graph (indptr, indices) of the entries above ``least`` of a CSR matrix."""
    n = indptr.size - 1
    new_indptr = np.zeros(n + 1, np.int64)
    new_indices = np.empty(indices.size, np.int64)
    k = 0
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] > least:
                new_indices[k] = indices[e]
                k += 1
        new_indptr[i + 1] = k
    return new_indptr, new_indices[:k]


@njit(cache=True)
def strong_components(indptr: Ints, indices: Ints, n_states: int, keep: Bools) -> tuple[int, Ints]:
    """The strongly connected components (Tarjan 1972): how many, and the number of every state's.

    A component is numbered after all those that it leads to. O(pairs + edges), without recursion.
    """
    label, found = np.full(n_states, -1), np.full(n_states, -1)
    count = _label_components(
        indptr, indices, keep, np.arange(n_states), label, found, np.empty((5, n_states), np.int64), 0
    )
    return count, label


@njit(cache=True)
def _label_components(
    indptr: Ints, indices: Ints, keep: Bools, roots: Ints, label: Ints, found: Ints, room: Ints, count: int
) -> int:
    """Number, from ``count`` on, the components of the states that the roots lead to; returns the next number.

    ``label`` is -1 for them, and so is ``found``: when a state was first met. ``room`` (5, S) is overwritten.
    """
    A = (indptr.size - 1) // label.size
    low = room[0]  # the earliest state on the stack that it leads back to
    stack = room[1]  # states whose component is open
    path = room[2]
    pair, edge = room[3], room[4]  # where the search of a state stands
    size = depth = clock = 0
    for root in roots:
        if found[root] >= 0:
            continue
        path[0], depth = root, 1
        found[root] = low[root] = clock
        clock += 1
        stack[size] = root
        size += 1
        pair[root], edge[root] = root * A, indptr[root * A]
        while depth > 0:
            s = path[depth - 1]
            onward = -1
            while pair[s] < (s + 1) * A:
                p = pair[s]
                if not keep[p] or edge[s] >= indptr[p + 1]:
                    pair[s] = p + 1
                    if p + 1 < (s + 1) * A:
                        edge[s] = indptr[p + 1]
                    continue
                t = indices[edge[s]]
                edge[s] += 1
                if found[t] < 0:
                    onward = t
                    break
                if label[t] < 0 and found[t] < low[s]:
                    low[s] = found[t]
            if onward >= 0:
                t = onward
                path[depth] = t
                depth += 1
                found[t] = low[t] = clock
                clock += 1
                stack[size] = t
                size += 1
                pair[t], edge[t] = t * A, indptr[t * A]
                continue
            depth -= 1
            if depth > 0:
                before = path[depth - 1]
                low[before] = min(low[before], low[s])
            if low[s] == found[s]:
                while True:
                    size -= 1
                    label[stack[size]] = count
                    if stack[size] == s:
                        break
                count += 1
    return count


@njit(cache=True)
def closed_components(indptr: Ints, indices: Ints, n_states: int) -> tuple[int, Ints]:
    """The components that nothing leaves: how many, and the number of every state's, or -1.

    They are numbered by their first states.
    """
    count, label = strong_components(indptr, indices, n_states, np.ones(indptr.size - 1, np.bool_))
    A = (indptr.size - 1) // n_states
    closed = np.ones(count, np.bool_)
    for s in range(n_states):
        for e in range(indptr[s * A], indptr[(s + 1) * A]):
            if label[indices[e]] != label[s]:
                closed[label[s]] = False
    number = np.full(count, -1)
    result = np.full(n_states, -1)
    n_closed = 0
    for s in range(n_states):
        k = label[s]
        if closed[k]:
            if number[k] < 0:
                number[k] = n_closed
                n_closed += 1
            result[s] = number[k]
    return n_closed, result


@njit(cache=True)
def closed_classes_of_dense(P: Floats, least: float) -> tuple[int, Ints]:
    """The closed components of a dense chain (S, S) without the moves that are no likelier than ``least``."""
    indptr, indices = support_of_dense(P, least)
    return closed_components(indptr, indices, P.shape[1])


@njit(cache=True)
def closed_classes_of_sparse(indptr: Ints, indices: Ints, data: Floats, least: float) -> tuple[int, Ints]:
    """The same for a chain in CSR form."""
    indptr, indices = support_of_sparse(indptr, indices, data, least)
    return closed_components(indptr, indices, indptr.size - 1)


@njit(cache=True)
def end_component_pairs(indptr: Ints, indices: Ints, n_states: int, keep: Bools) -> tuple[int, Ints, Bools]:
    """The maximal end components among the pairs to keep: how many, the number of every state's or -1, their pairs.

    What leaves its component is dropped, and with it what leads to a state that has nothing left, until nothing leaves
    (de Alfaro 1997). Only components that lost a pair are looked at again. They are numbered by their first states.
    """
    A = (indptr.size - 1) // n_states
    keep = keep.copy()
    before, sources = pairs_into(indptr, indices, n_states, keep)
    live = np.zeros(n_states, np.int64)  # how many pairs a state has left
    for p in range(keep.size):
        live[p // A] += keep[p]
    label, found = np.full(n_states, -1), np.full(n_states, -1)
    room = np.empty((5, n_states), np.int64)
    order = np.arange(n_states)  # every component to look at is a section of it
    sections = np.empty((n_states + 1, 2), np.int64)
    sections[0, 0], sections[0, 1], waiting = 0, n_states, 1
    dead = np.empty(n_states, np.int64)
    lost = np.zeros(n_states, np.bool_)
    number = 0
    while waiting > 0:
        waiting -= 1
        begin, end = sections[waiting, 0], sections[waiting, 1]
        members = order[begin:end]
        base = number
        number = _label_components(indptr, indices, keep, members, label, found, room, base)
        for k in range(number - base):
            lost[k] = False
        n_dead = 0
        for s in members:
            for p in range(s * A, (s + 1) * A):
                if keep[p]:
                    for e in range(indptr[p], indptr[p + 1]):
                        if label[indices[e]] != label[s]:
                            keep[p] = False
                            lost[label[s] - base] = True
                            live[s] -= 1
                            break
            if live[s] == 0:
                dead[n_dead] = s
                n_dead += 1
        while n_dead > 0:
            n_dead -= 1
            t = dead[n_dead]
            for e in range(before[t], before[t + 1]):
                p = sources[e]
                if keep[p]:
                    s = p // A
                    keep[p] = False
                    lost[label[s] - base] = True
                    live[s] -= 1
                    if live[s] == 0:
                        dead[n_dead] = s
                        n_dead += 1
        # What is left of the components that lost something, each as a section of its own.
        sizes = np.zeros(number - base + 1, np.int64)
        for s in members:
            if live[s] > 0 and lost[label[s] - base]:
                sizes[label[s] - base + 1] += 1
        for k in range(number - base):
            if sizes[k + 1] > 0:
                sections[waiting, 0], sections[waiting, 1] = begin + sizes[k], begin + sizes[k] + sizes[k + 1]
                waiting += 1
            sizes[k + 1] += sizes[k]
        copied = members.copy()
        for s in copied:
            if live[s] > 0 and lost[label[s] - base]:
                k = label[s] - base
                order[begin + sizes[k]] = s
                sizes[k] += 1
                label[s] = found[s] = -1
    component = np.full(n_states, -1)
    names = np.full(number, -1)
    count = 0
    for s in range(n_states):
        if live[s] > 0:
            if names[label[s]] < 0:
                names[label[s]] = count
                count += 1
            component[s] = names[label[s]]
    return count, component, keep


@njit(cache=True)
def pairs_into(indptr: Ints, indices: Ints, n_states: int, keep: Bools) -> tuple[Ints, Ints]:
    """The kept pairs that may lead to each state, as a list for every state."""
    start = np.zeros(n_states + 1, np.int64)
    for p in range(keep.size):
        if keep[p]:
            for e in range(indptr[p], indptr[p + 1]):
                start[indices[e] + 1] += 1
    for s in range(n_states):
        start[s + 1] += start[s]
    pairs, at = np.empty(start[n_states], np.int64), start[:-1].copy()
    for p in range(keep.size):
        if keep[p]:
            for e in range(indptr[p], indptr[p + 1]):
                pairs[at[indices[e]]] = p
                at[indices[e]] += 1
    return start, pairs


@njit(cache=True)
def grouped(label: Ints, count: int) -> tuple[Ints, Ints]:
    """Where the members of each group begin, (count + 1,), and the members, in order; a label of -1 is no group."""
    start = np.zeros(count + 1, np.int64)
    for s in range(label.size):
        if label[s] >= 0:
            start[label[s] + 1] += 1
    for k in range(count):
        start[k + 1] += start[k]
    members, at = np.empty(start[count], np.int64), start[:-1].copy()
    for s in range(label.size):
        if label[s] >= 0:
            members[at[label[s]]] = s
            at[label[s]] += 1
    return start, members


@njit(cache=True)
def reached(indptr: Ints, indices: Ints, start: Bools) -> Bools:
    """The states that some path from the start meets, the start included."""
    S = start.size
    A = (indptr.size - 1) // S
    seen = start.copy()
    stack = np.empty(S, np.int64)
    size = 0
    for s in range(S):
        if seen[s]:
            stack[size] = s
            size += 1
    while size > 0:
        size -= 1
        s = stack[size]
        for e in range(indptr[s * A], indptr[(s + 1) * A]):
            t = indices[e]
            if not seen[t]:
                seen[t] = True
                stack[size] = t
                size += 1
    return seen


@njit(cache=True)
def all_communicate(P: Floats, n_actions: int) -> bool:
    """Can every state reach every other under some policy? Dense P of shape (S*A, S); O(S^2 A), mostly much less."""
    n = P.shape[1]
    stack = np.empty(n, np.int64)
    for forward in (True, False):
        seen = np.zeros(n, np.bool_)
        seen[0] = True
        stack[0] = 0
        size = 1
        count = 1
        while size > 0:
            size -= 1
            s = stack[size]
            for j in range(n):
                if seen[j]:
                    continue
                for a in range(n_actions):
                    p = P[s * n_actions + a, j] if forward else P[j * n_actions + a, s]
                    if p > 0.0:
                        seen[j] = True
                        stack[size] = j
                        size += 1
                        count += 1
                        break
            if count == n:
                break
        if count < n:
            return False
    return True
