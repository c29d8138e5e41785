"""Columns of a table as they are read, block by block: labels with few values, numbers, and times.

The same column gives the same labels whatever kind of table it is in: texts that are all numbers are numbers, whole
numbers have no decimals, and truth values are 1 and 0.
"""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.caps import LARGEST_COST
from psconrl.base.escaping import quoted
from psconrl.data.tables.growing import GrowingArray
from psconrl.data.tables.rows import Indices
from psconrl.data.tables.timestamps import GrowingTimes, Timestamps, read_timestamps
from psconrl.errors import LogError
from psconrl.kernels.tables import cells

Value = int | float | str

# Texts that stand for a missing cell. "None" does not: it is what people call doing nothing.
MISSING = frozenset(("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "<NA>"))
MOST_LABELS = 200_000  # distinct values of a column of states or actions, or of runs
FEW_LABELS = 4_000  # distinct values of any other column; one with more is numbers, or is left out
LONGEST_LABEL = 1_000  # bytes
TRUTH = {"true": 1, "false": 0}
NEW_AT_ONCE = 1_000  # labels that are looked up before the table of codes is made again
TWO_BYTES = 1 << 15  # codes that fit in two bytes
EXACT_WHOLE = 2.0**53


@dataclass(frozen=True)
class CellBlock:
    """Cells of one column in a block of a CSV file; the length of one that is not there is -1."""

    buffer: NDArray[np.uint8]
    starts: Ints
    lengths: Places

    def text(self, row: int) -> bytes:
        """Return the bytes of a cell."""
        start = int(self.starts[row])
        return bytes(self.buffer[start : start + max(int(self.lengths[row]), 0)])


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of labels: the place of each in the list of values, or -1 if it is missing."""

    codes: Indices
    values: tuple[Value, ...]  # in increasing order, numbers before texts

    @property
    def are_numbers(self) -> bool:
        """Whether all values are numbers."""
        return not any(isinstance(value, str) for value in self.values)

    def numbers(self) -> Floats:
        """Return the column as numbers, nan where it is missing."""
        return np.append(np.array(self.values, dtype=np.float64), np.nan)[self.codes]

    def texts(self) -> NDArray[Any]:
        """Return the column as texts, empty where it is missing."""
        return np.array([*map(str, self.values), ""], dtype=object)[self.codes]


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers: nan if a cell is missing, and which cells are no finite numbers."""

    values: Floats
    wrong: Bools


class Reader(ABC):
    """Reads one column, block by block."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def add_cells(self, block: CellBlock) -> None:
        """Add cells of a CSV file."""

    @abstractmethod
    def add_values(self, values: NDArray[Any], missing: Bools) -> None:
        """Add values of another table, and which of them are missing."""

    @abstractmethod
    def column(self) -> Any:
        """Return the whole column."""


class LabelReader(Reader):
    """Reads labels. ``most``: the largest number of distinct ones."""

    def __init__(self, name: str, most: int = MOST_LABELS) -> None:
        super().__init__(name)
        self.most = most
        self._read = GrowingArray(np.int16)
        self._codes: dict[Any, int] = {}  # by the bytes of a cell, or by the value of another table
        self._labels = bytearray()
        self._ends: list[int] = []
        self._table: tuple[Any, Any, Any] | None = None

    def _code(self, key: Any) -> int:
        """Return the code of a label, new or known."""
        if key not in self._codes:
            if len(self._codes) >= self.most:
                raise self._too_many()
            self._codes[key] = len(self._codes)
            if isinstance(key, bytes):
                self._labels += key
                self._ends.append(len(self._labels))
                self._table = None
        return self._codes[key]

    def _too_many(self) -> LogError:
        return LogError(
            f"the column {quoted(self.name)} has more than {self.most:,} distinct values; a state, an action or a run "
            "needs values that recur: round them, or put them into classes"
        )

    def _tables(self) -> tuple[Any, Any, Any]:
        if self._table is None:
            labels = np.frombuffer(bytes(self._labels), dtype=np.uint8)
            ends = np.array(self._ends, dtype=np.int64)
            self._table = cells.label_slots(labels, ends), labels, ends
        return self._table

    def add_cells(self, block: CellBlock) -> None:
        """Add cells of a CSV file."""
        n, row = block.starts.size, 0
        codes = np.empty(n, dtype=np.int32)
        while True:
            row = cells.codes(block.buffer, block.starts, block.lengths, *self._tables(), codes, row)
            if row == n:
                break
            for at in range(row, min(row + NEW_AT_ONCE, n)):
                if block.lengths[at] >= 0:
                    if block.lengths[at] > LONGEST_LABEL:
                        raise LogError(
                            f"the column {quoted(self.name)} has a cell of {int(block.lengths[at]):,} bytes, which "
                            f"begins with {quoted(block.text(at)[:40])}; a label has at most {LONGEST_LABEL:,}"
                        )
                    self._code(block.text(at))
        self._keep(codes)

    def _keep(self, codes: Places) -> None:
        """Keep the codes of a block, in two bytes each if that is enough."""
        if len(self._codes) >= TWO_BYTES:
            self._read.widen(np.int32)
        self._read.add(codes)

    def add_values(self, values: NDArray[Any], missing: Bools) -> None:
        """Add values of another table."""
        codes = np.full(values.size, -1, dtype=np.int32)
        kept = np.flatnonzero(~missing)
        if values.dtype.kind in "biuf":
            distinct, places = np.unique(values[kept], return_inverse=True)
            if distinct.size > self.most:
                raise self._too_many()
            codes[kept] = np.array([self._code(value) for value in distinct.tolist()], dtype=np.int32)[places.ravel()]
        else:
            keys = [_key(value) for value in values[kept].tolist()]
            known = {key: self._code(key) for key in dict.fromkeys(keys)}
            codes[kept] = np.fromiter(map(known.__getitem__, keys), dtype=np.int32, count=len(keys))
        self._keep(codes)

    def column(self) -> LabelColumn:
        """Return the whole column."""
        texts = [self._decoded(key) if isinstance(key, bytes) else key for key in self._codes]
        values = canonical(texts)
        known = sorted({value for value in values if value is not None}, key=_order)
        place = {value: k for k, value in enumerate(known)}
        new = np.array([*(-1 if value is None else place[value] for value in values), -1])
        codes = self._read.whole()
        return LabelColumn(new.astype(codes.dtype)[codes], tuple(known))

    def _decoded(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LogError(
                f"the column {quoted(self.name)} is not text in UTF-8: byte {raw[error.start]:#x} in "
                f"{quoted(raw[:40])}; save the file with the encoding UTF-8"
            ) from None
        return text.replace('""', '"')


class NumberReader(Reader):
    """Reads numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._read, self._wrong = GrowingArray(np.float64), GrowingArray(np.bool_)
        self.any_wrong = False

    def add_cells(self, block: CellBlock) -> None:
        """Add cells of a CSV file."""
        found = np.empty(block.starts.size)
        wrong = np.zeros(found.size, dtype=bool)
        for row in cells.numbers(block.buffer, block.starts, block.lengths, found).tolist():
            value = number_in(block.text(row).decode("utf-8", "replace"))
            found[row], wrong[row] = (np.nan if value is None else value), value is WRONG_NUMBER
        self._add(found, wrong)

    def _add(self, found: Floats, wrong: Bools) -> None:
        wrong |= np.abs(found) > LARGEST_COST
        found[wrong] = np.nan
        self._read.add(found)
        self._wrong.add(wrong)
        self.any_wrong |= bool(wrong.any())

    def add_values(self, values: NDArray[Any], missing: Bools) -> None:
        """Add values of another table."""
        wrong = np.zeros(values.size, dtype=bool)
        if values.dtype.kind in "biuf":
            found = values.astype(np.float64)
        else:
            read = [number_in(value) for value in values.tolist()]
            found = np.array([np.nan if value is None else value for value in read], dtype=np.float64)
            wrong = np.array([value is WRONG_NUMBER for value in read], dtype=bool)
        self._add(np.where(missing, np.nan, found), wrong & ~missing)

    def column(self) -> NumberColumn:
        """Return the whole column."""
        return NumberColumn(self._read.whole(), self._wrong.whole())


class AnyReader(Reader):
    """Reads a column of which nothing is known: labels if they are few, otherwise numbers; nothing else is kept."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._labels: LabelReader | None = LabelReader(name, FEW_LABELS)
        self._numbers: NumberReader | None = NumberReader(name)

    def add_cells(self, block: CellBlock) -> None:
        """Add cells of a CSV file."""
        if self._labels is not None and block.lengths.size and int(block.lengths.max()) > LONGEST_LABEL:
            self._labels = None
        self._add(lambda reader: reader.add_cells(block))

    def add_values(self, values: NDArray[Any], missing: Bools) -> None:
        """Add values of another table."""
        self._add(lambda reader: reader.add_values(values, missing))

    def reject(self) -> None:
        """Leave out the whole column, whose values are of a kind that is not read."""
        self._labels = self._numbers = None

    def _add(self, add: Any) -> None:
        if self._labels is not None:
            try:
                add(self._labels)
            except LogError:
                self._labels = None
        if self._numbers is not None:
            add(self._numbers)
            if self._numbers.any_wrong:
                self._numbers = None

    def column(self) -> LabelColumn | NumberColumn | None:
        """Return the whole column; None if it has many values that are no numbers."""
        if self._labels is not None:
            try:
                return self._labels.column()
            except LogError:  # not text
                return None
        return None if self._numbers is None else self._numbers.column()


class TimeReader(Reader):
    """Reads times: numbers, dates and times of day, with or without a time zone."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._read = GrowingTimes()

    def add_cells(self, block: CellBlock) -> None:
        """Add cells of a CSV file."""
        self._read.add(read_timestamps(block.buffer, block.starts, block.lengths))

    def add_values(self, values: NDArray[Any], missing: Bools) -> None:
        """Add values of another table: numbers, texts, or ``datetime64``."""
        self._read.add(Timestamps.of_values(values, missing))

    def add_known(self, block: Timestamps) -> None:
        """Add times that were read."""
        self._read.add(block)

    def column(self) -> Timestamps:
        """Return the whole column."""
        return self._read.whole(self.name)


class _WrongNumber(float):
    """What stands for a text that is no number."""


WRONG_NUMBER = _WrongNumber("nan")


def number_in(given: Any) -> float | None:
    """Return a number; None if it is missing, and ``WRONG_NUMBER`` if it is none.

    >>> number_in("2.50"), number_in("NA"), number_in("1_0") is WRONG_NUMBER
    (2.5, None, True)
    """
    if given is None or given in MISSING:
        return None
    try:
        value = WRONG_NUMBER if isinstance(given, str | bytes) and "_" in str(given) else float(given)
    except (TypeError, ValueError, OverflowError):
        return WRONG_NUMBER
    return None if value != value and value is not WRONG_NUMBER else value


def canonical(labels: Sequence[Any]) -> list[Value | None]:
    """Return labels of one column in the form that does not depend on the kind of table; None if one is missing.

    >>> canonical(["3.0", "10", "NA"]), canonical([3, 2.5]), canonical(["3.0", "a"]), canonical(["True", "false"])
    ([3, 10, None], [3, 2.5], ['3', 'a'], [1, 0])
    """
    found: list[Any] = [None if _is_missing(label) else label for label in labels]
    numbers = [None if label is None else _whole(label) for label in found]
    truths = [
        number if number is not WRONG_NUMBER else _truth(label) for label, number in zip(found, numbers, strict=True)
    ]
    if all(truth is not WRONG_NUMBER for truth in truths):
        return list(truths)
    return [
        None if label is None else _text(label) if number is WRONG_NUMBER else str(number)
        for label, number in zip(found, numbers, strict=True)
    ]


def _truth(label: Any) -> Any:
    return TRUTH.get(str(label).lower(), WRONG_NUMBER)


def _text(label: Any) -> str:
    """Return a text without blanks around it, in the composed form of its characters (NFC)."""
    return unicodedata.normalize("NFC", str(label).strip())


def _whole(label: Any) -> Any:
    """Return a label as a number, an integer if it is whole."""
    if isinstance(label, bool | int | np.integer):
        return int(label)
    value = number_in(label)
    if value is None or value is WRONG_NUMBER or not np.isfinite(value):
        return WRONG_NUMBER
    if isinstance(label, str) and abs(value) >= EXACT_WHOLE:
        try:
            return int(label)  # all of its digits
        except ValueError:
            pass
    return int(value) if value.is_integer() and abs(value) < EXACT_WHOLE else float(value)


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, str) and label.strip() in MISSING) or label != label


def _key(value: Any) -> Any:
    """Return a value that can be looked up: a text without blanks around it, a number, or the text of anything else."""
    if isinstance(value, str):
        return value.strip()
    return value if isinstance(value, int | float) else str(value)


def _order(value: Value) -> tuple[bool, Any]:
    return isinstance(value, str), value
