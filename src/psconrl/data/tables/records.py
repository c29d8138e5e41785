"""Columns of a log besides states, actions and costs: noise that was seen, and what may be missing in the state."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.data.tables.columns import AnyReader, LabelColumn, NumberColumn
from psconrl.data.tables.rows import Indices


class Records(Mapping[str, NDArray[Any]]):
    """The values of some columns in all rounds, by name: numbers, nan where missing, or texts, empty where missing.

    >>> Records.of_arrays({"demand": [2, None], "sky": ["grey", "blue"]})["demand"].tolist()
    [2.0, nan]
    """

    def __init__(self, columns: Mapping[str, LabelColumn | NumberColumn], rows: Indices) -> None:
        self._columns, self._rows = columns, rows

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the records of arrays by name."""
        columns: dict[str, LabelColumn | NumberColumn] = {}
        size = 0
        for name, values in arrays.items():
            given = np.asarray(values, dtype=object if isinstance(values, list) else None)
            missing = np.array([value is None or value != value for value in given.tolist()], dtype=bool)
            reader, size = AnyReader(name), given.size
            reader.add_values(given, missing)
            column = reader.column()
            assert column is not None
            columns[name] = column
        return cls(columns, np.arange(size))

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        if isinstance(column, NumberColumn):
            return column.values[self._rows]
        few = LabelColumn(column.codes[self._rows], column.values)
        return few.numbers() if few.are_numbers else few.texts()

    def labels(self, name: str) -> LabelColumn | None:
        """Return a column as labels; None if it has too many distinct values."""
        column = self._columns[name]
        return LabelColumn(column.codes[self._rows], column.values) if isinstance(column, LabelColumn) else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def some(self, kept: Indices) -> "Records":
        """Return the records of some rounds."""
        return Records(self._columns, self._rows[kept])

    def without(self, name: str, rounds: Indices) -> "Records":
        """Return the records with a value missing in some rounds."""
        column = self._columns[name]
        rows = self._rows[rounds]
        if isinstance(column, NumberColumn):
            values = column.values.copy()
            values[rows] = np.nan
            changed: LabelColumn | NumberColumn = NumberColumn(values, column.wrong)
        else:
            codes = column.codes.copy()
            codes[rows] = -1
            changed = LabelColumn(codes, column.values)
        return Records({**self._columns, name: changed}, self._rows)
