"""Sparse chains solved by GTH elimination in a fixed order, where little fills in.

Nothing is subtracted, so every stationary mass is exact to its last digits, however small (O'Cinneide 1993). Krylov
iterations and an LU are accurate relative to the largest mass only. That is not enough for a queue with an overloaded
regime and an idle one: a policy between two such policies moves from one regime to the other through states of mass
1e-20, and these masses determine how much time it spends in each.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.base.sizes import PLANNED_DENSE_STATES
from psconrl.kernels.linear import sparse_elimination, wide_elimination
from psconrl.markov.cyclic_order import cyclic_order
from psconrl.markov.elimination_order import NO_ORDER, Order, order_for
from psconrl.markov.factorisation import REFERENCE_SHARE
from psconrl.markov.gain_bias import Unichain
from psconrl.model.matrix_product import product

# Multiplications per entry of a chain up to which it is eliminated. A Krylov solution takes some hundred products.
WORK_PER_ENTRY = 2000.0
LITTLE_PER_ENTRY = 200.0  # an order of less work is not compared with others
FEW_STEPS = 32  # in which random successors spread to all states of any model that fits in memory
LARGEST_BIAS = 1e100  # of costs up to about one: beyond, products of probabilities may vanish


def narrow_order(indptr: Places, indices: Places, n_states: int, few: int = PLANNED_DENSE_STATES) -> Order:
    """Return an order for the chains of a graph of pairs, or ``NO_ORDER`` if elimination would take long.

    Models of at most ``few`` states are planned as dense ones, so that there is nothing to gain for them.

    The graph has the format of ``kernels.graphs.graph``.
    """
    if n_states <= few:
        return NO_ORDER
    entries = indices.size * n_states / (indptr.size - 1)
    most = WORK_PER_ENTRY * entries
    order = cyclic_order(indptr, indices, n_states, most)
    if order.work <= LITTLE_PER_ENTRY * entries:
        return order
    # A separator of w states fills in and takes w^3 / 3 multiplications; there are some more.
    if _spreads(indptr, indices, n_states, 0.5 * (3.0 * most) ** (1 / 3)):
        return order
    dissected = order_for(indptr, indices, n_states, min(most, order.work))
    return order if dissected is NO_ORDER else dissected


def _spreads(indptr: Places, indices: Places, n_states: int, width: float) -> bool:
    """Whether more than ``width`` states are first reached in one of a few steps, as if successors were random.

    This takes far less time than an order that would turn out to be useless.
    """
    starts = indptr[:: (indptr.size - 1) // n_states]
    seen = np.zeros(n_states, dtype=bool)
    reached = np.zeros(1, dtype=np.int64)
    seen[0] = True
    for _ in range(FEW_STEPS):
        counts = starts[reached + 1] - starts[reached]
        first = np.repeat(starts[reached] - np.append(0, np.cumsum(counts)[:-1]), counts)
        successors = np.unique(indices[first + np.arange(first.size)])
        reached = successors[~seen[successors]].astype(np.int64)
        seen[reached] = True
        if reached.size > width:
            return True
    return False


class DirectSolver:
    """Solves chains of one sparsity pattern, with one closed class each; ``order`` may be ``NO_ORDER``."""

    def __init__(self, order: Order) -> None:
        self.order = order

    @property
    def usable(self) -> bool:
        """Whether the chains are narrow enough to be eliminated."""
        return self.order is not NO_ORDER

    def solve(self, P: csr_array, costs: Floats, recurrent: Ints, reference: int) -> Unichain:
        """Solve chain P (S, S) with costs (q, S).

        ``reference``: a state that may be visited often. Another one is used if it is not. Biases are infinite if the
        chain has regimes that it leaves less than once in 1e100 steps.
        """
        at = reference if recurrent.size == P.shape[0] or np.isin(reference, recurrent) else int(recurrent[0])
        found = self._solved_from(P, costs, at)
        if found is None:
            logs = self._log_masses(P, at)
            at = int(logs.argmax())
            found = self._solved_from(P, costs, at)
            if found is None:
                masses = np.exp(logs)
                masses /= masses.sum()
                gains, biases = product(costs, masses), np.full(costs.shape, np.inf)
                return Unichain(gains, biases, masses, at, log_masses=lambda: logs)
        busiest = int(found.stationary.argmax())
        if found.stationary[at] < REFERENCE_SHARE * found.stationary[busiest]:
            found = self._solved_from(P, costs, busiest) or found
        return found

    def _solved_from(self, P: csr_array, costs: Floats, reference: int) -> Unichain | None:
        """Solve a chain with a reference; None if numbers are beyond the range of doubles."""
        stuck, _, biases, stationary = sparse_elimination.unichain(
            P.indptr, P.indices, P.data, np.arange(P.shape[0]), costs, reference, 0.0, self.order
        )
        if stuck >= 0 or not np.abs(biases).max() <= LARGEST_BIAS or not np.isfinite(stationary).all():
            return None
        # The totals of a cycle give the same gains only if the reference is visited often.
        gains = product(costs, stationary)
        return Unichain(gains, biases, stationary, reference, log_masses=partial(self._log_masses, P, reference))

    def _log_masses(self, P: csr_array, reference: int) -> Floats:
        stuck, logs = wide_elimination.log_masses(P.indptr, P.indices, P.data, reference, self.order)
        assert stuck < 0  # the chain has one closed class, which contains the reference
        return np.asarray(logs)
