"""Variables with finitely many values, and the product of several: the states or the actions of a system."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Ints
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.name_template import NameTemplate

MOST_PRODUCT = 2**62  # combinations of values, which are numbered
VALUE_BYTES = 64  # memory per value of a variable


@dataclass(frozen=True, eq=False)
class Variable:
    """A name and the values that it may have: numbers, or texts."""

    name: str
    values: NDArray[Any]

    @classmethod
    def of(cls, name: str, values: Any) -> "Variable":
        """Return a variable; ``values`` may be a range, any list of numbers or texts, or a number n for 0 to n - 1."""
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
            raise ModelError(f"a variable needs a name such as 'shelf'; got {quoted(name)}")
        if isinstance(values, int) and not isinstance(values, bool):
            values = range(values)
        is_scalar = isinstance(values, np.ndarray) and values.ndim == 0
        if isinstance(values, str) or is_scalar or not isinstance(values, Iterable):
            raise ModelError(f"{quoted(name)} must have a list of values, such as range(9); got {quoted(values)}")
        if isinstance(values, Sized):
            number = _length(values)
            need(VALUE_BYTES * number, f"{quoted(name)} with {number:.3g} values", ModelError)
        listed = values if isinstance(values, range) else list(values)
        if not listed:
            raise ModelError(f"{quoted(name)} must have at least one value")
        try:
            array = np.arange(listed.start, listed.stop, listed.step) if isinstance(listed, range) else np.array(listed)
        except (ValueError, TypeError, OverflowError):
            array = np.array(listed, dtype=object)
        if array.dtype.kind == "b":
            array = array.astype(np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iufU" or (array.dtype.kind == "U") != isinstance(listed[0], str):
            raise ModelError(f"the values of {quoted(name)} must be numbers, or texts; got {quoted(listed[:3])}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"the values of {quoted(name)} must be finite")
        if not isinstance(listed, range) and np.unique(array).size != array.size:
            raise ModelError(f"the values of {quoted(name)} must differ from each other")
        return cls(name, array)

    @cached_property
    def _sorted(self) -> tuple[Ints, NDArray[Any]]:
        order = np.argsort(self.values, kind="stable")
        return order, self.values[order]

    def index(self, values: Any) -> Ints:
        """Return the places of some values in the list, -1 for a value that is not in it."""
        given = np.asarray(values)
        order, ordered = self._sorted
        if (given.dtype.kind == "U") != (ordered.dtype.kind == "U") or given.dtype.kind not in "biufU":
            return np.full(given.shape, -1)
        near = np.searchsorted(ordered, given) % ordered.size  # a value beyond the last is compared with the first
        return np.asarray(np.where(ordered[near] == given, order[near], -1))

    def __len__(self) -> int:
        return int(self.values.size)


class Space:
    """All combinations of the values of some variables, numbered with the last variable running fastest.

    ``shown``: how to show a combination, ``"{shelf} in stock"``.
    """

    def __init__(self, variables: Mapping[str, Any], what: str, shown: str | None = None) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise ModelError(f"{what} must be a table of variables and their values, {{'shelf': range(9)}}")
        self.variables = tuple(Variable.of(name, values) for name, values in variables.items())
        self.names = tuple(variable.name for variable in self.variables)
        self.shape = tuple(len(variable) for variable in self.variables)
        self.size = prod(self.shape)
        if self.size > MOST_PRODUCT:
            raise ModelError(f"{what} has {self.size:.3g} combinations of values, too many to number")
        given, field = {v.name: v.values for v in self.variables}, f"{what}_names"
        self._template = NameTemplate.plain(given, field) if shown is None else NameTemplate.read(shown, given, field)

    def values(self, numbers: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of all variables in some combinations, given by number."""
        rest, found = numbers, []
        for variable in reversed(self.variables):  # np.unravel_index takes 32 variables, or 64
            rest, place = np.divmod(rest, len(variable))
            found.append((variable.name, variable.values[place]))
        return dict(reversed(found))

    def numbers(self, values: Mapping[str, Any]) -> tuple[Ints, Bools]:
        """Return the numbers of some combinations, and which of them are in the space; others have any number."""
        places = np.broadcast_arrays(*(v.index(values[v.name]) for v in self.variables))
        inside = np.logical_and.reduce([place >= 0 for place in places])
        numbers = np.zeros(places[0].shape, dtype=np.int64)
        for place, size in zip(places, self.shape, strict=True):
            numbers = numbers * size + np.maximum(place, 0)
        return np.asarray(numbers), np.asarray(inside)

    def number(self, values: Mapping[str, Any], what: str) -> int:
        """Return the number of one combination; raise an error if it is not in the space."""
        if not isinstance(values, Mapping) or set(values) != set(self.names):
            raise ModelError(f"{what} must give a value to each of {', '.join(self.names)}; got {quoted(values)}")
        for variable in self.variables:
            value = values[variable.name]
            if not _is_single(value) or variable.index(value) < 0:
                shown = ", ".join(map(str, variable.values[:6])) + (", ..." if len(variable) > 6 else "")
                raise ModelError(f"{what}: {quoted(variable.name)} has the values {shown}; got {quoted(value)}")
        return int(self.numbers(values)[0])

    def labels(self, numbers: Ints) -> list[str]:
        """Return combinations as texts, by default "shelf=4, coming=0"."""
        return self._template.names(self.values(numbers), numbers.size)

    def label(self, number: int) -> dict[str, Any]:
        """Return one combination as a table of plain values."""
        return {name: value.item() for name, value in self.values(np.asarray(number)).items()}


def place_among(numbers: Ints, number: int) -> int | None:
    """Return the place of a number in an increasing list of numbers; None if it is not there."""
    place = int(np.searchsorted(numbers, number))
    return place if place < numbers.size and numbers[place] == number else None


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float | np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _length(values: Sized) -> float:
    try:
        return float(len(values))
    except OverflowError:  # a range of more than 2^63 values
        return inf
