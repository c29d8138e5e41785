"""The quotient of a model by its end components: moves between nodes, and the way back from nodes to states."""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.graphs.attractor import attract_sparse
from psconrl.kernels.graphs.moves import moves_away
from psconrl.markov.structure import EndComponents
from psconrl.model.transition import Transition
from psconrl.planning.components.optimal_stopping import STAY, Moves
from psconrl.planning.tolerances import MORE_MOVES


class Quotient:
    """The quotient of a model; its nodes are the end components, by number, and then the transient states.

    If ``states`` (S,) is given, states outside it are unreachable and have no moves.
    """

    def __init__(self, P: Transition, available: Bools, parts: EndComponents, states: Bools | None = None) -> None:
        A = available.shape[1]
        self.parts, self.n_actions = parts, A
        transient = parts.of_state < 0
        self.node = np.where(transient, parts.number + np.cumsum(transient) - 1, parts.of_state)
        leaving = available & ~parts.inside
        self._settled = np.arange(parts.number + int(transient.sum())) < parts.number  # nodes in which a path may stay
        if states is not None:
            leaving &= states[:, None]
            self._settled[self.node[~states]] = True
        pairs = np.flatnonzero(leaving.ravel())
        matrix = P.csr()
        distribution = moves_away(matrix.indptr, matrix.indices, matrix.data, pairs, self.node, A)
        shape = (pairs.size, self._settled.size)
        self.moves = Moves(
            csr_array((distribution[2], distribution[1], distribution[0]), shape=shape), self.node[pairs // A]
        )
        self.pairs = pairs[self.moves.order]  # the pair of every move

    def of_nodes(self, values: Floats) -> Floats:
        """Sum masses of states (S,) over nodes (N,)."""
        return np.bincount(self.node, values, minlength=self.moves.n_nodes).astype(np.float64)

    def moves_from(self) -> Floats:
        """Bound the expected number of moves from each node (N,) over all policies; raise ``SolverError`` if unproven.

        The factor of two leaves half a move for rounding.
        """
        return bounded_moves(self.moves, self._settled)

    def most_moves(self) -> float:
        """Bound the expected number of moves over all policies; inf if not proven."""
        return most_moves(self.moves, self._settled)

    def loss(self, gains: Floats) -> float:
        """Bound the total mean decrease, until the end, of values of the nodes (N,)."""
        fall = self.moves.largest_fall(gains)
        return 0.0 if fall == 0.0 else fall * self.most_moves()

    def policy(self, choice: Ints, inside: Ints, P: Transition) -> Ints:
        """Return the actions (S,): ``inside`` where a choice stays, elsewhere driving to the state it leaves from."""
        policy = inside.copy()
        moving = np.flatnonzero(choice != STAY)
        pairs = self.pairs[choice[moving]]
        policy[pairs // self.n_actions] = pairs % self.n_actions
        goal = np.full(self.parts.number, -1)
        left = moving < self.parts.number
        goal[moving[left]] = pairs[left] // self.n_actions
        if left.any():
            matrix = P.csr()
            going = self.parts.inside & (np.append(goal, -1)[self.parts.of_state] >= 0)[:, None]
            goals = np.zeros(policy.size, dtype=bool)
            goals[goal[goal >= 0]] = True
            policy, _ = attract_sparse(matrix.indptr, matrix.indices, matrix.data, going, goals, policy, 0.0, False)
        return policy


def bounded_moves(moves: Moves, settled: Bools) -> Floats:
    """Bound the expected number of moves from each node (N,) over all policies that may stay in settled nodes."""
    return np.asarray(-2.0 * moves.cheapest(np.where(settled, 0.0, np.inf), -1.0, MORE_MOVES).values)


def most_moves(moves: Moves, settled: Bools) -> float:
    """Bound the expected number of moves over all policies that may stay in settled nodes; inf if not proven."""
    try:
        return float(bounded_moves(moves, settled).max(initial=0.0))
    except SolverError:
        return float("inf")
