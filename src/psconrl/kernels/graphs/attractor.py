"""Attractors: change a policy so that it reaches a set of states, for dense, sparse and optimistic transitions.

Layer by layer, the states with a probability above ``least`` of stepping into the set join it. A state keeps its action
if that has such a probability; otherwise it takes the likeliest action, among equally likely ones the first.
Probabilities are summed in the order of the states, so that the choice does not depend on the form of the transitions.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstFlagMatrix,
    ConstFlags,
    ConstInts,
    ConstMatrix,
    ConstPlaces,
    ConstVector,
    Ints,
)
from cython.cimports.psconrl.kernels.graphs.successors import check_graph, check_numbers

from psconrl.kernels.graphs.end_components import pairs_into


@cython.cclass
class Attractor:
    """A set of states that grows. Subclasses say how likely a step into it is."""

    def __init__(self, n_states: cython.Py_ssize_t):
        self.reached, self.waiting = np.zeros(n_states, np.uint8), np.empty(n_states, np.int64)

    def lead(self, available, policy, least, keeps):
        """Change the policy until no more states can join; return in how many states it has changed.

        ``keeps``: states keep their actions where possible.
        """
        S, A = available.shape[0], available.shape[1]
        changed: cython.Py_ssize_t = 0
        while True:
            n = self._candidates(S)
            joined: cython.Py_ssize_t = 0
            for i in range(n):
                s: cython.Py_ssize_t = self.waiting[i]
                own: cython.Py_ssize_t = policy[s]
                if not (keeps and available[s, own] and self._own(s, s * A + own) > least):
                    top: cython.double = least
                    for a in range(A):
                        if available[s, a]:
                            probability: cython.double = self._into(s * A + a)
                            if probability > top:
                                top = probability
                                policy[s] = a
                                self._take(s)
                    if not top > least:
                        continue
                    changed += 1
                self.waiting[joined] = s
                joined += 1
            if joined == 0:
                return changed
            self._join(joined)

    def _candidates(self, S):
        """List the states that may join next in ``waiting``; return how many."""
        n: cython.Py_ssize_t = 0
        for s in range(S):
            if not self.reached[s]:
                self.waiting[n] = s
                n += 1
        return n

    def _own(self, s, pair):
        """Return the probability that a state steps into the set by its own action."""
        return self._into(pair)

    def _into(self, pair):
        """Return the probability that a pair steps into the set."""
        return 0.0

    def _take(self, s):
        """Take, for a state, the pair that was asked for last."""

    def _join(self, n):
        """Add the first n of the waiting states to the set."""
        for i in range(n):
            self.reached[self.waiting[i]] = True


@cython.cclass
class DenseAttractor(Attractor):
    """Attractor along transitions P (S*A, S)."""

    def _into(self, pair):
        total: cython.double = 0.0
        for j in range(self.P.shape[1]):
            total += self.P[pair, j] if self.reached[j] else 0.0  # no branch, which would often be mispredicted
        return total


@cython.cclass
class SparseAttractor(Attractor):
    """Attractor along transitions in CSR form; ``before`` and ``sources`` list the pairs that may lead to each state.

    Only states with a move into the last layer may join next, so that all entries are visited once or twice.
    """

    def _candidates(self, S):
        n: cython.Py_ssize_t = 0
        for i in range(self.size):
            t = self.layer[i]
            for e in range(self.before[t], self.before[t + 1]):
                s: cython.Py_ssize_t = self.sources[e] // self.n_actions
                if not self.reached[s] and not self.listed[s]:
                    self.listed[s] = True
                    self.waiting[n] = s
                    n += 1
        for i in range(n):
            self.listed[self.waiting[i]] = False
        return n

    def _into(self, pair):
        total: cython.double = 0.0
        for e in range(self.indptr[pair], self.indptr[pair + 1]):
            if self.reached[self.indices[e]]:
                total += self.data[e]
        return total

    def _join(self, n):
        self.size = n
        for i in range(n):
            self.layer[i] = self.waiting[i]
            self.reached[self.waiting[i]] = True


def attract_dense(
    P: ConstMatrix,
    available: ConstFlagMatrix,
    inside: ConstFlags,
    policy: ConstInts,
    least: cython.double,
    keeps: cython.bint,
):
    """Return the policy (S,), changed outside a set to reach it, and a mask (S,) of the states from which it may."""
    S, A = available.shape[0], available.shape[1]
    if P.shape[0] != S * A or P.shape[1] != S:
        raise ValueError("transitions (S*A, S) are needed")
    grown: DenseAttractor = DenseAttractor(S)
    grown.P = P
    return _attract(grown, available, inside, policy, least, keeps)


def attract_sparse(
    indptr: ConstPlaces,
    indices: ConstPlaces,
    data: ConstVector,
    available: ConstFlagMatrix,
    inside: ConstFlags,
    policy: ConstInts,
    least: cython.double,
    keeps: cython.bint,
):
    """Return the same as ``attract_dense`` for transitions in CSR form."""
    S, A = available.shape[0], available.shape[1]
    check_graph(indptr, indices, data.shape[0], S)
    if indptr.shape[0] - 1 != S * A or inside.shape[0] != S:
        raise ValueError("transitions (S*A, S) and a set of states (S,) are needed")
    grown: SparseAttractor = SparseAttractor(S)
    grown.indptr, grown.indices, grown.data = indptr, indices, data
    grown.before, grown.sources = pairs_into(indptr, indices, S, np.asarray(available).ravel())
    grown.n_actions, grown.size = A, 0
    grown.layer, grown.listed = np.empty(S, np.int64), np.zeros(S, np.uint8)
    for s in range(S):
        if inside[s]:
            grown.layer[grown.size] = s
            grown.size += 1
    return _attract(grown, available, inside, policy, least, keeps)


@cython.cfunc
def _attract(
    grown: Attractor,
    available: ConstFlagMatrix,
    inside: ConstFlags,
    policy: ConstInts,
    least: cython.double,
    keeps: cython.bint,
) -> object:
    S, A = available.shape[0], available.shape[1]
    if inside.shape[0] != S or policy.shape[0] != S:
        raise ValueError("a set of states (S,) and a policy (S,) are needed")
    check_numbers(policy, A, "there is no such action")
    changed = np.array(policy)
    new: Ints = changed
    with cython.nogil:
        for s in range(S):
            grown.reached[s] = inside[s]
        grown.lead(available, new, least, keeps)
    return changed, np.asarray(grown.reached).view(np.bool_)
