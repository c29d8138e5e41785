r"""Policy improvement on narrow sparse models, while the states are censored from the farthest to the nearest.

Policy iteration moves a border between two actions by as many states as the biases on one side are influenced by the
other side, and sweeps of value iteration by a few more. In a queue of 1e5 places that takes thousands of policies. Here
every state chooses its action when it is censored, as in GTH elimination (``sparse_elimination``). The states before it
are farther away from a reference and have chosen already, so that the row of each action becomes

.. math:: v_a - h(s) = \Big(C_a - g\,T_a + \sum_{s'} U_a(s')\, (h(s') - h(s))\Big) \Big/ \sum_{s'} U_a(s')

with the cost C and time T until a state nearer to the reference is entered, and the bias h of the last policy there.
If a step moves by one place, this is the optimal policy for the gain g.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlagMatrix, ConstInts, ConstPlaces, ConstVector, Ints, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers
from cython.cimports.psconrl.kernels.linear.elimination_workspace import Elimination

_LARGEST = cython.declare(cython.double, 1e200)  # total cost: beyond, excursions are equally good, or equally bad
_INFINITE = cython.declare(cython.double, float("inf"))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _censored_pair(
    work: Elimination,
    i: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    pair: cython.Py_ssize_t,
    cost: cython.double,
    h: ConstVector,
) -> tuple[cython.double, cython.double, cython.double, cython.double]:
    """Absorb the rows before i into the row of a pair: its later entries are then in w, the factors in left.

    Return the cost until a later position is entered, the probability of moving to the reference, that of entering any
    later position, and the value of the pair, relative to the bias of its state.
    """
    e: cython.Py_ssize_t
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    leave: cython.double = 0.0
    for e in range(indptr[pair], indptr[pair + 1]):
        k = work.position[indices[e]]
        if k == last:
            leave += data[e]
        else:
            work.w[k] += data[e]
    for e in range(work.lower[i], work.lower[i + 1]):
        k = work.before[e]
        f: cython.double = work.w[k]
        work.w[k] = 0.0
        if f > 0.0:
            f /= work.outs[k]
            for t in range(work.upper[k], work.upper[k + 1]):
                work.w[work.after[t]] += f * work.U[t]
            cost += f * work.C[k, 0]
            leave += f * work.C[k, 1]
        work.left[e - work.lower[i]] = f
    work.w[i] = 0.0
    out: cython.double = leave
    here: cython.double = h[work.state[i]]
    total: cython.double = cost + leave * (h[work.state[last]] - here)
    for t in range(work.upper[i], work.upper[i + 1]):
        k = work.after[t]
        out += work.w[k]
        total += work.w[k] * (h[work.state[k]] - here)
    return cost, leave, out, total / out if out > 0.0 else _INFINITE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _choose_action(
    work: Elimination,
    i: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    cost: ConstVector,
    available: ConstFlagMatrix,
    h: ConstVector,
    gain: cython.double,
    tol: cython.double,
    policy: Ints,
) -> cython.bint:
    """Choose the action of the state at position i and store its censored row; False if no action ever leaves it."""
    A = available.shape[1]
    s = work.state[i]
    kept = policy[s]
    best: cython.double = _INFINITE
    t: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    found: cython.bint = False
    for turn in range(-1, A):  # the action of the policy first: others must be better by more than rounding
        a: cython.Py_ssize_t = kept if turn < 0 else turn
        if (turn >= 0 and a == kept) or not available[s, a]:
            continue
        collected, leave, out, value = _censored_pair(
            work, i, last, indptr, indices, data, s * A + a, cost[s * A + a] - gain, h
        )
        better: cython.bint = out > 0.0 and (not found or best - value > tol * max(1.0, abs(best)))
        if better:
            found = True
            best = value
            policy[s] = a
            work.C[i, 0] = max(-_LARGEST * out, min(_LARGEST * out, collected))
            work.C[i, 1] = leave
            work.outs[i] = out
            for t in range(work.lower[i], work.lower[i + 1]):
                work.F[t] = work.left[t - work.lower[i]]
        for t in range(work.upper[i], work.upper[i + 1]):
            k: cython.Py_ssize_t = work.after[t]
            if better:
                work.U[t] = work.w[k]
            work.w[k] = 0.0
    return found


def improve_outward(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    cost: ConstVector,
    available: ConstFlagMatrix,
    policy: ConstInts,
    h: ConstVector,
    gain: cython.double,
    reference: cython.Py_ssize_t,
    tol: cython.double,
    order,
):
    """Return the policy (S,) in which every state has chosen its action when it was censored, and its censored rows.

    ``cost`` (S*A,); bias ``h`` (S,) and ``gain`` of a policy; the order ends near the reference, which keeps its action
    and counts as the last state whatever its position. An action is switched if it gains more than ``tol`` relative to
    the change of the value of its state. Of the rows: factors, later entries and their sums, see ``until_reference``.
    None if some states would never reach a later one.
    """
    S, A = available.shape[0], available.shape[1]
    if indptr.shape[0] != S * A + 1 or cost.shape[0] != S * A or policy.shape[0] != S or h.shape[0] != S:
        raise ValueError("transitions and a cost for every pair, a policy (S,) and a bias (S,) are needed")
    if order.position.size != S or not 0 <= reference < S:
        raise ValueError("an order of all states and one of the states are needed")
    check_graph(indptr, indices, data.shape[0], S)
    check_numbers(policy, A, "there is no such action")
    work: Elimination = Elimination(order, 0)
    new = np.array(policy)
    chosen: Ints = new
    last: cython.Py_ssize_t = work.position[reference]
    ended: cython.bint = False
    e: cython.Py_ssize_t
    with cython.nogil:
        for i in range(S):
            if i == last:  # later rows count moves to the reference separately
                for e in range(work.upper[i], work.upper[i + 1]):
                    work.U[e] = 0.0
                for e in range(work.lower[i], work.lower[i + 1]):
                    work.F[e] = 0.0
                work.outs[i] = 1.0
                work.C[i, 0] = 0.0
                work.C[i, 1] = 0.0
            elif not _choose_action(work, i, last, indptr, indices, data, cost, available, h, gain, tol, chosen):
                ended = True
                break
    return None if ended else (new, (np.asarray(work.F), np.asarray(work.U), np.asarray(work.outs)))


def until_reference(rows, cost: ConstVector, reference: cython.Py_ssize_t, order):
    """Return the expected total cost (S,) until the reference is hit, by the rows that ``improve_outward`` returned."""
    S = cost.shape[0]
    work: Elimination = Elimination(order, 0)
    if work.position.shape[0] != S or not 0 <= reference < S:
        raise ValueError("an order of all states and one of the states are needed")
    work.F, work.U, work.outs = rows
    if work.F.shape[0] != work.before.shape[0] or work.U.shape[0] != work.after.shape[0] or work.outs.shape[0] != S:
        raise ValueError("rows in the pattern of the order are needed")
    last: cython.Py_ssize_t = work.position[reference]
    collected = np.zeros(S)
    total: Vector = collected
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    with cython.nogil:
        for i in range(S):
            if i != last:
                work.w[i] = cost[work.state[i]]
                for e in range(work.lower[i], work.lower[i + 1]):
                    work.w[i] += work.F[e] * work.w[work.before[e]]
        for i in range(S - 1, -1, -1):
            if i != last:
                for e in range(work.upper[i], work.upper[i + 1]):
                    work.w[i] += work.U[e] * work.w[work.after[e]]
                work.w[i] /= work.outs[i]
        work.w[last] = 0.0
        for i in range(S):
            total[work.state[i]] = work.w[i]
    return collected
