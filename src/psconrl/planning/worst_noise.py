r"""The worst distributions of a system's noise for a function h, and the h of a policy against them.

Value iteration (``kernels.pessimism``) converges as slowly as the chain mixes. Policy iteration of the adversary takes
a few steps: choose the worst distribution of every pair for h, and solve the chain of the policy under these for the
next h. The bound that follows from h holds whatever h is, so nothing depends on how far these steps come.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Bools, Floats, Ints, Places
from psconrl.errors import SolverError
from psconrl.markov.direct_solver import DirectSolver, narrow_order
from psconrl.markov.gain_bias import solve_chain
from psconrl.markov.sparse_solver import SparseSolver
from psconrl.planning.noise_box import NoiseBox
from psconrl.sizes import ELIMINATED_CHAIN_STATES

NOISE_STEPS = 20  # of policy iteration, at most


def worst_bias(policy: Floats, costs: Floats, box: NoiseBox, start: Floats, paid: Floats | None, gap: float) -> Floats:
    """Return a function h (S,) whose bound on the average of costs (S*A,) under a policy (S, A) is small.

    ``start``: the initial h. Stops once no other h has a bound lower by more than ``gap``, or if the worst chain has
    several closed classes, which have no common h.
    """
    S, A = policy.shape
    pairs = np.flatnonzero(policy.ravel() > 0.0)
    states, shares = pairs // A, policy.ravel()[pairs]
    following = box.successors[pairs]
    chains = _Chains(S, states, following, box.possible(pairs))
    h, best, bound = start, start, np.inf
    for _ in range(NOISE_STEPS):
        worst = worst_distributions(box, pairs, h, paid)
        means = costs[pairs] if paid is None else costs[pairs] + (worst * paid[pairs]).sum(axis=1)
        cost = np.bincount(states, weights=shares * means, minlength=S)
        moved = np.bincount(states, weights=shares * (worst * h[following]).sum(axis=1), minlength=S)
        residual = cost + moved - h
        if residual.max() >= bound:
            break
        best, bound = h, float(residual.max())
        if bound - residual.min() <= gap:
            break
        found = chains.bias(shares[:, None] * worst, np.asarray(cost, dtype=np.float64))
        if found is None:
            break
        h = found
    return best


class _Chains:
    """Chains of one policy under different distributions of the noise, whose pattern is the same."""

    def __init__(self, S: int, states: Ints, following: Places, possible: Bools) -> None:
        self._S, self._kept = S, possible
        numbers = (states[:, None] * S + following)[possible]
        self._numbers, self._of_cell = np.unique(numbers, return_inverse=True)
        self._indptr = np.searchsorted(self._numbers, np.arange(S + 1) * S).astype(np.int32)
        self._indices = (self._numbers % S).astype(np.int32)
        self._solver: SparseSolver | None = None
        if S > ELIMINATED_CHAIN_STATES:
            self._solver = SparseSolver(DirectSolver(narrow_order(self._indptr, self._indices, S)))

    def bias(self, mass: Floats, cost: Floats) -> Floats | None:
        """Return the bias (S,) of a cost; None if there are several closed classes, or the chain is not solved."""
        sums = np.bincount(self._of_cell.ravel(), weights=mass[self._kept], minlength=self._numbers.size)
        data = sums / np.repeat(np.add.reduceat(sums, self._indptr[:-1]), np.diff(self._indptr))
        matrix = csr_array((data, self._indices, self._indptr), shape=(self._S, self._S))
        try:
            found = (
                solve_chain(matrix.toarray(), cost[None])
                if self._solver is None
                else self._solver.solve(matrix, cost[None])
            )
        except SolverError:
            return None
        return None if found is None else np.ascontiguousarray(found.biases[0])


def worst_distributions(box: NoiseBox, pairs: Ints, h: Floats, paid: Floats | None = None) -> Floats:
    """Return distributions of the joint outcomes, (n, W), with the largest means of h of some pairs (n,).

    ``paid`` (S*A, W): what outcomes cost, which is added to h. The means are those of ``pessimism.largest_means``.
    """
    values = h[box.successors[pairs]] if paid is None else h[box.successors[pairs]] + paid[pairs]
    contexts = box.contexts[pairs]
    low, high = box.low[contexts], box.high[contexts]
    worst = np.ones((len(pairs), 1))
    left, end, conditional = values, low.shape[1], []
    for size in box.sizes[::-1].tolist():  # each noise may depend on those before it
        grouped = left.reshape(len(pairs), -1, size)
        own = slice(end - size, end)
        conditional.append(_largest(grouped, low[:, None, own], high[:, None, own]))
        left = np.where(conditional[-1] > 0.0, conditional[-1] * grouped, 0.0).sum(axis=2)
        end -= size
    for shares in conditional[::-1]:
        worst = (worst[:, :, None] * shares).reshape(len(pairs), -1)
    if box.together is not None:
        _of_blocks(box, pairs, values, worst)
    return worst


def _of_blocks(box: NoiseBox, pairs: Ints, values: Floats, worst: Floats) -> None:
    """Replace distributions where the bounds on blocks allow only smaller means."""
    assert box.together is not None
    classes = box.together.classes[pairs]
    for k in np.unique(classes[classes >= 0]).tolist():
        rows = np.flatnonzero(classes == k)
        blocks, own = box.together.blocks[k], values[rows]
        firsts = np.unique(blocks[blocks >= 0])
        inside: Bools = blocks == firsts[:, None]
        places = np.where(inside, own[:, None, :], -np.inf).argmax(axis=2)  # (n, blocks) the worst outcome of each
        tops = np.take_along_axis(own, places, axis=1)
        shares = _largest(tops, box.together.low[k, firsts], box.together.high[k, firsts])
        less = (shares * tops).sum(axis=1) < (worst[rows] * own).sum(axis=1)
        replaced = np.zeros((int(less.sum()), worst.shape[1]))
        np.put_along_axis(replaced, places[less], shares[less], axis=1)
        worst[rows[less]] = replaced


def _largest(values: Floats, low: Floats, high: Floats) -> Floats:
    """Return the distributions (..., V) within bounds of the largest means of values; what is left goes to the largest.

    The bounds of a distribution may be crossed or exceed one, if the truth is in none of them.
    """
    room = np.broadcast_to(np.maximum(high - low, 0.0), values.shape)
    ranked = np.where(np.broadcast_to(high > 0.0, values.shape), values, -np.inf)
    order = np.argsort(-ranked, axis=-1, kind="stable")
    sorted_room = np.take_along_axis(room, order, axis=-1)
    total = np.cumsum(sorted_room, axis=-1)
    left = np.maximum(1.0 - low.sum(axis=-1), 0.0)
    given = np.clip(left[..., None] - (total - sorted_room), 0.0, sorted_room)
    given[..., 0] += np.maximum(left - total[..., -1], 0.0)
    result = np.empty(values.shape)
    np.put_along_axis(result, order, given, axis=-1)
    return result + low
