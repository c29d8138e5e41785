r"""Averages of a policy in drawn models of many states, each chain solved from the factors of one of them.

With a state r of the only closed class that is reached, :math:`x_r = 1` and :math:`B = I - P_{-r,-r}`, the stationary
distribution is :math:`x / \sum_s x(s)` with

.. math:: B^T x_{-r} = P_{r,-r} .

Chains drawn from one posterior are alike, so that the sparse factors of one of them precondition GMRES for all others
(Saad and Schultz 1986). An answer counts only if it is stationary up to ``LARGEST_RESIDUAL``; any other draw is
reported, so that the caller may evaluate it by itself.
"""

from typing import Any

import numpy as np
from scipy.sparse import block_array, csc_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import LinearOperator, gmres, splu

from psconrl.base.arrays import Bools, Floats, Ints

LARGEST_RESIDUAL = 1e-10  # of a stationary distribution, in the sum of absolute differences
ITERATIONS = 40  # of GMRES; a chain that needs more is factorised by itself
LEAST_OF_REFERENCE = 1e-12  # of the reference state


class LikeChains:
    """Solves chains of one size that are alike; ``start`` (S,): where they begin."""

    def __init__(self, reference: int, start: Floats) -> None:
        self._reference, self._start = reference, start
        self._states: Ints = np.arange(start.size)
        self._factors: Any = None
        self._guess: Floats = np.zeros(0)

    def stationary(self, P: csr_array) -> Floats | None:
        """Return the long-run frequencies (S,) of the states of a chain (S, S); None if they are not found.

        >>> chain = csr_array([[0.5, 0.5], [1.0, 0.0]])
        >>> LikeChains(0, np.array([1.0, 0.0])).stationary(chain).round(6).tolist()
        [0.666667, 0.333333]
        """
        S = P.shape[0]
        if breadth_first_order(csr_array(P.T), self._reference, return_predecessors=False).size == S:
            states = np.arange(S)
        else:
            states = _reached(P, self._start)
            closed = _only_closed_class(P[states][:, states])
            if closed is None:
                return None
            if not np.isin(self._reference, states[closed]):
                self._reference, self._factors = int(states[closed[0]]), None
        if not np.array_equal(states, self._states):
            self._states, self._factors = states, None
        part = P if states.size == S else csr_array(P[states][:, states])
        own = self._inside(part, int(np.searchsorted(states, self._reference)))
        if own is None:
            return None
        found = np.zeros(S)
        found[states] = own
        return found

    def _inside(self, P: csr_array, r: int) -> Floats | None:
        """Return the stationary distribution of a chain in which all states lead to r."""
        S, into = P.shape[0], csc_array(P.T)
        columns = np.repeat(np.arange(S), np.diff(into.indptr))
        kept = np.where((into.indices == r) | (columns == r), 0.0, into.data)
        matrix = csc_array(eye_array(S) - csc_array((kept, into.indices, into.indptr), shape=(S, S)))
        begin, end = P.indptr[r : r + 2]
        right = np.zeros(S)
        np.add.at(right, P.indices[begin:end], P.data[begin:end])
        right[r] = 1.0
        try:
            found = self._solved(matrix, right)
        except RuntimeError:  # the chain falls apart in floating point
            return None
        total = float(found.sum())
        if not np.isfinite(total) or not LEAST_OF_REFERENCE * total < 1.0:
            return None
        found = np.maximum(found / total, 0.0)
        return found if np.abs(into @ found - found).sum() <= LARGEST_RESIDUAL else None

    def _solved(self, matrix: csc_array, start: Floats) -> Floats:
        if self._factors is not None:
            inverse = LinearOperator(matrix.shape, matvec=self._factors.solve)
            size = 1.0 + float(self._guess.sum())
            near = 0.1 * LARGEST_RESIDUAL * size / np.sqrt(start.size)  # in the Euclidean norm
            x, failed = gmres(matrix, start, self._guess, rtol=0.0, atol=near, restart=ITERATIONS, maxiter=4, M=inverse)
            if not failed:
                return np.asarray(x)
        self._factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        self._guess = self._factors.solve(start)
        return self._guess


def _reached(P: csr_array, start: Floats) -> Ints:
    """Return the states that a chain may reach from where it begins."""
    source = csr_array(start[None])
    with_source = csr_array(block_array([[P, None], [source, csr_array((1, 1))]]))
    return np.sort(breadth_first_order(with_source, start.size, return_predecessors=False)[1:]).astype(np.int64)


def _only_closed_class(P: csr_array) -> Ints | None:
    """Return the states of the only closed class of a chain; None if there are several."""
    number, label = connected_components(P, connection="strong")
    entries = P.tocoo()
    leaves = label[entries.row] != label[entries.col]
    is_open = np.zeros(number, dtype=np.bool_)
    is_open[label[entries.row[leaves & (entries.data > 0.0)]]] = True
    closed = np.flatnonzero(~is_open)
    return np.flatnonzero(label == closed[0]) if closed.size == 1 else None


def large_averages(models: Any, policies: Floats) -> tuple[Floats, Bools]:
    """Return the averages (n, q) of a policy in ``Models``, and whether each has been computed, (n,).

    ``policies``: (n, S, A), or (1, S, A).
    """
    S, A = policies.shape[1:]
    n, costs = models.n_draws, models.costs
    averages, done = np.zeros((n, costs.shape[1])), np.zeros(n, dtype=np.bool_)
    solver = LikeChains(models.reference, models.start)
    for k in range(n):
        policy = policies[k if len(policies) > 1 else 0]
        states, actions = np.nonzero(policy)
        shares = csr_array((policy[states, actions], (states, states * A + actions)), shape=(S, S * A))
        found = solver.stationary(csr_array(shares @ models.transition(k)))
        if found is not None:
            occupancy = (found[:, None] * policy).ravel()
            averages[k], done[k] = costs[k if len(costs) > 1 else 0] @ occupancy, True
    return averages, done
