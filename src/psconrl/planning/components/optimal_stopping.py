r"""Moves between end components and transient states, and the optimal choice of the component in which to stay.

Under any policy a path makes finitely many moves before it stays in one end component. Let every component be one node,
and every pair that may leave its node a move, with the distribution of its successors outside the node. Then

.. math:: x(k) = \min\Big(\text{stay}(k),\; r + \min_{\text{moves of } k} \sum_l P(l|\text{move})\, x(l)\Big)

has one solution: no set of moves cycles forever, since it would be part of an end component. Values are swept backwards
from the ends, which solves all nodes that are not on a cycle. Policy iteration solves the rest.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.graphs import graph, successors
from psconrl.kernels.graphs.moves import improved, largest_fall, swept
from psconrl.markov.transient_costs import collect_onward
from psconrl.markov.transient_visits import visit_onward
from psconrl.model.matrices import chosen_rows
from psconrl.model.matrix_product import product

MAX_ROUNDS = 1000  # of policy iteration
MOVE_SWEEPS = 20
STAY = -1


class Ending(NamedTuple):
    """The value of every node, and the choice that attains it."""

    values: Floats  # (N,)
    choice: Ints  # (N,) a move, or STAY


class Moves:
    """The moves of all nodes. ``distribution`` (moves, N) is that of the next node, never the source itself."""

    def __init__(self, distribution: csr_array, source: Ints) -> None:
        self.n_nodes = distribution.shape[1]
        self.order = np.argsort(source, kind="stable")  # indices of the moves as they were given
        self.distribution = chosen_rows(distribution, self.order)
        self.source = source[self.order]
        self._first = np.searchsorted(self.source, np.arange(self.n_nodes + 1))
        count, label = graph.strong_components(
            self.distribution.indptr[self._first], self.distribution.indices, self.n_nodes
        )
        self._backwards = successors.grouped(label, count)[1]  # every node after its successors

    def cheapest(self, stay: Floats, per_move: float, tolerance: float) -> Ending:
        """Minimise the cost of ending; ``stay`` (N,) is the cost of staying in each node, inf where that is impossible.

        A change of the policy must gain more than the tolerance, relative to the value if that exceeds one.
        """
        distribution, first = self.distribution, self._first
        rows = distribution.indptr, distribution.indices, distribution.data
        choice = swept(*rows, first, self._backwards, stay, per_move, MOVE_SWEEPS)
        if (choice < STAY).any():
            raise SolverError("a state can neither stay nor move on")
        for _ in range(MAX_ROUNDS):
            x = self.collected(choice, np.where(choice == STAY, stay, 0.0)[:, None], per_move)[:, 0]
            if not improved(
                distribution.indptr,
                distribution.indices,
                distribution.data,
                first,
                stay,
                per_move,
                tolerance,
                x,
                choice,
            ):
                return Ending(x, choice)
        raise SolverError("the choice among end components did not come to an end")

    def collected(self, choice: Ints, ends: Floats, per_move: float = 0.0) -> Floats:
        """Return the values (N, q) of all nodes under a choice of moves, given the values (N, q) of the ends."""
        x = np.array(ends, dtype=float)
        moving, W, rows, exits = self._chain(choice)
        if moving.size:
            x[moving] = 0.0
            x[moving] = collect_onward(W, per_move + product(rows, x), exits)
        return x

    def ends(self, choice: Ints, initial: Floats) -> Floats:
        """Return the probability (N,) that a path from an initial distribution (N,) ends in each node."""
        moving, W, rows, exits = self._chain(choice)
        share = np.where(choice == STAY, initial, 0.0)
        if moving.size:
            share += np.where(choice == STAY, product(visit_onward(W, initial[moving], exits), rows), 0.0)
        return np.asarray(share / share.sum())

    def largest_fall(self, values: Floats) -> float:
        """Return the largest mean decrease of the values in one move, rounding included; not negative."""
        distribution = self.distribution
        fall: float = largest_fall(distribution.indptr, distribution.indices, distribution.data, self.source, values)
        return fall

    def _chain(self, choice: Ints) -> tuple[Ints, csr_array, csr_array, Floats]:
        """Return the moving nodes, their moves among themselves and to all nodes, and probabilities to end at once."""
        moving = np.flatnonzero(choice != STAY)
        rows = chosen_rows(self.distribution, choice[moving])
        return moving, csr_array(rows[:, moving]), rows, product(rows, (choice == STAY).astype(float))
