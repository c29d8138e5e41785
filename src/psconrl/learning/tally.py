"""How often each transition was seen, stored for those that were: memory grows with experience, not with S*A*S.

Transition (s, a) -> s' has the number ``(s * A + a) * S + s'``. A tally holds the numbers met, sorted, and how often.
A compiled loop writes numbers into the ``log`` as it goes; they are sorted in when it is full, or when somebody asks.
"""

from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from psconrl.arrays import Ints
from psconrl.limits import MOST_ROUNDS

LOG = 4096  # as long as a block of random numbers, so that a compiled loop need not stop for it


class Tally:
    """Numbers of transitions and how often each was seen.

    >>> tally = Tally(n_pairs=2, n_states=2)
    >>> for pair, next_state in ((1, 0), (0, 1), (1, 0)):
    ...     tally.note(pair, next_state)
    >>> tally.numbers.tolist(), tally.times.tolist(), tally.toarray().tolist()
    ([1, 2], [1, 2], [[0, 1], [2, 0]])
    """

    def __init__(self, n_pairs: int, n_states: int) -> None:
        self.shape = (n_pairs, n_states)
        self.log: Ints = np.empty(LOG, dtype=np.int64)
        self.logged = 0
        self._numbers: Ints = np.empty(0, dtype=np.int64)
        self._times: Ints = np.empty(0, dtype=np.int64)

    def note(self, pair: int, next_state: int) -> None:
        """One more transition."""
        self.room()
        self.log[self.logged] = pair * self.shape[1] + next_state
        self.logged += 1

    def room(self) -> int:
        """How many more transitions may be written into the log, from ``logged`` on; never none."""
        if self.logged == LOG:
            self._sort_in()
        return LOG - self.logged

    def add(self, other: "Tally") -> None:
        """Add what another has seen."""
        self._sort_in()
        self._numbers, self._times = _merged(self._numbers, self._times, other.numbers, other.times)

    def clear(self) -> None:
        """Begin anew."""
        self._numbers, self._times, self.logged = self._numbers[:0], self._times[:0], 0

    @property
    def numbers(self) -> Ints:
        """The transitions that were seen, in rising order."""
        self._sort_in()
        return self._numbers

    @property
    def times(self) -> Ints:
        """How often each of them was."""
        self._sort_in()
        return self._times

    def _sort_in(self) -> None:
        if self.logged:
            numbers, times = _sorted(self.log[: self.logged])
            self.logged = 0
            if self._numbers.size:
                numbers, times = _merged(self._numbers, self._times, numbers, times)
            self._numbers, self._times = numbers, times

    def csr(self) -> csr_array:
        """As a sparse matrix (S*A, S)."""
        pairs, states = np.divmod(self.numbers, self.shape[1])
        indptr = np.searchsorted(pairs, np.arange(self.shape[0] + 1))
        return csr_array((self.times.copy(), states, indptr), shape=self.shape)

    def toarray(self) -> Ints:
        """As a plain array (S*A, S)."""
        table = np.zeros(self.shape, dtype=np.int64)
        add_to_table(table, self.numbers, self.times)
        return table

    def copy(self) -> "Tally":
        """One that is changed on its own."""
        other = Tally(*self.shape)
        other._numbers, other._times = self.numbers.copy(), self.times.copy()
        return other

    def state(self) -> dict[str, Any]:
        """For saving."""
        return {"numbers": self.numbers, "times": self.times}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned. What cannot be came from a damaged file: kernels trust their arrays."""
        if any(np.asarray(state[key]).dtype.kind not in "iu" for key in ("numbers", "times")):
            raise ValueError("counts that are not whole numbers")
        numbers, times = (np.array(state[key], dtype=np.int64) for key in ("numbers", "times"))
        if numbers.ndim != 1 or numbers.shape != times.shape or (numbers[1:] <= numbers[:-1]).any():
            raise ValueError("counts that cannot be")
        if (times < 1).any() or times.sum(dtype=np.float64) > MOST_ROUNDS:
            raise ValueError("counts that cannot be")
        if numbers.size and (numbers[0] < 0 or numbers[-1] >= self.shape[0] * self.shape[1]):
            raise ValueError("transitions that there are not")
        self._numbers, self._times, self.logged = numbers, times, 0

    def visits(self) -> Ints:
        """How often each pair was left, (S*A,)."""
        visits: Ints = _visits(self.numbers, self.times, *self.shape)
        return visits


@njit(cache=True)
def add_to_table(table: Ints, numbers: Ints, times: Ints) -> None:
    """Add counts to a dense table (S*A, S)."""
    flat = table.reshape(-1)
    for i in range(numbers.size):
        flat[numbers[i]] += times[i]


@njit(cache=True)
def _sorted(log: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers of a log, sorted, and how often each occurs."""
    ordered = np.sort(log)
    numbers, times = np.empty_like(ordered), np.empty_like(ordered)
    n = 0
    for number in ordered:
        if n and numbers[n - 1] == number:
            times[n - 1] += 1
        else:
            numbers[n], times[n] = number, 1
            n += 1
    return numbers[:n].copy(), times[:n].copy()


@njit(cache=True)
def _merged(numbers: Ints, times: Ints, new_numbers: Ints, new_times: Ints) -> tuple[Ints, Ints]:
    """The sum of two tallies: in place if the second has no number that the first has not."""
    at = np.searchsorted(numbers, new_numbers)
    missing = 0
    for i in range(at.size):
        missing += at[i] == numbers.size or numbers[at[i]] != new_numbers[i]
    if not missing:
        for i in range(at.size):
            times[at[i]] += new_times[i]
        return numbers, times
    n = numbers.size + missing
    all_numbers, all_times = np.empty(n, np.int64), np.empty(n, np.int64)
    old = k = 0
    for i in range(new_numbers.size):
        while old < at[i]:
            all_numbers[k], all_times[k] = numbers[old], times[old]
            old += 1
            k += 1
        all_numbers[k], all_times[k] = new_numbers[i], new_times[i]
        if old < numbers.size and numbers[old] == new_numbers[i]:
            all_times[k] += times[old]
            old += 1
        k += 1
    all_numbers[k:], all_times[k:] = numbers[old:], times[old:]
    return all_numbers, all_times


@njit(cache=True)
def _visits(numbers: Ints, times: Ints, n_pairs: int, n_states: int) -> Ints:
    visits = np.zeros(n_pairs, np.int64)
    pair = 0
    for i in range(numbers.size):
        while numbers[i] >= (pair + 1) * n_states:
            pair += 1
        visits[pair] += times[i]
    return visits
