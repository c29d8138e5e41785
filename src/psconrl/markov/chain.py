r"""Markov chains induced by a policy, dense or in CSR form.

A chain reports its closed classes, its gains and biases if it has a single closed class, and the expected total cost
until it leaves a set of states.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints, Matrix, in_32_bits
from psconrl.errors import SolverError
from psconrl.kernels.chains import finite_occupancy, small_classes
from psconrl.kernels.graphs import graph, successors
from psconrl.markov.gain_bias import FALLS_APART, Unichain, collect_dense, solve_chain
from psconrl.markov.select_solver import select_solver
from psconrl.markov.transient_costs import collect_onward
from psconrl.markov.transient_visits import visit_onward
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition


class SolvedClasses(NamedTuple):
    """Solution on all closed classes of a chain, for q costs."""

    number: int
    of_state: Ints  # (S,) index of the closed class, or -1
    gains: Floats  # (q, K)
    biases: Floats  # (q, S) of stationary mean zero in every class; zero for transient states
    distribution: Floats  # (S,) stationary distribution of the state's class


class Chain(ABC):
    """Transition matrix (S, S) of a Markov chain: each row is the distribution of the next state."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.matrix.shape[0])

    def __matmul__(self, h: Floats) -> Floats:
        """Return the expected value of h, of shape (S,) or (S, k), after one step."""
        return np.asarray(product(self.matrix, h))

    def closed_classes(self, least: float = 0.0) -> list[Ints]:
        """Return the closed communicating classes, each as a sorted array of states, ordered by their first states.

        Transitions of probability at most ``least`` count as impossible.

        >>> chain = DenseChain(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
        >>> [states.tolist() for states in chain.closed_classes()]
        [[1], [2]]
        """
        count, label = self.labelled_classes(least)
        start, members = successors.grouped(label, count)
        return [members[start[k] : start[k + 1]] for k in range(start.size - 1)]

    def labelled_classes(self, least: float = 0.0) -> tuple[int, Ints]:
        """Return the number of closed classes and, for every state, the index of its class or -1."""
        return self._closed_components(least)

    def solve_classes(self, costs: Floats) -> "SolvedClasses":
        """Return gains, biases and stationary distributions of all closed classes, for costs (q, S)."""
        count, label = self.labelled_classes()
        start, members = successors.grouped(label, count)
        q, S = costs.shape
        gains, biases, distribution = np.zeros((q, count)), np.zeros((q, S)), np.zeros(S)
        done = self._solve_small_classes(costs, start, members, gains, biases, distribution)
        for k in np.flatnonzero(~done):
            states = members[start[k] : start[k + 1]]
            part = self.solve_class(costs, states)
            gains[:, k], biases[:, states], distribution[states] = part.gains, part.centred_biases(), part.stationary
        return SolvedClasses(count, label, gains, biases, distribution)

    def solve_class(self, costs: Floats, states: Ints) -> Unichain:
        """Return gains, biases and stationary distribution on one closed class, for costs (q, S)."""
        part = self.restrict(states).solve(np.ascontiguousarray(costs[:, states]))
        if part is None:  # a closed class is irreducible, but products of its probabilities may vanish
            raise SolverError(FALLS_APART)
        return part

    def collect(self, states: Ints, per_step: Floats) -> Floats:
        """Return the expected total cost (n, q) from each of n transient states until the chain leaves these states.

        ``per_step`` (n, q) is the cost of one step from each state.
        """
        outside = np.ones(self.n_states)
        outside[states] = 0.0
        return self.restrict(states)._collect(per_step, (self @ outside)[states])

    def visits(self, states: Ints, initial: Floats) -> Floats:
        """Return the expected number of visits (n,) to each of n transient states from an initial distribution (S,)."""
        outside = np.ones(self.n_states)
        outside[states] = 0.0
        return visit_onward(csr_array(self.restrict(states).matrix), initial[states], (self @ outside)[states])

    @abstractmethod
    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """Return the share of the next ``rounds`` steps spent in every state, (S,), starting from ``state``.

        The total error of the shares is at most half the tolerance.

        >>> DenseChain(np.array([[0.0, 1.0], [0.0, 1.0]])).time_in_states(0, 10).tolist()
        [0.1, 0.9]
        """

    @abstractmethod
    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """Return gains, biases and stationary distribution for costs (q, S); None if it has several closed classes."""

    @abstractmethod
    def restrict(self, states: Ints) -> "Chain":
        """Return the chain restricted to the given states (rows may sum to less than one)."""

    @abstractmethod
    def toarray(self) -> Floats:
        """Return the transition matrix as a plain array (S, S)."""

    @abstractmethod
    def _closed_components(self, least: float) -> tuple[int, Ints]: ...

    @abstractmethod
    def _collect(self, per_step: Floats, exits: Floats) -> Floats: ...

    def _solve_small_classes(
        self, costs: Floats, start: Ints, members: Ints, gains: Floats, biases: Floats, distribution: Floats
    ) -> Bools:
        """Solve small classes together; return a mask (K,) of the classes solved."""
        return np.zeros(start.size - 1, dtype=bool)


class DenseChain(Chain):
    """A chain stored as a dense matrix."""

    def __init__(self, matrix: Floats) -> None:
        super().__init__(np.ascontiguousarray(matrix))

    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """Solve the chain by GTH elimination."""
        return solve_chain(self.matrix, costs, reference)

    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """Return the shares by matrix-vector products."""
        return np.asarray(finite_occupancy.time_in_states_dense(self.matrix, state, rounds, tol))

    def restrict(self, states: Ints) -> Chain:
        """Return the chain restricted to the given states."""
        if states.size == self.n_states:
            return self
        return DenseChain(self.matrix[np.ix_(states, states)])

    def toarray(self) -> Floats:
        """Return the transition matrix."""
        matrix: Floats = self.matrix
        return matrix

    def _closed_components(self, least: float) -> tuple[int, Ints]:
        count, label = graph.closed_classes_of_dense(self.matrix, least)
        return count, label

    def _collect(self, per_step: Floats, exits: Floats) -> Floats:
        return collect_dense(self.matrix, per_step, exits)


class SparseChain(Chain):
    """A chain stored in CSR form."""

    def __init__(self, matrix: csr_array) -> None:
        super().__init__(in_32_bits(matrix))

    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """Solve the chain iteratively or by a sparse LU, which choose a reference state themselves.

        A small chain is solved by GTH elimination, which keeps all digits of rare states.
        """
        return select_solver(self.matrix, reference=reference).solve(self.matrix, costs)

    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """Return the shares by matrix-vector products."""
        P = self.matrix
        return np.asarray(finite_occupancy.time_in_states_sparse(P.indptr, P.indices, P.data, state, rounds, tol))

    def restrict(self, states: Ints) -> Chain:
        """Return the chain restricted to the given states."""
        if states.size == self.n_states:
            return self
        return SparseChain(csr_array(self.matrix[states][:, states]))

    def toarray(self) -> Floats:
        """Return the transition matrix as a plain array (S, S)."""
        return np.asarray(self.matrix.toarray())

    def _closed_components(self, least: float) -> tuple[int, Ints]:
        P = self.matrix
        count, label = graph.closed_classes_of_sparse(P.indptr, P.indices, P.data, least)
        return count, label

    def _collect(self, per_step: Floats, exits: Floats) -> Floats:
        return collect_onward(self.matrix, per_step, exits)

    def _solve_small_classes(
        self, costs: Floats, start: Ints, members: Ints, gains: Floats, biases: Floats, distribution: Floats
    ) -> Bools:
        P = self.matrix
        done: Bools = small_classes.solve_small_classes(
            P.indptr, P.indices, P.data, np.ascontiguousarray(costs), start, members, gains, biases, distribution
        )
        return done


def chain_of(P: Transition, policy: Any) -> Chain:
    """Return the chain of a policy, given as one action per state (S,) or as action probabilities (S, A)."""
    matrix = P.under(policy)
    return DenseChain(matrix) if P.eliminates else SparseChain(matrix)
