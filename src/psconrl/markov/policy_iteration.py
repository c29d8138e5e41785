r"""Policy evaluation and improvement on dense or sparse transitions, and in double-double precision.

``evaluate`` solves the chain of a deterministic policy for all costs at once. ``improve`` gives every state the action
that is best for the weighted cost and its bias h, by :math:`c_w(s,a) + \sum P(s'|s,a) (h(s') - h(s))`. The sum is over
differences, since h may be huge where it is hard to leave. The least of these values bounds the gain of every policy.
"""

import os
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.sizes import MULTIGRID_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains import double_double
from psconrl.kernels.linear import sparse_elimination
from psconrl.kernels.search import improvement, sparse_improvement
from psconrl.markov.anchored_bias import RingingChain, best_level
from psconrl.markov.elimination_order import NO_ORDER
from psconrl.markov.gain_bias import FALLS_APART, Unichain, solve_dense
from psconrl.markov.outward_improvement import OutwardSteps
from psconrl.markov.select_solver import sparse_solver
from psconrl.model.matrices import chosen_rows
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition

# Scaled costs are at most one. Beyond this value rounding of the single biases exceeds what a search resolves, 1e-11.
LARGE_BIAS = 1e5
OPEN_GAP = 1e-11  # larger gaps, if no action gains more than rounding, are due to rounding of the bias


class Improved(NamedTuple):
    """A lower bound on the weighted gain of every policy, and a better policy, or None if no switch gains enough."""

    bound: float
    policy: Ints | None
    # High and low parts (S,) of what gives the bound, if it is not the weighted sum of the biases.
    potential: tuple[Floats, Floats] | None = None


class PolicySteps(ABC):
    """Evaluates and improves a sequence of policies of one model: its transitions, costs and actions stay the same.

    ``costs`` (q, S*A); ``available`` (S, A).
    """

    def __init__(self, costs: Floats, available: Bools) -> None:
        n_states, n_actions = available.shape
        self._costs, self._available = costs, available
        self._first_pair = np.arange(0, n_states * n_actions, n_actions)

    @abstractmethod
    def evaluate(
        self, policy: Ints, reference: int, within: float = 0.0, guess: Unichain | None = None
    ) -> Unichain | None:
        """Solve the chain of a deterministic policy (S,) for all costs; None if it has several closed classes.

        ``reference``: a state that is likely visited often. ``within``: the allowed error of the gains, where a loose
        tolerance saves time. ``guess``: a solution of a similar chain.
        """

    @abstractmethod
    def improve(
        self, policy: Ints, chain: Unichain, weights: Floats, tolerance: float, ahead: float | None = None
    ) -> Improved:
        """Switch every state whose best action gains more than rounding error can account for.

        ``chain``: the policy evaluated. The tolerance is relative to the bias of the state, which is zero at a
        frequently visited one. The span of the bias would not do: a corner that is left once in 1e100 steps must not
        keep the rest from improving. ``ahead``: the gain, if the improvement may look more than one step ahead. This is
        usually better, but not always.
        """

    @property
    def joins_regimes(self) -> bool:
        """Whether policies with several regimes, hardly ever left, are evaluated and improved accurately."""
        return False

    def forget_levels(self) -> None:
        """Choose the levels of regimes that are hardly ever left again, in the next improvement."""
        return

    def _values(self, cost: Floats, moved: Floats) -> Floats:
        """Return the value of every action, (S, A), its cost plus P h - h; inf where it is not available."""
        return np.where(self._available, cost.reshape(self._available.shape) + moved, np.inf)


def policy_steps(P: Transition, costs: Floats, available: Bools, double_double: bool = False) -> PolicySteps:
    """Return the steps for costs (q, S*A) and available actions (S, A), in double or double-double precision."""
    if double_double:
        return RefinedSteps(P.toarray(), costs, available)
    if P.eliminates:
        return DenseSteps(P.toarray(), costs, available)
    return SparseSteps(P.matrix, costs, available, P.restarts_in)


class DenseSteps(PolicySteps):
    """Policy steps on dense transitions (S*A, S), both compiled."""

    def __init__(self, P: Floats, costs: Floats, available: Bools) -> None:
        super().__init__(costs, available)
        self._P = P

    def evaluate(
        self, policy: Ints, reference: int, within: float = 0.0, guess: Unichain | None = None
    ) -> Unichain | None:
        """Solve the chain by GTH elimination, in O(S^3)."""
        return solve_dense(self._P, self._first_pair + policy, self._costs, reference)

    def improve(
        self, policy: Ints, chain: Unichain, weights: Floats, tolerance: float, ahead: float | None = None
    ) -> Improved:
        """Improve in double precision; the bound allows for rounding."""
        bound, switched, new = improvement.improve(
            self._P, self._costs, weights, self._available, policy, chain.biases, tolerance
        )
        rounding = improvement.rounding_of_bound(self._P, weights, chain.biases)
        return Improved(bound - rounding, new if switched else None)


class SparseSteps(PolicySteps):
    """Policy steps on transitions (S*A, S) in CSR form."""

    SWEEPS = 20  # a sweep costs one product, an evaluation some hundred; too many drift from the policy's own bias

    def __init__(self, P: csr_array, costs: Floats, available: Bools, restarts_in: int | None) -> None:
        super().__init__(costs, available)
        self._P, self._restarts_in = P, restarts_in
        self._solver = sparse_solver(P, None if restarts_in is None else NO_ORDER)
        self._anchor: Floats | None = None
        self._outward = OutwardSteps(P) if self.joins_regimes else None

    def evaluate(
        self, policy: Ints, reference: int, within: float = 0.0, guess: Unichain | None = None
    ) -> Unichain | None:
        """Solve the chain iteratively, starting from the guess or the solution of the previous policy."""
        rows = self._first_pair + policy
        chain = chosen_rows(self._P, rows)
        return self._solver.solve(chain, self._costs.take(rows, axis=1), self._restarts_in, within=within, guess=guess)

    def improve(
        self, policy: Ints, chain: Unichain, weights: Floats, tolerance: float, ahead: float | None = None
    ) -> Improved:
        """Improve with compensated sums, since sparse transitions have no fallback in double-double precision."""
        available, reference = self._available, chain.reference
        h = improvement.weighted_bias(weights, chain.biases)
        potential: tuple[Floats, Floats] | None = None
        if self.joins_regimes and np.abs(chain.biases[weights > 0.0]).max() > LARGE_BIAS:
            h = self._anchored(policy, weights, reference)
            potential = (h, np.zeros(h.size))
        cost = product(weights, self._costs)
        values = self._values(cost, self._drift(h))
        bound, new, _ = _switched(values, policy, tolerance * np.maximum(1.0, np.abs(h)))
        # In a large chain that mixes fast an evaluation takes a few products, and looking ahead saves none. If most
        # states are transient, improvements would otherwise spread to them from the closed class one state at a time.
        worth_it = self._solver.slow or self._solver.passing or h.size < MULTIGRID_STATES
        if ahead is not None and self._outward is not None:
            found = self._outward.improve(policy, h, cost, available, ahead, bound, tolerance, reference)
            if found is not None:
                if found.bound > bound:
                    bound, potential = found.bound, (found.high, found.low)
                return Improved(bound, new if np.array_equal(found.policy, policy) else found.policy, potential)
        if new is None and ahead is not None and self.joins_regimes and ahead - bound > OPEN_GAP:
            return self._refined(policy, h, values, cost, tolerance, reference, Improved(bound, new, potential))
        if new is not None and ahead is not None and worth_it:
            P = self._P
            new = sparse_improvement.look_ahead(
                P.indptr, P.indices, P.data, 0, 0.0, cost, available, new, h, ahead, self.SWEEPS, tolerance
            )
        return Improved(bound, new, potential)

    def _refined(
        self,
        policy: Ints,
        h: Floats,
        values: Floats,
        cost: Floats,
        tolerance: float,
        reference: int,
        plain: Improved,
    ) -> Improved:
        """Improve with a low part of the bias h, where one double per state is too coarse to tell what is best."""
        states = np.arange(policy.size)
        P, chain = self._P, chosen_rows(self._P, self._first_pair + policy)
        stuck, _, low, _ = sparse_elimination.unichain(
            chain.indptr, chain.indices, chain.data, states, values[states, policy][None, :], reference, 0.0,
            self._solver.direct.order,
        )  # fmt: skip
        if stuck >= 0 or not np.isfinite(low).all():
            return plain
        moved = double_double.drift_sparse(P.indptr, P.indices, P.data, h, low[0])
        finer = self._values(cost, moved)
        bound, new, _ = _switched(finer, policy, tolerance * np.maximum(1.0, np.abs(finer[states, policy])))
        return Improved(bound, new, (h, low[0])) if bound > plain.bound else plain

    @property
    def joins_regimes(self) -> bool:
        """Whether chains are eliminated."""
        return self._solver.direct.usable

    def forget_levels(self) -> None:
        """Forget the bias to which the next one would be anchored."""
        self._anchor = None

    def _anchored(self, policy: Ints, weights: Floats, reference: int) -> Floats:
        """Return the weighted bias of a policy whose biases are too large to be added."""
        rows = self._first_pair + policy
        chain = RingingChain(chosen_rows(self._P, rows), reference, self._solver.direct.order)
        cost = product(weights, self._costs)
        anchor = np.zeros(policy.size) if self._anchor is None else self._anchor
        h = chain.anchored_bias(cost[rows], anchor)
        apart = chain.regimes() if self._anchor is None else None
        if apart is not None:
            values = self._values(cost, self._drift(h))
            h += best_level(values.ravel(), self._drift(apart).ravel()) * apart
        self._anchor = h
        return h

    def _drift(self, h: Floats) -> Floats:
        """Return P h - h for all pairs (S, A), on all cores if there are many states."""
        P, nothing, cores = self._P, np.zeros(h.size), os.cpu_count() or 1
        if h.size < MULTIGRID_STATES or cores == 1 or self.joins_regimes:
            moved: Floats = double_double.drift_sparse(P.indptr, P.indices, P.data, h, nothing)
            return moved
        result = np.empty((h.size, (P.indptr.size - 1) // h.size))
        ends = np.linspace(0, h.size, cores + 1).astype(np.int64)

        def part(k: int) -> None:
            double_double.drift_of_states(P.indptr, P.indices, P.data, h, nothing, ends[k], ends[k + 1], result)

        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(part, range(cores)))
        return result


class RefinedSteps(DenseSteps):
    """Policy steps in double-double precision, dense, for nearly decomposable chains. Ten times slower."""

    # The first solution has an error of about 1e-16 of the largest bias; each refinement reduces it by that factor.
    REFINEMENTS = 3

    def evaluate(
        self, policy: Ints, reference: int, within: float = 0.0, guess: Unichain | None = None
    ) -> Unichain | None:
        """Solve the chain by GTH elimination and iterative refinement."""
        reference, gains, high, low, stationary, slowest = double_double.refined_unichain(
            self._P, self._first_pair + policy, self._costs, reference, self.REFINEMENTS
        )
        if reference < 0:
            return None
        if not (np.isfinite(gains).all() and np.isfinite(high).all()):
            raise SolverError(FALLS_APART)
        return Unichain(gains, high, stationary, reference, slowest, low)

    def improve(
        self, policy: Ints, chain: Unichain, weights: Floats, tolerance: float, ahead: float | None = None
    ) -> Improved:
        """Improve with a tolerance relative to the compared values, since rounding of the biases is negligible."""
        low = np.zeros_like(chain.biases) if chain.low_biases is None else chain.low_biases
        high, rest = double_double.combine(weights, chain.biases, low)
        moved = double_double.drift_dense(self._P, high, rest)
        values = self._values(product(weights, self._costs), moved)
        current = values[np.arange(policy.size), policy]
        return _switched(values, policy, tolerance * np.maximum(1.0, np.abs(current)))


def _switched(values: Floats, policy: Ints, tolerance: Floats) -> Improved:
    """Switch to the best action wherever it gains more than the tolerance (S,)."""
    states = np.arange(policy.size)
    best = values.argmin(axis=1)
    lowest = values[states, best]
    switch = values[states, policy] - lowest > tolerance
    return Improved(float(lowest.min()), np.where(switch, best, policy) if switch.any() else None)
