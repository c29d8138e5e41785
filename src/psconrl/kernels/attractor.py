"""Attractors of a set of states along sparse transitions. See ``markov.structure.attractor_policy``."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.csr import sort_by_columns
from cython.cimports.psconrl.kernels.successors import check_graph, check_numbers, index


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drive(
    first: cython.const[index][::1],
    pairs: cython.const[index][::1],
    entries: cython.const[cython.double][::1],
    available: cython.const[cython.uchar][:, ::1],
    least: cython.double,
    reached: cython.uchar[::1],
    policy: cython.Py_ssize_t[::1],
    probability: cython.double[:, ::1],
    waiting: cython.uchar[::1],
    layer: cython.Py_ssize_t[::1],
) -> cython.void:
    """Change the policy, layer by layer; ``probability`` (S, A) and ``waiting`` (S,) are zero on entry."""
    S, A = available.shape[0], available.shape[1]
    n: cython.Py_ssize_t = 0
    for s in range(S):
        if reached[s]:
            layer[n] = s
            n += 1
    begin: cython.Py_ssize_t = 0
    while begin < n:
        end: cython.Py_ssize_t = n
        for i in range(begin, end):
            for e in range(first[layer[i]], first[layer[i] + 1]):
                s = pairs[e] // A
                a = pairs[e] % A
                if reached[s] or not available[s, a]:
                    continue
                probability[s, a] += entries[e]
                if probability[s, a] > least and not waiting[s]:
                    waiting[s] = True
                    layer[n] = s
                    n += 1
        for i in range(end, n):
            s = layer[i]
            reached[s] = True
            if not probability[s, policy[s]] > least:
                policy[s] = 0
                for a in range(1, A):
                    if probability[s, a] > probability[s, policy[s]]:
                        policy[s] = a
        begin = end


def attractor_by_layers(
    indptr: cython.const[index][::1],
    indices: cython.const[index][::1],
    data: cython.const[cython.double][::1],
    available: cython.const[cython.uchar][:, ::1],
    reached: cython.const[cython.uchar][::1],
    policy: cython.const[cython.Py_ssize_t][::1],
    least: cython.double,
):
    """Return the policy (S,), changed outside a set so that all states move into it; visits every entry once.

    A layer holds the states with a probability above ``least`` of stepping into the set and the previous layers.
    """
    S, A, entries = available.shape[0], available.shape[1], indices.shape[0]
    check_graph(indptr, indices, data.shape[0], S)
    if indptr.shape[0] - 1 != S * A or reached.shape[0] != S or policy.shape[0] != S:
        raise ValueError("transitions (S*A, S), a set of states (S,) and a policy (S,) are needed")
    check_numbers(policy, A, "there is no such action")
    changed = np.empty(S, np.int64)
    new: cython.Py_ssize_t[::1] = changed
    first: index[::1] = np.empty(S + 2, np.intc)
    waiting: cython.Py_ssize_t[::1] = np.empty(S + 2, np.int64)
    marks: cython.uchar[:, ::1] = np.zeros((2, S), np.bool_)
    pairs: index[::1] = np.empty(entries, np.intc)
    values: cython.double[::1] = np.empty(entries)
    probability: cython.double[:, ::1] = np.zeros((S, A))
    with cython.nogil:
        for s in range(S):
            new[s] = policy[s]
            marks[0, s] = reached[s]
        sort_by_columns(indptr, indices, data, first, pairs, values)
        _drive(first, pairs, values, available, least, marks[0], new, probability, marks[1], waiting)
    return changed
