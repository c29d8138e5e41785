"""Times of a log: numbers, or dates and times of day, with or without a time zone.

Texts are in ISO 8601: 2024-03-31, 2024-03-31 02:30, 2024-03-31T02:30:00.5+01:00, 2024-03-31T01:30:00Z, 20240331.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.escaping import quoted
from psconrl.data.tables.growing import GrowingArray
from psconrl.errors import LogError
from psconrl.kernels.tables import cells, moments

EPOCH = datetime(1970, 1, 1)
TIME_BYTES = 64  # bytes of a time
FIRST_DAY, LAST_DAY = 19_000_101, 22_001_231  # numbers between are dates if all are
NUMBER, NAIVE, AWARE = "numbers", "times without a zone", "times with a zone"
KINDS = frozenset((NUMBER, NAIVE, AWARE))


@dataclass(frozen=True, eq=False)
class Timestamps:
    """Seconds since 1970 in UTC, or numbers; nan if missing. ``local``: seconds since 1970 by the clock on the wall."""

    seconds: Floats
    local: Floats
    wrong: Bools  # cells that are no times
    kinds: frozenset[str]  # one, unless they are written in several ways, or all are missing

    @classmethod
    def of_values(cls, values: NDArray[Any], missing: Bools) -> Self:
        """Return times of an array of numbers, texts, ``datetime64``, or ``datetime``."""
        if values.dtype.kind == "M":
            whole = values.astype("datetime64[s]")
            fraction = (values - whole) / np.timedelta64(1, "s") if values.dtype != whole.dtype else 0.0
            seconds = np.where(missing, np.nan, whole.astype(np.int64) + fraction)
            return cls(seconds, seconds, np.zeros(values.size, dtype=bool), frozenset([NAIVE]))
        if values.dtype.kind in "iuf":
            seconds = np.where(missing, np.nan, values.astype(np.float64))
            return cls(seconds, seconds, ~missing & ~np.isfinite(seconds), frozenset([NUMBER]))
        return cls._one_by_one([None if gone else value for value, gone in zip(values.tolist(), missing, strict=True)])

    @classmethod
    def _one_by_one(cls, values: Sequence[Any]) -> Self:
        found = [_read(value) for value in values]
        return cls(
            np.array([seconds for seconds, _, _ in found]),
            np.array([local for _, local, _ in found]),
            np.array([kind == "wrong" for _, _, kind in found], dtype=bool),
            frozenset(kind for _, _, kind in found) & KINDS,
        )

    @property
    def on_calendar(self) -> bool:
        """Whether these are dates and times of day, and not numbers."""
        return bool(self.kinds) and NUMBER not in self.kinds


class GrowingTimes:
    """Times to which blocks are added."""

    def __init__(self) -> None:
        self._seconds, self._local, self._wrong = (
            GrowingArray(np.float64),
            GrowingArray(np.float64),
            GrowingArray(np.bool_),
        )
        self._kinds: frozenset[str] = frozenset()
        self._same = True  # whether clocks on the wall show what is in ``seconds``

    def add(self, block: Timestamps) -> None:
        """Add a block."""
        if self._same and block.local is not block.seconds:
            self._same = False
            self._local = self._seconds.copy()
        self._seconds.add(block.seconds)
        self._wrong.add(block.wrong)
        if not self._same:
            self._local.add(block.local)
        self._kinds |= block.kinds

    def whole(self, name: str) -> Timestamps:
        """Return all times; raise an error if they are of several kinds."""
        if len(self._kinds) > 1:
            kinds = " and ".join(sorted(self._kinds))
            raise LogError(f"the column {quoted(name)} mixes {kinds}; write all of them in the same way")
        seconds, wrong = self._seconds.whole(), self._wrong.whole()
        if self._kinds == {NUMBER} and (days := _as_days(seconds)) is not None:
            return Timestamps(days, days, wrong, frozenset([NAIVE]))
        return Timestamps(seconds, seconds if self._same else self._local.whole(), wrong, self._kinds)


def _as_days(numbers: Floats) -> Floats | None:
    """Return numbers as dates if all are dates without separators, as 20240131 is; else None."""
    known = numbers[~np.isnan(numbers)]
    if not known.size or known.min() < FIRST_DAY or known.max() > LAST_DAY or (known % 1.0).any():
        return None
    year, rest = np.divmod(known.astype(np.int64), 10_000)
    month, day = np.divmod(rest, 100)
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    first, after = (m.astype("datetime64[D]").astype(np.int64) for m in (months, months + 1))
    if (month < 1).any() or (month > 12).any() or (day < 1).any() or (first + day > after).any():
        return None
    found = np.full(numbers.size, np.nan)
    found[~np.isnan(numbers)] = (first + day - 1) * 86400.0
    return found


def _read(value: Any) -> tuple[float, float, str]:
    """Return one time in UTC and by its own clock, and its kind: "missing" and "wrong" besides the three."""
    if value is None or value != value or (isinstance(value, str) and value.strip() in ("", "NA", "NaN", "NaT", "nan")):
        return np.nan, np.nan, "missing"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (float(value), float(value), NUMBER) if np.isfinite(value) else (np.nan, np.nan, "wrong")
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            return _read(number)
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return np.nan, np.nan, "wrong"
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return np.nan, np.nan, "wrong"
    local = (value.replace(tzinfo=None) - EPOCH).total_seconds()
    if value.tzinfo is None:
        return local, local, NAIVE
    return (value.astimezone(UTC).replace(tzinfo=None) - EPOCH).total_seconds(), local, AWARE


def read_timestamps(buffer: NDArray[np.uint8], starts: Ints, lengths: Places) -> Timestamps:
    """Return the times in cells of a CSV file."""
    n = starts.size
    seconds, local, wrong = np.empty(n), np.empty(n), np.zeros(n, dtype=bool)
    shapes = moments.read(buffer, starts, lengths, seconds, local)
    kinds = {kind for shape, kind in ((1, NAIVE), (2, AWARE)) if (shapes == shape).any()}
    left = np.flatnonzero((shapes == 0) & (lengths > 0))
    if left.size:
        numbers = np.empty(left.size)
        hard = cells.numbers(buffer, starts[left], lengths[left], numbers)
        seconds[left], local[left] = numbers, numbers
        if hard.size < left.size:
            kinds.add(NUMBER)
        for row in left[hard].tolist():
            start = int(starts[row])
            text = bytes(buffer[start : start + min(int(lengths[row]), TIME_BYTES)]).decode("utf-8", "replace")
            seconds[row], local[row], kind = _read(text)
            wrong[row] = kind == "wrong"
            kinds |= {kind} & KINDS
    return Timestamps(seconds, local if AWARE in kinds else seconds, wrong, frozenset(kinds))
