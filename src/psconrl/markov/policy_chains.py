"""Chains of the policies of one model, solved in an elimination order that is found once."""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.markov.direct_solver import DirectSolver, narrow_order
from psconrl.markov.elimination_order import Order
from psconrl.markov.gain_bias import Unichain, solve_chain
from psconrl.markov.sparse_solver import SparseSolver
from psconrl.model.transition import Transition


class PolicyChains:
    """Solves the chains of policies of one model; ``order``: for all of them, if it is known."""

    def __init__(self, transition: Transition, order: Order | None = None) -> None:
        self._transition, self._solver = transition, None
        if not transition.eliminates:
            P = transition.csr()
            found = narrow_order(P.indptr, P.indices, P.shape[1]) if order is None else order
            self._solver = SparseSolver(DirectSolver(found))

    def solved(self, policy: Floats, cost: Floats) -> Unichain | None:
        """Return the solution for one cost (S,); None if there are several closed classes, or it fails."""
        matrix = self._transition.under(policy)
        try:
            if self._solver is None:
                return solve_chain(np.ascontiguousarray(matrix), cost[None])
            return self._solver.solve(csr_array(matrix), cost[None])
        except SolverError:
            return None
