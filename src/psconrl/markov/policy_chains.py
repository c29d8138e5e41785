"""Chains of the policies of one model, solved in an elimination order that is found once."""

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.markov.elimination_order import Order
from psconrl.markov.gain_bias import Unichain
from psconrl.markov.select_solver import select_solver
from psconrl.model.transition import Transition


class PolicyChains:
    """Solves the chains of policies of one model; ``order``: for all of them, if it is known."""

    def __init__(self, transition: Transition, order: Order | None = None) -> None:
        matrix = transition.matrix if transition.eliminates else transition.csr()
        self._transition, self._solver = transition, select_solver(matrix, order, most_dense=0)

    def solved(self, policy: Floats, cost: Floats) -> Unichain | None:
        """Return the solution for one cost (S,); None if there are several closed classes, or it fails."""
        try:
            return self._solver.solve(self._transition.under(policy), cost[None])
        except SolverError:
            return None
