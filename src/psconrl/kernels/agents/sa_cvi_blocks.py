"""SA-CVI-UCB: the plan of a block, how it is stored, followed and evaluated.

A plan is for H rounds from one state of the account. After h of them the account has moved by h times the least move
and j strides more, j = 0 .. h R, where R is the reach of one round: only these positions are computed. Actions are
stored without gaps, step after step: those of step h as (S, h R + 1). Models are in CSR form.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstInts,
    ConstPlaces,
    ConstTables,
    ConstVector,
    IntMatrix,
    Matrix,
    Tables,
    Vector,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_matrix


def first_entry(step: int, reach: int, n_states: int) -> int:
    """Return where the actions of a step begin: after those of h + R h (h - 1) / 2 positions; of any magnitude."""
    return n_states * (step + reach * (step * (step - 1) // 2))


def begin_of_step(step, reach, n_states):
    """Return ``first_entry`` of a plan that fits in memory."""
    return n_states * (step + reach * (step * (step - 1) // 2))


def states_of_block(actions, H, reach):
    """Return the number of states that have actions."""
    each = first_entry(H, reach, 1) if H > 0 and reach >= 0 else 0
    if each == 0 or actions.shape[0] == 0 or actions.shape[0] % each:
        raise ValueError("the actions of all steps of a block are needed")
    return actions.shape[0] // each


def check_moves(S, pairs, reach, indptr, successors, probabilities, increments):
    """Raise a ValueError unless every pair has a row and an increment within reach."""
    if pairs == 0 or pairs % S or indptr.shape[0] != pairs + 1 or increments.shape[0] != pairs:
        raise ValueError("a row and an increment of every pair are needed")
    check_matrix(indptr, successors, probabilities.shape[0], S)
    for pair in range(pairs):
        if not 0 <= increments[pair] <= reach:
            raise ValueError("increments must be within reach")
    return 0


def shared_steps(
    actions: cython.const[cython.ushort][::1],
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    chosen: IntMatrix,
):
    """Return for how many steps, up to ``most``, the action does not depend on the account's moves meanwhile.

    At least one. ``chosen`` (most, S) is filled in with the actions of these steps.
    """
    S = states_of_block(actions, H, reach)
    if chosen.shape[0] < most or chosen.shape[1] != S or not 0 <= step <= H or not 0 <= position <= step * reach:
        raise ValueError("a position within reach and room for the actions of all states are needed")
    k: cython.Py_ssize_t
    for k in range(min(most, H - step)):
        n: cython.Py_ssize_t = (step + k) * reach + 1
        begin: cython.Py_ssize_t = begin_of_step(step + k, reach, S) + position
        for s in range(S):
            action = actions[begin + s * n]
            for j in range(1, k * reach + 1):
                if actions[begin + s * n + j] != action:
                    return k
            chosen[k, s] = action
    return min(most, H - step)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _move_on(
    masses: Tables,
    now: cython.Py_ssize_t,
    s: cython.Py_ssize_t,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    pair: cython.Py_ssize_t,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    increment: cython.Py_ssize_t,
    reached: cython.Py_ssize_t[:, :, ::1],
) -> cython.void:
    """Move the mass of a state at the positions from ``begin`` to ``end`` on, where it plays the same action."""
    for e in range(indptr[pair], indptr[pair + 1]):
        p: cython.double = probabilities[e]
        to: cython.Py_ssize_t = successors[e]
        for j in range(begin, end):
            masses[1 - now, to, j + increment] += masses[now, s, j] * p
        reached[1 - now, to, 0] = min(reached[1 - now, to, 0], begin + increment)
        reached[1 - now, to, 1] = max(reached[1 - now, to, 1], end + increment)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_up(
    masses: ConstTables,
    now: cython.Py_ssize_t,
    s: cython.Py_ssize_t,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    costs: ConstTables,
    a: cython.Py_ssize_t,
    totals: Vector,
) -> cython.void:
    """Add the costs of an action of a state at some positions to the totals, in the order of the positions.

    Two costs at a time: each sum must wait for its last addition.
    """
    q = costs.shape[0]
    i: cython.Py_ssize_t = 0
    while i + 1 < q:
        total: cython.double = totals[i]
        other: cython.double = totals[i + 1]
        for j in range(begin, end):
            total += masses[now, s, j] * costs[i, s, a]
            other += masses[now, s, j] * costs[i + 1, s, a]
        totals[i] = total
        totals[i + 1] = other
        i += 2
    if i < q:
        total = totals[i]
        for j in range(begin, end):
            total += masses[now, s, j] * costs[i, s, a]
        totals[i] = total


def block_averages(
    actions: cython.const[cython.ushort][::1],
    H: cython.Py_ssize_t,
    reach: cython.Py_ssize_t,
    step: cython.Py_ssize_t,
    position: cython.Py_ssize_t,
    increments: ConstInts,
    indptr: ConstPlaces,
    successors: ConstPlaces,
    probabilities: ConstVector,
    costs: ConstTables,
    state: cython.Py_ssize_t,
):
    """Return the expected average costs of the rest of a block in a model, after 1, 2, ... rounds: (H - step, q).

    Forward over the block, by the distribution of state and position. ``increments`` (S*A,) as in ``plan_block``; the
    rows of the model are given by ``indptr`` into successors and their probabilities; ``costs`` (q, S, A).
    """
    q, S, A = costs.shape[0], costs.shape[1], costs.shape[2]
    if states_of_block(actions, H, reach) != S or not 0 <= step <= H or not 0 <= position <= step * reach:
        raise ValueError("a position within reach in a block for all states is needed")
    if not 0 <= state < S:
        raise ValueError("there is no such state")
    check_moves(S, S * A, reach, indptr, successors, probabilities, increments)
    largest: cython.ushort = 0
    for i in range(begin_of_step(step, reach, S), actions.shape[0]):
        largest = actions[i] if actions[i] > largest else largest
    if largest >= A:
        raise ValueError("there is no such action")
    rounds = H - step
    positions = rounds * reach + 1
    result = np.empty((rounds, q))
    averages: Matrix = result
    totals: Vector = np.zeros(q)
    masses: Tables = np.zeros((2, S, positions))
    # Between which positions a state has mass, now and next; the first after the last where it has none.
    reached: cython.Py_ssize_t[:, :, ::1] = np.tile(np.array([positions, 0]), (2, S, 1))
    with cython.nogil:
        masses[0, state, 0] = 1.0
        reached[0, state, 0] = 0
        reached[0, state, 1] = 1
        for k in range(rounds):
            n: cython.Py_ssize_t = (step + k) * reach + 1
            begin: cython.Py_ssize_t = begin_of_step(step + k, reach, S) + position
            now: cython.Py_ssize_t = k % 2
            for s in range(S):
                j: cython.Py_ssize_t = reached[now, s, 0]
                last: cython.Py_ssize_t = reached[now, s, 1]
                while j < last:
                    a: cython.Py_ssize_t = actions[begin + s * n + j]
                    end: cython.Py_ssize_t = j + 1
                    while end < last and actions[begin + s * n + end] == a:
                        end += 1
                    _add_up(masses, now, s, j, end, costs, a, totals)
                    if k + 1 < rounds:
                        _move_on(
                            masses, now, s, j, end, s * A + a, indptr, successors, probabilities,
                            increments[s * A + a], reached,
                        )  # fmt: skip
                    j = end
                for at in range(reached[now, s, 0], last):
                    masses[now, s, at] = 0.0
                reached[now, s, 0] = positions
                reached[now, s, 1] = 0
            for i in range(q):
                averages[k, i] = totals[i] / (k + 1)
    return result
