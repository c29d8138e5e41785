"""Inner loop of a simulation: arrays in, arrays out, with all random numbers given."""

from typing import Any, NamedTuple

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import index
from cython.cimports.psconrl.kernels.arithmetic.special import exp
from cython.cimports.psconrl.kernels.graphs.successors import check_graph
from cython.cimports.psconrl.kernels.play.rounds import RoundLearner

# Distribution of costs around their means: exact, one of two values, counts, or uniform.
EXACT, TWO_POINT, POISSON, UNIFORM = 0, 1, 2, 3
_TWO_POINT = cython.declare(cython.int, 1)
_POISSON = cython.declare(cython.int, 2)
_UNIFORM = cython.declare(cython.int, 3)
# Counts are found by adding up probabilities, which for larger means are below the smallest double.
LARGEST_POISSON_MEAN = 500.0
_MOST = cython.declare(cython.double, 2000.0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _emit(
    mean: cython.double, emission: cython.int, low: cython.double, high: cython.double, uniform: cython.double
) -> cython.double:
    """Return a cost with this mean, from a uniform number.

    It is the mean itself; low or high; a Poisson variate; or uniform within half of (high - low) of the mean.
    """
    if emission == _TWO_POINT:
        return high if uniform * (high - low) < mean - low else low
    if emission == _POISSON:
        count: cython.double = 0.0
        p: cython.double = exp(-mean)
        left: cython.double = uniform - p
        while left >= 0.0 and count < _MOST:
            count += 1.0
            p *= mean / count
            left -= p
        return count
    if emission == _UNIFORM:
        return mean + (uniform - 0.5) * (high - low)
    return mean


def emit(
    mean: cython.double, emission: cython.int, low: cython.double, high: cython.double, uniform: cython.double
) -> float:
    """Return a cost with this mean, as the play loop draws it."""
    return _emit(mean, emission, low, high, uniform)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _action(
    policy: cython.const[cython.double][:, :, ::1],
    h: cython.Py_ssize_t,
    state: cython.Py_ssize_t,
    uniform: cython.double,
) -> cython.Py_ssize_t:
    """Return the action that a uniform number draws from a row of a policy, whose sum need not be 1."""
    a: cython.Py_ssize_t
    A: cython.Py_ssize_t = policy.shape[2]
    total: cython.double = 0.0
    for a in range(A):
        total += policy[h, state, a]
    u: cython.double = uniform * total
    reached: cython.double = 0.0
    for a in range(A):
        reached += policy[h, state, a]
        if u < reached:
            return a
    return A - 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _entry(
    cdf: cython.const[cython.double][::1], low: cython.Py_ssize_t, high: cython.Py_ssize_t, uniform: cython.double
) -> cython.Py_ssize_t:
    """Return the first entry from low to high whose cumulative probability exceeds a uniform number, or the last."""
    while low < high:
        middle: cython.Py_ssize_t = (low + high) // 2
        if uniform < cdf[middle]:
            high = middle
        else:
            low = middle + 1
    return low


class EpisodeInPlay(NamedTuple):
    """Rounds of an episode to play: up to ``steps``, from a state, ``step`` rounds into the episode.

    ``policy``: (H, S, A), H = 1 if it is stationary. The episode ends after ``max_steps``, or once a pair has been
    visited as often as ``caps`` (S*A,) says, if it is not empty. Each round uses one row of either kind of uniforms:
    the action; the next state and, unless costs are exact, each cost. Written to: ``visits`` (S*A,), ``cost_sums``
    (m+1, S*A), and the ``log`` of the observed transitions, as a ``Tally`` numbers them.
    """

    state: int
    step: int
    steps: int
    max_steps: int
    policy: Any
    caps: Any
    action_uniforms: Any
    model_uniforms: Any
    visits: Any
    log: Any
    cost_sums: Any


class RunSoFar(NamedTuple):
    """A run up to now: its rounds, and what is written to as it goes on.

    ``cumulative`` (m+1,): the total costs. ``largest`` (m,): the largest total violation of each constraint, the
    maximum, over all rounds so far, of cumulative cost minus rounds times threshold, or 0. Both are noted at the
    checkpoints, from the next one on.
    """

    rounds: int
    thresholds: Any
    cumulative: Any
    largest: Any
    checkpoints: Any
    next_checkpoint: int
    at_checkpoints: Any
    largest_at_checkpoints: Any


def play(model, episode: EpisodeInPlay, run: RunSoFar, learner: RoundLearner | None):
    """Play rounds of an episode, until there are as many as it asks for, or one of its limits is reached.

    ``model``: its rows, as in ``simulation_tables.Tables``: ``indptr`` into ``successors``, their cumulative
    probabilities ``cdf`` and costs ``outcomes`` (m+1, entries); ``emission``, and ``ranges`` (2, m+1), the least and
    the largest value of each cost, for two-point and uniform costs. ``learner``: that of an agent that learns at every
    round and changes the policy meanwhile. The rows of the model are checked when they are visited: checking all would
    take longer than a short episode.

    Returns the state reached, the rounds played, the next checkpoint, and whether the episode has ended.
    """
    state: cython.Py_ssize_t = episode.state
    step: cython.Py_ssize_t = episode.step
    steps: cython.Py_ssize_t = episode.steps
    max_steps: cython.Py_ssize_t = episode.max_steps
    policy: cython.const[cython.double][:, :, ::1] = episode.policy
    caps: cython.const[cython.Py_ssize_t][::1] = episode.caps
    action_uniforms: cython.const[cython.double][:, ::1] = episode.action_uniforms
    model_uniforms: cython.const[cython.double][:, ::1] = episode.model_uniforms
    visits: cython.Py_ssize_t[::1] = episode.visits
    log: cython.Py_ssize_t[::1] = episode.log
    cost_sums: cython.double[:, ::1] = episode.cost_sums
    indptr: cython.const[index][::1] = model.indptr
    successors: cython.const[index][::1] = model.successors
    cdf: cython.const[cython.double][::1] = model.cdf
    outcomes: cython.const[cython.double][:, ::1] = model.outcomes
    emission: cython.int = model.emission
    ranges: cython.const[cython.double][:, ::1] = model.ranges
    round_: cython.Py_ssize_t = run.rounds
    thresholds: cython.const[cython.double][::1] = run.thresholds
    cumulative: cython.double[::1] = run.cumulative
    largest: cython.double[::1] = run.largest
    checkpoints: cython.const[cython.Py_ssize_t][::1] = run.checkpoints
    next_checkpoint: cython.Py_ssize_t = run.next_checkpoint
    at_checkpoints: cython.double[:, ::1] = run.at_checkpoints
    largest_at_checkpoints: cython.double[:, ::1] = run.largest_at_checkpoints
    S: cython.Py_ssize_t = policy.shape[1]
    A: cython.Py_ssize_t = policy.shape[2]
    n_costs: cython.Py_ssize_t = outcomes.shape[0]
    pairs: cython.Py_ssize_t = S * A
    capped: cython.bint = caps.shape[0] > 0
    learning: cython.bint = learner is not None
    if not 0 <= state < S or indptr.shape[0] != pairs + 1 or visits.shape[0] != pairs or cost_sums.shape[1] != pairs:
        raise ValueError("a policy and a model of different sizes")
    if successors.shape[0] != cdf.shape[0] or outcomes.shape[1] != cdf.shape[0] or (capped and caps.shape[0] != pairs):
        raise ValueError("a model whose arrays have different sizes")
    if policy.shape[0] < 1 or A < 1 or indptr[0] != 0 or indptr[pairs] != cdf.shape[0]:
        raise ValueError("a policy without rounds or actions, or a model whose rows do not fit its entries")
    if cost_sums.shape[0] != n_costs or cumulative.shape[0] != n_costs:
        raise ValueError("sums of another number of costs")
    if thresholds.shape[0] != n_costs - 1 or largest.shape[0] != n_costs - 1:
        raise ValueError("limits of another number of costs")
    if steps > min(action_uniforms.shape[0], model_uniforms.shape[0], log.shape[0]):
        raise ValueError("more rounds than random numbers")
    if steps > 0 and (action_uniforms.shape[1] < 1 or model_uniforms.shape[1] < 1):
        raise ValueError("every round needs a random number for its action and one for the next state")
    if not 0 <= emission <= 3 or ranges.shape[0] != 2 or ranges.shape[1] != n_costs:
        raise ValueError("an emission that there is not, or ranges of another number of costs")
    if emission and model_uniforms.shape[1] < 1 + n_costs:
        raise ValueError("costs that are drawn need a random number each")
    if step < 0 or next_checkpoint < 0:
        raise ValueError("an episode that has not begun")
    if at_checkpoints.shape[0] < checkpoints.shape[0] or largest_at_checkpoints.shape[0] < checkpoints.shape[0]:
        raise ValueError("more checkpoints than places for them")
    if at_checkpoints.shape[1] != n_costs or largest_at_checkpoints.shape[1] != n_costs - 1:
        raise ValueError("checkpoints of another number of costs")
    if learning and not learner.fits(S, A, n_costs):
        raise ValueError("an agent that learns another model")
    costs: cython.double[::1] = np.empty(n_costs)
    last: cython.Py_ssize_t = policy.shape[0] - 1
    ended: cython.bint = False
    nowhere: cython.bint = False
    played: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for k in range(steps):
            action: cython.Py_ssize_t = _action(policy, min(step, last), state, action_uniforms[k, 0])
            pair: cython.Py_ssize_t = state * A + action
            low: cython.Py_ssize_t = indptr[pair]
            high: cython.Py_ssize_t = indptr[pair + 1]
            if not 0 <= low < high <= cdf.shape[0]:
                nowhere = True
                break
            entry: cython.Py_ssize_t = _entry(cdf, low, high - 1, model_uniforms[k, 0])
            successor: cython.Py_ssize_t = successors[entry]
            if not 0 <= successor < S:
                nowhere = True
                break
            for i in range(n_costs):
                cost: cython.double = outcomes[i, entry]
                if emission:
                    cost = _emit(cost, emission, ranges[0, i], ranges[1, i], model_uniforms[k, 1 + i])
                costs[i] = cost
                cost_sums[i, pair] += cost
                cumulative[i] += cost
            visits[pair] += 1
            log[k] = pair * S + successor
            if learning:
                learner.learn_round(state, action, successor, costs)
            state = successor
            step += 1
            round_ += 1
            played += 1
            for i in range(1, n_costs):
                excess: cython.double = cumulative[i] - round_ * thresholds[i - 1]
                if excess > largest[i - 1]:
                    largest[i - 1] = excess
            while next_checkpoint < checkpoints.shape[0] and checkpoints[next_checkpoint] == round_:
                for i in range(n_costs):
                    at_checkpoints[next_checkpoint, i] = cumulative[i]
                for i in range(n_costs - 1):
                    largest_at_checkpoints[next_checkpoint, i] = largest[i]
                next_checkpoint += 1
            if step >= max_steps or (capped and visits[pair] >= caps[pair]):
                ended = True
                break
    if nowhere:
        raise ValueError(f"pair {pair} leads nowhere")
    return state, played, next_checkpoint, ended


def expected_averages(
    policy: cython.const[cython.double][:, :, ::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    probabilities: cython.const[cython.double][::1],
    costs: cython.const[cython.double][:, :, ::1],
    state: cython.Py_ssize_t,
):
    """Return the expected average costs of a policy (H, S, A) from a state, after 1, ..., H rounds: (H, q).

    The rows of the model are those of ``play``, with their probabilities; ``costs`` (q, S, A).
    """
    H: cython.Py_ssize_t = policy.shape[0]
    S: cython.Py_ssize_t = policy.shape[1]
    A: cython.Py_ssize_t = policy.shape[2]
    q: cython.Py_ssize_t = costs.shape[0]
    if not 0 <= state < S or indptr.shape[0] != S * A + 1 or costs.shape[1] != S or costs.shape[2] != A:
        raise ValueError("a policy and a model of different sizes")
    check_graph(indptr, successors, probabilities.shape[0], S)
    averages = np.empty((H, q))
    average: cython.double[:, ::1] = averages
    totals: cython.double[::1] = np.zeros(q)
    # Distribution of the chain now and next, in rows that swap roles.
    distribution: cython.double[:, ::1] = np.zeros((2, S))
    now: cython.Py_ssize_t = 0
    h: cython.Py_ssize_t
    s: cython.Py_ssize_t
    a: cython.Py_ssize_t
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    distribution[0, state] = 1.0
    with cython.nogil:
        for h in range(H):
            for s in range(S):
                distribution[1 - now, s] = 0.0
            for s in range(S):
                if distribution[now, s] > 0.0:
                    for a in range(A):
                        mass: cython.double = distribution[now, s] * policy[h, s, a]
                        if mass > 0.0:
                            for i in range(q):
                                totals[i] += mass * costs[i, s, a]
                            for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                                distribution[1 - now, successors[e]] += mass * probabilities[e]
            now = 1 - now
            for i in range(q):
                average[h, i] = totals[i] / (h + 1.0)
    return averages
