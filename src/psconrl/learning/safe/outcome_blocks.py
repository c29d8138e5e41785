r"""Confidence intervals for what transitions reveal of several noises together, which hold uniformly over time.

In a queue with a customer in service and an open gate, one arrival and one departure cancel: the next state shows
neither of them, and such rounds do not count for intervals of single noises. But it does show in which *block* the
joint outcome was: "one more", "one less" or "the same". Pairs with the same context and the same blocks form a class.
Given the class, which depends on state and action only, a block has the same probability in every round, so that the
intervals of ``confidence_intervals`` hold for it.

Classes have blocks of their own here if several noises are possible in them, at least one of which is unknown and not
revealed, and if the blocks are not those of the noises one by one. A block that several classes of a context reveal has
one interval, from the rounds of all of them; a set of outcomes and its complement share theirs.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Ints
from psconrl.kernels.sets.intervals import end_of_interval
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_views import NoiseViews
from psconrl.planning.robust.noise_box import BlockBounds


class _Event(NamedTuple):
    """A set of joint outcomes in a context, and the cells (classes, first outcomes) in which it is counted."""

    inside: Ints  # numbers of the cells in it
    revealed: Ints  # numbers of all cells of the classes that reveal it


class OutcomeBlocks:
    """Intervals for the blocks of joint outcomes that pairs reveal, where they hide single noises."""

    def __init__(self, views: NoiseViews) -> None:
        self._views = views
        firsts, contexts = views.partitions
        chosen = [k for k in range(len(firsts)) if views.hides(k)]
        self._events: list[_Event] = []
        places: dict[tuple[int, bytes], int] = {}
        self._cells: list[list[tuple[int, int, bool]]] = []  # of every class: first outcome, event, complement or not
        for k in chosen:
            possible = firsts[k] >= 0
            cells = []
            for first in np.unique(firsts[k][possible]).tolist():
                inside = firsts[k] == first
                inverse = not inside[possible.argmax()]  # the set of the two with the first possible outcome
                wanted = possible & ~inside if inverse else inside
                key = (int(contexts[k]), wanted.tobytes())
                if key not in places:
                    places[key] = len(self._events)
                    self._events.append(_counted(wanted, firsts, np.flatnonzero(contexts == contexts[k])))
                cells.append((first, places[key], inverse))
            self._cells.append(cells)
        numbers = np.full(len(firsts), -1)
        numbers[chosen] = np.arange(len(chosen))
        self._classes: Ints = np.ascontiguousarray(numbers[views.classes], dtype=np.int64)
        self._blocks: Ints = np.ascontiguousarray(firsts[chosen], dtype=np.int64)

    @property
    def number(self) -> int:
        """Number of intervals."""
        return len(self._events)

    def bounds(self, counts: Counts, log_inverse: float) -> BlockBounds:
        r"""Return the bounds given the counts, with :math:`\log(1/\delta')`."""
        low, high = np.zeros(self._blocks.shape), np.zeros(self._blocks.shape)
        if self._events:
            times = self._views.outcomes(counts).ravel()
            ends = [
                _ends(times[event.inside].sum(), times[event.revealed].sum(), log_inverse) for event in self._events
            ]
            for k, cells in enumerate(self._cells):
                for first, event, inverse in cells:
                    least, most = ends[event]
                    low[k, first], high[k, first] = (1.0 - most, 1.0 - least) if inverse else (least, most)
        return BlockBounds(self._classes, self._blocks, low, high)


def _counted(wanted: Bools, firsts: Ints, alike: Ints) -> _Event:
    """Return where a set of outcomes is counted: in classes of its context of whose blocks it is a union."""
    size = firsts.shape[1]
    inside, revealed = [], []
    for k in alike.tolist():
        possible = firsts[k] >= 0
        if (wanted[possible] == wanted[firsts[k][possible]]).all():
            own = np.unique(firsts[k][possible])
            revealed.append(k * size + own)
            inside.append(k * size + own[wanted[own]])
    return _Event(np.concatenate(inside), np.concatenate(revealed))


def _ends(k: float, n: float, log_inverse: float) -> tuple[float, float]:
    return end_of_interval(k, n, log_inverse, 0.0), end_of_interval(k, n, log_inverse, 1.0)
