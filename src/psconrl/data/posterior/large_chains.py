r"""Averages of a policy in drawn models of many states, each chain solved from the factors of one of them.

With the reference state r, :math:`x_r = 1` and :math:`B = I - P_{-r,-r}`, the stationary distribution is
:math:`x / \sum_s x(s)` with

.. math:: B^T x_{-r} = P_{r,-r} .

Chains drawn from one posterior are alike, so that the sparse factors of one of them precondition GMRES for all others
(Saad and Schultz 1986). An answer counts only if all states lead to r, and if it is stationary up to ``RESIDUAL``; any
other draw is reported, so that the caller may evaluate it by itself.
"""

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import LinearOperator, gmres, splu

from psconrl.base.arrays import Bools, Floats

RESIDUAL = 1e-11  # of a stationary distribution, in the sum of absolute differences
ITERATIONS = 40  # of GMRES; a chain that needs more is factorised by itself
LEAST_SHARE = 1e-12  # of the reference state


class LikeChains:
    """Solves chains of one size that are alike."""

    def __init__(self, reference: int) -> None:
        self._reference = reference
        self._factors: Any = None
        self._guess: Floats = np.zeros(0)

    def stationary(self, P: csr_array) -> Floats | None:
        """Return the stationary distribution (S,) of a chain (S, S); None if it is not found.

        >>> LikeChains(0).stationary(csr_array([[0.5, 0.5], [1.0, 0.0]])).round(6).tolist()
        [0.666667, 0.333333]
        """
        S, r = P.shape[0], self._reference
        into = csr_array(P.T)
        if breadth_first_order(into, r, return_predecessors=False).size < S:
            return None
        others = np.flatnonzero(np.arange(S) != r)
        matrix = csc_array(eye_array(S - 1) - into[others][:, others])
        start = np.asarray(P[[r]].toarray())[0, others]
        try:
            x = self._solved(matrix, start)
        except RuntimeError:  # the chain falls apart in floating point
            return None
        found = np.insert(x, r, 1.0)
        total = float(found.sum())
        if not np.isfinite(total) or not LEAST_SHARE * total < 1.0:
            return None
        found = np.maximum(found / total, 0.0)
        return found if np.abs(into @ found - found).sum() <= RESIDUAL else None

    def _solved(self, matrix: csc_array, start: Floats) -> Floats:
        if self._factors is not None:
            inverse = LinearOperator(matrix.shape, matvec=self._factors.solve)  # type: ignore[call-arg]
            near = 0.1 * RESIDUAL * (1.0 + float(self._guess.sum())) / np.sqrt(start.size)  # in the Euclidean norm
            x, failed = gmres(matrix, start, self._guess, rtol=0.0, atol=near, restart=ITERATIONS, maxiter=4, M=inverse)
            if not failed:
                return np.asarray(x)
        self._factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        self._guess = self._factors.solve(start)
        return self._guess


def large_averages(models: Any, policies: Floats) -> tuple[Floats, Bools]:
    """Return the averages (n, q) of a policy in ``Models``, and whether each has been computed, (n,).

    ``policies``: (n, S, A), or (1, S, A).
    """
    S, A = policies.shape[1:]
    n, costs = models.n_draws, models.costs
    averages, done = np.zeros((n, costs.shape[1])), np.zeros(n, dtype=np.bool_)
    solver = LikeChains(models.reference)
    for k in range(n):
        policy = policies[k if len(policies) > 1 else 0]
        states, actions = np.nonzero(policy)
        shares = csr_array((policy[states, actions], (states, states * A + actions)), shape=(S, S * A))
        found = solver.stationary(csr_array(shares @ models.transition(k)))
        if found is not None:
            occupancy = (found[:, None] * policy).ravel()
            averages[k], done[k] = costs[k if len(costs) > 1 else 0] @ occupancy, True
    return averages, done
