"""A model with every end component as one node: the moves between them, and back from nodes to states."""

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.end_components import pairs_into
from psconrl.kernels.moves import lead, moves_away
from psconrl.markov.structure import EndComponents
from psconrl.model.transition import Transition
from psconrl.planning.components.moves import STAY, Moves
from psconrl.planning.tolerances import MORE_MOVES


class Quotient:
    """Nodes are the end components, by number, and then the transient states.

    Of ``states`` (S,) that are not met nothing moves, if it is said which are.
    """

    def __init__(self, P: Transition, available: Bools, parts: EndComponents, states: Bools | None = None) -> None:
        A = available.shape[1]
        self.parts, self.n_actions = parts, A
        passing = parts.of_state < 0
        self.node = np.where(passing, parts.number + np.cumsum(passing) - 1, parts.of_state)
        leaving = available & ~parts.inside
        self._settled = np.arange(parts.number + int(passing.sum())) < parts.number  # nodes in which a path may stay
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
        self.pairs = pairs[self.moves.order]  # of every move

    def of_nodes(self, values: Floats) -> Floats:
        """Masses of states (S,) as those of nodes (N,)."""
        return np.bincount(self.node, values, minlength=self.moves.n_nodes).astype(np.float64)

    def most_moves(self) -> float:
        """The largest expected number of moves, over all policies; inf if not proven."""
        return most_moves(self.moves, self._settled)

    def loss(self, gains: Floats) -> float:
        """By how much values of the nodes (N,) that may fall in some move can fall in mean until the end."""
        fall = self.moves.largest_fall(gains)
        return 0.0 if fall == 0.0 else fall * self.most_moves()

    def policy(self, choice: Ints, inside: Ints, P: Transition) -> Ints:
        """The actions (S,): ``inside`` in the components where a choice stays; else to the state it leaves from."""
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
            keep = going.ravel()
            before, sources = pairs_into(matrix.indptr, matrix.indices, policy.size, keep)
            lead(matrix.indptr, matrix.indices, matrix.data, before, sources, goal[goal >= 0], keep, policy)
        return policy


def most_moves(moves: Moves, settled: Bools) -> float:
    """The largest expected number of moves, over all policies that may stay in settled nodes; inf if not proven."""
    try:
        found = moves.cheapest(np.where(settled, 0.0, np.inf), -1.0, MORE_MOVES)
    except SolverError:
        return float("inf")
    # Half a move is left for rounding: the bound then still holds with twice as many.
    return -2.0 * float(found.values.min(initial=0.0))
