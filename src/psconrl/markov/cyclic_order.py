r"""Elimination order of chains that go round: every step leads from one group of states to the next.

A state that holds the hour of the day moves from each hour to the next. If the groups are eliminated in turn, rows of
all groups but the last lead only to states that are eliminated later, so that nothing fills in there. Only the rows of
the last group do, which is chosen to be the smallest. With w states in it and n entries in the chain, this takes about
n w multiplications. A nested dissection does not see the direction of the moves, and fills in many times as much.
"""

from math import gcd

import numpy as np

from psconrl.base.arrays import Ints, Places
from psconrl.kernels.graphs import nested_dissection
from psconrl.markov.elimination_order import NO_ORDER, Order, Positions, order_of_rows

FEWEST_GROUPS = 3  # with two, half of the states would fill in
MOST_FILLED = 20_000_000  # entries, of 12 bytes each
MOST_LEVELS = 10_000  # in which all states must be reached: a year of hours


def cyclic_order(indptr: Places, indices: Places, n_states: int, most: float) -> Order:
    """Return an order that goes round once, or ``NO_ORDER`` if there is none, or its work exceeds ``most``.

    The graph has the format of ``kernels.graphs.graph``.
    """
    group = _groups(indptr[:: (indptr.size - 1) // n_states], indices)
    if group is None:
        return NO_ORDER
    sizes = np.bincount(group)
    last = int(sizes.argmin())
    width = int(sizes[last])
    least = width * (n_states - width)  # entries that fill in, at most, and multiplications, at least
    if sizes.size < FEWEST_GROUPS or least > min(most, MOST_FILLED):
        return NO_ORDER
    group = (group - last - 1) % sizes.size
    state = np.argsort(group, kind="stable")
    position = np.empty_like(state)
    position[state] = np.arange(n_states)
    first, near = nested_dissection.neighbours(indptr, indices, n_states)
    source = np.repeat(np.arange(n_states), np.diff(first))
    onward = (group[near] == group[source] + 1).nonzero()[0]  # the others lead back, or from the last group
    moves = np.sort(position[source[onward]] * n_states + position[near[onward]])
    work = float(width) * moves.size + width**3 / 3
    if work > most:
        return NO_ORDER
    filled = np.arange(n_states - width, n_states)  # these rows lead anywhere before, and to all of the last group
    counts = np.append(np.bincount(moves // n_states, minlength=filled[0]), np.arange(width)[::-1])
    upper = np.append(0, np.cumsum(counts))
    lower = np.append(np.zeros(filled[0] + 1, dtype=np.int64), np.cumsum(filled))
    before = _positions([np.arange(i) for i in filled])
    after = _positions([moves % n_states, *(np.arange(i + 1, n_states) for i in filled)])
    return order_of_rows(position, state, lower, before, upper, after, work)


def _positions(rows: list[Ints]) -> Positions:
    return np.concatenate(rows).astype(np.uint32)


def _groups(starts: Places, indices: Places) -> Ints | None:
    r"""Return the group (S,) of every state: each move leads from one to the next, and from the last to the first.

    With the number of steps d from state 0, the number of groups is the greatest common divisor of
    :math:`d(s) + 1 - d(s')` over all moves (Denardo 1977). None if there is one group, or a state is not reached.
    """
    steps, number = np.full(starts.size - 1, -1), 0
    tag = np.empty(steps.size, dtype=np.int64)
    steps[0] = 0
    reached = np.zeros(1, dtype=np.int64)
    for step in range(1, MOST_LEVELS):
        counts = starts[reached + 1] - starts[reached]
        first = np.repeat(starts[reached] - np.append(0, np.cumsum(counts)[:-1]), counts)
        to = indices[first + np.arange(first.size)]
        before = steps[to]
        for late in np.unique(step - before[before >= 0]).tolist():
            number = gcd(number, late)
        if number == 1:
            return None
        new = to[before < 0]
        if not new.size:
            return np.asarray(steps % number) if steps.min() >= 0 else None
        numbers = np.arange(new.size)
        tag[new] = numbers
        reached = new[tag[new] == numbers].astype(np.int64)
        steps[reached] = step
    return None
