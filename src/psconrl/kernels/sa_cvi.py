"""SA-CVI-UCB: clipped value iteration over states and account positions, and the consequences of its plan.

A plan is for H rounds from one state of the account. After h of them the account has moved by h times the least move
and j strides more, j = 0 .. h R, where R is the reach of one round: only these positions are computed. Actions are
stored without gaps, step after step: those of step h as (S, h R + 1). Models are in CSR form.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.successors import check_matrix, index


def first_entry(step: int, reach: int, n_states: int) -> int:
    """Return where the actions of a step begin: after those of h + R h (h - 1) / 2 positions; of any magnitude."""
    return n_states * (step + reach * (step * (step - 1) // 2))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _begin(step: cython.Py_ssize_t, reach: cython.Py_ssize_t, n_states: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return ``first_entry`` of a plan that fits in memory."""
    return n_states * (step + reach * (step * (step - 1) // 2))


@cython.cfunc
@cython.exceptval(-1, check=False)
def _n_states(
    actions: cython.const[cython.ushort][::1], H: cython.Py_ssize_t, reach: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the number of states that have actions."""
    each = first_entry(H, reach, 1) if H > 0 and reach >= 0 else 0
    if each == 0 or actions.shape[0] == 0 or actions.shape[0] % each:
        raise ValueError("the actions of all steps of a block are needed")
    return actions.shape[0] // each


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_rows(
    S: cython.Py_ssize_t,
    pairs: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    probabilities: cython.const[cython.double][::1],
    increments: cython.const[cython.Py_ssize_t][::1],
) -> cython.int:
    """Raise a ValueError unless every pair has a row and an increment within reach."""
    if pairs == 0 or pairs % S or indptr.shape[0] != pairs + 1 or increments.shape[0] != pairs:
        raise ValueError("a row and an increment of every pair are needed")
    check_matrix(indptr, successors, probabilities.shape[0], S)
    for pair in range(pairs):
        if not 0 <= increments[pair] <= reach:
            raise ValueError("increments must be within reach")
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _average_over_states(
    values: cython.const[cython.double][:, :, ::1],
    ahead: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    mean: cython.double[::1],
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
@cython.nogil
@cython.exceptval(check=False)
def _clip_values(
    values: cython.double[:, :, ::1],
    now: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    clip: cython.double,
    least: cython.double[::1],
) -> cython.void:
    """Clip all values at ``clip`` above the least of their position."""
    S = values.shape[1]
    for j in range(n):
        least[j] = values[now, 0, j]
    for s in range(1, S):
        for j in range(n):
            least[j] = values[now, s, j] if values[now, s, j] < least[j] else least[j]
    for j in range(n):
        least[j] += clip
    for s in range(S):
        for j in range(n):
            values[now, s, j] = least[j] if least[j] < values[now, s, j] else values[now, s, j]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _step(
    gains: cython.const[cython.double][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    probabilities: cython.const[cython.double][::1],
    increments: cython.const[cython.Py_ssize_t][::1],
    values: cython.double[:, :, ::1],
    ahead: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    anywhere: cython.const[cython.double][::1],
    q: cython.double[::1],
    begin: cython.Py_ssize_t,
    actions: cython.ushort[::1],
) -> cython.void:
    """Run one step of value iteration from the values ahead, of n positions: values, and actions from ``begin`` on."""
    S = values.shape[1]
    A = gains.shape[0] // S
    now = 1 - ahead
    for s in range(S):
        own = begin + s * n
        for a in range(A):
            pair = s * A + a
            k: cython.Py_ssize_t = increments[pair]
            gain: cython.double = gains[pair]
            low: cython.Py_ssize_t = indptr[pair]
            high: cython.Py_ssize_t = indptr[pair + 1]
            if low < high:
                to: cython.Py_ssize_t = successors[low]
                p: cython.double = probabilities[low]
                for j in range(n):
                    q[j] = gain + p * values[ahead, to, j + k]
            else:
                for j in range(n):
                    q[j] = gain + anywhere[j + k]
            for e in range(low + 1, high):
                to = successors[e]
                p = probabilities[e]
                for j in range(n):
                    q[j] += p * values[ahead, to, j + k]
            action = cython.cast(cython.ushort, a)
            if a == 0:
                for j in range(n):
                    values[now, s, j] = q[j]
                    actions[own + j] = 0
            else:
                for j in range(n):  # unconditional store, so that several j are processed at once
                    actions[own + j] = action if q[j] > values[now, s, j] else actions[own + j]
                for j in range(n):
                    values[now, s, j] = q[j] if q[j] > values[now, s, j] else values[now, s, j]


def plan_block(
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    gains: cython.const[cython.double][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    frequencies: cython.const[cython.double][::1],
    increments: cython.const[cython.Py_ssize_t][::1],
    final: cython.const[cython.double][::1],
    clip: cython.double,
    actions: cython.ushort[::1],
):
    """Run clipped value iteration backward over a block; fill in actions, return the values (S,) at its beginning.

    ``gains`` (S*A,) are rewards and bonuses. The rows of the empirical model are given by ``indptr`` into successors
    and their frequencies; an empty one, of a pair never tried, is uniform over all states. ``increments`` (S*A,): by
    how many strides a pair moves the account. ``final`` (H R + 1,): the value of each position at the end. No value is
    more than ``clip`` above the least of its position.
    """
    S = _n_states(actions, H, reach)
    _check_rows(S, gains.shape[0], reach, indptr, successors, frequencies, increments)
    positions = H * reach + 1
    if final.shape[0] != positions:
        raise ValueError("the value of each position at the end is needed")
    tables = np.empty((2, S, positions))
    values: cython.double[:, :, ::1] = tables
    anywhere: cython.double[::1] = np.empty(positions)
    q: cython.double[::1] = np.empty(positions)
    ahead: cython.Py_ssize_t = 0
    with cython.nogil:
        for s in range(S):
            for j in range(positions):
                values[0, s, j] = final[j]
        for h in range(H - 1, -1, -1):
            n: cython.Py_ssize_t = h * reach + 1
            _average_over_states(values, ahead, n + reach, anywhere)
            _step(
                gains, indptr, successors, frequencies, increments, values, ahead, n, anywhere, q,
                _begin(h, reach, S), actions,
            )  # fmt: skip
            ahead = 1 - ahead
            _clip_values(values, ahead, n, clip, q)
    return tables[ahead, :, 0].copy()


def shared_steps(
    actions: cython.const[cython.ushort][::1],
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    chosen: cython.Py_ssize_t[:, ::1],
):
    """Return for how many steps, up to ``most``, the action does not depend on the account's moves meanwhile.

    At least one. ``chosen`` (most, S) is filled in with the actions of these steps.
    """
    S = _n_states(actions, H, reach)
    if chosen.shape[0] < most or chosen.shape[1] != S or not 0 <= step <= H or not 0 <= position <= step * reach:
        raise ValueError("a position within reach and room for the actions of all states are needed")
    k: cython.Py_ssize_t
    for k in range(min(most, H - step)):
        n: cython.Py_ssize_t = (step + k) * reach + 1
        begin: cython.Py_ssize_t = _begin(step + k, reach, S) + position
        for s in range(S):
            action = actions[begin + s * n]
            for j in range(1, k * reach + 1):
                if actions[begin + s * n + j] != action:
                    return k
            chosen[k, s] = action
    return min(most, H - step)


def block_averages(
    actions: cython.const[cython.ushort][::1],
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    increments: cython.const[cython.Py_ssize_t][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    probabilities: cython.const[cython.double][::1],
    costs: cython.const[cython.double][:, :, ::1],
    state: cython.Py_ssize_t,
):
    """Return the expected average costs of the rest of a block in a model, after 1, 2, ... rounds: (H - step, q).

    Forward over the block, by the distribution of state and position. ``increments`` (S*A,) as in ``plan_block``; the
    rows of the model are given by ``indptr`` into successors and their probabilities; ``costs`` (q, S, A).
    """
    q, S, A = costs.shape[0], costs.shape[1], costs.shape[2]
    if _n_states(actions, H, reach) != S or not 0 <= step <= H or not 0 <= position <= step * reach:
        raise ValueError("a position within reach in a block for all states is needed")
    if not 0 <= state < S:
        raise ValueError("there is no such state")
    _check_rows(S, S * A, reach, indptr, successors, probabilities, increments)
    for i in range(_begin(step, reach, S), actions.shape[0]):
        if actions[i] >= A:
            raise ValueError("there is no such action")
    rounds = H - step
    result = np.empty((rounds, q))
    averages: cython.double[:, ::1] = result
    totals: cython.double[::1] = np.zeros(q)
    masses: cython.double[:, :, ::1] = np.zeros((2, S, rounds * reach + 1))
    with cython.nogil:
        masses[0, state, 0] = 1.0
        for k in range(rounds):
            n: cython.Py_ssize_t = (step + k) * reach + 1
            begin: cython.Py_ssize_t = _begin(step + k, reach, S) + position
            now: cython.Py_ssize_t = k % 2
            for s in range(S):
                for j in range(k * reach + 1):
                    mass: cython.double = masses[now, s, j]
                    if mass > 0.0:
                        masses[now, s, j] = 0.0
                        a: cython.Py_ssize_t = actions[begin + s * n + j]
                        for i in range(q):
                            totals[i] += mass * costs[i, s, a]
                        onward: cython.Py_ssize_t = j + increments[s * A + a]
                        for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                            masses[1 - now, successors[e], onward] += mass * probabilities[e]
            for i in range(q):
                averages[k, i] = totals[i] / (k + 1)
    return result
