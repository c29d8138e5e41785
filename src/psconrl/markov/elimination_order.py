r"""Elimination order and fill-in of a sparse chain, computed once for all chains with the same sparsity pattern.

The order is a nested dissection (George 1973): a level of a breadth-first search that separates the states into two
halves is eliminated last, and each half is dissected in the same way. The fill-in follows from the elimination tree
(Liu 1990). It is small if states are roughly neighbours on a grid, as in queues and wards. If states are connected at
random, almost everything fills in, and no order is worth using.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Ints, Places
from psconrl.kernels.graphs import nested_dissection

Positions = NDArray[np.uint32]

HUB_SHARE = 0.1  # of all states, of which a hub has more neighbours
FEW_NEIGHBOURS = 100  # no hub has so few


class Order(NamedTuple):
    """An elimination order, and the sparsity pattern of the rows of the eliminated chain by position."""

    position: Ints  # (S,) position of each state
    state: Ints  # (S,) state at each position
    lower: Ints  # (S + 1,) row starts in ``before``
    before: Positions  # earlier positions with an entry in the row, ascending
    upper: Ints  # (S + 1,) row starts in ``after``
    after: Positions  # later positions with an entry in the row, ascending
    runs: Positions  # (S + 1,) for each row, where its runs of consecutive positions start in ``first``
    first: Positions  # first position of each run
    begins: Positions  # where each run starts in ``after``, followed by the end
    work: float  # number of multiplications in an elimination


_NONE, _NO_ENTRIES = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
NO_ORDER = Order(_NONE, _NONE, _NONE, _NO_ENTRIES, _NONE, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, np.inf)


def order_for(indptr: Places, indices: Places, n_states: int, most: float) -> Order:
    """Return an order for the chains of a graph of pairs, or ``NO_ORDER`` if its work exceeds ``most``.

    The graph has the format of ``kernels.graphs.graph``.
    """
    first, near = nested_dissection.neighbours(indptr, indices, n_states)
    return _filled_in(first, near, _dissected_without(hubs(first), first, near), most)


class OutwardOrders:
    """Orders from the farthest state to a reference and the other way round, for the chains of a graph of pairs.

    Farness is the number of steps from the reference. Hubs, which are neighbours of many states, do not shorten it, and
    come last: a state to which all others may be reset.
    """

    def __init__(self, indptr: Places, indices: Places, n_states: int, most: float) -> None:
        self._graph, self._most = (indptr, indices), most
        self._first, self._near = nested_dissection.neighbours(indptr, indices, n_states)
        self._hubs = hubs(self._first)
        self._towards: tuple[int, Order] = (-1, NO_ORDER)
        self._away: tuple[int, Order] = (-1, NO_ORDER)

    def towards(self, reference: int) -> Order:
        """Return the order that ends in a reference, or ``NO_ORDER`` if its work exceeds what was allowed."""
        if self._towards[0] != reference:
            self._towards = (reference, self._filled_in(self._from_the_farthest(reference)))
        return self._towards[1]

    def away_from(self, reference: int) -> Order:
        """Return the order that begins next to a reference, which comes last; ``NO_ORDER`` as for ``towards``."""
        if self._away[0] != reference:
            state = self._from_the_farthest(reference)
            last = self._hubs[state] | (state == reference)
            self._away = (reference, self._filled_in(np.concatenate([state[~last][::-1], state[last]])))
        return self._away[1]

    def _from_the_farthest(self, reference: int) -> Ints:
        return np.asarray(nested_dissection.outward(*self._graph, reference, self._hubs))

    def _filled_in(self, state: Ints) -> Order:
        return _filled_in(self._first, self._near, state, self._most)


def _dissected_without(last: Bools, first: Places, near: Places) -> Ints:
    """Return a nested dissection of a symmetric graph without some states, which come last."""
    if not last.any():
        return np.asarray(nested_dissection.dissected(first, near))
    kept = ~(last[near] | np.repeat(last, np.diff(first)))
    fewer = np.append(0, np.cumsum(kept))[first].astype(first.dtype)
    state = np.asarray(nested_dissection.dissected(fewer, near[kept]))
    return np.concatenate([state[~last[state]], state[last[state]]])


def _filled_in(first: Places, near: Places, state: Ints, most: float) -> Order:
    """Return the order of the given states in a symmetric graph with its fill-in."""
    n_states = state.size
    position = np.empty_like(state)
    position[state] = np.arange(n_states)
    parent, rows, columns, work = nested_dissection.tree(first, near, state, position)
    if not work <= most:
        return NO_ORDER
    lower, upper = np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(columns))
    before, after = nested_dissection.filled(first, near, state, position, parent, lower, upper)
    return order_of_rows(position, state, lower, before, upper, after, work)


def order_of_rows(
    position: Ints, state: Ints, lower: Ints, before: Positions, upper: Ints, after: Positions, work: float
) -> Order:
    """Return an order with the given rows."""
    runs, begins = _stretches(upper, after)
    return Order(position, state, lower, before, upper, after, runs, after[begins[:-1]], begins, work)


def hubs(first: Places) -> Bools:
    """Return which states (S,) of a symmetric graph are neighbours of a large share of all states."""
    return np.diff(first) > max(FEW_NEIGHBOURS, HUB_SHARE * (first.size - 1))


def _stretches(upper: Ints, after: Positions) -> tuple[Positions, Positions]:
    """Return where runs of consecutive positions start: for each row among the runs, and for each run in ``after``."""
    begins = np.ones(after.size, dtype=bool)
    begins[1:] = np.diff(after) != 1
    begins[upper[:-1][np.diff(upper) > 0]] = True
    runs = np.append(0, np.cumsum(begins))[upper]
    return runs.astype(np.uint32), np.append(np.flatnonzero(begins), after.size).astype(np.uint32)
