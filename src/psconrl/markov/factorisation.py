"""Sparse chains solved by an LU factorisation of the cost and time until a reference state is hit again.

Without the reference state r, one LU yields the cost u and the time T until r is hit; then ``g = (c(r) + P_r u) / (1 +
P_r T)`` and ``h = u - g T``. The system is well conditioned only if r is visited often.
"""

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import GTH_STATES
from psconrl.errors import SolverError
from psconrl.markov.gain_bias import FALLS_APART, Unichain, collect_dense, solve_chain

# The norm of (I - P)^-1 is the longest expected time to leave. Beyond this value an LU, which subtracts, loses more
# than about seven digits; chains of up to GTH_STATES states are then solved by GTH elimination instead.
LONGEST_TIME = 1e7
SURE = 1e-8  # tolerance for the probability of leaving, which should be one: if it is off, so are the other results
REFERENCE_SHARE = 1e-2  # least mass of the reference state, relative to the largest stationary mass
TOO_RARE = "some of {} states are left too rarely for sparse methods; give dense transitions"


def solve_directly(P: csr_array, costs: Floats, recurrent: Ints, reference: int | None) -> Unichain:
    """Solve chain P of shape (S, S) with costs ``(q, S)``, using a reference state that is likely visited often."""
    if reference is None or not np.isin(reference, recurrent):
        reference = _busy_state(P, recurrent)
    with np.errstate(all="ignore"):  # overflows are detected when gains and distribution are compared
        result = cycle_solve(P, costs, reference)
        # A rarely visited reference gives wrong results, but the distribution still points to frequently visited
        # states.
        for _ in range(2):
            busiest = int(result.stationary.argmax())
            if result.stationary[result.reference] >= REFERENCE_SHARE * result.stationary[busiest]:
                break
            result = cycle_solve(P, costs, busiest)
    return result


def _busy_state(P: csr_array, recurrent: Ints) -> int:
    """Return a state of large stationary mass, from 200 steps of the lazy chain on its closed class."""
    chain = P[recurrent][:, recurrent].T.tocsr()
    mu = np.full(recurrent.size, 1.0 / recurrent.size)
    for _ in range(200):
        mu = 0.5 * (mu + chain @ mu)
    return int(recurrent[mu.argmax()])


def collect_sparse(W: csr_array, C: Floats, exits: Floats) -> Floats:
    """Return the solution (n, q) of x = C + W x for transient states with exit probabilities ``exits``, W sparse."""
    system = _system(W, exits)
    lu = _factorised(system)
    if lu is None:
        return collect_dense(W.toarray(), C, exits)
    if not _is_sure(lu, system, exits):
        raise SolverError(TOO_RARE.format(W.shape[0]))
    return _refined(lu, system, C.T)


def _system(W: csr_array, exits: Floats) -> csc_array:
    """Return I - W given exit probabilities ``exits``; its diagonal avoids one minus the probability of staying."""
    moves = csr_array(W - diags_array(W.diagonal()))
    return csc_array(diags_array(exits + np.asarray(moves.sum(axis=1)).ravel()) - moves)


def _is_sure(lu: Any, system: csc_array, exits: Floats) -> bool:
    """True if every state is left with probability one, as it must be; checked only for chains beyond GTH_STATES."""
    if exits.size <= GTH_STATES:
        return True
    return bool((np.abs(_refined(lu, system, exits[None, :]) - 1.0) <= SURE).all())


def _factorised(system: csc_array) -> Any:
    """Return the LU of I - W, or None if it loses too many digits and the chain can be solved as a dense one."""
    from scipy.sparse.linalg import splu  # importing it takes longer than planning on a small model

    n = system.shape[0]
    # The matrix is diagonally dominant by rows: no pivoting is needed, and the symmetric ordering keeps it sparse.
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        lu = splu(system, **options)
    except RuntimeError:  # SuperLU: exactly singular
        if n > GTH_STATES:
            raise SolverError(TOO_RARE.format(n)) from None
        return None
    times = lu.solve(np.ones(n))
    return lu if n > GTH_STATES or (times.min() > 0 and times.max() < LONGEST_TIME) else None


def _refined(lu: Any, system: csc_array, costs: Floats) -> Floats:
    u: Floats = lu.solve(costs.T)
    u += lu.solve(costs.T - system @ u)
    return u


def cycle_solve(P: csr_array, costs: Floats, reference: int) -> Unichain:
    """Solve the chain with the given reference state; gains are NaN if some state hardly ever reaches it."""
    n = P.shape[0]
    if n == 1:
        return Unichain(costs[:, 0].copy(), np.zeros_like(costs), np.ones(1), 0)
    others = np.delete(np.arange(n), reference)
    inside = P[others][:, others]
    back = P[others][:, [reference]].toarray().ravel()
    system = _system(inside, back)
    lu = _factorised(system)
    if lu is None:
        chain = solve_chain(P.toarray(), np.ascontiguousarray(costs), reference)
        if chain is None:
            raise SolverError(FALLS_APART)
        return chain
    u = _refined(lu, system, np.vstack([costs[:, others], np.ones(n - 1)]))
    leave = P[[reference]][:, others].toarray().ravel()
    cycle = np.append(costs[:, reference], 1.0) + leave @ u
    gains = cycle[:-1] / cycle[-1] if _is_sure(lu, system, back) else np.full(len(costs), np.nan)
    biases = np.zeros_like(costs)
    biases[:, others] = (u[:, :-1] - np.outer(u[:, -1], gains)).T
    mass = lu.solve(leave, trans="T")
    mass += lu.solve(leave - system.T @ mass, trans="T")
    stationary = np.empty(n)
    # If r is hardly ever visited, rounding may even flip the sign.
    stationary[others] = np.maximum(np.copysign(1.0, mass.sum()) * mass, 0.0)
    stationary[reference] = 1.0
    return Unichain(gains, biases, stationary / stationary.sum(), reference)
