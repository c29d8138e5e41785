"""Distributions of values at many points, as rows: a point, some values, and their probability.

Rows of a point with the same values are merged, their probabilities added in the order of the rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Floats, Ints

Columns = Mapping[str, NDArray[Any]]

MOST_KEYS = 2**62
DENSE_KEYS = 8  # times the number of rows: with at most this many keys rows are merged by counting, else by sorting
WHOLE = 2**40  # range of whole numbers that are keys themselves


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of some values in every context: the rows ``starts[g]`` to ``starts[g + 1]`` are those of g."""

    starts: Ints  # (G + 1,)
    values: Columns  # (rows,) each
    probabilities: Floats  # (rows,)

    @cached_property
    def lengths(self) -> Ints:
        """Numbers of rows (G,)."""
        return np.diff(self.starts)

    @cached_property
    def contexts(self) -> Ints:
        """The context of every row."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    @classmethod
    def of_table(cls, values: Columns, table: Floats, possible: NDArray[np.bool_]) -> "Distribution":
        """Return the possible outcomes of a table (G, W) of probabilities."""
        contexts, outcomes = np.nonzero(possible)
        starts = np.searchsorted(contexts, np.arange(len(table) + 1))
        return cls(starts, {name: v[outcomes] for name, v in values.items()}, table[contexts, outcomes])

    def sums(self, values: Floats) -> Floats:
        """Return the sums (G,) of some values of the rows."""
        return np.bincount(self.contexts, weights=values, minlength=self.lengths.size).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Factor:
    """A random part of every point: its distribution in contexts, and the context of each point."""

    distribution: Distribution
    contexts: Ints  # (points,)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some values at some points, each with its probability; points increase."""

    points: Ints
    probabilities: Floats
    columns: Columns

    def grown(self, factor: Factor) -> int:
        """Return how many rows there are with all outcomes of a factor."""
        return int(factor.distribution.lengths[factor.contexts[self.points]].sum())

    def with_factor(self, factor: Factor) -> "Rows":
        """Return the rows with all outcomes of a factor, which run fastest."""
        return self.with_outcomes(factor.distribution, factor.contexts[self.points])

    def with_outcomes(self, found: Distribution, contexts: Ints) -> "Rows":
        """Return the rows with all outcomes of a distribution, whose context in every row is given."""
        lengths = found.lengths[contexts]
        ends = np.cumsum(lengths)
        row = np.repeat(np.arange(contexts.size), lengths)
        outcome = np.arange(row.size) + (found.starts[contexts] - (ends - lengths))[row]
        columns = {name: v[row] for name, v in self.columns.items()}
        columns |= {name: v[outcome] for name, v in found.values.items()}
        return Rows(self.points[row], self.probabilities[row] * found.probabilities[outcome], columns)

    def halves(self) -> tuple["Rows", "Rows"]:
        """Return the rows of the first and of the second half of the points."""
        middle = int(np.searchsorted(self.points, (self.points[0] + self.points[-1] + 1) // 2))
        return self._part(slice(0, middle)), self._part(slice(middle, None))

    def _part(self, which: Any) -> "Rows":
        columns = {name: v[which] for name, v in self.columns.items()}
        return Rows(self.points[which], self.probabilities[which], columns)

    def merged(self) -> "Rows":
        """Return one row for each point and each combination of values, increasing in order of the columns."""
        if not self.points.size:
            return self
        first = int(self.points[0])
        keys, size = self.points - first, int(self.points[-1]) - first + 1
        for column in self.columns.values():
            codes, number = _coded(column)
            if size * number >= MOST_KEYS:
                (keys, size), (codes, number) = _ranked(keys), _ranked(codes)
            keys, size = keys * number + codes, size * number
        if size <= DENSE_KEYS * keys.size:
            sums = np.bincount(keys, weights=self.probabilities, minlength=size)
            firsts = np.full(size, -1, dtype=np.int64)
            firsts[keys[::-1]] = np.arange(keys.size)[::-1]
            used = np.flatnonzero(firsts >= 0)
            firsts, sums = firsts[used], sums[used]
        else:
            order = np.argsort(keys, kind="stable")
            new = np.append(True, keys[order[1:]] != keys[order[:-1]])
            firsts = order[new]
            sums = np.bincount(np.cumsum(new) - 1, weights=self.probabilities[order])
        columns = {name: v[firsts] for name, v in self.columns.items()}
        return Rows(self.points[firsts], sums.astype(np.float64), columns)


def joined_rows(parts: list[Rows]) -> Rows:
    """Return the rows of several parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    points = np.concatenate([part.points for part in parts])
    return Rows(points, np.concatenate([part.probabilities for part in parts]), columns)


def _coded(column: NDArray[Any]) -> tuple[Ints, int]:
    """Return a number for every value, in their order, and a number that is larger than all."""
    if column.dtype.kind in "biu":
        whole = column.astype(np.int64)
    elif column.dtype.kind == "f" and np.isfinite(column).all() and (np.abs(column) < WHOLE).all():
        whole = column.astype(np.int64)
        if (whole != column).any():
            return _ranked(column)
    else:
        return _ranked(column)
    low, high = int(whole.min()), int(whole.max())
    return (whole - low, high - low + 1) if high - low < WHOLE else _ranked(whole)


def _ranked(column: NDArray[Any]) -> tuple[Ints, int]:
    values, ranks = np.unique(column, return_inverse=True)
    return ranks.ravel().astype(np.int64), int(values.size)


def distinct_points(codes: Iterable[NDArray[Any]], size: int) -> tuple[Ints, Ints]:
    """Return the first of all points that agree in some columns, and for every point the place of its first.

    The firsts are in order of the columns.
    """
    keys, number = np.zeros(size, dtype=np.int64), 1
    for column in codes:
        own, most = _coded(column)
        if number * most >= MOST_KEYS:
            (keys, number), (own, most) = _ranked(keys), _ranked(own)
        keys, number = keys * most + own, number * most
    if number <= DENSE_KEYS * size:
        firsts = np.full(number, -1, dtype=np.int64)
        firsts[keys[::-1]] = np.arange(size)[::-1]
        used = firsts >= 0
        return firsts[used], (np.cumsum(used) - 1)[keys]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse.ravel()
