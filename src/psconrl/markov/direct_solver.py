"""Sparse chains solved by GTH elimination in a fixed order, where little fills in.

Nothing is subtracted, so every stationary mass is exact to its last digits, however small (O'Cinneide 1993). Krylov
iterations and an LU are accurate relative to the largest mass only. That is not enough for a queue with an overloaded
regime and an idle one: a policy between two such policies moves from one regime to the other through states of mass
1e-20, and these masses determine how much time it spends in each.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints, Places
from psconrl.kernels import sparse_elimination
from psconrl.markov.elimination_order import NO_ORDER, Order, order_for
from psconrl.markov.factorisation import REFERENCE_SHARE
from psconrl.markov.gain_bias import Unichain
from psconrl.products import product

# Multiplications per entry of a chain up to which it is eliminated. A Krylov solution takes some hundred products.
WORK_PER_ENTRY = 2000.0
REFERENCES = 4  # reference states tried, each visited more often than the last


def narrow_order(indptr: Places, indices: Places, n_states: int) -> Order:
    """Return an order for the chains of a graph of pairs, or ``NO_ORDER`` if elimination would take long.

    The graph has the format of ``kernels.graph``.
    """
    entries = indices.size * n_states / (indptr.size - 1)
    return order_for(indptr, indices, n_states, WORK_PER_ENTRY * entries)


class DirectSolver:
    """Solves chains of one sparsity pattern, with one closed class each; ``order`` may be ``NO_ORDER``."""

    def __init__(self, order: Order) -> None:
        self.order = order

    @property
    def usable(self) -> bool:
        """Whether the chains are narrow enough to be eliminated."""
        return self.order is not NO_ORDER

    def solve(self, P: csr_array, costs: Floats, recurrent: Ints, reference: int) -> Unichain | None:
        """Solve chain P (S, S) with costs (q, S); None if numbers overflow.

        ``reference``: a state that may be visited often. Another one is used if it is not.
        """
        rows = np.arange(P.shape[0])
        at = reference if recurrent.size == rows.size or np.isin(reference, recurrent) else int(recurrent[0])
        found = None
        for _ in range(REFERENCES):
            stuck, _, biases, stationary = sparse_elimination.unichain(
                P.indptr, P.indices, P.data, rows, costs, at, 0.0, self.order
            )
            if stuck >= 0:
                at = stuck
                continue
            if not np.isfinite(stationary).all():
                break
            # The totals of a cycle would give the same gains, unless the reference is hardly ever visited.
            gains = product(costs, stationary)
            found = Unichain(gains, biases, stationary, at, exact=True)
            busiest = int(stationary.argmax())
            if stationary[at] >= REFERENCE_SHARE * stationary[busiest]:
                break
            at = busiest
        return found
