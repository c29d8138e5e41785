r"""The order in which the states of a sparse chain are eliminated, and what fills in: once for all chains of a pattern.

Nested dissection (George 1973): a level of a breadth-first search that cuts the states in two goes last, and the same
again for either half. What fills in follows from the elimination tree (Liu 1990). Where states are nearly neighbours on
a grid, as in queues and wards, little does; where they are connected at random, nearly everything, and there is no
order worth having.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Ints, Places
from psconrl.kernels import nested_dissection

Positions = NDArray[np.uint32]


class Order(NamedTuple):
    """Where each state stands, and which entries there are in the rows of the eliminated chain, by position."""

    position: Ints  # (S,) of a state
    state: Ints  # (S,) at a position
    lower: Ints  # (S + 1,) where each row begins in...
    before: Positions  # ... the positions before it that it leads to, rising
    upper: Ints  # the same of those
    after: Positions  # after it,
    runs: Positions  # (S + 1,) where the stretches of subsequent ones begin, of each row, in...
    first: Positions  # ... the first position of each, and...
    begins: Positions  # ... where that stands in ``after``; and one more, the end
    work: float  # multiplications that an elimination takes


_NONE, _NO_ENTRIES = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
NO_ORDER = Order(_NONE, _NONE, _NONE, _NO_ENTRIES, _NONE, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, _NO_ENTRIES, np.inf)


def order_for(indptr: Places, indices: Places, n_states: int, most: float) -> Order:
    """An order for the chains of a graph of pairs, or ``NO_ORDER`` if it takes more work than that.

    The graph is as in ``kernels.graph``.
    """
    first, near = nested_dissection.neighbours(indptr, indices, n_states)
    state = nested_dissection.dissected(first, near)
    position = np.empty_like(state)
    position[state] = np.arange(n_states)
    parent, rows, columns, work = nested_dissection.tree(first, near, state, position)
    if not work <= most:
        return NO_ORDER
    lower, upper = np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(columns))
    before, after = nested_dissection.filled(first, near, state, position, parent, lower, upper)
    runs, begins = _stretches(upper, after)
    return Order(position, state, lower, before, upper, after, runs, after[begins[:-1]], begins, work)


def _stretches(upper: Ints, after: Positions) -> tuple[Positions, Positions]:
    """Where stretches of subsequent positions begin: of each row among the stretches, and of each one in ``after``."""
    begins = np.ones(after.size, dtype=bool)
    begins[1:] = np.diff(after) != 1
    begins[upper[:-1][np.diff(upper) > 0]] = True
    runs = np.append(0, np.cumsum(begins))[upper]
    return runs.astype(np.uint32), np.append(np.flatnonzero(begins), after.size).astype(np.uint32)
