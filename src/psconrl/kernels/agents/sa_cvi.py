"""SA-CVI-UCB: clipped value iteration over states and account positions, which are those of ``sa_cvi_blocks``."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstInts,
    ConstPlaces,
    ConstTables,
    ConstVector,
    Matrix,
    Tables,
    Vector,
)
from cython.cimports.psconrl.kernels.agents.sa_cvi_blocks import begin_of_step, check_moves, states_of_block

_TOGETHER = cython.declare(cython.Py_ssize_t, 256)  # positions whose values are computed together, within a cache


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _average_over_states(
    values: ConstTables, ahead: cython.Py_ssize_t, n: cython.Py_ssize_t, mean: Vector
) -> cython.void:
    """Compute the mean value of each of the first n positions under a uniform distribution of the state."""
    S = values.shape[1]
    for j in range(n):
        mean[j] = 0.0
    for s in range(S):
        for j in range(n):
            mean[j] += values[ahead, s, j]
    for j in range(n):
        mean[j] /= S


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _take_better(
    q: ConstVector, n: cython.Py_ssize_t, action: cython.double, best: Vector, chosen: Vector
) -> cython.void:
    """Take an action at the first n positions where its values q are better than the best so far."""
    for j in range(n):  # unconditional stores, of numbers of one size, so that several j are processed at once
        chosen[j] = action if q[j] > best[j] else chosen[j]
        best[j] = q[j] if q[j] > best[j] else best[j]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _step(
    gains: ConstVector,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    increments: ConstInts,
    values: Tables,
    ahead: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    anywhere: ConstVector,
    q: Vector,
    best: Vector,
    chosen: Vector,
    own: cython.Py_ssize_t,
    between: cython.Py_ssize_t,
    actions: cython.ushort[::1],
) -> cython.void:
    """Run one step of value iteration from the values ahead, at n positions from the first on.

    The actions of a state at these positions begin at ``own``, those of the next state ``between`` later.
    """
    S = values.shape[1]
    A = gains.shape[0] // S
    now = 1 - ahead
    for s in range(S):
        for a in range(A):
            pair = s * A + a
            begin: cython.Py_ssize_t = first + increments[pair]
            gain: cython.double = gains[pair]
            low: cython.Py_ssize_t = indptr[pair]
            high: cython.Py_ssize_t = indptr[pair + 1]
            to: cython.Py_ssize_t
            also: cython.Py_ssize_t
            p: cython.double
            r: cython.double
            if low == high:
                for j in range(n):
                    q[j] = gain + anywhere[begin + j]
            elif (high - low) % 2:
                to = successors[low]
                p = probabilities[low]
                for j in range(n):
                    q[j] = gain + p * values[ahead, to, begin + j]
                low += 1
            else:
                to, also = successors[low], successors[low + 1]
                p, r = probabilities[low], probabilities[low + 1]
                for j in range(n):
                    q[j] = (gain + p * values[ahead, to, begin + j]) + r * values[ahead, also, begin + j]
                low += 2
            for e in range(low, high, 2):
                to, also = successors[e], successors[e + 1]
                p, r = probabilities[e], probabilities[e + 1]
                for j in range(n):
                    q[j] = (q[j] + p * values[ahead, to, begin + j]) + r * values[ahead, also, begin + j]
            if a == 0:
                for j in range(n):
                    best[j] = q[j]
                    chosen[j] = 0.0
            else:
                _take_better(q, n, a, best, chosen)
        for j in range(n):
            values[now, s, first + j] = best[j]
        for j in range(n):
            actions[own + s * between + j] = cython.cast(cython.ushort, chosen[j])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clip_values(
    values: Tables,
    now: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    clip: cython.double,
    least: Vector,
) -> cython.void:
    """Clip the values of n positions from the first on at ``clip`` above the least of their position."""
    S = values.shape[1]
    for j in range(n):
        least[j] = values[now, 0, first + j]
    for s in range(1, S):
        for j in range(n):
            least[j] = values[now, s, first + j] if values[now, s, first + j] < least[j] else least[j]
    for j in range(n):
        least[j] += clip
    for s in range(S):
        for j in range(n):
            values[now, s, first + j] = least[j] if least[j] < values[now, s, first + j] else values[now, s, first + j]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_empty_row(indptr: ConstPlaces) -> cython.bint:
    for row in range(indptr.shape[0] - 1):
        if indptr[row] == indptr[row + 1]:
            return True
    return False


def plan_block(
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    gains: ConstVector,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    frequencies: ConstVector,
    increments: ConstInts,
    final: ConstVector,
    clip: cython.double,
    actions: cython.ushort[::1],
):
    """Run clipped value iteration backward over a block; fill in actions, return the values (S,) at its beginning.

    ``gains`` (S*A,) are rewards and bonuses. The rows of the empirical model are given by ``indptr`` into successors
    and their frequencies; an empty one, of a pair never tried, is uniform over all states. ``increments`` (S*A,): by
    how many strides a pair moves the account. ``final`` (H R + 1,): the value of each position at the end. No value is
    more than ``clip`` above the least of its position.
    """
    S = states_of_block(actions, H, reach)
    check_moves(S, gains.shape[0], reach, indptr, successors, frequencies, increments)
    positions = H * reach + 1
    if final.shape[0] != positions:
        raise ValueError("the value of each position at the end is needed")
    tables = np.empty((2, S, positions))
    values: Tables = tables
    anywhere: Vector = np.empty(positions)
    room: Matrix = np.empty((3, _TOGETHER))
    ahead: cython.Py_ssize_t = 0
    with cython.nogil:
        untried: cython.bint = _has_empty_row(indptr)
        for s in range(S):
            for j in range(positions):
                values[0, s, j] = final[j]
        for h in range(H - 1, -1, -1):
            n: cython.Py_ssize_t = h * reach + 1
            if untried:
                _average_over_states(values, ahead, n + reach, anywhere)
            first: cython.Py_ssize_t = 0
            while first < n:
                some: cython.Py_ssize_t = min(_TOGETHER, n - first)
                _step(
                    gains, indptr, successors, frequencies, increments, values, ahead, first, some, anywhere,
                    room[0], room[1], room[2], begin_of_step(h, reach, S) + first, n, actions,
                )  # fmt: skip
                _clip_values(values, 1 - ahead, first, some, clip, room[0])
                first += some
            ahead = 1 - ahead
    return tables[ahead, :, 0].copy()
