"""Which solver of the linear system of a chain runs: one function chooses it, and ``print`` says what it tries.

Dense chains and small ones are eliminated. So are sparse ones in which little fills in. Others are solved by the
methods that ``sparse_solver`` lists.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Matrix
from psconrl.base.sizes import ELIMINATED_CHAIN_STATES
from psconrl.markov.direct_solver import narrow_order
from psconrl.markov.elimination_order import Order
from psconrl.markov.gain_bias import Unichain, solve_chain
from psconrl.markov.sparse_solver import SparseSolver


class DenseSolver:
    """Solves chains of any pattern by GTH elimination, from a state that may be visited often."""

    def __init__(self, reference: int = 0) -> None:
        self._reference = reference

    def __str__(self) -> str:
        return "GTH elimination of the dense chain"

    def solve(self, P: Matrix, costs: Floats) -> Unichain | None:
        """Return the solution for a chain (S, S) and costs (q, S); None if it has several closed classes."""
        return solve_chain(P.toarray() if isinstance(P, csr_array) else np.ascontiguousarray(P), costs, self._reference)


def select_solver(
    matrix: Matrix, order: Order | None = None, reference: int = 0, most_dense: int = ELIMINATED_CHAIN_STATES
) -> DenseSolver | SparseSolver:
    """Return the solver of a chain (S, S), or of the chains of the policies of transitions (S*A, S).

    ``order``: the elimination order of sparse chains, if it is known. ``reference``: a state that may be visited often.
    ``most_dense``: sparse chains of at most as many states are solved as dense ones.

    >>> from scipy.sparse import eye_array
    >>> print(select_solver(csr_array(eye_array(10))))
    GTH elimination of the dense chain
    >>> print(select_solver(csr_array(eye_array(1000))))
    GTH elimination in an order of little fill-in, else sparse LU
    """
    if not isinstance(matrix, csr_array) or matrix.shape[1] <= most_dense:
        return DenseSolver(reference)
    return sparse_solver(matrix, order)


def sparse_solver(matrix: csr_array, order: Order | None = None) -> SparseSolver:
    """Return the solver of sparse chains of any size; see ``select_solver``."""
    found = narrow_order(matrix.indptr, matrix.indices, matrix.shape[1]) if order is None else order
    return SparseSolver(found, matrix.shape[1])


def solve_sparse(P: csr_array, costs: Floats) -> Unichain | None:
    """Solve a sparse chain (S, S) of any size with costs (q, S); None if it has several closed classes."""
    return sparse_solver(P).solve(P, costs)
