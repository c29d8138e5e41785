r"""Transitions: one matrix :math:`P(s'|s,a)` of shape (S*A, S), row ``s * A + a``, stored dense or in CSR form.

Planning, evaluation and search use the interface below, independently of the storage format; the numerics behind it are
the same. (Only ``array`` depends on the format: for methods that are compiled for plain arrays.) True models, posterior
samples and the models inside a confidence set share this type.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from psconrl.base.arrays import Bools, Floats, Ints, Matrix, Places, in_32_bits
from psconrl.base.sizes import EMPTY_DENSE_STATES, MOSTLY_ZEROS
from psconrl.errors import ModelError
from psconrl.kernels.chains import double_double, policy_chain
from psconrl.kernels.graphs import attractor, graph, successors
from psconrl.kernels.search.transitions import Rows
from psconrl.model.matrices import chosen_rows, mixed_sparse_rows, restarting, without_unlikely
from psconrl.model.matrix_product import product


class Transition(ABC):
    """Distribution of the next state for every state and action.

    >>> P = Transition.of(np.array([[1.0, 0.0], [0.2, 0.8], [0.5, 0.5], [1.0, 0.0]]))
    >>> P.n_states, P.n_actions, (P @ np.array([0.0, 10.0])).tolist()
    (2, 2, [0.0, 8.0, 5.0, 0.0])
    >>> P.drift(np.array([0.0, 10.0])).tolist()
    [[0.0, 8.0], [-5.0, -10.0]]
    """

    __array_ufunc__ = None  # so that ``mass @ P`` calls __rmatmul__ instead of converting P to an array
    is_sparse: ClassVar[bool]
    eliminates: ClassVar[bool]  # whether all chains are solved by elimination; otherwise iteratively, where that works
    mass_error: ClassVar[float]  # rounding residue of a stationary mass that is zero

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.n_states: int = matrix.shape[1]
        self.n_actions: int = matrix.shape[0] // matrix.shape[1]
        self.restarts_in: int | None = None  # a state that every step may lead to: one closed class for every policy
        self._all_communicate: bool | None = None

    @staticmethod
    def of(matrix: Any) -> "Transition":
        """Wrap an array or a CSR matrix (S*A, S) that is known to be valid; ``CMDP`` checks a user's."""
        if isinstance(matrix, Transition):
            return matrix
        shape = np.shape(matrix)
        if len(shape) != 2 or not shape[1] or not shape[0] or shape[0] % shape[1]:
            raise ModelError(f"transitions must be a matrix of shape (S*A, S); got {shape}")
        return SparseTransition(csr_array(matrix)) if issparse(matrix) else DenseTransition(np.asarray(matrix))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (S*A, S)."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def __matmul__(self, h: Floats) -> Floats:
        """Return the expected value of h, of shape (S,) or (S, k), after one step from every pair."""
        return np.asarray(product(self.matrix, h))

    def __rmatmul__(self, mass: Floats) -> Floats:
        """Return the distribution (S,) of a mass (S*A,) on the pairs after one step."""
        return np.asarray(product(mass, self.matrix))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.toarray(), dtype=dtype) if dtype is not None or copy else self.toarray()

    def drift(self, high: Floats, low: Floats | None = None) -> Floats:
        r"""Return the expected change :math:`\sum_{s'} P(s'|s,a) (h(s') - h(s))` of a potential h = high + low, (S, A).

        It is a compensated sum over differences: h may be huge where it is hard to leave, and P h - h(s) would lose the
        significant digits there.
        """
        high = np.ascontiguousarray(high, dtype=np.float64)
        low = np.zeros(high.size) if low is None else np.ascontiguousarray(low, dtype=np.float64)
        return self._drift(high, low)

    @property
    def communicates(self) -> bool:
        """True if every state can be reached from every other under some policy."""
        if self._all_communicate is None:  # a cached property would take longer than the search in a small sample
            self._all_communicate = self._communicates()
        return self._all_communicate

    @cached_property
    def support(self) -> tuple[Ints, Ints]:
        """Graph of possible transitions (indptr, indices) of the pairs, in CSR form; see ``kernels.graphs.graph``."""
        return self._support()

    def reachable_from(self, start: Bools) -> Bools:
        """Return a mask (S,) of the states that some policy reaches from the start."""
        indptr, indices = self.support
        seen: Bools = successors.reached(indptr, indices, start)
        return seen

    def attract(self, available: Bools, inside: Bools, policy: Ints, least: float = 0.0) -> tuple[Ints, Bools]:
        """Return the policy (S,), changed outside a set to lead there, and a mask (S,) of the states that can."""
        P, how = self.matrix, (available, inside, policy, least, True)
        if self.is_sparse:
            changed, grown = attractor.attract_sparse(P.indptr, P.indices, P.data, *how)
        else:
            changed, grown = attractor.attract_dense(P, *how)
        return changed, grown

    def pairs_of(self, states: Ints) -> Ints:
        """Return the rows of all actions in the given states, in order."""
        A = self.n_actions
        return np.asarray((states[:, None] * A + np.arange(A)).ravel())

    @abstractmethod
    def rows(self, pairs: Ints) -> Floats:
        """Return the next-state distributions of the given pairs as a plain array (n, S)."""

    @abstractmethod
    def under(self, policy: Any) -> Matrix:
        """Return the transition matrix (S, S) of a policy, given as one action per state (S,) or as (S, A)."""

    @abstractmethod
    def restrict(self, states: Ints) -> "Transition":
        """Return the transitions among the given states; for a closed set, they are those of the model on it."""

    @abstractmethod
    def restarting(self, state: int, probability: float) -> "Transition":
        """Return the transitions in which every step moves, with this probability, to one state instead."""

    def without(self, least: float, rows: Bools | None = None, columns: Bools | None = None) -> "Transition":
        """Return the transitions without moves of probability below ``least``, in some rows and columns or in all."""
        return Transition.of(without_unlikely(self.matrix, least, rows, columns))

    @abstractmethod
    def dense_up_to(self, n_states: int) -> "Transition":
        """Return the transitions, dense if there are at most this many states: compiled loops are faster there."""

    def sparse_if_empty(self) -> "Transition":
        """Return the transitions, sparse if there are many states and mostly zeros."""
        return self

    @property
    def repeated_pattern(self) -> tuple[Places, Places] | None:
        """The sparsity pattern (indptr, indices) if other transitions with the same one will follow, else None."""
        return None

    @abstractmethod
    def for_search(self, order: Any, products: int, off: float) -> Floats | Rows | None:
        """Return the transitions in the format of the compiled search, or None if they need an elimination order.

        ``products``: number of Krylov steps for a chain. ``off``: error of gains that they may leave.
        """

    @property
    @abstractmethod
    def array(self) -> Floats | None:
        """The matrix if it is stored as a plain array, else None: for methods compiled for arrays only."""

    @property
    @abstractmethod
    def n_possible(self) -> int:
        """Number of possible transitions."""

    @abstractmethod
    def csr(self) -> csr_array:
        """Return the transitions as a sparse matrix, for libraries that need one."""

    @abstractmethod
    def toarray(self) -> Floats:
        """Return the transitions as a plain array (S*A, S)."""

    @abstractmethod
    def _drift(self, high: Floats, low: Floats) -> Floats: ...

    @abstractmethod
    def _communicates(self) -> bool: ...

    @abstractmethod
    def _support(self) -> tuple[Ints, Ints]: ...

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"Transition({self.n_states} states, {self.n_actions} actions, {kind})"


class DenseTransition(Transition):
    """Transitions stored as a dense array."""

    is_sparse = False
    eliminates = True
    mass_error = 0.0  # GTH elimination: a mass is exact to its last digits, or zero

    def __init__(self, matrix: Floats) -> None:
        super().__init__(np.ascontiguousarray(matrix, dtype=np.float64))

    @property
    def array(self) -> Floats:
        """The matrix."""
        matrix: Floats = self.matrix
        return matrix

    @property
    def n_possible(self) -> int:
        """Number of possible transitions."""
        return int(np.count_nonzero(self.array))

    def csr(self) -> csr_array:
        """Return the transitions as a sparse matrix."""
        return csr_array(self.array)

    def toarray(self) -> Floats:
        """Return the matrix."""
        return self.array

    def rows(self, pairs: Ints) -> Floats:
        """Return the next-state distributions of the given pairs."""
        return self.array[pairs]

    def under(self, policy: Any) -> Floats:
        """Return the transition matrix of the chain of a policy."""
        S, A = self.n_states, self.n_actions
        if policy.ndim == 1:
            return np.asarray(self.array[np.arange(0, S * A, A) + policy])
        mixed: Floats = policy_chain.mixed_rows(self.array, policy)
        return mixed

    def restrict(self, states: Ints) -> Transition:
        """Return the transitions among the given states."""
        return DenseTransition(np.ascontiguousarray(self.array[np.ix_(self.pairs_of(states), states)]))

    def restarting(self, state: int, probability: float) -> Transition:
        """Return the transitions in which every step moves, with this probability, to one state instead."""
        P = (1.0 - probability) * self.array
        P[:, state] += probability
        new = DenseTransition(P)
        new.restarts_in = state
        return new

    def dense_up_to(self, n_states: int) -> Transition:
        """Return the transitions unchanged."""
        return self

    def sparse_if_empty(self) -> Transition:
        """Return the transitions, sparse if there are many states and mostly zeros."""
        if self.n_states <= EMPTY_DENSE_STATES or np.count_nonzero(self.array) > MOSTLY_ZEROS * self.array.size:
            return self
        return SparseTransition(csr_array(self.array))

    def for_search(self, order: Any, products: int, off: float) -> Floats:
        """Return the matrix."""
        return self.array

    def _drift(self, high: Floats, low: Floats) -> Floats:
        drift: Floats = double_double.drift_dense(self.array, high, low)
        return drift

    def _communicates(self) -> bool:
        return bool(successors.all_communicate(self.array, self.n_actions))

    def _support(self) -> tuple[Ints, Ints]:
        indptr, indices = successors.support_of_dense(self.array, 0.0)
        return indptr, indices


class SparseTransition(Transition):
    """Transitions stored in CSR form.

    ``repeats``: True if other transitions with the same sparsity pattern will follow, such as samples on a known
    support.
    """

    is_sparse = True
    eliminates = False
    repeats = False
    mass_error = 1e-13  # iterative solutions and factorisations subtract

    def __init__(self, matrix: csr_array) -> None:
        super().__init__(in_32_bits(matrix))

    @property
    def array(self) -> None:
        """None: there is no plain array."""
        return None

    @property
    def n_possible(self) -> int:
        """Number of possible transitions."""
        return int(self.matrix.nnz)

    def csr(self) -> csr_array:
        """Return the matrix."""
        return self.matrix

    def toarray(self) -> Floats:
        """Return the transitions as a plain array (S*A, S)."""
        return np.asarray(self.matrix.toarray())

    def rows(self, pairs: Ints) -> Floats:
        """Return the next-state distributions of the given pairs."""
        return np.asarray(self.matrix[pairs].toarray())

    def under(self, policy: Any) -> csr_array:
        """Return the transition matrix of the chain of a policy."""
        if policy.ndim == 1:
            S, A = self.n_states, self.n_actions
            return chosen_rows(self.matrix, np.arange(0, S * A, A) + policy)
        return mixed_sparse_rows(self.matrix, policy)

    def restrict(self, states: Ints) -> Transition:
        """Return the transitions among the given states."""
        return SparseTransition(csr_array(self.matrix[self.pairs_of(states)][:, states]))

    def restarting(self, state: int, probability: float) -> Transition:
        """Return the transitions in which every step moves, with this probability, to one state instead."""
        return RestartingTransition(self, state, probability)

    def dense_up_to(self, n_states: int) -> Transition:
        """Return the transitions, as an array if there are at most this many states."""
        return DenseTransition(self.toarray()) if self.n_states <= n_states else self

    @property
    def repeated_pattern(self) -> tuple[Places, Places] | None:
        """The sparsity pattern (indptr, indices) if ``repeats``, else None."""
        return (self.matrix.indptr, self.matrix.indices) if self.repeats else None

    def for_search(self, order: Any, products: int, off: float) -> Rows | None:
        """Return the rows of the matrix with the order; None without one."""
        P = self.matrix
        return None if order is None else Rows(P.indptr, P.indices, P.data, 0, 0.0, order, products, off)

    def _drift(self, high: Floats, low: Floats) -> Floats:
        P = self.matrix
        drift: Floats = double_double.drift_sparse(P.indptr, P.indices, P.data, high, low)
        return drift

    def _communicates(self) -> bool:
        indptr, indices = self.support
        return bool(graph.strong_components(indptr, indices, self.n_states)[0] == 1)

    def _support(self) -> tuple[Ints, Ints]:
        P = self.matrix
        indptr, indices = successors.support_of_sparse(P.indptr, P.indices, P.data, self.n_states, 0.0)
        return indptr, indices


class RestartingTransition(SparseTransition):
    """Sparse transitions that restart in a state with a given probability at every step; assembled on demand."""

    def __init__(self, base: SparseTransition, state: int, probability: float) -> None:
        self.base, self.state, self.probability = base, state, probability
        self.restarts_in = state
        self.n_states, self.n_actions = base.n_states, base.n_actions
        self._all_communicate = None

    @cached_property
    def matrix(self) -> csr_array:
        """All transitions, including the restarts."""
        return restarting(self.base.matrix, self.state, self.probability)

    def toarray(self) -> Floats:
        """Return the transitions as a plain array (S*A, S)."""
        array = (1.0 - self.probability) * self.base.toarray()
        array[:, self.state] += self.probability
        return array

    @property
    def repeated_pattern(self) -> tuple[Places, Places] | None:
        """The sparsity pattern of the transitions without restarts."""
        return (self.base.matrix.indptr, self.base.matrix.indices) if self.base.repeats else None

    def for_search(self, order: Any, products: int, off: float) -> Rows | None:
        """Return the rows without restarts, and the restarts apart."""
        if order is None:
            return None
        P = self.base.matrix
        return Rows(P.indptr, P.indices, P.data, self.state, self.probability, order, products, off)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (S*A, S)."""
        return self.base.shape

    @property
    def n_possible(self) -> int:
        """Number of possible transitions; the restarts are not counted."""
        return self.base.n_possible
