"""Dirichlet variates from gamma variates: dense rows, and sparse ones (see ``learning/posterior/sampled_rows.py``)."""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import (
    ConstIntMatrix,
    ConstInts,
    ConstPlaces,
    ConstVector,
    IntMatrix,
    Matrix,
    Places,
    Vector,
)
from cython.cimports.psconrl.kernels.arithmetic.special import exp_all, log_all, softmax
from cython.cimports.psconrl.kernels.graphs.successors import check_rows

_INF = cython.declare(cython.double, float("inf"))
_MOST_ATOMS = cython.declare(cython.double, 2.0**31)
_POOL = cython.declare(cython.Py_ssize_t, 4096)  # random numbers drawn together: they fit a processor's cache


def normalise_logs(logs: Matrix, floor: cython.double):
    """Turn the logarithms of every row into probabilities, in place; no possible one falls below exp(floor)."""
    with cython.nogil:
        softmax(logs, floor)


def posterior(
    prior: ConstInts,
    values: ConstVector,
    scale: ConstVector,
    numbers: ConstInts,
    times: ConstInts,
    n_states: cython.Py_ssize_t,
):
    """Return the parameters of all transitions that the prior stores or that were observed, as rows in CSR form."""
    pairs, n_prior, n_seen = scale.shape[0], prior.shape[0], numbers.shape[0]
    if values.shape[0] != n_prior or times.shape[0] != n_seen:
        raise ValueError("every transition of the prior has a parameter, every one that was seen its times")
    indptr, indices, alpha = (
        np.zeros(pairs + 1, np.intc),
        np.empty(n_prior + n_seen, np.intc),
        np.empty(n_prior + n_seen),
    )
    starts: Places = indptr
    states: Places = indices
    parameters: Vector = alpha
    i: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    ordered: cython.bint = True
    with cython.nogil:
        for pair in range(pairs):
            first: cython.Py_ssize_t = pair * n_states
            end: cython.Py_ssize_t = first + n_states
            while True:
                known: cython.Py_ssize_t = prior[i] if i < n_prior else end
                seen: cython.Py_ssize_t = numbers[j] if j < n_seen else end
                number: cython.Py_ssize_t = min(known, seen)
                if number >= end:
                    break
                ordered &= number >= first
                parameter: cython.double = 0.0
                if known == number:
                    parameter += scale[pair] * values[i]
                    i += 1
                if seen == number:
                    parameter += times[j]
                    j += 1
                states[k] = number - first
                parameters[k] = parameter
                k += 1
            starts[pair + 1] = k
    if not ordered or i < n_prior or j < n_seen:
        raise ValueError("transitions must be in ascending order, each from one of the pairs")
    return indptr, indices[:k].copy(), alpha[:k].copy()


def with_rest(indptr: ConstPlaces, alpha: ConstVector, rest: ConstVector):
    """Return the shapes of the gamma variates: the parameters of every row, followed by its rest."""
    pairs = rest.shape[0]
    if indptr.shape[0] != pairs + 1 or indptr[0] != 0 or indptr[pairs] != alpha.shape[0]:
        raise ValueError("every row has parameters and a rest")
    check_rows(indptr, alpha.shape[0])
    shapes = np.empty(alpha.shape[0] + pairs)
    out: Vector = shapes
    with cython.nogil:
        for pair in range(pairs):
            for e in range(indptr[pair], indptr[pair + 1]):
                out[e + pair] = alpha[e]
            out[indptr[pair + 1] + pair] = rest[pair]
    return shapes


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _split(
    indptr: ConstPlaces,
    logs: Vector,
    rest: ConstVector,
    floor: cython.double,
    neglected: cython.double,
    p: Vector,
    p_rest: Vector,
    ends: Vector,
) -> cython.double:
    """Compute ``split`` in given arrays; return the expected number of atoms."""
    pairs = rest.shape[0]
    for pair in range(pairs):
        low: cython.Py_ssize_t = indptr[pair] + pair
        high: cython.Py_ssize_t = indptr[pair + 1] + pair + 1
        top: cython.double = -_INF
        for j in range(low, high):
            top = max(top, logs[j])
        for j in range(low, high):
            logs[j] = logs[j] - top if logs[j] - top > floor else -_INF
    exp_all(logs, logs)
    for pair in range(pairs):
        low = indptr[pair] + pair
        high = indptr[pair + 1] + pair + 1
        total: cython.double = 0.0
        for j in range(low, high):
            total += logs[j]
        kept: cython.double = 0.0
        for j in range(low, high):
            logs[j] = logs[j] if logs[j] >= neglected * total else 0.0
            kept += logs[j]
        for j in range(low, high - 1):
            p[j - pair] = logs[j] / kept
        p_rest[pair] = logs[high - 1] / kept
        ends[pair] = p_rest[pair] / neglected if p_rest[pair] >= neglected else 1.0
    log_all(ends, ends)
    expected: cython.double = 0.0
    for pair in range(pairs):
        if p_rest[pair] >= neglected:
            ends[pair] *= rest[pair]
            expected += ends[pair] + 1.0
        else:
            ends[pair] = -1.0
    return expected


def split(indptr: ConstPlaces, logs: Vector, rest: ConstVector, floor: cython.double, neglected: cython.double):
    """Return probabilities of the stored entries and of the rest, 0 if neglected; overwrites the logarithms.

    Also returns where the process of each rest ends, -1 if there is none, and the expected total number of atoms.
    """
    pairs = rest.shape[0]
    if indptr.shape[0] != pairs + 1 or indptr[0] != 0 or logs.shape[0] != indptr[pairs] + pairs:
        raise ValueError("every row has variates for what is stored, and one for the rest")
    check_rows(indptr, indptr[pairs])
    p, p_rest, ends = np.empty(indptr[pairs]), np.empty(pairs), np.empty(pairs)
    a: Vector = p
    b: Vector = p_rest
    c: Vector = ends
    with cython.nogil:
        expected = _split(indptr, logs, rest, floor, neglected, a, b, c)
    return p, p_rest, ends, expected


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place(
    pair: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
    arrival: cython.double,
    indptr: ConstPlaces,
    indices: ConstPlaces,
    p: ConstVector,
    rest: ConstVector,
    ends: ConstVector,
    pool: Matrix,
    atoms: IntMatrix,
    n_states: cython.Py_ssize_t,
    starts: Places,
    states: Places,
    data: Vector,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t, cython.double]:
    """Continue at a pair, with entry k, after an arrival (-1: not begun): copy stored entries, and place the atoms.

    A pool has the gaps, with a minus sign, and the places. Gaps become logarithms of the remaining part of a rest.
    Returns where to continue, and the number of atoms, when the pool is used up, the entries are full, or all pairs are
    done.
    """
    used: cython.Py_ssize_t = 0
    while pair < rest.shape[0]:
        if arrival < 0.0:
            if k + indptr[pair + 1] - indptr[pair] > data.shape[0]:
                return pair, k, used, arrival
            for e in range(indptr[pair], indptr[pair + 1]):
                states[k] = indices[e]
                data[k] = p[e]
                k += 1
            arrival = 0.0
        if rest[pair] > 0.0:
            inverse: cython.double = 1.0 / rest[pair]
            end: cython.double = ends[pair]
            while arrival <= end:
                if used == pool.shape[1] or k == data.shape[0]:
                    return pair, k, used, arrival
                arrival -= pool[0, used]
                pool[0, used] = -arrival * inverse if arrival <= end else -_INF
                place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, pool[1, used] * n_states)
                states[k] = min(place, n_states - 1)
                atoms[0, used] = pair
                atoms[1, used] = k
                used += 1
                k += 1
        pair += 1
        starts[pair] = k
        arrival = -1.0
    return pair, k, used, arrival


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _weigh(
    atoms: ConstIntMatrix,
    n: cython.Py_ssize_t,
    remains: ConstVector,
    p_rest: ConstVector,
    left: cython.double,
    data: Vector,
) -> cython.double:
    """Compute the probabilities of n atoms: the decreases of the remaining rest; the last atom takes the remainder."""
    for j in range(n):
        whole: cython.double = p_rest[atoms[0, j]]
        if left == 0.0:
            left = whole
        data[atoms[1, j]] = left - whole * remains[j]
        left = whole * remains[j]
    return left


def assemble(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    p: ConstVector,
    p_rest: ConstVector,
    rest: ConstVector,
    ends: ConstVector,
    expected: cython.double,
    n_states: cython.Py_ssize_t,
    rng,
):
    """Assemble rows in CSR form: stored entries, and the ``expected`` atoms of the rest, unsorted.

    Two atoms may lie at the same state: then their probabilities add up.
    """
    pairs, stored = rest.shape[0], indices.shape[0]
    if indptr.shape[0] != pairs + 1 or indptr[0] != 0 or indptr[pairs] != stored or p.shape[0] != stored:
        raise ValueError("every row has states that are stored, each with a probability")
    check_rows(indptr, stored)
    if p_rest.shape[0] != pairs or ends.shape[0] != pairs or not 0.0 <= expected < _MOST_ATOMS:
        raise ValueError("every row has a rest and an end, and fewer than 2**31 atoms are expected in all")
    room: cython.Py_ssize_t = stored + cython.cast(cython.Py_ssize_t, expected + 4.0 * sqrt(expected)) + 8
    new_indptr, new_indices = np.zeros(pairs + 1, np.intc), np.empty(room, np.intc)
    data, drawn = np.empty(room), np.empty((2, min(room - stored, _POOL)))
    starts: Places = new_indptr
    states: Places = new_indices
    entries: Vector = data
    pool: Matrix = drawn
    atoms: IntMatrix = np.empty((2, pool.shape[1]), np.int64)
    pair: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    arrival: cython.double = -1.0
    left: cython.double = 0.0
    while pair < pairs:
        rng.random(out=drawn)
        with cython.nogil:
            for j in range(pool.shape[1]):
                pool[0, j] = 1.0 - pool[0, j]
            log_all(pool[0], pool[0])
            pair, k, used, arrival = _place(
                pair, k, arrival, indptr, indices, p, rest, ends, pool, atoms, n_states, starts, states, entries
            )
            exp_all(pool[0, :used], pool[0, :used])
            left = _weigh(atoms, used, pool[0], p_rest, left, entries)
        if pair < pairs and used < pool.shape[1]:  # more atoms than expected
            new_indices, data = np.resize(new_indices, 2 * k + stored), np.resize(data, 2 * k + stored)
            states, entries = new_indices, data
    return data[:k].copy(), new_indices[:k].copy(), new_indptr
