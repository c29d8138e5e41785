"""Solver for a sequence of sparse chains: GTH elimination, Krylov, aggregation multigrid, or LU factorisation.

Chains in which little fills in, such as queues, are eliminated (``direct_solver``). This is fast whether they mix fast
or slowly, and the most accurate method. The others are solved iteratively. Krylov iterations
(``kernels.linear.krylov``) converge within a few dozen products where the chain mixes fast, and where a factorisation
would fill in. Large chains that mix slowly are solved by aggregation multigrid (``multigrid``), whose work grows only
with the number of states. Small ones, and those on which multigrid fails, are solved by a sparse LU
(``factorisation``). Transient states are solved separately, component by component (``transient_costs``).
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import DENSE_CLASS_STATES, MULTIGRID_STATES
from psconrl.errors import SolverError
from psconrl.kernels.graphs import graph
from psconrl.kernels.linear import krylov, sweeps
from psconrl.markov.direct_solver import DirectSolver
from psconrl.markov.elimination_order import NO_ORDER, Order
from psconrl.markov.factorisation import TOO_RARE, cycle_solve, solve_directly
from psconrl.markov.gain_bias import FALLS_APART, Unichain, solve_chain
from psconrl.markov.multigrid import Hierarchy, Level, first_distribution, multigrid_distribution
from psconrl.markov.transient_costs import collect_onward
from psconrl.model.matrix_product import product

GAIN_TOL = 1e-9  # relative to the largest cost: allowed difference between two computations of a gain
RESIDUAL_TOL = 1e-14  # of a residual, relative to the largest bias
SWEPT_TOL = 1e-13  # the looser tolerance for large chains solved by sweeps, which take long
ANY = 1e300  # a tolerance that is never binding
MULTIGRID_RESIDUAL = 2e-15  # residual of multigrid, which loses little to rounding, relative to the largest bias,
MULTIGRID_TOL = 1e-12  # or relative to the largest cost, if that is more
KRYLOV_SHARE_TOL = 1e-3  # residual of a stationary distribution found by Krylov methods, relative to a uniform share
DISTRIBUTION_TOL = 1e-13  # mass of a stationary distribution that may be out of balance after one step
CYCLES = 80  # multigrid cycles before giving up

Solved = TypeVar("Solved")


class Step(NamedTuple):
    """A method that is tried, and the most matrix-vector products it may take."""

    method: str
    products: int = 0

    def __str__(self) -> str:
        return f"{self.method} ({self.products:,} products)" if self.products else self.method


KRYLOV, MULTIGRID, LU = "Krylov", "aggregation multigrid", "sparse LU"


class SparseSolver:
    """Solves a sequence of chains, starting from the previous solution and the method that worked for it."""

    # A chain that needs more products than this mixes slowly. Large chains switch to multigrid earlier, but if
    # multigrid fails on them, a factorisation would hardly do better than many products.
    KRYLOV_STEPS, KRYLOV_STEPS_OF_LARGE, PATIENT = 400, 100, 4000

    def __init__(self, order: Order = NO_ORDER, n_states: int = 0) -> None:
        self.direct, self._n_states = DirectSolver(order), n_states
        self.slow = self.direct.usable  # True if Krylov iterations alone are not known to converge
        self.passing = False  # True if most states are transient
        self._guess: Unichain | None = None

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.steps(self._n_states)))
        return f"GTH elimination in an order of little fill-in, else {listed}" if self.direct.usable else listed

    def steps(self, n_states: int) -> list[Step]:
        """Return the methods that are tried, one after the other, for a chain that is not eliminated."""
        large = n_states >= MULTIGRID_STATES
        fast = [] if self.slow else [Step(KRYLOV, self.KRYLOV_STEPS_OF_LARGE if large else self.KRYLOV_STEPS)]
        return [*fast, *((Step(MULTIGRID), Step(KRYLOV, self.PATIENT)) if large else ()), Step(LU)]

    def solve(
        self,
        P: csr_array,
        costs: Floats,
        restarts_in: int | None = None,
        *,
        within: float = 0.0,
        guess: Unichain | None = None,
    ) -> Unichain | None:
        """Solve chain P of shape (S, S) with costs ``(q, S)``; None if it has several closed classes.

        ``restarts_in``: a state to which every step may lead, if there is one. ``within``: the allowed error of the
        gains; 0 asks for the smallest possible. ``guess``: a solution of a similar chain, by default the previous one.
        """
        self._guess = guess or self._guess
        costs = np.ascontiguousarray(costs)
        if restarts_in is not None:
            result = self._irreducible(P, costs, np.array([restarts_in]), within, self._guess)
        else:
            count, label = graph.closed_classes_of_sparse(P.indptr, P.indices, P.data, 0.0)
            if count > 1:
                return None
            recurrent = np.flatnonzero(label == 0)
            self.passing = 2 * recurrent.size < P.shape[0]
            direct = self._eliminated(P, costs, recurrent)
            if direct is not None:
                result = direct
            elif recurrent.size == P.shape[0]:
                result = self._irreducible(P, costs, recurrent, within, self._guess)
            else:
                result = self._with_passing(P, costs, recurrent, within)
        self._guess = result
        return result

    def _eliminated(self, P: csr_array, costs: Floats, recurrent: Ints) -> Unichain | None:
        """Solve a chain directly; None if it is not narrow enough."""
        if not self.direct.usable:
            return None
        return self.direct.solve(P, costs, recurrent, 0 if self._guess is None else self._guess.reference)

    def _with_passing(self, P: csr_array, costs: Floats, inside: Ints, within: float) -> Unichain:
        """Solve the closed class by itself, then the transient states."""
        core, part_costs = P[inside][:, inside], np.ascontiguousarray(costs[:, inside])
        if inside.size <= DENSE_CLASS_STATES:
            part = solve_chain(core.toarray(), part_costs)
        else:
            part = self._irreducible(core, part_costs, np.arange(inside.size), within, _restricted(self._guess, inside))
        if part is None:
            raise SolverError(FALLS_APART)
        biases = np.zeros_like(costs)
        biases[:, inside] = part.biases
        outside = np.ones(P.shape[0], dtype=bool)
        outside[inside] = False
        passing = np.flatnonzero(outside)
        rows = csr_array(P[passing])
        onward = (costs[:, passing] - part.gains[:, None]).T + product(rows, biases.T)
        biases[:, passing] = collect_onward(csr_array(rows[:, passing]), onward, product(rows, 1.0 - outside)).T
        distribution = partial(_spread, part, inside, P.shape[0])
        return Unichain(part.gains, biases, distribution, int(inside[part.reference]), off=part.off, rough=part.rough)

    def _irreducible(
        self, P: csr_array, costs: Floats, recurrent: Ints, within: float, guess: Unichain | None
    ) -> Unichain:
        """Solve a chain without transient states by the first method that succeeds."""
        for method, products in self.steps(P.shape[0]):
            if method == KRYLOV:
                result = self._by_krylov(P, costs, within, guess, products)
                self.slow = self.slow or result is None
            elif method == MULTIGRID:
                result = self._by_multigrid(P, costs, within, guess)
            else:
                result = solve_directly(P, costs, recurrent, None if guess is None else guess.reference)
                if not _agree(costs, result.gains, result.stationary):
                    break
            if result is not None:
                return result
        raise SolverError(TOO_RARE.format(P.shape[0]))

    def _by_krylov(
        self, P: csr_array, costs: Floats, within: float, guess: Unichain | None, most: int
    ) -> Unichain | None:
        biases = _first_biases(costs, guess)
        large = P.shape[0] >= MULTIGRID_STATES

        def one(i: int) -> float:
            right, x = costs[i : i + 1], biases[i : i + 1]
            enough = within or (SWEPT_TOL * max(np.abs(right).max(), np.abs(x).max()) if large else 0.0)
            if enough:
                left = float(sweeps.sweep_until(P.indptr, P.indices, P.data, right[0], x[0], enough, most))
                if left <= enough:
                    return left
            return float(krylov.solve(P.indptr, P.indices, P.data, False, right, x, *goal, most))

        goal = (ANY, within) if within else (RESIDUAL_TOL, np.inf)
        off = max(_for_each(one, costs))  # error bound of the gains
        if not off <= max(within, GAIN_TOL * float(np.abs(costs).max())):
            return None
        gains = biases.mean(axis=1)
        reference = 0 if guess is None else guess.reference
        biases -= biases[:, [reference]]
        return Unichain(
            gains,
            biases,
            partial(_distribution_by_krylov, P, costs, gains, off),
            reference,
            off=off,
            rough=within > 0.0,
        )

    def _by_multigrid(self, P: csr_array, costs: Floats, within: float, guess: Unichain | None) -> Unichain | None:
        level = Level.of_chain(P.indptr, P.indices, P.data)
        distribution = first_distribution(level)
        biases = _first_biases(costs, guess)
        for mass in (np.sqrt(distribution), np.ones_like(distribution)):
            hierarchy = Hierarchy(level, mass / mass.sum())
            if not hierarchy.usable:
                continue
            gains, off = _solved(hierarchy, costs, biases, within)
            if (off <= np.maximum(within, GAIN_TOL * np.abs(costs).max(axis=1))).all():
                break
        else:
            return None
        reference = int(distribution.argmax())
        biases -= biases[:, [reference]]
        stationary = partial(_distribution_by_multigrid, level, distribution, P, costs, gains, float(off.max()))
        return Unichain(gains, biases, stationary, reference, off=float(off.max()), rough=within > 0.0)


def _first_biases(costs: Floats, guess: Unichain | None) -> Floats:
    """Return initial biases from a similar chain, shifted such that their means are the gains."""
    if guess is None:
        return np.zeros(costs.shape)
    return np.ascontiguousarray(guess.biases - guess.biases.mean(axis=1, keepdims=True) + guess.gains[:, None])


def _restricted(guess: Unichain | None, states: Ints) -> Unichain | None:
    """Return a guess restricted to some states; None if its reference is not among them."""
    if guess is None:
        return None
    at = int(np.searchsorted(states, guess.reference))
    if at == states.size or states[at] != guess.reference:
        return None
    return Unichain(guess.gains, guess.biases[:, states], np.empty(0), at)


def _spread(part: Unichain, states: Ints, n: int) -> Floats:
    """Return the distribution of a closed class, extended by zeros to all states."""
    distribution = np.zeros(n)
    distribution[states] = part.stationary
    return distribution


def _solved(hierarchy: Hierarchy, costs: Floats, biases: Floats, within: float) -> tuple[Floats, Floats]:
    """Return the gains (q,) and their error bounds; the biases are updated in place, in parallel over the costs."""
    cycles = hierarchy.for_biases()

    def one(i: int) -> tuple[float, float]:
        goal = max(within, MULTIGRID_RESIDUAL * np.abs(biases[i]).max(), MULTIGRID_TOL * np.abs(costs[i]).max())
        return cycles.solve(costs[i], biases[i], goal, CYCLES)

    found = np.array(_for_each(one, costs))
    return found[:, 0].copy(), found[:, 1].copy()


def _for_each(one: Callable[[int], Solved], costs: Floats) -> list[Solved]:
    """Call ``one`` for each of the costs (q, n), in parallel if the chain is large."""
    if len(costs) == 1 or costs.shape[1] < MULTIGRID_STATES:
        return [one(i) for i in range(len(costs))]
    with ThreadPoolExecutor(min(len(costs), os.cpu_count() or 1)) as pool:
        return list(pool.map(one, range(len(costs))))


def _distribution_by_krylov(P: csr_array, costs: Floats, gains: Floats, off: float) -> Floats:
    """Return the stationary distribution of a chain whose gains are known up to ``off``."""
    n = P.shape[0]
    uniform = np.full((1, n), 1.0 / n)
    distribution = uniform.copy()
    large = n >= MULTIGRID_STATES
    if large:
        moved = sweeps.step_until(
            P.indptr, P.indices, P.data, distribution[0], DISTRIBUTION_TOL, SparseSolver.KRYLOV_STEPS_OF_LARGE
        )
        if moved <= DISTRIBUTION_TOL and _agree(costs, gains, distribution[0], off):
            return np.asarray(distribution[0])
    most = 2 * (SparseSolver.KRYLOV_STEPS_OF_LARGE if large else SparseSolver.KRYLOV_STEPS)
    left = krylov.solve(P.indptr, P.indices, P.data, True, uniform, distribution, RESIDUAL_TOL, np.inf, most)
    distribution = np.maximum(distribution[0], 0.0)
    distribution /= distribution.sum()
    if left <= KRYLOV_SHARE_TOL / n and _agree(costs, gains, distribution, off):
        return np.asarray(distribution)
    if large:
        level = Level.of_chain(P.indptr, P.indices, P.data)
        return _distribution_by_multigrid(level, first_distribution(level), P, costs, gains, off)
    return _distribution_by_lu(P, costs, gains, distribution, off)


def _distribution_by_multigrid(
    level: Level, guess: Floats, P: csr_array, costs: Floats, gains: Floats, off: float
) -> Floats:
    """Return the stationary distribution by multigrid from a rough one, or by an LU if that fails."""
    distribution = multigrid_distribution(level, guess, DISTRIBUTION_TOL, CYCLES)
    return (
        distribution
        if _agree(costs, gains, distribution, off)
        else _distribution_by_lu(P, costs, gains, distribution, off)
    )


def _distribution_by_lu(P: csr_array, costs: Floats, gains: Floats, guess: Floats, off: float) -> Floats:
    exact = cycle_solve(P, costs, int(guess.argmax()))
    if not (np.isfinite(exact.gains).all() and _agree(costs, gains, exact.stationary, off)):
        raise SolverError(TOO_RARE.format(P.shape[0]))
    return exact.stationary


def _agree(costs: Floats, gains: Floats, stationary: Floats, off: float = 0.0) -> bool:
    """True if the gains match those of the stationary distribution; they do not if the chain is nearly decomposable."""
    apart: Floats = np.abs(product(costs, stationary) - gains)
    return bool((apart <= off + GAIN_TOL * np.abs(costs).max(axis=1)).all())
