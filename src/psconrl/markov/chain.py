r"""A Markov chain: what one policy makes of a model, dense or in CSR form.

It is asked for its closed classes, for gains and biases where it has a single one, and for what it collects on the way
out of a set of states.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from psconrl.arrays import Bools, Floats, Ints, Matrix, in_32_bits
from psconrl.errors import SolverError
from psconrl.kernels import closed_classes, finite_occupancy, graph, successors
from psconrl.markov.sparse_solver import solve_sparse
from psconrl.markov.transient_costs import collect_onward
from psconrl.markov.transient_visits import visit_onward
from psconrl.markov.unichain import FALLS_APART, Unichain, collect_dense, solve_chain
from psconrl.model.transition import Transition
from psconrl.products import product


class SolvedClasses(NamedTuple):
    """All closed classes of a chain, for q costs."""

    number: int
    of_state: Ints  # (S,) the number of the class, or -1
    gains: Floats  # (q, K)
    biases: Floats  # (q, S) of stationary mean zero in every class; zero outside of them
    distribution: Floats  # (S,) the stationary law of the class of the state


class Chain(ABC):
    """The law of the next state for every state, (S, S)."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.matrix.shape[0])

    def __matmul__(self, h: Floats) -> Floats:
        """The expected value of h (S,) or (S, k) after one step."""
        return np.asarray(product(self.matrix, h))

    def closed_classes(self, least: float = 0.0) -> list[Ints]:
        """The closed communicating classes, each as a sorted array of states, by their first states.

        Moves that are no likelier than ``least`` count as impossible.

        >>> chain = DenseChain(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
        >>> [states.tolist() for states in chain.closed_classes()]
        [[1], [2]]
        """
        count, label = self.labelled_classes(least)
        start, members = successors.grouped(label, count)
        return [members[start[k] : start[k + 1]] for k in range(start.size - 1)]

    def labelled_classes(self, least: float = 0.0) -> tuple[int, Ints]:
        """How many closed classes there are, and the number of every state's, or -1."""
        return self._closed_components(least)

    def solve_classes(self, costs: Floats) -> "SolvedClasses":
        """Gains, biases and stationary laws of all closed classes, from costs (q, S)."""
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
        """Gains, biases and stationary law on one of the closed classes, from costs (q, S)."""
        part = self.restrict(states).solve(np.ascontiguousarray(costs[:, states]))
        if part is None:  # a closed class is irreducible, but products of its probabilities may vanish
            raise SolverError(FALLS_APART)
        return part

    def collect(self, states: Ints, per_step: Floats) -> Floats:
        """What is collected (n, q) from each of n states that are surely left, until they are left.

        ``per_step`` (n, q) is what one step from each brings.
        """
        outside = np.ones(self.n_states)
        outside[states] = 0.0
        return self.restrict(states)._collect(per_step, (self @ outside)[states])

    def visits(self, states: Ints, initial: Floats) -> Floats:
        """How often each of n states that are surely left is visited, (n,), from an initial law (S,) on all states."""
        outside = np.ones(self.n_states)
        outside[states] = 0.0
        return visit_onward(csr_array(self.restrict(states).matrix), initial[states], (self @ outside)[states])

    @abstractmethod
    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """The share of the next rounds that is spent in every state, (S,), from one of them.

        All shares together may be off by half the tolerance.

        >>> DenseChain(np.array([[0.0, 1.0], [0.0, 1.0]])).time_in_states(0, 10).tolist()
        [0.1, 0.9]
        """

    @abstractmethod
    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """Gains, biases and stationary law for costs (q, S); None if there are two closed classes."""

    @abstractmethod
    def restrict(self, states: Ints) -> "Chain":
        """The moves among some states."""

    @abstractmethod
    def toarray(self) -> Floats:
        """As a plain array (S, S)."""

    @abstractmethod
    def _closed_components(self, least: float) -> tuple[int, Ints]: ...

    @abstractmethod
    def _collect(self, per_step: Floats, exits: Floats) -> Floats: ...

    def _solve_small_classes(
        self, costs: Floats, start: Ints, members: Ints, gains: Floats, biases: Floats, distribution: Floats
    ) -> Bools:
        """Which classes are solved at once, (K,)."""
        return np.zeros(start.size - 1, dtype=bool)


class DenseChain(Chain):
    """Every entry is stored."""

    def __init__(self, matrix: Floats) -> None:
        super().__init__(np.ascontiguousarray(matrix))

    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """By elimination without subtractions."""
        return solve_chain(self.matrix, costs, reference)

    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """By products with the matrix."""
        return np.asarray(finite_occupancy.time_in_states_dense(self.matrix, state, rounds, tol))

    def restrict(self, states: Ints) -> Chain:
        """The moves among some states."""
        if states.size == self.n_states:
            return self
        return DenseChain(self.matrix[np.ix_(states, states)])

    def toarray(self) -> Floats:
        """The matrix."""
        matrix: Floats = self.matrix
        return matrix

    def _closed_components(self, least: float) -> tuple[int, Ints]:
        count, label = graph.closed_classes_of_dense(self.matrix, least)
        return count, label

    def _collect(self, per_step: Floats, exits: Floats) -> Floats:
        return collect_dense(self.matrix, per_step, exits)


class SparseChain(Chain):
    """What is possible is stored, row by row."""

    def __init__(self, matrix: csr_array) -> None:
        super().__init__(in_32_bits(matrix))

    def solve(self, costs: Floats, reference: int = 0) -> Unichain | None:
        """By BiCGSTAB or a sparse LU, which choose a reference themselves."""
        return solve_sparse(self.matrix, costs)

    def time_in_states(self, state: int, rounds: int, tol: float = 0.0) -> Floats:
        """By products with the matrix."""
        P = self.matrix
        return np.asarray(finite_occupancy.time_in_states_sparse(P.indptr, P.indices, P.data, state, rounds, tol))

    def restrict(self, states: Ints) -> Chain:
        """The moves among some states."""
        if states.size == self.n_states:
            return self
        return SparseChain(csr_array(self.matrix[states][:, states]))

    def toarray(self) -> Floats:
        """As a plain array (S, S)."""
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
        done: Bools = closed_classes.solve_small_classes(
            P.indptr, P.indices, P.data, np.ascontiguousarray(costs), start, members, gains, biases, distribution
        )
        return done


def chain_of(P: Transition, policy: Any) -> Chain:
    """The chain of a policy: an action for every state, (S,), or their probabilities, (S, A)."""
    matrix = P.under(policy)
    return SparseChain(matrix) if issparse(matrix) else DenseChain(matrix)
