"""States and actions of a log: the numbers of what stands in one or several columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from psconrl.base.arrays import Bools, Ints, Places
from psconrl.base.escaping import quoted
from psconrl.data.tables.columns import LabelColumn, Value, canonical, number_in
from psconrl.errors import LogError
from psconrl.systems.variables import Space

MISSING, UNKNOWN = -1, -2  # in place of a number
MOST_MARKED = 1 << 26  # codes that are marked; more are sorted
MOST_DECLARED = 1_000_000  # combinations of values


class LabelSpace(ABC):
    """What the combinations of labels in some columns are, by number."""

    labels: tuple[str, ...]

    @abstractmethod
    def numbers(self, columns: Sequence[LabelColumn]) -> Places:
        """Return the numbers of all rows; ``MISSING`` where a cell is, ``UNKNOWN`` where the combination is none."""


def places(column: LabelColumn, values: Sequence[Any]) -> Ints:
    """Return the place in ``values`` of each label of a column, ``UNKNOWN`` if it is not there, then ``MISSING``.

    A label that is a number equals a number, and any label a text that it is written as.
    """
    by_number = {v: k for k, v in enumerate(values) if not isinstance(v, str)}
    by_text = {v: k for k, v in enumerate(values) if isinstance(v, str)}
    found = []
    for label in column.values:
        number = label if not isinstance(label, str) else number_in(label)
        place = by_text.get(str(label))
        found.append(by_number.get(number, UNKNOWN) if place is None and number is not None else place)
    return np.array([*(UNKNOWN if place is None else place for place in found), MISSING], dtype=np.int64)


def combined(parts: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Return the numbers of combinations, the last part fastest; the lowest mark where a part has one."""
    numbers = np.zeros(parts[0].shape, dtype=np.int64)
    bad = np.zeros(parts[0].shape, dtype=np.int64)
    for part, size in zip(parts, sizes, strict=True):
        numbers = numbers * size + np.maximum(part, 0)
        bad = np.where((part == MISSING) | ((part < 0) & (bad == 0)), part, bad)
    return np.where(bad < 0, bad, numbers)


class DeclaredSpace(LabelSpace):
    """Columns with given values: all of their combinations, the last column fastest."""

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = []
        for name, given in values.items():
            listed = _declared(given, f"{what}: {quoted(name)}")
            known = canonical(listed)
            if not known or None in known or len({*known}) < len(known):
                raise LogError(f"{what}: {quoted(name)} must have a list of different values; got {quoted(given)}")
            self._values.append(known)
        self._sizes = [len(one) for one in self._values]
        number = float(np.prod(np.array(self._sizes, dtype=np.float64)))
        if number > MOST_DECLARED:
            raise LogError(f"{what} has {number:.3g} combinations of values, more than {MOST_DECLARED:,}")
        everything = np.unravel_index(np.arange(int(number)), self._sizes)
        self.labels = _labels(list(values), self._values, list(everything))

    def numbers(self, columns: Sequence[LabelColumn]) -> Places:
        """Return the numbers of all rows."""
        parts = [places(column, values)[column.codes] for column, values in zip(columns, self._values, strict=True)]
        return combined(parts, self._sizes).astype(np.int32)


def _declared(given: Any, where: str) -> list[Any]:
    """Return the values of a column that are given as a list, or by their number."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = range(given)
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise LogError(f"{where} must have a list of values, or their number; got {quoted(given)}")
    if isinstance(given, Sized) and len(given) > MOST_DECLARED:
        raise LogError(f"{where} has {len(given):,} values, more than {MOST_DECLARED:,}")
    return list(given)


class ListedSpace(LabelSpace):
    """One column, whose labels are those of a model or a system."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    def numbers(self, columns: Sequence[LabelColumn]) -> Places:
        """Return the numbers of all rows."""
        return places(columns[0], self.labels)[columns[0].codes].astype(np.int32)


class VariableSpace(LabelSpace):
    """One column for every variable of a system, which has some combinations of their values."""

    def __init__(self, space: Space, kept: Ints, shown: Sequence[str]) -> None:
        self._space, self._kept = space, kept
        self.labels = tuple(shown)

    def numbers(self, columns: Sequence[LabelColumn]) -> Places:
        """Return the numbers of all rows."""
        parts = [
            places(column, variable.values.tolist())[column.codes]
            for column, variable in zip(columns, self._space.variables, strict=True)
        ]
        numbers = combined(parts, self._space.shape)
        at = np.minimum(np.searchsorted(self._kept, numbers), self._kept.size - 1)
        return np.where(numbers < 0, numbers, np.where(self._kept[at] == numbers, at, UNKNOWN)).astype(np.int32)


class SeenSpace(LabelSpace):
    """Columns of which nothing is given: the combinations of values that occur, in increasing order."""

    def __init__(self, names: Sequence[str], tables: Sequence[Sequence[LabelColumn]]) -> None:
        """``tables``: the columns of the state, and of the next state if there are any."""
        self._tables = tables
        self._values: list[tuple[Value, ...]] = []
        parts = []
        for k in range(len(names)):
            known: list[Any] = canonical([value for table in tables for value in table[k].values])
            values = tuple(sorted(set(known), key=lambda value: (isinstance(value, str), value)))
            self._values.append(values)
            parts.append([_own_places(table[k], values) for table in tables])
        self._steps: list[Ints] = []
        codes = [part.astype(np.int64) for part in parts[0]]
        for k, part in enumerate(parts):
            if k:
                size = max(len(self._values[k]), 1)
                codes = [
                    np.where((before < 0) | (new < 0), MISSING, before * size + new)
                    for before, new in zip(codes, part, strict=True)
                ]
            known_codes = _distinct(codes)
            self._steps.append(known_codes)
            codes = [_places_in(known_codes, one) for one in codes]
        self._numbers = [one.astype(np.int32) for one in codes]
        left, listed = np.arange(self._steps[-1].size), []
        for k in range(len(names) - 1, -1, -1):
            whole = self._steps[k][left]
            left, own = np.divmod(whole, max(len(self._values[k]), 1)) if k else (whole, whole)
            listed.append(own)
        self.labels = _labels(list(names), self._values, listed[::-1])

    def numbers(self, columns: Sequence[LabelColumn]) -> Places:
        """Return the numbers of all rows of one of the tables."""
        at = next(k for k, table in enumerate(self._tables) if table is columns)
        return self._numbers[at]


def _own_places(column: LabelColumn, values: Sequence[Value]) -> Ints:
    place = {value: k for k, value in enumerate(values)}
    own = [place.get(value, place.get(str(value), MISSING)) for value in column.values]
    return np.array([*own, MISSING], dtype=np.int64)[column.codes]


def _distinct(codes: Sequence[Ints]) -> Ints:
    """Return the distinct codes of some arrays that are not negative, increasing."""
    largest = max((int(one.max(initial=-1)) for one in codes), default=-1)
    if largest < MOST_MARKED:
        marks: Bools = np.zeros(largest + 2, dtype=bool)
        for one in codes:
            marks[one] = True  # the last mark is that of what is missing
        return np.flatnonzero(marks[: largest + 1])
    return np.unique(np.concatenate([np.unique(one[one >= 0]) for one in codes]))


def _places_in(known: Ints, codes: Ints) -> Ints:
    if known.size and known[-1] < MOST_MARKED:
        table = np.full(int(known[-1]) + 2, MISSING, dtype=np.int64)
        table[known] = np.arange(known.size)
        return table[codes]
    return np.where(codes < 0, MISSING, np.searchsorted(known, codes))


def _labels(names: Sequence[str], values: Sequence[Sequence[Any]], parts: Sequence[Any]) -> tuple[str, ...]:
    """Return the texts of combinations: the value of one column, or "shelf=4, coming=0" of several."""
    if len(names) == 1:
        return tuple(str(values[0][place]) for place in parts[0].tolist())
    rows = zip(*(part.tolist() for part in parts), strict=True)
    return tuple(
        ", ".join(f"{name}={own[place]}" for name, own, place in zip(names, values, row, strict=True)) for row in rows
    )
