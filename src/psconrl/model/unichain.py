r"""Gains, biases and stationary law of a chain with one closed class, dense or sparse.

.. math:: g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s)\, h_i(s'), \qquad \mu P = \mu,\ \sum_s \mu(s) = 1

(Puterman 1994, section 8.2). Dense chains are eliminated without subtractions (``_elimination``). Sparse chains
are first tried with GMRES, which converges in a few dozen products where the chain mixes fast and where a
factorisation would fill in; if it does not, with a sparse LU; and where that would lose too many digits, as a
dense chain.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, gmres, splu

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _elimination, _graph

# The norm of (I - P)^-1 is the longest expected time to leave. Beyond this one an LU, which subtracts, loses more
# than about seven digits; for chains of up to MAX_DENSE states elimination without subtractions is then used instead.
LONGEST_TIME = 1e7
MAX_DENSE = 2000
GAIN_TOL = 1e-9  # of the largest cost: two ways to compute a gain may differ by this
FALLS_APART = "some states are left too rarely for floating point: with probabilities below 1e-300"
TOO_RARE = "some of {} states are left too rarely for sparse methods; give dense transitions"


class Unichain(NamedTuple):
    """What one chain with one closed class yields, for q costs."""

    gains: Floats  # (q,)
    biases: Floats  # (q, S); zero at the reference state
    stationary: Floats  # (S,)
    reference: int  # a recurrent state
    slowest: float = 1.0  # if tiny, a set of states is nearly closed; dense chains only
    low_biases: Floats | None = None  # (q, S) what one double a state cannot hold of the biases

    def centred_biases(self) -> Floats:
        """The biases (q, S) with stationary mean zero; beyond the range of doubles, no numbers."""
        centred: Floats = _elimination.centred(self.biases, self.stationary)
        return centred


def solve_dense(P: Floats, rows: Ints, costs: Floats, reference: int = 0) -> Unichain | None:
    """The chain that takes ``rows[s]`` of P in state s, with costs ``(q, number of rows)``; None if not unichain."""
    reference, gains, biases, stationary, slowest = _elimination.unichain(P, rows, costs, reference)
    return None if reference < 0 else Unichain(gains, biases, stationary, reference, slowest)


def solve_sparse(P: csr_array, costs: Floats) -> Unichain | None:
    """Chain P of shape (S, S) with costs ``(q, S)``; None if it has two closed classes."""
    return SparseSolver().solve(P, costs)


class SparseSolver:
    """Solves one sparse chain after another, remembering what worked for the last.

    The direct method leaves out the reference state r and solves for the cost u and the time T until r is hit;
    then ``g = (c(r) + P_r u) / (1 + P_r T)`` and ``h = u - g T``. The system is well conditioned only if r is
    visited often, so r is the state of largest mass, re-chosen when the mass has moved away.
    """

    # A chain on which GMRES needs more products than this mixes slowly, and is then a case for LU.
    KRYLOV_STEPS = 80
    KRYLOV_TOL = 1e-13
    # The reference must hold at least this share of the largest stationary mass.
    REFERENCE_SHARE = 1e-2

    def __init__(self) -> None:
        self._direct = False
        self._reference: int | None = None
        self._guess: Unichain | None = None

    def solve(self, P: csr_array, costs: Floats) -> Unichain | None:
        """Chain P of shape (S, S) with costs ``(q, S)``; None if it has two closed classes."""
        count, label = _graph.closed_classes_of_sparse(P.indptr, P.indices, P.data, 0.0)
        if count > 1:
            return None
        result = None if self._direct else self._krylov(P, costs)
        if result is None:
            self._direct = True
            result = self._lu(P, costs, np.flatnonzero(label == 0))
        self._guess = result
        self._reference = result.reference
        return result

    def _krylov(self, P: csr_array, costs: Floats) -> Unichain | None:
        r"""(I - P + 1 q^T) h = c has the solution with gain q^T h; its transpose with right side q is the law."""
        n = P.shape[0]
        q = np.full(n, 1.0 / n)
        Pt = P.T.tocsr()
        forward = LinearOperator((n, n), matvec=lambda x: x - P @ x + q @ x, dtype=np.float64)
        backward = LinearOperator((n, n), matvec=lambda x: x - Pt @ x + q * x.sum(), dtype=np.float64)
        stationary = self._gmres(backward, q, None if self._guess is None else self._guess.stationary)
        if stationary is None:
            return None
        stationary = np.maximum(stationary, 0.0)
        stationary /= stationary.sum()
        biases = np.empty_like(costs)
        for i, cost in enumerate(costs):
            h = self._gmres(forward, cost, None if self._guess is None else self._guess.biases[i])
            if h is None:
                return None
            biases[i] = h
        gains = biases @ q
        if not _agree(costs, gains, stationary):
            return None
        reference = int(stationary.argmax())
        biases -= biases[:, [reference]]
        return Unichain(gains, biases, stationary, reference)

    def _gmres(self, A: LinearOperator, b: Floats, guess: Floats | None) -> Floats | None:
        x, info = gmres(A, b, x0=guess, rtol=self.KRYLOV_TOL, atol=1e-300, restart=self.KRYLOV_STEPS, maxiter=1)
        return np.asarray(x, dtype=np.float64) if info == 0 else None

    def _lu(self, P: csr_array, costs: Floats, recurrent: Ints) -> Unichain:
        reference = self._reference
        if reference is None or not np.isin(reference, recurrent):
            reference = self._busy_state(P, recurrent)
        with np.errstate(all="ignore"):  # what overflows here does not agree below
            result = self._from_busy_state(P, costs, reference)
        if not _agree(costs, result.gains, result.stationary):
            raise SolverError(TOO_RARE.format(P.shape[0]))
        return result

    def _from_busy_state(self, P: csr_array, costs: Floats, reference: int) -> Unichain:
        result = _cycle_solve(P, costs, reference)
        # Counted from a state that is hardly visited the figures are wrong, but the law still points to the busy ones.
        for _ in range(2):
            busiest = int(result.stationary.argmax())
            if result.stationary[result.reference] >= self.REFERENCE_SHARE * result.stationary[busiest]:
                break
            result = _cycle_solve(P, costs, busiest)
        return result

    @staticmethod
    def _busy_state(P: csr_array, recurrent: Ints) -> int:
        """A state of large stationary mass, from a few steps of the lazy chain on its closed class."""
        chain = P[recurrent][:, recurrent].T.tocsr()
        mu = np.full(recurrent.size, 1.0 / recurrent.size)
        for _ in range(200):
            mu = 0.5 * (mu + chain @ mu)
        return int(recurrent[mu.argmax()])


def collect_dense(W: Floats, C: Floats, exits: Floats) -> Floats:
    """The solution (n, q) of x = C + W x for states that are surely left, with the probabilities of leaving each."""
    try:
        collected: Floats = _elimination.transient(np.array(W, order="C"), np.array(C, order="C"), exits.copy())
    except ZeroDivisionError:
        raise SolverError(FALLS_APART) from None
    return collected


def collect_sparse(W: csr_array, C: Floats, exits: Floats) -> Floats:
    """The same for sparse transitions."""
    lu = _factorised(W)
    return collect_dense(W.toarray(), C, exits) if lu is None else _refined(lu, W, C.T)


def _factorised(P: csr_array) -> Any:
    """The LU of I - P, or None if too many digits would be lost and the chain can be solved as a dense one."""
    n = P.shape[0]
    # I - P is diagonally dominant by rows: no pivoting is needed, and the symmetric ordering keeps it sparse.
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        lu = splu(csc_array(eye_array(n) - P), **options)
    except RuntimeError:  # SuperLU: exactly singular
        if n > MAX_DENSE:
            raise SolverError(TOO_RARE.format(n)) from None
        return None
    times = lu.solve(np.ones(n))
    return lu if n > MAX_DENSE or (times.min() > 0 and times.max() < LONGEST_TIME) else None


def _refined(lu: Any, P: csr_array, costs: Floats) -> Floats:
    B = csc_array(eye_array(P.shape[0]) - P)
    u: Floats = lu.solve(costs.T)
    u += lu.solve(costs.T - B @ u)
    return u


def _cycle_solve(P: csr_array, costs: Floats, reference: int) -> Unichain:
    n = P.shape[0]
    if n == 1:
        return Unichain(costs[:, 0].copy(), np.zeros_like(costs), np.ones(1), 0)
    others = np.delete(np.arange(n), reference)
    inside = P[others][:, others]
    lu = _factorised(inside)
    if lu is None:
        chain = solve_dense(P.toarray(), np.arange(n), np.ascontiguousarray(costs), reference)
        if chain is None:
            raise SolverError(FALLS_APART)
        return chain
    u = _refined(lu, inside, np.vstack([costs[:, others], np.ones(n - 1)]))
    leave = P[[reference]][:, others].toarray().ravel()
    cycle = np.append(costs[:, reference], 1.0) + leave @ u
    gains = cycle[:-1] / cycle[-1]
    biases = np.zeros_like(costs)
    biases[:, others] = (u[:, :-1] - np.outer(u[:, -1], gains)).T
    mass = lu.solve(leave, trans="T")
    mass += lu.solve(leave - mass + inside.T @ mass, trans="T")
    stationary = np.empty(n)
    # If r is hardly ever visited, rounding may even turn the sign round.
    stationary[others] = np.maximum(np.copysign(1.0, mass.sum()) * mass, 0.0)
    stationary[reference] = 1.0
    return Unichain(gains, biases, stationary / stationary.sum(), reference)


def _agree(costs: Floats, gains: Floats, stationary: Floats) -> bool:
    """Are the gains found from the costs those of the stationary law? Not where a chain nearly falls apart."""
    apart: Floats = np.abs(costs @ stationary - gains)
    return bool((apart <= GAIN_TOL * np.abs(costs).max(axis=1)).all())
