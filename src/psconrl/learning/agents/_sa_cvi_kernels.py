"""Compiled parts of SA-CVI-UCB: plain arrays in, plain arrays out.

A plan is for H rounds from one state of the account. After h of them the account has moved by h times the least move
and j strides more, j = 0 .. h R, R the reach of one round: only these positions are computed. Actions are stored
without gaps, step after step: those of step h as (S, h R + 1).
"""

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints, Small


@njit(cache=True, nogil=True)
def first_entry(step: int, reach: int, n_states: int) -> int:
    """Where the actions of a step begin: behind those of h + R h (h - 1) / 2 positions."""
    return n_states * (step + reach * (step * (step - 1) // 2))


@njit(cache=True, nogil=True)
def plan_block(
    H: int, reach: int, gains: Floats, indptr: Ints, successors: Ints, laws: Floats, increments: Ints, final: Floats,
    clip: float, actions: Small,
) -> Floats:  # fmt: skip
    """Clipped value iteration, backward over a block: fills in the actions, returns the values (S,) at its beginning.

    ``gains`` (S*A,) are rewards and bonuses. The rows of the empirical model are given by ``indptr`` into successors
    and their frequencies; an empty one, of a pair never tried, leads everywhere alike. ``increments`` (S*A,): by how
    many strides a pair moves the account. ``final`` (H R + 1,): the value of each position at the end. No value is more
    than ``clip`` above the least of its position.
    """
    S = actions.size // first_entry(H, reach, 1)
    A = gains.size // S
    ahead, now = np.empty((S, H * reach + 1)), np.empty((S, H * reach + 1))
    anywhere, q = np.empty(H * reach + 1), np.empty(H * reach + 1)
    for s in range(S):
        for j in range(H * reach + 1):
            ahead[s, j] = final[j]
    for h in range(H - 1, -1, -1):
        n = h * reach + 1
        for j in range(n + reach):
            anywhere[j] = 0.0
        for s in range(S):
            for j in range(n + reach):
                anywhere[j] += ahead[s, j]
        for j in range(n + reach):
            anywhere[j] /= S
        begin = first_entry(h, reach, S)
        for s in range(S):
            chosen, best = actions[begin + s * n : begin + (s + 1) * n], now[s]
            for a in range(A):
                pair = s * A + a
                k = increments[pair]
                gain, low, high = gains[pair], indptr[pair], indptr[pair + 1]
                tried = low < high
                row, p = (ahead[successors[low]], laws[low]) if tried else (anywhere, 1.0)
                for j in range(n):
                    q[j] = gain + p * row[j + k]
                for e in range(low + 1, high):
                    row, p = ahead[successors[e]], laws[e]
                    for j in range(n):
                        q[j] += p * row[j + k]
                if a == 0:
                    for j in range(n):
                        best[j] = q[j]
                        chosen[j] = 0
                else:
                    action = actions.dtype.type(a)
                    for j in range(n):  # always stored, so that it is done for several j at once
                        better = q[j] > best[j]
                        best[j] = q[j] if better else best[j]
                        chosen[j] = action if better else chosen[j]
        for j in range(n):
            q[j] = now[0, j]
        for s in range(1, S):
            for j in range(n):
                q[j] = min(q[j], now[s, j])
        for s in range(S):
            for j in range(n):
                now[s, j] = min(now[s, j], q[j] + clip)
        ahead, now = now, ahead
    return ahead[:, 0].copy()


@njit(cache=True, nogil=True)
def shared_steps(actions: Small, H: int, reach: int, step: int, position: int, most: int, chosen: Ints) -> int:
    """For how many steps, up to ``most``, the action does not depend on how the account will move meanwhile.

    At least one. ``chosen`` (most, S) is filled in with the actions of these steps.
    """
    S = chosen.shape[1]
    for k in range(min(most, H - step)):
        n = (step + k) * reach + 1
        begin = first_entry(step + k, reach, S) + position
        for s in range(S):
            action = actions[begin + s * n]
            for j in range(1, k * reach + 1):
                if actions[begin + s * n + j] != action:
                    return k
            chosen[k, s] = action
    return min(most, H - step)


@njit(cache=True, nogil=True)
def block_averages(
    actions: Small, H: int, reach: int, step: int, position: int, increments: Ints, indptr: Ints, successors: Ints,
    probabilities: Floats, costs: Floats, state: int,
) -> Floats:  # fmt: skip
    """What the rest of a block is expected to cost on average in a model, after 1, 2, ... rounds: (H - step, q).

    Forward over the block, by the law of state and position. ``increments`` (S*A,) as in ``plan_block``; the rows of
    the model are given by ``indptr`` into successors and their probabilities; ``costs`` (q, S, A).
    """
    q, S, A = costs.shape
    rounds = H - step
    averages, totals = np.empty((rounds, q)), np.zeros(q)
    law, after = np.zeros((S, rounds * reach + 1)), np.zeros((S, rounds * reach + 1))
    law[state, 0] = 1.0
    for k in range(rounds):
        n = (step + k) * reach + 1
        begin = first_entry(step + k, reach, S) + position
        for s in range(S):
            for j in range(k * reach + 1):
                mass = law[s, j]
                if mass > 0.0:
                    law[s, j] = 0.0
                    action = actions[begin + s * n + j]
                    for i in range(q):
                        totals[i] += mass * costs[i, s, action]
                    pair = s * A + action
                    onward = j + increments[pair]
                    for e in range(indptr[pair], indptr[pair + 1]):
                        after[successors[e], onward] += mass * probabilities[e]
        law, after = after, law
        for i in range(q):
            averages[k, i] = totals[i] / (k + 1)
    return averages
