r"""Gains, biases and stationary law of a chain with one closed class, dense or sparse.

.. math:: g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s)\, h_i(s'), \qquad \mu P = \mu,\ \sum_s \mu(s) = 1

(Puterman 1994, section 8.2). Dense chains are eliminated without subtractions (``_elimination``). Sparse chains are
first tried by products alone (``_krylov``), which converges in a few dozen where the chain mixes fast and where a
factorisation would fill in; if it does not, with a sparse LU; and where that would lose too many digits, as a dense
chain.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from psconrl.arrays import Floats, Ints, read_only
from psconrl.errors import SolverError
from psconrl.model import _elimination, _graph, _krylov

# The norm of (I - P)^-1 is the longest expected time to leave. Beyond this one an LU, which subtracts, loses more
# than about seven digits; for chains of up to MAX_DENSE states elimination without subtractions is then used instead.
LONGEST_TIME = 1e7
MAX_DENSE = 2000
GAIN_TOL = 1e-9  # of the largest cost: two ways to compute a gain may differ by this
KRYLOV_TOL = 1e-14  # of a residual, relative to the largest bias
FALLS_APART = "some states are left too rarely for floating point: with probabilities below 1e-300"
TOO_RARE = "some of {} states are left too rarely for sparse methods; give dense transitions"


class Unichain:
    """What one chain with one closed class yields, for q costs."""

    __slots__ = ("_law", "biases", "gains", "low_biases", "reference", "slowest")

    def __init__(
        self,
        gains: Floats,
        biases: Floats,
        stationary: Floats | Callable[[], Floats],
        reference: int,
        slowest: float = 1.0,
        low_biases: Floats | None = None,
    ) -> None:
        self.gains = gains  # (q,)
        self.biases = biases  # (q, S); zero at the reference state
        self._law = stationary
        self.reference = reference  # a recurrent state
        self.slowest = slowest  # if tiny, a set of states is nearly closed; dense chains only
        self.low_biases = low_biases  # (q, S) what one double a state cannot hold of the biases

    @property
    def stationary(self) -> Floats:
        """The stationary law (S,), solved for when first asked for if it does not come with the rest."""
        if callable(self._law):
            self._law = self._law()
        return self._law

    def centred_biases(self) -> Floats:
        """The biases (q, S) with stationary mean zero; beyond the range of doubles, no numbers."""
        centred: Floats = _elimination.centred(self.biases, self.stationary)
        return centred


def solve_dense(P: Floats, rows: Ints, costs: Floats, reference: int = 0) -> Unichain | None:
    """The chain that takes ``rows[s]`` of P in state s, with costs ``(q, number of rows)``; None if not unichain."""
    reference, gains, biases, stationary, slowest = _elimination.unichain(
        *_elimination.gathered(read_only(P), rows, costs), reference
    )
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

    # A chain that needs more products than this mixes slowly, and is then a case for LU.
    PRODUCTS = 400
    # The reference must hold at least this share of the largest stationary mass.
    REFERENCE_SHARE = 1e-2

    def __init__(self) -> None:
        self._direct = False
        self._reference: int | None = None
        self._guess: Unichain | None = None

    def solve(self, P: csr_array, costs: Floats, restarts_in: int | None = None) -> Unichain | None:
        """Chain P of shape (S, S) with costs ``(q, S)``; None if it has two closed classes.

        ``restarts_in``: a state to which every step may lead, if there is one.
        """
        result = None
        if restarts_in is None:
            count, label = _graph.closed_classes_of_sparse(P.indptr, P.indices, P.data, 0.0)
            if count > 1:
                return None
        if not self._direct:
            result = self._krylov(P, costs)
        if result is None:
            self._direct = True
            recurrent = np.array([restarts_in]) if restarts_in is not None else np.flatnonzero(label == 0)
            result = self._lu(P, costs, recurrent)
        self._guess = result
        self._reference = result.reference
        return result

    def _krylov(self, P: csr_array, costs: Floats) -> Unichain | None:
        """From the solution of the last chain, whose policy or transitions were nearly the same."""
        guess, biases = self._guess, np.zeros_like(costs)
        if guess is not None:
            biases = guess.biases - guess.biases.mean(axis=1, keepdims=True) + guess.gains[:, None]
        off = _krylov.solve(P.indptr, P.indices, P.data, False, costs, biases, KRYLOV_TOL, np.inf, self.PRODUCTS)
        if not off <= GAIN_TOL * np.abs(costs).max():  # by which the gains may be wrong
            return None
        gains = biases.mean(axis=1)
        reference = int(guess.reference if guess is not None else 0)
        biases -= biases[:, [reference]]
        return Unichain(gains, biases, partial(_law, P, costs, gains), reference)

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


def _law(P: csr_array, costs: Floats, gains: Floats) -> Floats:
    """The stationary law of a chain whose gains are known."""
    n = P.shape[0]
    uniform = np.full((1, n), 1.0 / n)
    law = uniform.copy()
    off = _krylov.solve(P.indptr, P.indices, P.data, True, uniform, law, KRYLOV_TOL, np.inf, 2 * SparseSolver.PRODUCTS)
    law = np.maximum(law[0], 0.0)
    law /= law.sum()
    if off <= 1e-3 / n and _agree(costs, gains, law):
        return np.asarray(law)
    exact = _cycle_solve(P, costs, int(law.argmax()))
    if not _agree(costs, gains, exact.stationary):
        raise SolverError(TOO_RARE.format(n))
    return exact.stationary


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
