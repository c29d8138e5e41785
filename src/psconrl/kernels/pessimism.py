r"""Pessimism: the worst distribution within bounds, and value iteration for one policy against it.

Bounds of rows are given as in CSR form: the ``low`` and ``high`` of every observed successor, and for each pair the
largest probability of any other successor, ``unseen``.

Bounds of noise are given by context, ``low`` and ``high`` (G, V): of all values of the first noise, then of the second,
and so on; ``sizes`` (K,) says how many values each has. The joint outcomes are numbered with the last noise running
fastest. In outcome w a pair moves to ``successors[pair, w]`` and pays ``paid[pair, w]``. The largest mean is taken
over the noises one after the other, the last one first:

.. math:: \max_{q_1} \sum_{w_1} q_1(w_1) \cdots \max_{q_K} \sum_{w_K} q_K(w_K)\, (c(w) + h(f(w))),

so that each distribution may depend on the outcomes before it; if none does, the mean is no larger.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels.sorting import argsort_into
from cython.cimports.psconrl.kernels.successors import check_matrix, check_numbers, index

_INFINITE = cython.declare(cython.double, float("inf"))
# Relaxation of a sweep: with a full step, a periodic chain would cycle.
_STEP = cython.declare(cython.double, 0.9)


@cython.cclass
class _Sets:
    """The largest means of a function h of the states that a set of models allows. Subclasses say which set."""

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def prepare(self, h: cython.const[cython.double][::1]) -> cython.void:
        """Do what is needed once for every h."""

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def mean(self, pair: cython.Py_ssize_t, h: cython.const[cython.double][::1]) -> cython.double:
        """Return the largest mean of a pair."""
        return 0.0


@cython.cclass
class _RowSets(_Sets):
    """Every row on its own, within its bounds.

    ``order``: the states by decreasing h. ``place`` (S,) is -1 everywhere except during a call.
    """

    indptr: cython.const[index][::1]
    successors: cython.const[index][::1]
    low: cython.const[cython.double][::1]
    high: cython.const[cython.double][::1]
    unseen: cython.const[cython.double][::1]
    negative: cython.double[::1]
    order: cython.Py_ssize_t[::1]
    scratch: cython.Py_ssize_t[::1]
    place: cython.Py_ssize_t[::1]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def prepare(self, h: cython.const[cython.double][::1]) -> cython.void:
        """Order the states by decreasing h, ties by index."""
        for s in range(h.shape[0]):
            self.negative[s] = -h[s]
        argsort_into(self.negative, self.order, self.scratch)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def mean(self, pair: cython.Py_ssize_t, h: cython.const[cython.double][::1]) -> cython.double:
        """Return the largest p.h of a pair: lowest probabilities, then up to the highest where h is largest."""
        left: cython.double = 1.0
        value: cython.double = 0.0
        for entry in range(self.indptr[pair], self.indptr[pair + 1]):
            self.place[self.successors[entry]] = entry
            left -= self.low[entry]
            value += self.low[entry] * h[self.successors[entry]]
        for k in range(self.order.shape[0]):
            if left <= 0.0:
                break
            at: cython.Py_ssize_t = self.order[k]
            seen: cython.Py_ssize_t = self.place[at]
            room: cython.double = self.high[seen] - self.low[seen] if seen >= 0 else self.unseen[pair]
            step: cython.double = min(room, left)
            value += step * h[at]
            left -= step
        for entry in range(self.indptr[pair], self.indptr[pair + 1]):
            self.place[self.successors[entry]] = -1
        return value + max(left, 0.0) * h[self.order[0]]


@cython.cclass
class _NoiseSets(_Sets):
    """The distributions of all noises, each within its bounds."""

    successors: cython.const[index][:, ::1]
    paid: cython.const[cython.double][:, ::1]
    contexts: cython.const[cython.Py_ssize_t][::1]
    sizes: cython.const[cython.Py_ssize_t][::1]
    low: cython.const[cython.double][:, ::1]
    high: cython.const[cython.double][:, ::1]
    values: cython.double[::1]
    negative: cython.double[::1]
    order: cython.Py_ssize_t[::1]
    scratch: cython.Py_ssize_t[::1]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def mean(self, pair: cython.Py_ssize_t, h: cython.const[cython.double][::1]) -> cython.double:
        """Return the largest mean of what is paid plus h, over the noises one after the other."""
        context: cython.Py_ssize_t = self.contexts[pair]
        left: cython.Py_ssize_t = self.successors.shape[1]
        for w in range(left):
            self.values[w] = self.paid[pair, w] + h[self.successors[pair, w]]
        first: cython.Py_ssize_t = self.low.shape[1]
        for back in range(self.sizes.shape[0]):
            size: cython.Py_ssize_t = self.sizes[self.sizes.shape[0] - 1 - back]
            first -= size
            left //= size
            for group in range(left):  # in place: a group is read before its number is written
                self.values[group] = self._of_noise(context, first, size, group * size)
        return self.values[0]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _of_noise(
        self, context: cython.Py_ssize_t, first: cython.Py_ssize_t, size: cython.Py_ssize_t, begin: cython.Py_ssize_t
    ) -> cython.double:
        """Return the largest mean of ``size`` values from ``begin`` on, with the bounds from ``first`` on."""
        left: cython.double = 1.0
        value: cython.double = 0.0
        for v in range(size):  # an impossible outcome has no value
            low: cython.double = self.low[context, first + v]
            left -= low
            value += low * self.values[begin + v] if low > 0.0 else 0.0
            self.negative[v] = -self.values[begin + v] if self.high[context, first + v] > 0.0 else _INFINITE
        if left <= 0.0:
            return value
        if size == 2:  # most noise: an event that happens or not
            self.order[0] = self.negative[1] < self.negative[0]
            self.order[1] = 1 - self.order[0]
        else:
            argsort_into(self.negative[:size], self.order[:size], self.scratch[:size])
        for k in range(size):
            at: cython.Py_ssize_t = self.order[k]
            step: cython.double = min(self.high[context, first + at] - self.low[context, first + at], left)
            value += step * self.values[begin + at] if step > 0.0 else 0.0
            left -= max(step, 0.0)
        return value + max(left, 0.0) * self.values[begin + self.order[0]]


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check(
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    n_states: cython.Py_ssize_t,
) -> cython.int:
    """Raise a ValueError unless there are bounds of every pair and of every entry."""
    entries = successors.shape[0]
    if indptr.shape[0] != unseen.shape[0] + 1 or low.shape[0] != entries or high.shape[0] != entries:
        raise ValueError("bounds of every pair and of every successor seen are needed")
    check_matrix(indptr, successors, entries, n_states)
    return 0


@cython.cfunc
def _row_sets(indptr, successors, low, high, unseen, n_states: cython.Py_ssize_t) -> _RowSets:
    """Return sets of rows whose bounds have been checked."""
    sets: _RowSets = _RowSets()
    sets.indptr, sets.successors, sets.low, sets.high, sets.unseen = indptr, successors, low, high, unseen
    sets.negative, sets.place = np.empty(n_states), np.full(n_states, -1, np.int64)
    sets.order, sets.scratch = np.empty((2, n_states), np.int64)
    return sets


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_noise(
    successors: cython.const[index][:, ::1],
    paid: cython.const[cython.double][:, ::1],
    contexts: cython.const[cython.Py_ssize_t][::1],
    sizes: cython.const[cython.Py_ssize_t][::1],
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    n_states: cython.Py_ssize_t,
) -> cython.int:
    """Raise a ValueError unless every pair has a context, and every outcome a successor, a cost and bounds."""
    n, W = successors.shape[0], successors.shape[1]
    if n_states < 1 or n % n_states or contexts.shape[0] != n or paid.shape[0] != n or paid.shape[1] != W:
        raise ValueError("a context for every pair, and what every outcome costs, are needed")
    outcomes: cython.Py_ssize_t = 1
    values: cython.Py_ssize_t = 0
    for k in range(sizes.shape[0]):
        if not 1 <= sizes[k] <= W:
            raise ValueError("every noise has values")
        outcomes *= sizes[k]
        values += sizes[k]
        if outcomes > W:
            break
    if outcomes != W or low.shape[1] != values or high.shape[1] != values or high.shape[0] != low.shape[0]:
        raise ValueError("bounds of all values of every noise are needed")
    check_numbers(contexts, low.shape[0], "there is no such context")
    for pair in range(n):
        for w in range(W):
            if not 0 <= successors[pair, w] < n_states:
                raise ValueError("there is no such state")
    return 0


@cython.cfunc
def _noise_sets(successors, paid, contexts, sizes, low, high) -> _NoiseSets:
    """Return sets of noise whose bounds have been checked."""
    sets: _NoiseSets = _NoiseSets()
    sets.successors, sets.paid, sets.contexts = successors, paid, contexts
    sets.sizes, sets.low, sets.high = sizes, low, high
    W = sets.successors.shape[1]
    sets.values, sets.negative = np.empty((2, W))
    sets.order, sets.scratch = np.empty((2, W), np.int64)
    return sets


def worst_means(
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    h: cython.const[cython.double][::1],
):
    """Return the largest p.h of every pair, (S*A,)."""
    n, S = unseen.shape[0], h.shape[0]
    _check(indptr, successors, low, high, unseen, S)
    if S < 1 or n % S:
        raise ValueError("a number h for every state is needed")
    return _means(_row_sets(indptr, successors, low, high, unseen, S), n, h)


def worst_noise_means(
    successors: cython.const[index][:, ::1],
    paid: cython.const[cython.double][:, ::1],
    contexts: cython.const[cython.Py_ssize_t][::1],
    sizes: cython.const[cython.Py_ssize_t][::1],
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    h: cython.const[cython.double][::1],
):
    """Return the largest mean of what is paid plus h of every pair, (S*A,)."""
    _check_noise(successors, paid, contexts, sizes, low, high, h.shape[0])
    return _means(_noise_sets(successors, paid, contexts, sizes, low, high), contexts.shape[0], h)


@cython.cfunc
def _means(sets: _Sets, n: cython.Py_ssize_t, h: cython.const[cython.double][::1]):
    """Return the largest means of all pairs."""
    result = np.empty(n)
    out: cython.double[::1] = result
    with cython.nogil:
        sets.prepare(h)
        for pair in range(n):
            out[pair] = sets.mean(pair, h)
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    sets: _Sets,
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    relying: cython.const[cython.uchar][::1],
    h: cython.const[cython.double][::1],
    residual: cython.double[::1],
) -> tuple[cython.double, cython.double]:
    """Compute the gain of a step minus h in states that do not rely, in ``residual``; return its largest and least."""
    S, A = policy.shape[0], policy.shape[1]
    worst: cython.double = -_INFINITE
    least: cython.double = _INFINITE
    for s in range(S):
        if relying[s]:
            continue
        value: cython.double = -h[s]
        for a in range(A):
            if policy[s, a] > 0.0:
                pair = s * A + a
                mean = sets.mean(pair, h)
                value += policy[s, a] * (costs[pair] + mean)
        residual[s] = value
        worst, least = max(worst, value), min(least, value)
    return worst, least


def worst_case(
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    indptr: cython.const[index][::1],
    successors: cython.const[index][::1],
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    unseen: cython.const[cython.double][::1],
    relying: cython.const[cython.uchar][::1],
    recovery: cython.double,
    limit: cython.double,
    sweeps: cython.Py_ssize_t,
    settled: cython.double,
    h: cython.double[::1],
):
    """Run value iteration from h (S,), in place; return the least bound found, and the h that attains it.

    Stops once the bound is within the limit, provably beyond it, or settled. States that are ``relying`` count
    ``recovery`` more than all others.
    """
    S, n = h.shape[0], unseen.shape[0]
    _check(indptr, successors, low, high, unseen, S)
    if policy.shape[0] != S or policy.shape[1] * S != n or costs.shape[0] != n:
        raise ValueError("a policy (S, A) and costs (S*A,) are needed")
    sets = _row_sets(indptr, successors, low, high, unseen, S)
    return _iterate(sets, policy, costs, relying, recovery, limit, sweeps, settled, h)


def worst_noise_case(
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    successors: cython.const[index][:, ::1],
    paid: cython.const[cython.double][:, ::1],
    contexts: cython.const[cython.Py_ssize_t][::1],
    sizes: cython.const[cython.Py_ssize_t][::1],
    low: cython.const[cython.double][:, ::1],
    high: cython.const[cython.double][:, ::1],
    relying: cython.const[cython.uchar][::1],
    recovery: cython.double,
    limit: cython.double,
    sweeps: cython.Py_ssize_t,
    settled: cython.double,
    h: cython.double[::1],
):
    """Compute the same as ``worst_case`` over bounds of the noise."""
    S, n = h.shape[0], contexts.shape[0]
    _check_noise(successors, paid, contexts, sizes, low, high, S)
    if policy.shape[0] != S or policy.shape[1] * S != n or costs.shape[0] != n:
        raise ValueError("a policy (S, A) and costs (S*A,) are needed")
    sets = _noise_sets(successors, paid, contexts, sizes, low, high)
    return _iterate(sets, policy, costs, relying, recovery, limit, sweeps, settled, h)


@cython.cfunc
def _iterate(
    sets: _Sets,
    policy: cython.const[cython.double][:, ::1],
    costs: cython.const[cython.double][::1],
    relying: cython.const[cython.uchar][::1],
    recovery: cython.double,
    limit: cython.double,
    sweeps: cython.Py_ssize_t,
    settled: cython.double,
    h: cython.double[::1],
):
    """Run the value iteration of ``worst_case`` over any sets."""
    S = h.shape[0]
    if relying.shape[0] != S:
        raise ValueError("the states that rely (S,) are needed")
    residual: cython.double[::1] = np.zeros(S)
    best: cython.double[::1] = np.empty(S)
    bound: cython.double = _INFINITE
    with cython.nogil:
        for s in range(S):
            best[s] = h[s]
        for _ in range(sweeps):
            top: cython.double = -_INFINITE
            for s in range(S):
                if not relying[s]:
                    top = max(top, h[s])
            if top == -_INFINITE:  # all rely on the baseline
                bound = -_INFINITE
                break
            for s in range(S):
                if relying[s]:
                    h[s] = top + recovery
            sets.prepare(h)
            worst, least = _sweep(sets, policy, costs, relying, h, residual)
            if worst < bound:
                bound = worst
                for s in range(S):
                    best[s] = h[s]
            if bound <= limit or least > limit > -_INFINITE or worst - least <= settled:
                break
            for s in range(S):
                h[s] += _STEP * (residual[s] - worst)
        for s in range(S):
            h[s] = best[s]
    return bound
