"""Counts of the transitions seen, stored sparsely: memory grows with experience, not with S*A*S.

Transition (s, a) -> s' has the number ``(s * A + a) * S + s'``. A tally holds the sorted numbers of the transitions
seen, and their counts. A compiled loop appends numbers to the ``log``; they are merged when the log is full or the
counts are read.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Ints, in_32_bits
from psconrl.base.caps import MOST_ROUNDS
from psconrl.base.saved_fields import integers, need_that, read_fields
from psconrl.kernels.draws.counts import add_to_table, merged, sorted_log, visits_of

LOG_LENGTH = 4096  # as long as a block of random numbers, so that a compiled loop does not stop for it


class Tally:
    """Numbers of the transitions seen, and their counts.

    >>> tally = Tally(n_pairs=2, n_states=2)
    >>> for pair, next_state in ((1, 0), (0, 1), (1, 0)):
    ...     tally.note(pair, next_state)
    >>> tally.numbers.tolist(), tally.times.tolist(), tally.toarray().tolist()
    ([1, 2], [1, 2], [[0, 1], [2, 0]])
    """

    def __init__(self, n_pairs: int, n_states: int) -> None:
        self.shape = (n_pairs, n_states)
        self.log: Ints = np.empty(LOG_LENGTH, dtype=np.int64)
        self.logged = 0
        self._numbers: Ints = np.empty(0, dtype=np.int64)
        self._times: Ints = np.empty(0, dtype=np.int64)

    def note(self, pair: int, next_state: int) -> None:
        """Add one transition."""
        self.room()
        self.log[self.logged] = pair * self.shape[1] + next_state
        self.logged += 1

    def note_times(self, pair: int, next_state: int, times: int) -> None:
        """Add one transition many times."""
        self._sort_in()
        self._merge(np.array([pair * self.shape[1] + next_state]), np.array([times]))

    def room(self) -> int:
        """Return how many more transitions fit into the log, from ``logged`` on; at least 1."""
        if self.logged == LOG_LENGTH:
            self._sort_in()
        return LOG_LENGTH - self.logged

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        self._sort_in()
        self._merge(other.numbers, other.times)

    def add_numbers(self, numbers: Ints) -> None:
        """Count each of these transitions once; their numbers must be in increasing order."""
        self._sort_in()
        self._merge(numbers, np.ones(numbers.size, dtype=np.int64))

    def clear(self) -> None:
        """Reset the tally to empty."""
        self._numbers, self._times, self.logged = self._numbers[:0], self._times[:0], 0

    @property
    def numbers(self) -> Ints:
        """Numbers of the transitions seen, in increasing order."""
        self._sort_in()
        return self._numbers

    @property
    def times(self) -> Ints:
        """Counts of the transitions in ``numbers``."""
        self._sort_in()
        return self._times

    def _sort_in(self) -> None:
        if self.logged:
            numbers, times = sorted_log(self.log[: self.logged])
            self.logged = 0
            if self._numbers.size:
                self._merge(numbers, times)
            else:
                self._numbers, self._times = numbers, times

    def _merge(self, numbers: Ints, times: Ints) -> None:
        both = merged(self._numbers, self._times, numbers, times)
        if both is not None:  # else the times were added in place
            self._numbers, self._times = both

    def csr(self) -> csr_array:
        """Return the counts as a sparse matrix (S*A, S)."""
        pairs, states = np.divmod(self.numbers, self.shape[1])
        indptr = np.searchsorted(pairs, np.arange(self.shape[0] + 1))
        places = states.astype(np.int32), indptr.astype(np.int32)  # SciPy takes long to make them shorter later
        return in_32_bits(csr_array((self.times.copy(), *places), shape=self.shape))

    def toarray(self) -> Ints:
        """Return the counts as a dense array (S*A, S)."""
        table = np.zeros(self.shape, dtype=np.int64)
        add_to_table(table, self.numbers, self.times)
        return table

    def copy(self) -> "Tally":
        """Return an independent copy."""
        other = Tally(*self.shape)
        other._numbers, other._times = self.numbers.copy(), self.times.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return {"numbers": self.numbers, "times": self.times}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned, after a check: the file may be damaged, and kernels trust their arrays."""
        most = self.shape[0] * self.shape[1] - 1
        saved = read_fields(state, {"numbers": integers((None,), 0, most), "times": integers((None,), 1)})
        numbers, times = saved["numbers"], saved["times"]
        need_that(numbers.shape == times.shape, "numbers and times must have the same length")
        need_that((numbers[1:] > numbers[:-1]).all(), "numbers must increase")
        need_that(times.sum(dtype=np.float64) <= MOST_ROUNDS, f"times must sum to {MOST_ROUNDS:,} at most")
        self._numbers, self._times, self.logged = numbers, times, 0

    def visits(self) -> Ints:
        """Return the number of visits of each pair, (S*A,)."""
        visits: Ints = visits_of(self.numbers, self.times, *self.shape)
        return visits
