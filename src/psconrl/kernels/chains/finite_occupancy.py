"""Time that a chain spends in each state over a finite number of rounds, iterated until hardly any mass moves."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstMatrix, ConstPlaces, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _book(now: ConstVector, onward: ConstVector, total: Vector) -> cython.double:
    """Add the current distribution to the total; return the mass that moves."""
    moved: cython.double = 0.0
    for s in range(now.shape[0]):
        total[s] += now[s]
        moved += abs(onward[s] - now[s])
    return moved


def time_in_states_dense(P: ConstMatrix, state: cython.Py_ssize_t, rounds: cython.Py_ssize_t, tol: cython.double):
    """Return the share of the next rounds, (S,), that a chain (S, S) spends in every state, from one of them.

    The mass that moves in a round never grows. Once the remaining rounds, times that mass, are at most ``tol``, the
    current distribution stands in for the rest: the total error of the shares is then at most half of ``tol``.
    """
    S = P.shape[0]
    if P.shape[1] != S or not 0 <= state < S or rounds < 1:
        raise ValueError("a chain (S, S), one of its states and a number of rounds are needed")
    shares, room = np.zeros(S), np.zeros((2, S))
    total: Vector = shares
    mu: Matrix = room
    now: cython.Py_ssize_t = 0
    left: cython.Py_ssize_t = rounds
    mu[0, state] = 1.0
    with cython.nogil:
        while left > 0:
            for j in range(S):
                mu[1 - now, j] = 0.0
            for i in range(S):
                mass: cython.double = mu[now, i]
                if mass > 0.0:
                    for j in range(S):
                        mu[1 - now, j] += mass * P[i, j]
            moved = _book(mu[now], mu[1 - now], total)
            now = 1 - now
            left -= 1
            if moved * left <= tol:
                break
        for i in range(S):
            total[i] = (total[i] + left * mu[now, i]) / rounds
    return shares


def time_in_states_sparse(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    state: cython.Py_ssize_t,
    rounds: cython.Py_ssize_t,
    tol: cython.double,
):
    """Return the share of the next rounds a chain in CSR form spends in every state; see ``time_in_states_dense``."""
    S = indptr.shape[0] - 1
    if not 0 <= state < S or rounds < 1:
        raise ValueError("a chain (S, S), one of its states and a number of rounds are needed")
    check_graph(indptr, indices, data.shape[0], S)
    shares, room = np.zeros(S), np.zeros((2, S))
    total: Vector = shares
    mu: Matrix = room
    now: cython.Py_ssize_t = 0
    left: cython.Py_ssize_t = rounds
    mu[0, state] = 1.0
    with cython.nogil:
        while left > 0:
            for i in range(S):
                mu[1 - now, i] = 0.0
            for i in range(S):
                mass: cython.double = mu[now, i]
                if mass > 0.0:
                    for e in range(indptr[i], indptr[i + 1]):
                        mu[1 - now, indices[e]] += mass * data[e]
            moved = _book(mu[now], mu[1 - now], total)
            now = 1 - now
            left -= 1
            if moved * left <= tol:
                break
        for i in range(S):
            total[i] = (total[i] + left * mu[now, i]) / rounds
    return shares
