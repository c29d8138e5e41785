r"""The worst distributions of a system's noise for a function h, and the h of a policy against them.

Value iteration (``kernels.sets.pessimism``) converges as slowly as the chain mixes. Policy iteration of the adversary
takes a few steps: choose the worst distribution of every pair for h, and solve the chain of the policy under these for
the next h. The bound that follows from h holds whatever h is, so nothing depends on how far these steps come.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.errors import SolverError
from psconrl.kernels.sets.pessimism import distributions_of, noise_sets
from psconrl.markov.elimination_order import Order
from psconrl.markov.select_solver import select_solver
from psconrl.planning.robust.noise_box import NoiseBox

NOISE_STEPS = 20  # of policy iteration, at most


def worst_bias(policy: Floats, costs: Floats, box: NoiseBox, start: Floats, paid: Floats | None, gap: float) -> Floats:
    """Return a function h (S,) whose bound on the average of costs (S*A,) under a policy (S, A) is small.

    ``start``: the initial h. Stops once no other h has a bound lower by more than ``gap``, or if the worst chain has
    several closed classes, which have no common h.
    """
    S, A = policy.shape
    pairs = np.flatnonzero(policy.ravel() > 0.0)
    states, shares = pairs // A, policy.ravel()[pairs]
    following, sets = box.successors[pairs], noise_sets(*box.arrays(paid), S)
    chains = _Chains(S, states, following, box.possible(pairs), box.order)
    h, best, bound = start, start, np.inf
    for _ in range(NOISE_STEPS):
        worst = distributions_of(sets, h, pairs)
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

    def __init__(self, S: int, states: Ints, following: Places, possible: Bools, order: Order | None) -> None:
        self._S, self._kept = S, possible
        numbers = (states[:, None] * S + following)[possible]
        self._numbers, self._of_cell = np.unique(numbers, return_inverse=True)
        self._indptr = np.searchsorted(self._numbers, np.arange(S + 1) * S).astype(np.int32)
        self._indices = (self._numbers % S).astype(np.int32)
        pattern = csr_array((np.ones(self._indices.size), self._indices, self._indptr), shape=(S, S))
        self._solver = select_solver(pattern, order)

    def bias(self, mass: Floats, cost: Floats) -> Floats | None:
        """Return the bias (S,) of a cost; None if there are several closed classes, or the chain is not solved."""
        sums = np.bincount(self._of_cell.ravel(), weights=mass[self._kept], minlength=self._numbers.size)
        data = sums / np.repeat(np.add.reduceat(sums, self._indptr[:-1]), np.diff(self._indptr))
        matrix = csr_array((data, self._indices, self._indptr), shape=(self._S, self._S))
        try:
            found = self._solver.solve(matrix, cost[None])
        except SolverError:
            return None
        return None if found is None else np.ascontiguousarray(found.biases[0])


def worst_distributions(box: NoiseBox, pairs: Ints, h: Floats, paid: Floats | None = None) -> Floats:
    """Return distributions of the joint outcomes, (n, W), with the largest means of h of some pairs (n,).

    ``paid`` (S*A, W): what outcomes cost, which is added to h. The means are those of ``pessimism.largest_means``.
    """
    found: Floats = distributions_of(noise_sets(*box.arrays(paid), h.size), h, pairs)
    return found
