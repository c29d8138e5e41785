"""The compiled inner loop of a simulation: arrays in, arrays out, randomness handed in."""

from typing import Any

import numpy as np
from numba import njit

from psconrl.arrays import Floats, Ints
from psconrl.learning.stepping import learn_round


@njit(cache=True)
def play(
    state: int,
    step: int,
    steps: int,
    max_steps: int,
    policy: Floats,
    caps: Ints,
    indptr: Ints,
    successors: Ints,
    cdf: Floats,
    outcomes: Floats,
    bernoulli: bool,
    action_uniforms: Floats,
    model_uniforms: Floats,
    visits: Ints,
    log: Ints,
    cost_sums: Floats,
    cumulative: Floats,
    thresholds: Floats,
    largest: Floats,
    round_: int,
    checkpoints: Ints,
    next_checkpoint: int,
    at_checkpoints: Floats,
    largest_at_checkpoints: Floats,
    memory: Any,
) -> tuple[int, int, int, bool]:
    """Play up to ``steps`` rounds of an episode, ``step`` rounds into it, or until one of its limits is reached.

    ``policy`` is (H, S, A), H = 1 if it is stationary; ``caps`` (S*A,) or empty. The rows of the model are given by
    ``indptr`` into successors, their cumulative probabilities and their costs (m+1, entries). Each round uses one row
    of either kind of uniforms: the action; the next state and, if costs are Bernoulli, each cost. The transitions met
    are written to the ``log``, as a ``Tally`` numbers them. ``largest`` (m,) is by how much each limit was exceeded in
    total, at most: the largest, over all rounds so far, of cumulative cost less rounds times threshold, or 0.
    ``memory`` is that of an agent that learns at every round and changes the policy as it goes, or an empty tuple.

    Returns the state reached, the rounds played, the next checkpoint, and whether the episode has ended.
    """
    H, n_states, A = policy.shape
    n_costs = outcomes.shape[0]
    capped = caps.size > 0
    costs = np.empty(n_costs)
    for k in range(steps):
        row = policy[min(step, H - 1), state]
        total = 0.0
        for a in range(A):
            total += row[a]
        u = action_uniforms[k, 0] * total
        action = A - 1
        reached = 0.0
        for a in range(A):
            reached += row[a]
            if u < reached:
                action = a
                break
        pair = state * A + action

        u = model_uniforms[k, 0]
        low, high = indptr[pair], indptr[pair + 1] - 1
        while low < high:
            middle = (low + high) // 2
            if u < cdf[middle]:
                high = middle
            else:
                low = middle + 1
        successor = successors[low]

        for i in range(n_costs):
            cost = outcomes[i, low]
            if bernoulli:
                cost = 1.0 if model_uniforms[k, 1 + i] < cost else 0.0
            costs[i] = cost
            cost_sums[i, pair] += cost
            cumulative[i] += cost
        visits[pair] += 1
        log[k] = pair * n_states + successor
        learn_round(memory, state, action, successor, costs)
        state = successor
        step += 1
        round_ += 1
        for i in range(1, n_costs):
            excess = cumulative[i] - round_ * thresholds[i - 1]
            if excess > largest[i - 1]:
                largest[i - 1] = excess
        while next_checkpoint < checkpoints.size and checkpoints[next_checkpoint] == round_:
            at_checkpoints[next_checkpoint] = cumulative
            largest_at_checkpoints[next_checkpoint] = largest
            next_checkpoint += 1
        if step >= max_steps or (capped and visits[pair] >= caps[pair]):
            return state, k + 1, next_checkpoint, True
    return state, steps, next_checkpoint, False


@njit(cache=True)
def expected_averages(
    policy: Floats, indptr: Ints, successors: Ints, probabilities: Floats, costs: Floats, state: int
) -> Floats:
    """What a policy (H, S, A) is expected to cost from a state on average, after 1, ..., H rounds: (H, q).

    The rows of the model are given as in ``play``, with their probabilities; ``costs`` (q, S, A).
    """
    H, S, A = policy.shape
    q = costs.shape[0]
    averages, totals = np.empty((H, q)), np.zeros(q)
    law, after = np.zeros(S), np.zeros(S)
    law[state] = 1.0
    for h in range(H):
        for s in range(S):
            after[s] = 0.0
        for s in range(S):
            if law[s] > 0.0:
                for a in range(A):
                    mass = law[s] * policy[h, s, a]
                    if mass > 0.0:
                        for i in range(q):
                            totals[i] += mass * costs[i, s, a]
                        for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                            after[successors[e]] += mass * probabilities[e]
        law, after = after, law
        for i in range(q):
            averages[h, i] = totals[i] / (h + 1)
    return averages
